"""A cancelled step: the runner signals one process, and the signal must reach all of the step."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
WORKER = """\
import signal, sys
def heard(number, frame):
    print(signal.Signals(number).name, flush=True)
    sys.exit(7)
signal.signal(signal.SIGINT, heard)
signal.signal(signal.SIGTERM, heard)
print("ready", flush=True)
signal.pause()
"""


@pytest.fixture
def step(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """What a runner starts for `run: exec tools/foreground make work`, with the worker ready."""
    (tmp_path / "worker.py").write_text(WORKER)
    (tmp_path / "Makefile").write_text(f"work:\n\t@exec {shlex.quote(sys.executable)} worker.py\n")
    script = tmp_path / "step.sh"
    script.write_text(f"exec {shlex.quote(str(ROOT / 'tools' / 'foreground'))} make work\n")
    process = subprocess.Popen(
        ["bash", "-e", script], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_first_process_reaches_the_last(
    step: subprocess.Popen[str], number: signal.Signals
) -> None:
    step.send_signal(number)
    output, _ = step.communicate(timeout=60)
    assert output == f"{number.name}\n"
    assert step.returncode != 0


def test_an_interrupted_step_ends_only_after_its_command(step: subprocess.Popen[str]) -> None:
    step.send_signal(signal.SIGINT)
    step.wait(timeout=60)
    assert step.stdout is not None
    assert step.stdout.read() == "SIGINT\n"  # end of file: nobody holds the pipe any more


@pytest.mark.parametrize("code", [0, 1, 7])
def test_the_exit_code_is_that_of_the_command(code: int) -> None:
    command = [ROOT / "tools" / "foreground", "sh", "-c", f"exit {code}"]
    assert subprocess.run(command, check=False).returncode == code
