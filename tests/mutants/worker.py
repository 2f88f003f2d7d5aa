"""Run tests in forks of one process that has loaded all packages of others already.

``python -m tests.mutants.worker FOLDER…`` in a copy of the checkout. It imports the product code
of the folders, which loads every package that the code needs, and removes the product code again;
so a fork imports the files as they are then, and nothing else. Reads a request a line from standard
input, and answers with a line of JSON.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

#: Of pytest: stop at the first failure, write nothing, and end a test that hangs.
OPTIONS: Final = ("-x", "-q", "-p", "no:cacheprovider", "--timeout=40", "--tb=short")
LAZY: Final = re.compile(r"\b(gcp)\.([a-z_]+)\.")


class SelectedTests:
    """A pytest plugin that runs the named tests alone and keeps the first that fails."""

    def __init__(self, names: Sequence[str]) -> None:
        """A name without ``::`` is a file, or a folder, and selects all of its tests."""
        self.names = {name.rstrip("/") for name in names}
        self.failed = ""

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Deselect what is not named."""
        wanted = [item for item in items if not self.names.isdisjoint(_names_of(item.nodeid))]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(wanted)])
        items[:] = wanted

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported fails as well."""
        self._failed(report.failed, report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the first failure."""
        self._failed(report.failed, report.nodeid)

    def _failed(self, failed: bool, name: str) -> None:
        if failed and not self.failed:
            self.failed = name


def _names_of(test: str) -> Iterator[str]:
    """Names that select a test: its own, its file's, and those of the folders above."""
    file = Path(test.partition("::")[0])
    yield from (test, *map(str, (file, *file.parents)))


def main(folders: Sequence[str]) -> int:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    preload(folders)
    for line in sys.stdin:
        request = json.loads(line)
        began = time.monotonic()
        code, failed = run(request["tests"], request["limit"])
        seconds = round(time.monotonic() - began, 2)
        answers.write(json.dumps({"code": code, "failed": failed, "seconds": seconds}) + "\n")
        answers.flush()
    return 0


def preload(folders: Sequence[str]) -> None:
    """Import what product code imports, and forget the product code."""
    here = Path.cwd()
    roots = [root for root in map(Path, sys.path) if root.is_relative_to(here)]
    for file in (file for folder in folders for file in sorted((here / folder).rglob("*.py"))):
        if file.name.startswith("__"):
            continue
        with contextlib.suppress(Exception):
            root = max(
                (root for root in roots if file.is_relative_to(root)), key=lambda r: len(r.parts)
            )
            importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))
            for package, module in set(LAZY.findall(file.read_text())):
                getattr(importlib.import_module(f"pulumi_{package}"), module, None)
    own = {name for name, module in list(sys.modules.items()) if _is_below(module, here)}
    for name in own - {"__main__"}:
        del sys.modules[name]
    importlib.invalidate_caches()


def _is_below(module: ModuleType, folder: Path) -> bool:
    """Whether a module or package was loaded from a folder, its environment excepted."""
    place = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), "/")
    return Path(place).is_relative_to(folder) and ".venv" not in place


def run(tests: Sequence[str], limit: float) -> tuple[int | None, str]:
    """Run tests in a fork: its exit code, None if it took longer than ``limit``; what failed."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.setsid()
        os.dup2(os.open("../pytest.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
        os.dup2(1, 2)
        selected = SelectedTests(tests)
        code = 3
        try:
            wanted = list(dict.fromkeys(name.partition("::")[0] for name in tests))
            code = int(pytest.main([*OPTIONS, *wanted], plugins=[selected]))
        finally:
            os.write(writing, selected.failed.encode())
            os._exit(code)
    os.close(writing)
    code = _wait(child, limit)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as answer:
        # A process that the test has left behind may hold the pipe open.
        os.set_blocking(reading, False)
        return code, (answer.read() or b"").decode(errors="replace")


def _wait(child: int, limit: float) -> int | None:
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
