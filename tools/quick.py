"""Run the unit and golden tests that a change can break, the closest first: ``make quick``.

A change is a difference to the merge base with the main branch (or BASE). It can break a test that
imports a changed module, directly or through other modules. A changed data file counts as a change
of every module that names the file or its folder. After ``SECONDS``, no other test starts.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
#: Seconds from the command's start, after which no test starts. The rest of the 90 seconds is for
#: the tests that are running, and for skipping thousands of tests.
SECONDS: Final = 66.0
#: Environment variable with the command's start time on the system's monotonic clock.
BEGAN: Final = "QUICK_BEGAN"
TESTS: Final = ("tests/unit/", "tests/golden/", "tests/policy/test_policies.py")
#: Golden tests, and the code that other processes run for each test.
GOLDEN: Final = {
    "tests/golden/test_inventories.py": ("__main__.py", "infra/", "localcloud/localgcp/gcp/"),
    "tests/golden/test_reviews.py": (
        *("__main__.py", "infra/", "localcloud/localgcp/gcp/"),
        *("cli/vertex_training_cli/review/", "cli/vertex_training_cli/engine/"),
    ),
}


def import_graph(root: Path, files: Iterable[str]) -> dict[str, set[str]]:
    """Return the imports of each Python file, including strings that are full names of modules.

    Tests import a ``conftest.py`` of their folders.
    """
    known = [name for name in files if name.endswith(".py")]
    modules: dict[str, str] = {}
    for file in known:
        name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        modules[name] = file
        modules.setdefault(name.partition(".")[2], file)  # folders on the path of pytest
    modules.pop("", None)  # of files at the top
    graph = {file: _imported(root / file, modules) - {file} for file in known}
    for file in known:
        if (folder := file.removesuffix("conftest.py")) != file:
            for test in known:
                if test.startswith(folder) and test != file:
                    graph[test].add(file)
    return graph


def _imported(file: Path, modules: Mapping[str, str]) -> set[str]:
    names: set[str] = set()
    for node in _executed(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names |= {name if name in modules else node.module for name in inner}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            names.add(node.value.partition(":")[0])
    return {modules[name] for name in names & modules.keys()}


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and its descendants, without code for type checkers."""
    yield node
    is_typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    for inner in () if is_typing else ast.iter_child_nodes(node):
        yield from _executed(inner)


def distances(graph: Mapping[str, set[str]], changed: Iterable[str]) -> dict[str, int]:
    """Return the number of import steps from each file to a changed file."""
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for file, imported in graph.items():
        for name in imported:
            importers[name].add(file)
    steps = dict.fromkeys(changed, 0)
    last = set(steps)
    while last:
        last = {file for name in last for file in importers[name]} - steps.keys()
        steps |= dict.fromkeys(last, max(steps.values()) + 1)
    return steps


def select(root: Path, files: Iterable[str], changed: Iterable[str]) -> list[str]:
    """Return the test files that import a changed file, the closest first."""
    files, changed = list(files), set(changed)
    graph = import_graph(root, files)
    texts = {name: (root / name).read_text(encoding="utf-8") for name in graph}
    for data in {name for name in changed if not name.endswith(".py")}:
        name, folders = Path(data).name, Path(data).parts[2:-1]
        words = {data, f'"{name}"', f'/{name}"', *(f'"{folder}"' for folder in folders)}
        changed |= {name for name, text in texts.items() if any(word in text for word in words)}
    near = distances(graph, changed)
    for file, parts in GOLDEN.items():
        if any(name.startswith(parts) for name in changed):
            near.setdefault(file, len(files))
    chosen = {file for file in near if file.startswith(TESTS) and Path(file).match("test_*.py")}
    return sorted(chosen & set(files), key=lambda file: (near[file], "golden" in file, file))


def changed_files(root: Path, base: str) -> list[str]:
    """Return the files that differ from the merge base, with removed and untracked files."""
    fork = _git(root, "merge-base", base, "HEAD")
    return [
        *_git(root, "diff", "--name-only", "--no-renames", fork).splitlines(),
        *_git(root, "ls-files", "--others", "--exclude-standard").splitlines(),
    ]


def _git(root: Path, *words: str) -> str:
    ran = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


class Deadline:
    """A pytest plugin that starts no test after the time limit."""

    def __init__(self) -> None:
        # The workers read the start time from their environment.
        self.until = float(os.environ.get(BEGAN) or time.monotonic()) + SECONDS

    def pytest_runtest_setup(self) -> None:
        """Skip a test after the time limit."""
        if time.monotonic() > self.until:
            import pytest

            pytest.skip("time limit of `make quick` reached. Hint: make test")


def pytest_collection_finish(session: Any) -> None:
    """Register the time limit in each worker."""
    session.config.pluginmanager.register(Deadline())


def main() -> int:
    """Run the tests; return pytest's exit code."""
    began = time.monotonic()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--base", help="revision to compare with")
    parser.add_argument("--workers", default="auto")
    options = parser.parse_args()
    listed = _git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    files = [name for name in listed if (ROOT / name).is_file()]
    known = _git(ROOT, "for-each-ref", "--format=%(refname:short)").splitlines()
    main_branch = next((name for name in ("origin/main", "main") if name in known), "HEAD")
    changed = changed_files(ROOT, options.base or main_branch)
    chosen = select(ROOT, files, changed)
    print(f"{len(changed)} changed files, {len(chosen)} affected test files", flush=True)
    if not chosen:
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tools.quick", "-n", options.workers]
    command += ["--dist", "loadfile", "--no-loadscope-reorder", *chosen]
    environment = os.environ | {BEGAN: str(began)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
