"""Pins are written into a stack file in one step: as a whole, or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from vertex_training.errors import CommandError, UnknownStackError
from vertex_training_cli.images.building import write_pins

BEFORE = """\
config:
  vertex-training:images:
    a: {context: code}  # ours
    b:
      context: code
      digest: old
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


@pytest.mark.parametrize("step", ["fchmod", "replace", "open"])
def test_a_file_that_cannot_be_written_is_as_it_was(
    root: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    called = getattr(os, step)

    def full(*given: object, **more: object) -> object:
        if step == "open" and ".vt-new-" not in str(given[0]):
            return called(*given, **more)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(CommandError) as told:
        write_pins(root, "dev", "b", {"digest": "two"})
    monkeypatch.undo()
    assert told.value.message == (
        "cannot write Pulumi.dev.yaml: No space left on device. The file is unchanged."
    )
    assert (root / "Pulumi.dev.yaml").read_text() == BEFORE
    assert files(root) == BOTH


def test_a_link_out_of_the_folder_is_refused(root: Path, tmp_path_factory: pytest.TempPathFactory):
    outside = tmp_path_factory.mktemp("outside") / "Pulumi.dev.yaml"
    outside.write_text(BEFORE)
    file = root / "Pulumi.dev.yaml"
    file.unlink()
    file.symlink_to(outside)
    with pytest.raises(UnknownStackError, match=r"Pulumi\.dev\.yaml: .* is a symbolic link out"):
        write_pins(root, "dev", "b", {"digest": "two"})
    (root / ".git").mkdir()
    (root / "linked").symlink_to(outside.parent)
    with pytest.raises(CommandError) as told:
        write_pins(root / "linked", "dev", "b", {"digest": "two"})
    assert (told.value.message, told.value.hint) == (
        "Pulumi.dev.yaml is a link to a file outside its folder. The file was not written.",
        "replace Pulumi.dev.yaml by a regular file",
    )
    assert outside.read_text() == BEFORE
    with pytest.raises(UnknownStackError):
        write_pins(root, "gone", "b", {})
