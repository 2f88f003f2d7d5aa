"""A command of this machine, with what gcloud and gsutil need where they are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp.runner.environment import Folders
from localgcp.runner.programs import HostProgram


@pytest.fixture
def program(tmp_path: Path) -> HostProgram:
    folders = Folders(work=tmp_path / "work", tmp=tmp_path / "tmp", gcs=tmp_path / "gcs")
    (tmp_path / "bin").mkdir()
    return HostProgram(["true"], str(tmp_path / "bin"), folders, "http://127.0.0.1:7")


def test_where_neither_is_installed_a_job_gets_nothing_of_it(program: HostProgram) -> None:
    env = program.launch({}, {}).env
    assert not [name for name in env if name.startswith(("CLOUDSDK_", "BOTO_"))]
    assert not program.folders.tmp.exists()
