"""The map in mcore/__init__.py is the architecture: a module imports only names above it."""

import ast
import os
import re
import subprocess
import sys
from collections import namedtuple

from conftest import ROOT

import mcore

CORE = os.path.join(ROOT, "mcore")
MAP = re.findall(r"^    (\w+)  ", mcore.__doc__, re.M)
SLOW_TO_LOAD = {"dataclasses", "typing", "pathlib", "inspect"}  # 5 to 20 ms of a search's start each

Import = namedtuple("Import", "file line name")


def source_files():
    for folder, _, names in os.walk(CORE):
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".py"))


def module_name(path):
    """mcore/ops/find.py -> mcore.ops.find; a package has the name of its folder."""
    name = os.path.relpath(path, ROOT)[:-3].replace(os.sep, ".")
    return name.removesuffix(".__init__")


def imports(path):
    """Every import in a file, also inside functions, each with the full name of the module."""
    with open(path, encoding="utf-8") as handle:
        tree = ast.parse(handle.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(path, node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: a relative import hides its layer"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (Import(path, node.lineno, as_module(node.module, name)) for name in names)


def as_module(module, name):
    """What `from module import x` needs: the module x, or the module itself when x is a name in it."""
    path = os.path.join(ROOT, *name.split("."))
    return name if os.path.isfile(path + ".py") or os.path.isdir(path) else module


ALL_IMPORTS = [found for path in source_files() for found in imports(path)]


def layer(module):
    """The name on the map that a module belongs to; "" for mcore itself."""
    return module.split(".")[1] if "." in module else ""


def test_every_module_is_on_the_map_exactly_once():
    there = {entry.removesuffix(".py") for entry in os.listdir(CORE) if entry not in ("__init__.py", "__pycache__")}
    assert sorted(MAP) == sorted(there)


def test_a_module_imports_only_names_above_it():
    wrong = []
    for found in ALL_IMPORTS:
        if found.name.split(".")[0] != "mcore":
            continue
        user, used = layer(module_name(found.file)), layer(found.name)
        if used and used != user and (not user or MAP.index(used) > MAP.index(user)):
            wrong.append(f"{os.path.relpath(found.file, ROOT)}:{found.line}: {user or 'mcore'} imports {used}")
    assert wrong == []


def test_the_files_of_a_package_import_each_other_without_a_cycle():
    needs = {}
    for found in ALL_IMPORTS:
        user = module_name(found.file)
        if found.name.startswith("mcore.") and found.name != user and layer(user) == layer(found.name):
            needs.setdefault(user, set()).add(found.name)
    while needs:
        free = [user for user, used in needs.items() if not used & set(needs)]
        assert free, f"a cycle among {sorted(needs)}"
        for user in free:
            del needs[user]


def test_nothing_outside_the_standard_library_is_imported():
    """README: "Nothing to install: Python 3.10 or newer, standard library alone"."""
    allowed = sys.stdlib_module_names | {"mcore"}
    assert [found for found in ALL_IMPORTS if found.name.split(".")[0] not in allowed] == []


def test_no_module_is_imported_by_a_name_that_no_one_can_read_here():
    assert [found for found in ALL_IMPORTS if found.name.split(".")[0] == "importlib"] == []
    for path in source_files():
        with open(path, encoding="utf-8") as handle:
            assert "__import__" not in handle.read(), path


def test_no_module_of_ours_pays_for_what_makes_the_start_slow():
    assert [found for found in ALL_IMPORTS if found.name.split(".")[0] in SLOW_TO_LOAD] == []


EACH_FIRST = """
import importlib, sys
sys.path.insert(0, sys.argv.pop(1))
for name in sys.argv[1:]:
    for loaded in [n for n in sys.modules if n.split(".")[0] == "mcore"]:
        del sys.modules[loaded]
    importlib.import_module(name)
"""


def test_every_module_can_be_imported_first():
    """None works only because another one was imported before it."""
    names = [module_name(path) for path in source_files() if not path.endswith("__main__.py")]
    command = [sys.executable, "-I", "-S", "-c", EACH_FIRST, ROOT, *names]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60)
    assert len(names) > 20 and (ran.returncode, ran.stderr) == (0, "")


ALONE = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from mcore.cli import main
status = main()
strange = [n for n in sys.modules if n.split(".")[0] not in {*sys.stdlib_module_names, "mcore", "__main__"}]
print(*strange, *(p for p in sys.path if "site-packages" in p), file=sys.stderr)
sys.exit(status)
"""


def test_capture_and_search_work_without_site_packages(tmp_path):
    """README: "Capture a card and find it again, straight from the checkout"."""

    def run(*argv):
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", ALONE, ROOT, *argv],
            capture_output=True, encoding="utf-8", cwd=tmp_path, timeout=60,
        )  # fmt: skip

    body = "ecs-prod 上 nginx 的站点根目录是 /srv/www，不是默认的。"
    captured = run("capture", "--title", "nginx 站点根目录", "--body", body)
    found = run("search", "站点根目录")
    assert (captured.returncode, captured.stderr.strip()) == (0, "")
    assert (found.returncode, found.stderr.strip()) == (0, "")
    assert "nginx 站点根目录" in found.stdout and "1 hit" in found.stdout
