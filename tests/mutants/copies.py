"""Copies of the checkout in which mutants are tested, and the process that runs tests there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.fixture_project import source_path

#: Where this module is imported from: the copy's own `tests` may not have it.
HERE: Final = Path(__file__).resolve().parents[2]
#: What git asks for before it commits.
AUTHOR: Final = ("-c", "user.name=mutants", "-c", "user.email=mutants@example.com")


def files(root: Path) -> list[str]:
    """Every file git would commit."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode()
    return sorted({name for name in listed.split("\0") if (root / name).is_file()})


def digests(root: Path, folders: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The digest of what tests run on, product code and helpers, and that of each file of tests.

    Data below ``tests/`` is left out: it hardly changes which lines a test executes.
    """
    total, tests = hashlib.sha256(repr(sorted(folders)).encode()), dict[str, str]()
    for name in files(root):
        content = (root / name).read_bytes()
        if name.startswith("tests/") and Path(name).match("test_*.py"):
            tests[name] = hashlib.sha256(content).hexdigest()[:16]
        elif not name.startswith(("docs/", "bench/", "tests/")) or name.endswith(".py"):
            total.update(name.encode() + b"\0" + content + b"\0")
    return total.hexdigest()[:16], tests


@dataclass(frozen=True, slots=True)
class TestRun:
    """How a run of tests ended."""

    __test__ = False
    code: int | None
    """pytest's exit code; None if the time was over."""
    failed: str
    """The first test that failed."""
    seconds: float


class Copy:
    """A copy of a checkout, a git repository of its own, whose tests run in forked processes."""

    def __init__(self, root: Path, path: Path, folders: Sequence[str]) -> None:
        """Copy ``root`` to ``path``; the environment is shared. ``folders`` hold product code."""
        self.path = path
        for name in files(root):
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, path / name)
        if (root / ".venv").exists():
            (path / ".venv").symlink_to((root / ".venv").resolve())
        for command in (["init", "-q"], ["add", "-A"], [*AUTHOR, "commit", "-q", "-m", "a copy"]):
            subprocess.run(["git", *command], cwd=path, check=True, capture_output=True)
        self._folders = folders
        self._worker: subprocess.Popen[str] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Processes that tests start import the copy, and write no byte code of a mutant."""
        temporary = self.path.with_name(f"{self.path.name}-tmp")
        temporary.mkdir(exist_ok=True)
        return os.environ | {
            "PYTHONPATH": os.pathsep.join([source_path(self.path), str(HERE)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DEBUG_TEMPROOT": str(temporary),
        }

    def run(self, tests: Sequence[str], limit: float) -> TestRun:
        """Run tests, by node id or by file, until the first one fails."""
        if self._worker is None:
            self._worker = self._start()
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        self._worker.stdin.write(json.dumps({"tests": list(tests), "limit": limit}) + "\n")
        self._worker.stdin.flush()
        return TestRun(**json.loads(self._worker.stdout.readline()))

    def close(self) -> None:
        """Stop the process. The files stay."""
        if self._worker is not None:
            with suppress(BrokenPipeError):
                self._worker.communicate(timeout=60)

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.mutants.worker", *self._folders]
        return subprocess.Popen(
            command, cwd=self.path, env=self.environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
