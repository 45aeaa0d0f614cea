"""`memory bench`: truth in, figures out; baselines; the drafted truth file; and our own bench."""

import json
import os
import stat

import pytest

from mcore.benchmark import read_truth
from mcore.errors import SetupError

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CARDS = {
    "03-Knowledge/ecs-prod.md": "# 登录 ecs-prod\n\n端口是 22022，用户 deploy_bot。\n\n## 防火墙 规则\n\n只放内网。\n",
    "03-Knowledge/redis.md": "# Redis timeout\n\nThe client gives up after max_wait_ms = 250.\n",
    "08-Mistakes/redis-disk.md": "# Redis filled the disk\n\nThe AOF file of cache-02 grew to 40 GB.\n",
}
QUERIES = [
    {"group": "A", "query": "22022", "acceptable": ["03-Knowledge/ecs-prod.md"]},
    {"group": "A", "query": "redis", "acceptable": ["08-Mistakes/redis-disk.md", "03-Knowledge/redis.md"], "note": ""},
    {"group": "B", "query": "redis", "kind": "mistake", "acceptable": ["08-Mistakes/redis-disk.md"]},
    {"group": "F", "query": "kubernetes", "acceptable": []},
]


@pytest.fixture
def vault(write_note):
    for name, text in CARDS.items():
        write_note(name, text)


@pytest.fixture
def put_truth(tmp_path):
    """put_truth(queries or text) -> path of the truth file in the data root."""

    def put(content):
        path = tmp_path / "home/bench_queries.json"
        path.parent.mkdir(exist_ok=True)
        text = content if isinstance(content, str) else json.dumps({"queries": content}, ensure_ascii=False)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return path

    return put


def test_figures_per_group_and_in_all(memory, vault, put_truth, tmp_path):
    put_truth(QUERIES)
    ran = memory("bench", "--json")
    result = json.loads(ran.out)
    assert (ran.code, result["cards"], result["warnings"], result["comparison"]) == (0, 3, [], None)
    assert list(result["metrics"]) == ["A", "B", "F", "all"]
    assert result["metrics"]["A"]["precision_at_5"] == result["metrics"]["B"]["first_acceptable"] == 1
    assert result["metrics"]["F"]["judged"] == 0 and result["metrics"]["F"]["unanswerable_right"] == 1
    assert result["metrics"]["all"]["tiers"] == {"all": 3} and result["metrics"]["all"]["queries"] == 4
    assert result["results"][2]["paths"] == ["08-Mistakes/redis-disk.md"] and result["results"][2]["kind"] == "mistake"


def test_the_table_has_a_line_for_each_group_and_one_for_what_nothing_answers(memory, vault, put_truth):
    put_truth(QUERIES)
    lines = memory("bench").out.splitlines()
    assert [line.split()[:3] for line in lines[3:]] == [
        ["A", "2", "100.0"], ["B", "1", "100.0"], ["all", "3", "100.0"], ["F", "1", "that"],
    ]  # fmt: skip
    columns = {line.index("100.0") + 5 for line in lines[3:6]}
    assert len(columns) == 1 and lines[2].index("first") + 5 in columns


def test_a_truth_path_that_is_no_card_is_named_and_counts_as_not_found(memory, vault, put_truth):
    put_truth([{"group": "A", "query": "22022", "acceptable": ["03-Knowledge/ecs-prod.md", "03-Knowledge/gone.md"]}])
    result = json.loads(memory("bench", "--json").out)
    assert [note["slug"] for note in result["warnings"]] == ["no-card"]
    assert "03-Knowledge/gone.md" in result["warnings"][0]["message"] and "22022" in result["warnings"][0]["message"]
    assert result["metrics"]["A"]["precision_at_5"] == 0.5
    assert "gone.md is no card" in memory("bench").out


