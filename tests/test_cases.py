"""Reports of other people's users, as inputs: each line of tests/data/cases.jsonl is one test.

Set MEMORY_AGENT_SLOW=1 for the case that takes a minute, and for the full number of kills.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
from blackbox import CaseSkipped, read_cases, run_case
from warm_start import IS_POSSIBLE, WarmStart

SLOW = os.environ.get("MEMORY_AGENT_SLOW") == "1"
SPECS = [spec for spec in read_cases() if SLOW or not spec.get("slow")]
WORKERS = 2
KILLS = 1.0 if SLOW else 0.2  # of the moments at which a sweep kills


@pytest.fixture(scope="module")
def outcomes(request):
    """id -> a future of each case that was asked for; they run two at a time, whoever waits for them."""
    wanted = {item.callspec.params["spec"]["id"] for item in request.session.items if item.path == request.path
              and "spec" in getattr(getattr(item, "callspec", None), "params", ())}
    pool = ThreadPoolExecutor(WORKERS)
    with WarmStart() if IS_POSSIBLE else nullcontext() as warm:
        yield {
            spec["id"]: pool.submit(run_case, spec, kills=KILLS, warm=warm) for spec in SPECS if spec["id"] in wanted
        }
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec["id"])
def test_a_reported_case_comes_out_right(spec, outcomes):
    try:
        outcomes[spec["id"]].result()
    except CaseSkipped as why:
        pytest.skip(str(why))


def test_the_cases_are_all_there():
    assert len(read_cases()) >= 189 and len({spec["id"] for spec in read_cases()}) == len(read_cases())
