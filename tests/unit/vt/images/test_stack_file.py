"""Pins are written into a stack file in one step: as a whole, or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from pathlib import Path

import pytest

from vertex_training.errors import CommandError, UnknownStackError
from vertex_training_cli.images import stack_file
from vertex_training_cli.images.stack_file import write_pins

BEFORE = """\
config:
  vertex-training:images:
    a: {context: code}  # ours
    b:
      context: code
      digest: old
"""
AFTER = """\
config:
  vertex-training:images:
    a: {context: code, digest: "one", builtFrom: "tag"}  # ours
    b:
      context: code
      digest: two
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(BEFORE)
    (tmp_path / "Pulumi.dev.yaml").chmod(0o640)
    return tmp_path


def files(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


BOTH = ["Pulumi.dev.yaml", "Pulumi.yaml"]


def test_pins_are_written_in_their_order_and_the_file_keeps_its_rights(root: Path) -> None:
    pins = {"a": {"builtFrom": "tag", "digest": "one", "other": "x"}, "b": {"digest": "two"}}
    file = root / "Pulumi.dev.yaml"
    (root / ".Pulumi.dev.yaml.partial").write_text("of a killed command")
    assert write_pins(root, "dev", pins) is True
    assert file.read_text() == AFTER
    assert file.stat().st_mode & 0o777 == 0o640
    number = file.stat().st_ino
    assert write_pins(root, "dev", pins) is False
    assert file.stat().st_ino == number  # it was not replaced
    assert files(root) == BOTH


def test_what_a_clone_has_at_the_new_files_place_is_not_written_through(root: Path) -> None:
    outside = root / "outside"
    outside.write_text("kept")
    (root / ".Pulumi.dev.yaml.partial").symlink_to(outside)
    assert write_pins(root, "dev", {"b": {"digest": "two"}})
    assert outside.read_text() == "kept"
    assert files(root) == [*BOTH, "outside"]


@pytest.mark.parametrize("step", ["fsync", "fchmod", "replace", "open"])
def test_a_file_that_cannot_be_written_is_as_it_was(
    root: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    called = getattr(os, step)

    def full(*given: object) -> object:
        if step == "open" and "partial" not in str(given[0]):
            return called(*given)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(CommandError) as told:
        write_pins(root, "dev", {"b": {"digest": "two"}})
    monkeypatch.undo()
    assert told.value.message == (
        "Pulumi.dev.yaml cannot be written: No space left on device; it is as it was."
    )
    assert (root / "Pulumi.dev.yaml").read_text() == BEFORE
    assert files(root) == BOTH


def test_a_link_out_of_the_folder_is_refused(root: Path, tmp_path_factory: pytest.TempPathFactory):
    outside = tmp_path_factory.mktemp("outside") / "Pulumi.dev.yaml"
    outside.write_text(BEFORE)
    file = root / "Pulumi.dev.yaml"
    file.unlink()
    file.symlink_to(outside)
    with pytest.raises(UnknownStackError, match=r"Pulumi\.dev\.yaml: is a link out"):
        write_pins(root, "dev", {"b": {"digest": "two"}})
    (root / ".git").mkdir()
    (root / "linked").symlink_to(outside.parent)
    with pytest.raises(CommandError) as told:
        write_pins(root / "linked", "dev", {"b": {"digest": "two"}})
    assert (told.value.message, told.value.hint) == (
        "Pulumi.dev.yaml is a link out of its folder; nothing is written through it.",
        "put a file in its place",
    )
    assert outside.read_text() == BEFORE
    with pytest.raises(UnknownStackError):
        write_pins(root, "gone", {})


def test_a_link_inside_of_the_folder_stays_and_what_it_leads_to_is_written(root: Path) -> None:
    (root / "Pulumi.dev.yaml").rename(root / "shared.yaml")
    (root / "Pulumi.dev.yaml").symlink_to("shared.yaml")
    assert write_pins(root, "dev", {"b": {"digest": "two"}})
    assert (root / "Pulumi.dev.yaml").is_symlink()
    assert "digest: two" in (root / "shared.yaml").read_text()


def test_one_command_writes_at_a_time(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits, flock = threading.Event(), fcntl.flock

    def noted(handle: int, how: int) -> None:
        waits.set()
        flock(handle, how)

    handle = os.open(root, os.O_RDONLY)
    flock(handle, fcntl.LOCK_EX)  # of another command
    monkeypatch.setattr(stack_file.fcntl, "flock", noted)
    given = (root, "dev", {"b": {"digest": "two"}})
    writer = threading.Thread(target=write_pins, args=given)
    writer.start()
    assert waits.wait(20)
    writer.join(0.05)
    assert (writer.is_alive(), (root / "Pulumi.dev.yaml").read_text()) == (True, BEFORE)
    os.close(handle)
    writer.join(20)
    assert "digest: two" in (root / "Pulumi.dev.yaml").read_text()
