"""Tests that another user of this machine cannot read or write in the local cloud's home folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.cloud import aiplatform_v1 as vertex
from google.cloud.aiplatform_v1.services.job_service.transports.grpc import JobServiceGrpcTransport

from localgcp import lifecycle
from localgcp.errors import LocalCloudError
from localgcp.faults import table
from localgcp.faults.model import Fault
from localgcp.home import Home
from localgcp.inventory.store import ACCOUNT, SERVICE, Store
from localgcp.runner.gcsfuse import storage_client
from tests.unit.localcloud.conftest import PARENT, PROJECT, TRAINER, command_job, wait_until


@pytest.fixture
def open_umask() -> Iterator[None]:
    """Set a umask with which new files are accessible to all users."""
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(root: Path) -> list[str]:
    """Return paths in ``root`` with any permission for other users."""
    return [
        f"{stat.filemode(path.lstat().st_mode)} {path.relative_to(root)}"
        for path in (root, *root.rglob("*"))
        if not path.is_symlink() and path.lstat().st_mode & 0o077
    ]


def run_job(port: int, script: str) -> None:
    """Submit a job to a server and wait for its end."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        client = vertex.JobServiceClient(transport=JobServiceGrpcTransport(channel=channel))
        job = client.create_custom_job(parent=PARENT, custom_job=command_job("sh", "-c", script))
        wait_until(lambda: client.get_custom_job(name=job.name).end_time)
        assert client.get_custom_job(name=job.name).state.name == "JOB_STATE_SUCCEEDED"


def test_home_is_private_whatever_the_umask(tmp_path: Path, open_umask: None) -> None:
    home = Home(tmp_path / "home", Path(__file__).resolve().parents[2])
    home.create()
    try:
        info = lifecycle.start(home, print)
        store = Store(home.database)
        store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
        store.put(ACCOUNT, TRAINER, PROJECT, {}, {"email": TRAINER})
        bucket = storage_client(f"http://127.0.0.1:{info.storage_port}").create_bucket("data")
        bucket.blob("folder/object").upload_from_string(b"text")
        run_job(info.vertex_port, "mkdir made; echo text >made/file; chmod 777 made made/file")
        table.inject(home, Fault.parse(service="jobs", kind="drop"))
        assert home.faults.exists()
        assert open_to_others(home.root) == []
    finally:
        lifecycle.stop(home)


def test_start_makes_an_open_home_private(tmp_path: Path, open_umask: None) -> None:
    home = Home(tmp_path / "home", Path(__file__).resolve().parents[2])
    home.create()
    for folder in (home.root, home.storage, home.jobs):
        folder.chmod(0o777)
    (home.jobs / "of an earlier version").write_text("text")
    (home.bin / "program").touch(0o755)
    outside = tmp_path / "outside"
    outside.touch(0o644)
    (home.jobs / "link").symlink_to(outside)
    try:
        lifecycle.start(home, print)
        assert open_to_others(home.root) == []
        assert stat.S_IMODE((home.bin / "program").stat().st_mode) == 0o700
        assert stat.S_IMODE(outside.stat().st_mode) == 0o644
    finally:
        lifecycle.stop(home)


def test_home_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path / "home", tmp_path)
    home.create()
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(LocalCloudError, match="belongs to another user"):
        home.create()
