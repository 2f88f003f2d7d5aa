"""The page on a run, whole; the edits of its job; and who confirms it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from vertex_training.errors import CommandError
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.verify import command, edits, report
from vertex_training_cli.verify.comparison import Comparison, Difference


@pytest.mark.parametrize(
    ("count", "words"), [(0, "no differences"), (1, "1 difference"), (2, "2 differences")]
)
def test_differences_are_counted(count: int, words: str) -> None:
    found = Comparison((Difference("up", "x", ()),) * count, ())
    page = report.markdown(report.document("first", found, ""), {})
    assert f"Stack `first`: **{words}**." in page
    assert "ended early" not in page
    assert "Only one of both" not in page


JOB: dict[str, Any] = {
    "workerPoolSpecs": [{"containerSpec": {"imageUri": "x", "args": ["--epochs=3"]}}]
}


@pytest.mark.parametrize(
    ("provider", "settings"),
    [
        (None, {}),
        ({"type": "passphrase", "state": {"salt": "v1:x"}}, {"encryptionsalt": "v1:x"}),
        ({"type": "cloud", "state": {"url": "gcpkms://k", "encryptedkey": "e"}},
         {"secretsprovider": "gcpkms://k", "encryptedkey": "e"}),
        ({"type": "service", "state": {"url": "u"}}, {}),
    ],
)  # fmt: skip
def test_a_stack_file_opens_the_secrets_of_its_state(
    provider: Any, settings: dict[str, str]
) -> None:
    assert edits._encryption({"secrets_providers": provider}) == settings


@pytest.mark.parametrize("key", ["vertex-training:jobs", "jobs"])
def test_a_stack_file_of_a_run_names_the_edited_job(tmp_path: Path, key: str) -> None:
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB))
    config = {"gcp:project": "local-x", key: {"train": {"file": "job.yaml", "run": 2}}}
    (tmp_path / "Pulumi.first.yaml").write_text(yaml.safe_dump({"config": config}))
    ref = StackRef(tmp_path, "p", "first", "local-x", "us-central1")
    file = edits.write_edit(ref, tmp_path / "a/b", "train", "train-new", {})
    assert file == tmp_path / "a/b/Pulumi.train-new.yaml"
    entry = {"train": {"file": "a/b/train-new.yaml", "run": 2}}
    assert yaml.safe_load(file.read_text()) == {"config": {**config, key: entry}}
    assert "displayName: train-new" in (tmp_path / "a/b/train-new.yaml").read_text()
    assert edits.write_edit(ref, tmp_path / "a/b", "train", "train-new", {}) == file
    with pytest.raises(CommandError) as refused:
        edits.write_edit(ref, tmp_path / "a", "other", "x", {})
    assert str(refused.value) == "Pulumi.first.yaml has no job other, or includes it."


@pytest.mark.parametrize(
    ("typed", "confirmed"),
    [(" first\n", True), ("other", False), (EOFError(), False), (KeyboardInterrupt(), False),
     (None, False)],
)  # fmt: skip
def test_a_run_takes_the_name_of_the_stack(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: Any, confirmed: bool
) -> None:
    def answer(_: str) -> str:
        if isinstance(typed, BaseException):
            raise typed
        return typed

    monkeypatch.setattr(command.sys.stdin, "isatty", lambda: typed is not None, raising=False)
    monkeypatch.setattr("builtins.input", answer)
    ref = StackRef(Path(), "p", "first", "acme", "us-central1")
    run: Any = SimpleNamespace(subject=SimpleNamespace(price="$1 at most."))
    assert command._confirmed(ref, run) is confirmed
    told = "vt verify: makes stack first in project acme, and destroys it. $1 at most.\n"
    assert capsys.readouterr().err == ("" if typed is None else told)


def test_a_rehearsal_ships_and_another_one_must_be_one(tmp_path: Path) -> None:
    assert {"preflight", "up", "job", "up-again", "drift", "edit", "destroy"} <= set(
        command._rehearsed(None)
    )
    (file := tmp_path / "own.json").write_text('{"version": 1, "steps": {"up": {}}}')
    assert command._rehearsed(file) == {"up": {}}
    for text in ('{"version": 2, "steps": {}}', '{"version": 1, "steps": []}', "{"):
        file.write_text(text)
        with pytest.raises(CommandError, match=r"own\.json is no rehearsal: "):
            command._rehearsed(file)
    with pytest.raises(CommandError, match="is no rehearsal: "):
        command._rehearsed(tmp_path / "gone")
