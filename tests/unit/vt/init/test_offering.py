"""What is shown before files of a repository change, when it is asked, and what is written."""

from __future__ import annotations

import io
import sys
from importlib.metadata import PackageNotFoundError
from typing import Any, cast

import pytest
import typer

from vertex_training.errors import CommandError
from vertex_training_cli.init import offering


class Proposal:
    """In place of a set of changes; ``written`` is how often."""

    def __init__(self, remarks: list[str], conflicts: list[str]) -> None:
        self.remarks, self.conflicts, self.written = remarks, conflicts, 0

    def diff(self) -> list[str]:
        return ["--- a\n", "+++ b\r\n", "+hf_" + "a" * 34 + "\n", "+\x1b[2J\n"]

    def write(self) -> None:
        self.written += 1


SHOWN = f"--- a\n+++ b\n+{'*' * 37}\n+\ufffd[2J\n"  # a token has only its length
NOTHING = "Nothing is written. With --write, it is.\n"
CONFLICT = "conflict: x was changed at the same place: see x.merge.\n"
TAKE = "Take over what you want of the files *.merge, then remove them.\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("given", "write", "answer", "told", "code", "written"),
    [
        (([], []), True, None, "DONE", 0, 1),
        (([], []), False, None, NOTHING, 0, 0),
        ((["a", "b"], []), True, None, "note: a.\nnote: b.\nDONE", 0, 1),
        (([], ["x"]), True, None, f"{CONFLICT}DONE{TAKE}", 1, 1),
        (([], ["x"]), False, None, f"{CONFLICT}{NOTHING}", 1, 0),
        # on a terminal it is asked, unless it was said already
        (([], ["x"]), False, "y\n", f"{CONFLICT}DONE{TAKE}", 1, 1),
    ],
)  # fmt: skip
def test_a_diff_is_shown_and_written_where_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: tuple[list[str], list[str]],
    write: bool,
    answer: str | None,
    told: str,
    code: int,
    written: int,
) -> None:
    asked: list[tuple[str, bool]] = []

    def confirm(text: str, *, err: bool) -> bool:
        asked.append((text, err))
        return answer == "y\n"

    monkeypatch.setattr(typer, "confirm", confirm)
    monkeypatch.setattr(sys, "stdin", io.StringIO() if answer is None else Terminal(answer))
    proposal, ended = Proposal(*given), 0
    try:
        offering.offer(cast(Any, proposal), write=write, done="done")
    except typer.Exit as exit_:
        ended = exit_.exit_code
    out, err = capsys.readouterr()
    assert (out, err) == (SHOWN, told.replace("DONE", "done\n"))
    assert (ended, proposal.written) == (code, written)
    is_asked = answer is not None and not write
    assert asked == [("Write these files?", True)] * is_asked


def test_the_release_is_that_of_the_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        assert name == "vertex-training"
        return "9.8.7"

    def missing(_name: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(offering, "version", version)
    assert offering.release() == "9.8.7"
    monkeypatch.setattr(offering, "version", missing)
    with pytest.raises(CommandError) as told:
        offering.release()
    assert (told.value.message, told.value.hint) == (
        "this is a checkout that is not installed.", "`make setup`",
    )  # fmt: skip
