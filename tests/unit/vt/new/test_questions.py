"""``vt new job`` on a terminal asks for missing choices, and before it writes."""

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fixture_project import source_path

ROOT = Path(__file__).parents[4]
STACK = """\
config:
  gcp:project: local-dev
  gcp:region: us-central1
  vertex-training:projectNumber: 561581518822
"""


class Person:
    """Somebody at a terminal: waits for a question, then types."""

    def __init__(self, folder, *arguments):
        here, there = pty.openpty()
        self.terminal, self.shown = here, ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "vertex_training_cli.cli", *arguments],
            cwd=folder, env={**os.environ, "PYTHONPATH": source_path(ROOT), "NO_COLOR": "1"},
            stdin=there, stdout=there, stderr=there, start_new_session=True,
        )  # fmt: skip
        os.close(there)

    def read_until(self, text):
        deadline = time.monotonic() + 120
        while text not in self.shown:
            ready, _, _ = select.select([self.terminal], [], [], deadline - time.monotonic())
            assert ready, f"no {text!r} in {self.shown!r}"
            try:
                self.shown += os.read(self.terminal, 65536).decode()
            except OSError:  # the other end is closed
                raise AssertionError(f"ended without {text!r}: {self.shown!r}") from None
        before, _, self.shown = self.shown.partition(text)
        return before

    def answer(self, question, line):
        told = self.read_until(question)
        os.write(self.terminal, f"{line}\n".encode())
        return told

    def end(self):
        """What was shown until the end, and the exit code."""
        while True:
            try:
                more = os.read(self.terminal, 65536)
            except OSError:
                more = b""
            if not more:
                return self.shown, self.process.wait(timeout=120)
            self.shown += more.decode()


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (tmp_path / "Pulumi.local.yaml").write_text(STACK)
    return tmp_path


@pytest.fixture
def person(checkout):
    started = []

    def start(*arguments):
        started.append(Person(checkout, *arguments))
        return started[-1]

    yield start
    for one in started:
        os.close(one.terminal)
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def test_answers_on_a_terminal_are_written_after_a_yes(person, checkout):
    somebody = person("new", "job", "train")
    somebody.answer("Image (empty: code of this checkout)", "us-docker.pkg.dev/acme/x/y:1")
    somebody.answer("Machine type [n1-standard-4]", "n1-standard-8")
    assert "+++ jobs/train.yaml" in somebody.answer("Write these files?", "y")
    shown, code = somebody.end()
    assert (code, "Written: train" in shown) == (0, True)
    text = (checkout / "jobs" / "train.yaml").read_text()
    assert "n1-standard-8" in text
    assert "us-docker.pkg.dev/acme/x/y:1" in text


def test_control_d_ends_it_without_a_traceback(person, checkout):
    somebody = person("new", "job", "train")
    somebody.read_until("Image (empty: code of this checkout)")
    os.write(somebody.terminal, b"\x04")
    shown, code = somebody.end()
    assert code in (1, 130)
    assert "Traceback" not in shown
    assert not (checkout / "jobs").exists()


def test_file_that_is_made_meanwhile_is_not_overwritten(person, checkout):
    somebody = person("new", "job", "train", "--package", "--machine", "n1-standard-4")
    somebody.read_until("Write these files?")
    (checkout / "jobs").mkdir()
    (checkout / "jobs" / "train.yaml").write_text("mine: 1\n")
    os.write(somebody.terminal, b"y\n")
    shown, code = somebody.end()
    assert code == 2
    assert "Traceback" not in shown
    assert (checkout / "jobs" / "train.yaml").read_text() == "mine: 1\n"
