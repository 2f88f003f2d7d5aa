"""The command line of ``vt preflight``: what it refuses unasked, and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.unit.vt.preflight.conftest import Rehearsal
from vertex_training_cli.cli import app
from vertex_training_cli.engine import stacks
from vertex_training_cli.preflight import command, context
from vertex_training_cli.preflight.context import Answer, question

ODD = question("projects/x", "billing")


@pytest.fixture
def preflight(rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stacks, "find", lambda _stack: rehearsal.ref)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["preflight", "--stack", "prod", *arguments])

    return run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--as", "foo bar"), "--as must be the address of a service account (got foo bar)."),
        (
            ("--as", "d@local-ml-prod.iam.gserviceaccount.com"),
            "the local cloud has no accounts. Omit --as.",
        ),
        (("--output", ""), "--output '.' is not the name of a file."),
        (("--output", ".."), "--output '..' is not the name of a file."),
    ],
)
def test_an_option_that_nothing_can_be_done_with_is_refused(
    preflight,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    done = preflight(*arguments)
    assert done.exit_code == 1
    assert said in done.stderr
    assert not list(here.iterdir())


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([ODD.unknown("503")], 1),
        ([ODD.unknown("503"), ODD.ok("on")], 0),
        ([ODD.unknown("503"), ODD.refused("off", "403", "turn it on")], 3),
    ],
)
def test_nothing_asked_is_no_success(
    preflight,
    rehearsal: Rehearsal,
    monkeypatch: pytest.MonkeyPatch,
    answers: list[Answer],
    code: int,
) -> None:
    monkeypatch.setattr(context, "connect", lambda *_: (rehearsal.context(), []))
    monkeypatch.setattr(command, "check_all", lambda _: answers)
    done = preflight("--format", "json")
    assert done.exit_code == code
    assert len(json.loads(done.stdout)["answers"]) == len(answers)


def test_a_report_is_written_for_people_and_programs_whatever_is_printed(
    preflight, rehearsal: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "connect", lambda *_: (rehearsal.context(), [ODD.ok("on")]))
    monkeypatch.setattr(command, "check_all", lambda _: [ODD.refused("off", "403", "turn it on")])
    printed = {each: preflight("--format", each).stdout for each in ("text", "markdown", "json")}
    file = tmp_path / "reports" / "new" / "prod.v1"
    for _ in range(2):  # a report of before is replaced
        done = preflight("--output", str(file))
        assert (done.exit_code, done.stdout, done.stderr) == (3, printed["text"], "")
    assert {each.name: each.read_text() for each in file.parent.iterdir()} == {
        "prod.v1.md": printed["markdown"],
        "prod.v1.json": printed["json"],
    }
    assert [each["answer"] for each in json.loads(printed["json"])["answers"]] == ["on", "off"]


def test_json_holds_no_control_characters(
    preflight, rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "connect", lambda *_: (rehearsal.context(), []))
    monkeypatch.setattr(command, "check_all", lambda _: [ODD.ok("billing \u009b31m\u202e")])
    assert preflight("--format", "json").stdout.isascii()
