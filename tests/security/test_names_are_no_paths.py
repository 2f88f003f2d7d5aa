"""Tests that a name given by a user cannot lead to a file elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from tests.unit.localcloud.conftest import home
from tests.unit.vt.conftest import project
from vertex_training_cli.cli import app
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.run import command, script

__all__ = ["home", "project"]

NAMES: Final = ("../../victim", "../..", "..", "a/b", "a\0b", "-", "Train", "a b", "x" * 200)


@pytest.fixture
def victim(project: Path) -> Path:
    """Return a file that a run would delete if its name were used as a path."""
    for folder in (project / "victim" / "script", project / "script", project / "run" / "script"):
        folder.mkdir(parents=True)
        (folder / "file").write_text("of somebody else")
    (project / "train.py").write_text("")
    return project


def files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", [*NAMES, "{root}/victim"])
@pytest.mark.parametrize("wanted", ["train.py", "jobs/train.yaml"])
def test_name_of_a_run_affects_no_file_elsewhere(
    name: str, wanted: str, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = StackRef(victim / "run", "vt-run", "local", "local-run", "us-central1")
    monkeypatch.setattr(script, "find", lambda _: ref)
    monkeypatch.setattr(command, "load_stack", lambda *_: None)
    before = files(victim)
    given = ["run", wanted, "--name", name.format(root=victim)]
    done = CliRunner().invoke(app, given)
    assert files(victim) == before
    assert (done.exit_code, "is not a valid name of a job" in done.stderr) == (1, True), done.output


@pytest.mark.parametrize("name", NAMES)
def test_name_of_new_or_imported_job_affects_no_file_elsewhere(name: str, victim: Path) -> None:
    (victim / "source.yaml").write_text((victim / "jobs" / "train.yaml").read_text())
    before = files(victim)
    for given in (
        ["new", "job", "-s", "dev", "--write", "--", name],
        ["import", "source.yaml", "-s", "dev", "--write", "--name", name],
    ):
        done = CliRunner().invoke(app, given)
        assert files(victim) == before
        assert (done.exit_code, "is not a valid name of a job" in done.stderr) == (2, True), (
            done.output
        )