def test_every_card_is_indexed_before_measuring(memory, vault, put_truth, write_note):
    put_truth(QUERIES)
    memory("bench")
    write_note("03-Knowledge/new.md", "Redis cluster notes")
    assert json.loads(memory("bench", "--json").out)["cards"] == 4


# ---- truth files that cannot be used -------------------------------------------------------------

GOOD = '{"group": "A", "query": "x", "acceptable": []}'
BROKEN = [
    # text of the file, line, part of the reason
    ("", 1, "not JSON"),
    ("{\n\n", 3, "not JSON"),
    ("[]", 1, "queries"),
    ("{}", 1, "queries"),
    ('{"queries": []}', 1, "at least one"),
    ('{"queries": {}}', 1, "queries"),
    ('{"queries": [\n' + GOOD + ",\n 7]}", 3, "query 2: it must be an object"),
    ('{"queries": [\n{"query": "x", "acceptable": []}]}', 2, "'group'"),
    ('{"queries": [\n{"group": 1, "query": "x", "acceptable": []}]}', 2, "'group'"),
    ('{"queries": [\n{"group": "all", "query": "x", "acceptable": []}]}', 2, "'all'"),
    ('{"queries": [\n{"group": "A", "query": " ", "acceptable": []}]}', 2, "'query'"),
    ('{"queries": [\n' + GOOD + ',\n\n{"group": "A", "query": "x"}]}', 4, "'acceptable'"),
    ('{"queries": [\n{"group": "A", "query": "x", "acceptable": "a.md"}]}', 2, "'acceptable'"),
    ('{"queries": [\n{"group": "A", "query": "x", "acceptable": [1]}]}', 2, "'acceptable'"),
    ('{"queries": [\n{"group": "A", "query": "x", "acceptable": [], "kind": []}]}', 2, "'kind'"),
    ('{"queries": [' + "[" * 100_000, 1, "JSON"),
    ('{"x": ' + "9" * 5000 + "x", 1, "JSON"),
]


