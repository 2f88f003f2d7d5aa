"""Copies of the checkout in which mutants are tested."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.fixture_project import source_path
from tests.mutants.plugin import NAMES, REPORT

#: Where this module is imported from: the copy's own `tests` may not have it.
HERE: Final = Path(__file__).resolve().parents[2]
#: Git requires an author for a commit.
AUTHOR: Final = ("-c", "user.name=mutants", "-c", "user.email=mutants@example.com")
#: Write nothing into the copy, and end a test that hangs.
OPTIONS: Final = ("-q", "-p", "no:cacheprovider", "-p", "tests.mutants.plugin", "--timeout=40")


def files(root: Path) -> list[str]:
    """Every file git would commit."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout.decode()
    return sorted({name for name in listed.split("\0") if (root / name).is_file()})


def digest(root: Path) -> str:
    """The digest of the code. Data below ``tests/`` hardly changes which lines a test executes."""
    total = hashlib.sha256()
    for name in files(root):
        if not name.startswith(("docs/", "bench/", "tests/")) or name.endswith(".py"):
            total.update(name.encode() + b"\0" + (root / name).read_bytes() + b"\0")
    return total.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class TestRun:
    """How a run of tests ended."""

    __test__ = False
    code: int | None
    """pytest's exit code; None if the time was over."""
    failed: Sequence[str] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    """By test."""


class Copy:
    """A copy of a checkout, a git repository of its own."""

    def __init__(self, root: Path, path: Path) -> None:
        """Copy ``root`` to ``path``; the environment is shared."""
        self.path = path
        for name in files(root):
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, path / name)
        if (root / ".venv").exists():
            (path / ".venv").symlink_to((root / ".venv").resolve())
        for command in (["init", "-q"], ["add", "-A"], [*AUTHOR, "commit", "-q", "-m", "a copy"]):
            subprocess.run(["git", *command], cwd=path, check=True, capture_output=True)

    def run(self, tests: Sequence[str], limit: float, *options: str, **variables: str) -> TestRun:
        """Run tests by node id, file or folder, and end every process that they have started."""
        names, report, temporary = (
            self.path.with_name(name) for name in ("names.json", "report.json", "tmp")
        )
        names.write_text(json.dumps(list(tests)))
        report.unlink(missing_ok=True)
        temporary.mkdir(exist_ok=True)
        environment = os.environ | {
            # Processes that tests start import the copy, and write no byte code of a mutant.
            "PYTHONPATH": os.pathsep.join([source_path(self.path), str(HERE)]),
            "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DEBUG_TEMPROOT": str(temporary),
            NAMES: str(names), REPORT: str(report),
        }  # fmt: skip
        places = dict.fromkeys(test.partition("::")[0] for test in tests)
        command = [sys.executable, "-m", "pytest", *OPTIONS, *options, *places]
        with self.path.with_name("pytest.log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self.path, env=environment | variables, start_new_session=True,
                stdout=log, stderr=log,
            )  # fmt: skip
        code = None
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(limit)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return TestRun(code, **(json.loads(report.read_text()) if report.exists() else {}))
