"""``vt upgrade``: three ways, the company's edits kept, all or nothing."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.unit.vt.init.test_init import files, made, vt
from vertex_training_cli.init import changes, manifest, offering, rendering, staging


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return made(tmp_path / "x", "--name", "acme")


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The templates of the next release, which a test may change."""
    folder = tmp_path / "templates"
    shutil.copytree(rendering._TEMPLATES, folder)
    monkeypatch.setattr(rendering, "_TEMPLATES", folder)
    monkeypatch.setattr(offering, "version", lambda _: "9.0.0")
    return folder


def edit(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


def test_a_release_that_is_no_version_is_refused(root: Path) -> None:
    edit(root, manifest.NAME, f'"{manifest.read(root).release}"', '"latest"')
    before = files(root)
    said = vt("upgrade", str(root), "--write", code=2)
    assert "release 'latest' of this repository is no version." in said
    assert files(root) == before


def test_a_newer_release_is_shown_and_written_only_when_asked(root: Path, newer: Path) -> None:
    edit(newer, "makefile.j2", "pytest -q", "pytest -q --no-header")
    before = files(root)
    said = vt("upgrade", str(root))
    assert "+./wheels/vertex_training-9.0.0-py3-none-any.whl[cli]" in said
    assert files(root) == before
    said = vt("upgrade", str(root), "--write")
    assert "Upgraded from" in said
    assert "pytest -q --no-header" in (root / "Makefile").read_text()
    assert manifest.read(root).release == "9.0.0"
    assert "your edits aside" in vt("upgrade", str(root))


def test_a_conflict_is_beside_the_file_and_the_rest_is_written(root: Path, newer: Path) -> None:
    edit(newer, "makefile.j2", "pytest -q", "pytest -q --theirs")
    edit(root, "Makefile", "pytest -q", "pytest -q --mine")
    said = vt("upgrade", str(root), "--write", code=1)
    assert "conflict: Makefile" in said
    assert "pytest -q --mine" in (root / "Makefile").read_text()
    assert "pytest -q --theirs" in (root / "Makefile.merge").read_text()
    assert "-9.0.0-" in (root / "requirements.txt").read_text()
    assert "an earlier merge is not finished" in vt("upgrade", str(root), code=2)
    (root / "Makefile.merge").unlink()
    assert "your edits aside" in vt("upgrade", str(root))
    assert "pytest -q --mine" in (root / "Makefile").read_text()


def test_a_file_that_is_no_text_any_more_is_a_conflict(root: Path, newer: Path) -> None:
    edit(newer, "makefile.j2", "pytest -q", "pytest -q --theirs")
    (root / "Makefile").write_bytes(b"\xff\xfe\x00")
    assert "conflict: Makefile" in vt("upgrade", str(root), code=1)


def test_an_older_release_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offering, "version", lambda _: "0.0.1")
    assert "this is the older 0.0.1" in vt("upgrade", str(root), code=2)


def test_an_environment_is_not_added_by_another_release(root: Path, newer: Path) -> None:
    said = vt("init", str(root), "--environment", "staging", code=2)
    assert "`vt upgrade --write` first" in said


def test_a_pin_that_the_merge_left_is_named(root: Path, newer: Path) -> None:
    pin = "./wheels/vertex_training-0.2.0-py3-none-any.whl"
    (root / "requirements.lock").write_text(f"{pin} \\\n    --hash=sha256:00\n")
    (root / "requirements-dev.txt").write_text("vertex-training==0.1.0\n")
    said = vt("upgrade", str(root), "--write")
    assert "requirements.lock pins vertex-training 0.2.0: make lock UPGRADE=1" in said
    assert "requirements-dev.txt pins vertex-training 0.1.0: pin 9.0.0" in said
    assert "requirements.txt pins" not in said


@pytest.mark.parametrize("at", range(5))
def test_a_kill_half_way_is_completed(
    at: int, root: Path, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(newer, "makefile.j2", "pytest -q", "pytest -q --no-header")
    real, renames = os.replace, iter(range(100))

    def replace(source: str, target: str, **folders: int) -> None:
        if next(renames) == at:
            raise KeyboardInterrupt
        real(source, target, **folders)

    proposal = changes.update(root, manifest.read(root), manifest.read(root).answers, "9.0.0")
    with monkeypatch.context() as killed, contextlib.suppress(KeyboardInterrupt):
        killed.setattr(os, "replace", replace)
        proposal.write()
    if staging.is_pending(root):
        before = files(root)
        assert "the same with --write completes it" in vt("upgrade", str(root), code=2)
        assert files(root) == before
        assert "it is complete now" in vt("upgrade", str(root), "--write")
    assert manifest.read(root).release == "9.0.0"
    assert "pytest -q --no-header" in (root / "Makefile").read_text()
    assert not staging.journal(root).exists()


def test_a_file_that_changes_after_the_diff_is_not_written_over(root: Path, newer: Path) -> None:
    old = manifest.read(root)
    proposal = changes.update(root, old, old.answers, "9.0.0")
    (root / "requirements.txt").write_text("mine\n")
    with pytest.raises(Exception, match=r"requirements.txt was changed meanwhile"):
        proposal.write()
    assert manifest.read(root).release == old.release


def test_rights_of_a_file_stay(root: Path, newer: Path) -> None:
    edit(newer, "report.j2", "set -u", "set -eu")
    (root / "tools/report").chmod(0o700)
    vt("upgrade", str(root), "--write")
    assert os.stat(root / "tools/report").st_mode & 0o777 == 0o700


def test_a_manifest_of_another_form_names_the_way_back(root: Path) -> None:
    (root / manifest.NAME).write_text(json.dumps([]))
    assert "take .vertex-training.json back" in vt("upgrade", str(root), code=2)
