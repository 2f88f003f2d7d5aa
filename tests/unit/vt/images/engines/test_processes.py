"""A program of an engine: its lines, its end, its children, and its folder."""

import os
import subprocess
import sys
import time

import pytest

from vertex_training_cli.images import programs


def run(code, seconds=30.0):
    lines = []
    log = programs.LastLines(lines.append)
    command = [sys.executable, "-c", code]
    result = programs.run(command, dict(os.environ), log, programs.Deadline(seconds))
    return result, lines


def test_lines_come_whole_and_in_order():
    code = "import os; os.write(1, b'one\\ntwo\\r\\nthr\\rfour\\n\\xff'); raise SystemExit(7)"
    assert run(code) == (7, ["one", "two", "thr", "four", "\ufffd"])


@pytest.mark.skipif(sys.platform != "linux", reason="groups of processes are read in /proc")
def test_children_of_a_program_end_first_so_that_it_can_clean_up(tmp_path):
    class WhenStarted:
        """A deadline that passes when the program says that it started another one."""

        seconds_left = 60.0

        def pass_now(self, _line):
            self.seconds_left = 0.0

    note, deadline = tmp_path / "cleaned", WhenStarted()
    inner = "import time; print(1, flush=True); time.sleep(600)"
    code = (
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', {inner!r}])\n"
        f"open({str(note)!r}, 'w').close()"
    )
    log = programs.LastLines(deadline.pass_now)
    with pytest.raises(TimeoutError):
        programs.run([sys.executable, "-c", code], dict(os.environ), log, deadline)
    assert note.exists()


def test_program_goes_on_after_its_caller_was_killed(tmp_path):
    note = tmp_path / "done"
    inner = f"print('a', flush=True); print('b' * 100000, flush=True); open({str(note)!r}, 'w')"
    code = (
        "import os, sys\n"
        "from vertex_training_cli.images import programs\n"
        f"log = programs.LastLines(lambda line: os.kill(os.getpid(), 9))\n"
        f"command = [sys.executable, '-c', 'import time; ' + {inner!r}]\n"
        "command[2] = command[2].replace(\"print('b'\", \"time.sleep(1); print('b'\")\n"
        "programs.run(command, dict(os.environ), log, programs.Deadline(60))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    end = time.monotonic() + 30
    while not note.exists():
        assert time.monotonic() < end, "the program was ended with its caller"
        time.sleep(0.05)
