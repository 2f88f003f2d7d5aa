"""How GitHub is asked: the command line of ``gh``, its pages, and what it refuses."""

import shlex
import subprocess

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.github import gh


@pytest.fixture
def answers(tmp_path, monkeypatch):
    """A ``gh`` that prints ``out``, keeps its arguments and its input, and ends with ``code``."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def script(out="", error="", code=0):
        lines = [
            "#!/bin/sh",
            f'printf "%s\\n" "$@" > {tmp_path}/arguments',
            f"cat > {tmp_path}/input",
            f"printf %s {shlex.quote(out)}",
            f"printf %s {shlex.quote(error)} >&2",
            f"exit {code}",
        ]
        (folder / "gh").write_text("\n".join(lines) + "\n")
        (folder / "gh").chmod(0o755)

    return script


@pytest.mark.parametrize(
    ("ask", "command"),
    [
        (lambda: gh.read("repos/x/y"), "gh api --paginate repos/x/y"),
        (lambda: gh.download("repos/x/y", 10), "gh api repos/x/y"),
        (lambda: gh.write("POST", "repos/x/y", {}), "gh api --method POST repos/x/y --input -"),
    ],
)
def test_a_refusal_has_the_command_and_its_last_line(answers, ask, command):
    answers(error="gh: first\ngh: Not Found (HTTP 404)\n", code=1)
    with pytest.raises(CommandError) as refused:
        ask()
    assert refused.value.message == f"{command}: gh: Not Found (HTTP 404)."
    assert refused.value.hint == "set GH_TOKEN, and grant the job the permission in the workflow."


def test_an_answer_that_does_not_come_is_one_line(monkeypatch):
    asked = []

    def run(command, **options):
        asked.append((options["input"], options["timeout"]))
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(subprocess, "run", run)
    for ask, command in (
        (lambda: gh.read("repos/x/y"), "gh api --paginate repos/x/y"),
        (lambda: gh.write("POST", "r", {}), "gh api --method POST r --input -"),
    ):
        with pytest.raises(CommandError) as refused:
            ask()
        assert (refused.value.message, refused.value.hint) == (
            f"{command}: GitHub did not respond in 120 s.",
            "",
        )
    assert asked == [("", 120), ("{}", 120)]


def test_a_download_is_the_bytes_up_to_the_bound(answers):
    answers(out="abc")
    assert gh.download("repos/x/y", 3) == b"abc"
    assert gh.download("repos/x/y", 2) is None
