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


def test_gsutil_of_a_job_asks_the_local_cloud_and_not_google(program: HostProgram) -> None:
    gsutil = Path(program.path, "gsutil")
    gsutil.touch(0o755)
    env = program.launch({}, {"MINE": "1"}).env
    assert env["CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE"] == "http://127.0.0.1:7/storage/v1/"
    assert env["CLOUDSDK_AUTH_DISABLE_CREDENTIALS"] == "true"
    assert "no_fallback" in Path(env["BOTO_CONFIG"]).read_text()
    assert Path(env["CLOUDSDK_CONFIG"]).is_relative_to(program.folders.tmp)


def test_where_neither_is_installed_a_job_gets_nothing_of_it(program: HostProgram) -> None:
    env = program.launch({}, {}).env
    assert not [name for name in env if name.startswith(("CLOUDSDK_", "BOTO_"))]
    assert not program.folders.tmp.exists()
