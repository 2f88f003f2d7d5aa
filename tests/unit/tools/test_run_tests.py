"""`make test`: one session, what it needs beside it, and its exit code."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SHELLS = [found for name in ("dash", "bash") if (found := shutil.which(name))]
#: Stands for pytest, and for the Python that runs what installs; all of that fails here.
STAND_IN = """#!/bin/sh
case "$1" in
tools/*) sleep 0.1; echo "$1" >>installed; exit 1 ;;
esac
echo "bytecode is ${PYTHONDONTWRITEBYTECODE:-written}"
[ -z "$INTERRUPT" ] || kill -INT "$PPID"
for _ in 1 2 3 4 5 6 7 8 9; do [ -e "$VT_TESTS_READY" ] || sleep 1; done
cat installed
dirname "$VT_TESTS_READY"
exit "$CODE"
"""


def run(shell: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "tools").mkdir()
    command, programs = folder / "stand-in", folder / "tools" / "go-programs"
    command.write_text(STAND_IN)
    programs.write_text('#!/bin/sh\necho "$0" >>installed\nexit 1\n')
    for file in (command, programs):
        file.chmod(0o755)
    return subprocess.run(
        [shell, str(ROOT / "tools" / "run-tests"), str(command), "2"],
        cwd=folder, env=os.environ | {"INTERRUPT": "", "CODE": "0"} | variables,
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("code", [0, 1])
def test_tests_run_while_what_they_need_is_installed_or_not_and_their_exit_code_is_kept(
    shell: str, code: int, tmp_path: Path
) -> None:
    done = run(shell, tmp_path, CODE=str(code), PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == code
    *told, folder = done.stdout.splitlines()
    needs = ["tools/system_programs.py", "tools/system_programs.py", "./tools/go-programs"]
    assert told == ["bytecode is written", *needs]
    assert not Path(folder).exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_an_interrupt_ends_it(shell: str, tmp_path: Path) -> None:
    assert run(shell, tmp_path, INTERRUPT="yes").returncode == 130
