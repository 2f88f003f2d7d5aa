"""What a program reads of the engine's config, and how it ends with a message."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pulumi
import pytest

from vertex_training import engine, program

MISTAKE = "1 mistake:\n  - jobs.train.file: no such file (token=hunter2hunter2)"
TOLD = "1 mistake:\n  - jobs.train.file: no such file (token=[secret])"


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "error", said.append)
    return said


def test_program_ends_with_the_code_of_a_shown_message(logged: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        engine.end_with_message(MISTAKE)
    assert (ended.value.code, logged) == (32, [TOLD])


class Ended(BaseException):
    """The process has ended."""


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What happens to the process, in its order."""
    found: list[object] = []

    def end(code: int) -> NoReturn:
        found.append(code)
        raise Ended

    def noted(name: str) -> Callable[[], None]:
        return lambda: found.append(f"{name} written")

    monkeypatch.setattr(os, "_exit", end)
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(getattr(sys, name), "flush", noted(name))
    return found


def test_a_program_with_mistakes_in_its_files_is_abandoned_with_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: list[str], exits: list[object]
) -> None:
    monkeypatch.setattr(pulumi, "get_stack", lambda: "dev")
    (tmp_path / "Pulumi.dev.yaml").write_text("config:\n  vertex-training:buckts: {}\n")
    pulumi.runtime.set_all_config({"vertex-training:buckts": "{}"})
    try:
        with pytest.raises(Ended):
            program.run(tmp_path / "__main__.py")
    finally:
        pulumi.runtime.set_all_config({})
    assert 32 in exits
    assert logged == [
        "4 mistakes; nothing was changed.\n"
        "Pulumi.dev.yaml: gcp:project: this required key is missing. "
        "Hint: pulumi config set gcp:project VALUE\n"
        "Pulumi.dev.yaml: gcp:region: this required key is missing. "
        "Hint: pulumi config set gcp:region VALUE\n"
        "Pulumi.dev.yaml: vertex-training:projectNumber: this required key is missing. "
        "Hint: pulumi config set vertex-training:projectNumber VALUE\n"
        "Pulumi.dev.yaml:2:3: vertex-training:buckts: unknown key. "
        "Hint: did you mean 'buckets'?"
    ]