@pytest.mark.parametrize("text, line, reason", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_truth_file_is_refused_with_line_and_reason(memory, vault, put_truth, text, line, reason):
    path = put_truth(text)
    ran = memory("bench")
    assert ran.code == 2 and ran.out == ""
    assert str(path) in ran.err and f"line {line}: " in ran.err and reason in ran.err and "--init" in ran.err


def test_a_truth_file_that_is_not_utf8_is_refused_with_its_line(tmp_path):
    (tmp_path / "t.json").write_bytes(b'{"queries":\n["\xff"]}')
    with pytest.raises(SetupError) as caught:
        read_truth(str(tmp_path / "t.json"))
    assert caught.value.why == "line 2: it is not UTF-8 text"


def test_a_missing_truth_file_says_how_to_make_one(memory, vault, tmp_path):
    ran = memory("bench")
    assert ran.code == 2 and "bench_queries.json" in ran.err and "memory bench --init" in ran.err
    assert memory("bench", "--truth", tmp_path / "no.json").code == memory("bench", "--truth", tmp_path).code == 2


def test_odd_characters_in_a_truth_file_do_no_harm(memory, vault, put_truth, tmp_path):
    odd = '{"group": "\\ud800\\u001b[2J", "query": "\\udfff\\u0000 AND (", "acceptable": ["\\ud800.md"]}'
    put_truth('\ufeff{"queries": [' + odd + "]}")
    ran = memory("bench", "--save", tmp_path / "s.json")
    assert ran.code == 0 and "\x1b" not in ran.out
    assert memory("bench", "--baseline", tmp_path / "s.json").code == 0


# ---- baselines -----------------------------------------------------------------------------------


def test_an_unchanged_search_is_equal_to_its_own_baseline(memory, vault, put_truth, tmp_path):
    put_truth(QUERIES)
    base = tmp_path / "base.json"
    assert memory("bench", "--save", base).code == 0
    if os.name == "posix":
        assert stat.S_IMODE(base.stat().st_mode) == 0o600
    first = base.read_bytes()
    ran = memory("bench", "--baseline", base, "--save", base)
    assert ran.code == 0 and "No metric is worse" in ran.out and base.read_bytes() == first


def test_a_fall_exits_1_and_names_metric_query_and_cards(memory, vault, put_truth, tmp_path, write_note):
    put_truth(QUERIES)
    memory("bench", "--save", tmp_path / "base.json")
    write_note("08-Mistakes/0.md", "# Redis redis redis\n\nredis")
    os.unlink(tmp_path / "vault/08-Mistakes/redis-disk.md")
    ran = memory("bench", "--baseline", tmp_path / "base.json")
    assert ran.code == 1
    for part in ("WORSE  B  first  100.00 -> 0.00", "B  redis: first", "out 1  08-Mistakes/redis-disk.md  (acceptable)",
                 "in 1  08-Mistakes/0.md"):  # fmt: skip
        assert part in ran.out
    falls = json.loads(memory("bench", "--json", "--baseline", tmp_path / "base.json").out)["comparison"]["falls"]
    assert {(fall["group"], fall["metric"]) for fall in falls} >= {("B", "first_acceptable"), ("all", "recall_at_10")}


def test_better_than_the_baseline_exits_0(memory, vault, put_truth, tmp_path, write_note):
    put_truth(QUERIES)
    note = write_note("08-Mistakes/0.md", "# Redis redis redis\n\nredis")
    memory("bench", "--save", tmp_path / "base.json")
    os.unlink(note)
    assert memory("bench", "--baseline", tmp_path / "base.json").code == 0


METRICS = '"metrics": {"A": {"first_acceptable": %s}}'
RESULT = '{"group": "A", "query": "x", "paths": %s, "scores": %s}'
NO_BASELINES = [
    "", "[]", "{}", '{"metrics": {}}', '{"metrics": [], "results": []}', '{"metrics": {"A": 1}, "results": []}',
    "{" + METRICS % '"x"' + ', "results": []}', "{" + METRICS % "NaN" + ', "results": []}',
    "{" + METRICS % ("9" * 400) + ', "results": []}', '{"metrics": {}, "results": [1]}',
    '{"metrics": {}, "results": [' + RESULT % ("{}", "{}") + "]}",
    '{"metrics": {}, "results": [' + RESULT % ("[1]", "{}") + "]}",
    '{"metrics": {}, "results": [' + RESULT % ("[]", "[]") + "]}",
    '{"metrics": {}, "results": [{"group": [], "query": "x", "paths": [], "scores": {}}]}',
]  # fmt: skip


@pytest.mark.parametrize("text", NO_BASELINES, ids=range(len(NO_BASELINES)))
def test_what_is_no_baseline_is_refused_and_never_replaced(memory, vault, put_truth, tmp_path, text):
    put_truth(QUERIES)
    other = tmp_path / "other.json"
    other.write_text(text or "no")
    ran = memory("bench", "--baseline", other)
    assert ran.code == 2 and str(other) in ran.err and "--save" in ran.err
    assert memory("bench", "--save", other).code == 2 and other.read_text() == (text or "no")


def test_no_card_is_replaced_by_a_saved_measurement(memory, vault, put_truth, tmp_path):
    put_truth(QUERIES)
    card = tmp_path / "vault/03-Knowledge/redis.md"
    assert memory("bench", "--save", card).code == 2
    assert card.read_text() == CARDS["03-Knowledge/redis.md"]


# ---- a first truth file --------------------------------------------------------------------------


def test_init_drafts_queries_whose_cards_literally_hold_them(memory, vault, tmp_path):
    ran = memory("bench", "--init")
    path = tmp_path / "home/bench_queries.json"
    queries = json.loads(path.read_text(encoding="utf-8"))["queries"]
    assert ran.code == 0 and str(path) in ran.out
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    drafted = {(entry["group"], entry["query"]): entry["acceptable"] for entry in queries}
    assert drafted[("C", "deploy_bot")] == ["03-Knowledge/ecs-prod.md"]
    assert drafted[("C", "max_wait_ms")] == ["03-Knowledge/redis.md"]
    assert drafted[("A", "Redis timeout")] == ["03-Knowledge/redis.md"]
    assert drafted[("A", "防火墙 规则")] == ["03-Knowledge/ecs-prod.md"]
    for (_, query), acceptable in drafted.items():
        assert acceptable
        assert all(word in CARDS[name].casefold() for name in acceptable for word in query.casefold().split())
    assert memory("bench").code == 0


def test_init_drafts_only_what_a_plain_search_can_find(memory, write_note, tmp_path):
    held = {"forgotten": "forgotten_at: 2026-01-01", "expired": "valid_to: 2020-01-01", "scoped": "scope: project/x"}
    for name, field in {"plain": "tags: [a]", **held}.items():
        write_note(f"{name}.md", f"---\n{field}\n---\n# Redis {name}\n\nmax_wait_ms is 250\n")
    memory("bench", "--init")
    queries = json.loads((tmp_path / "home/bench_queries.json").read_text())["queries"]
    assert {path for entry in queries for path in entry["acceptable"]} == {"plain.md"}
    assert json.loads(memory("bench", "--json").out)["metrics"]["all"]["recall_at_10"] == 1


def test_init_never_replaces_a_truth_file(memory, vault, put_truth):
    path = put_truth("mine")
    ran = memory("bench", "--init")
    assert ran.code == 3 and "conflict" in ran.out and path.read_text() == "mine"
    assert json.loads(memory("bench", "--init", "--json").out)["status"] == "conflict"


def test_init_draws_no_credential(memory, write_note, tmp_path):
    secret = "ghp_" + "".join(chr(ord("a") + i * 7 % 26) + str(i * 3 % 10) for i in range(18))
    body = f"## token {secret}\n\nuse {secret} for build_bot and password = {secret[4:20]}x\n"
    write_note("a.md", f"# Token of the bot\n\n{body}")
    assert memory("bench", "--init").code == 0
    text = (tmp_path / "home/bench_queries.json").read_text()
    assert "build_bot" in text and secret[4:12] not in text and "redacted" not in text


def test_an_empty_vault_gives_nothing_to_draft(memory, tmp_path):
    ran = memory("bench", "--init")
    assert ran.code == 2 and not (tmp_path / "home/bench_queries.json").exists()


@pytest.mark.parametrize("argv", [
    ("--init", "--save", "x"), ("--init", "--explain", "x"), ("--explain", "x", "--baseline", "y"), ("--truth", ""),
    ("--save", ""), ("--baseline", ""), ("--truth", "a\0b"), ("--save", "\0"),
])  # fmt: skip
def test_a_call_that_makes_no_sense_is_refused(memory, vault, put_truth, argv):
    put_truth(QUERIES)
    assert memory("bench", *argv).code == 2


def test_explain_shows_what_a_hit_holds(memory, vault):
    ran = memory("bench", "--explain", "redis disk")
    assert ran.code == 0 and "08-Mistakes/redis-disk.md" in ran.out and "score" in ran.out and "redis" in ran.out
    assert memory("bench", "--explain", "kubernetes").code == 1
    assert json.loads(memory("bench", "--json", "--explain", "redis disk").out)["hits"]


# ---- our own bench -------------------------------------------------------------------------------


def test_our_own_bench_is_no_worse_than_its_committed_baseline(memory, tmp_path):
    bench = os.path.join(ROOT, "bench")
    ran = memory("--vault", os.path.join(bench, "vault"), "bench", "--truth", os.path.join(bench, "truth.json"),
                 "--baseline", os.path.join(bench, "baseline.json"), "--json")  # fmt: skip
    result = json.loads(ran.out)
    assert result["warnings"] == [] and result["comparison"]["added"] == result["comparison"]["gone"] == []
    assert result["comparison"]["falls"] == [] and ran.code == 0
