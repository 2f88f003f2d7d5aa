"""`make test`: every tier runs, whatever became of another, but for an interrupt."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SHELLS = [found for name in ("dash", "bash") if (found := shutil.which(name))]
#: Stands for pytest, which ends with 2 when it is interrupted, and when it cannot collect.
STAND_IN = """#!/bin/sh
echo "bytecode is ${PYTHONDONTWRITEBYTECODE:-written}"
case "$1" in
*"$BAD"*) [ -z "$INTERRUPT" ] || kill -INT "$PPID"; exit 2 ;;
esac
"""


@pytest.fixture
def pytest_command(tmp_path: Path) -> str:
    file = tmp_path / "stand-in"
    file.write_text(STAND_IN)
    file.chmod(0o755)
    for tier in ("chaos", "policy"):
        (tmp_path / "tests" / tier).mkdir(parents=True)
    return str(file)


def run(shell: str, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [shell, str(ROOT / "tools" / "run-tests"), command, "2"],
        cwd=Path(command).parent, env=os.environ | variables, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS)
def test_a_tier_that_fails_does_not_keep_the_others_from_running(
    shell: str, pytest_command: str
) -> None:
    done = run(shell, pytest_command, BAD="chaos", INTERRUPT="")
    assert done.returncode == 1
    assert done.stdout.endswith("passed: unit policy end-to-end\nFAILED: chaos\n")


@pytest.mark.parametrize("shell", SHELLS)
def test_an_interrupt_ends_all_of_it(shell: str, pytest_command: str) -> None:
    done = run(shell, pytest_command, BAD="chaos", INTERRUPT="yes")
    assert done.returncode == 130
    assert done.stdout.count("==") == 2  # the tier that was interrupted, and the one before it


@pytest.mark.parametrize("shell", SHELLS)
def test_what_tests_import_is_compiled_once(shell: str, pytest_command: str) -> None:
    done = run(shell, pytest_command, BAD="none of them", INTERRUPT="", PYTHONDONTWRITEBYTECODE="1")
    assert done.stdout.count("bytecode is written\n") == done.stdout.count("== ") == 4
