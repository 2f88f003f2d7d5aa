"""Tests that links of a job below ``/gcs`` lead the runner to no file of this machine.

In a container a job has nothing of this machine but that folder; the runner, which has all of it,
goes through the same folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localgcp.containers.host import ContainerHost
from localgcp.runner import programs
from localgcp.runner.gcsfuse import Mount, outside_of
from localgcp.runner.programs import CloudHost
from localgcp.tuning.driver import read_report
from localgcp.vertex.admission import Access
from tests.security.test_links import ATTEMPTS, SECRET, outside, swapping
from tests.unit.localcloud.conftest import PROJECT, Cloud, cloud_with_storage

__all__ = ["cloud_with_storage", "outside"]


@pytest.fixture
def mount(cloud_with_storage: Cloud, tmp_path: Path) -> Mount:
    """Return a job's folder for the bucket ``out``."""
    cloud = cloud_with_storage
    cloud.bucket("out")
    (tmp_path / "job" / "gcs").mkdir(parents=True)
    assert cloud.storage is not None
    access = Access(cloud.store, PROJECT, None)
    folder, said = tmp_path / "job" / "gcs" / "out", list[str]()
    host = CloudHost(cloud.home, cloud.store, ContainerHost(cloud.home, 0), cloud.storage.url, "")
    made = Mount(folder, host, access, said.append)
    made.fill()
    return made


def bucket(mount: Mount) -> Any:
    return mount._client().bucket("out")


def contents(mount: Mount) -> dict[str, bytes]:
    return {blob.name: blob.download_as_bytes() for blob in bucket(mount).list_blobs()}


def test_link_to_a_file_of_this_machine_is_not_uploaded(mount: Mount, outside: Path) -> None:
    (mount.folder / "leak.txt").symlink_to(outside / "x")
    (mount.folder / "d").symlink_to(outside)
    (mount.folder / "mine").write_bytes(b"mine")
    (mount.folder / "latest").symlink_to("mine")
    for final in (False, False, True):
        mount.sync(final=final)
    assert contents(mount) == {"mine": b"mine"}


def test_skipped_link_is_reported_once(mount: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()
    monkeypatch.setattr(mount, "report", said.append)
    (mount.folder / "latest").symlink_to("mine")
    for final in (False, False, True):
        mount.sync(final=final)
    assert said == [
        "/gcs/out/latest is a symbolic link and was not uploaded. The real service stores "
        "an object without content."
    ]


def test_download_of_an_object_follows_no_link(mount: Mount, outside: Path) -> None:
    (mount.folder / "d").symlink_to(outside)
    bucket(mount).blob("d/authorized_keys").upload_from_string("of the attacker")
    bucket(mount).blob("d/x").upload_from_string("of the attacker")
    for final in (False, True):
        mount.sync(final=final)
    assert [(path.name, path.read_bytes()) for path in outside.iterdir()] == [("x", SECRET)]


def test_link_in_place_of_the_bucket_folder_is_not_followed(mount: Mount, outside: Path) -> None:
    mount.folder.rename(mount.folder.with_name("moved"))
    mount.folder.symlink_to(outside)
    bucket(mount).blob("authorized_keys").upload_from_string("of the attacker")
    for final in (False, False, True):
        mount.sync(final=final)
    assert contents(mount) == {"authorized_keys": b"of the attacker"}
    assert [path.name for path in outside.iterdir()] == ["x"]


def test_deleted_object_removes_no_file_behind_a_link(mount: Mount, outside: Path) -> None:
    bucket(mount).blob("d/x").upload_from_string("old")
    mount.sync(final=False)
    (mount.folder / "d").rename(mount.folder / "e")
    (mount.folder / "d").symlink_to(outside)
    bucket(mount).blob("d/x").delete()
    for final in (False, True):
        mount.sync(final=final)
    assert (outside / "x").read_bytes() == SECRET


def test_folder_swapped_with_a_link_during_sync_leaks_no_file(mount: Mount, outside: Path) -> None:
    (outside / "only-outside").write_bytes(SECRET)
    (mount.folder / "d").mkdir()
    (mount.folder / "d" / "x").write_bytes(b"ours")
    (mount.folder / "link").symlink_to(outside)
    with swapping(mount.folder / "d", mount.folder / "link"):
        for number in range(ATTEMPTS // 20):
            bucket(mount).blob("d/new").upload_from_string(str(number))
            mount.sync(final=number % 2 == 0)
            mount.sync(final=False)
    mount.sync(final=True)
    assert SECRET not in contents(mount).values()
    assert sorted(path.name for path in outside.iterdir()) == ["only-outside", "x"]
    assert (outside / "x").read_bytes() == SECRET


def test_container_sees_its_buckets_but_no_link_targets(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "gcs" / "out").mkdir(parents=True)
    (tmp_path / "gcs" / "out" / "x").write_bytes(b"ours")
    (tmp_path / "gcs" / "out" / "link").symlink_to(outside)
    closed = (outside.stat().st_mode, (outside / "x").stat().st_mode)
    (tmp_path / "gcs" / "d").mkdir()
    (tmp_path / "gcs" / "link").symlink_to(outside)
    with swapping(tmp_path / "gcs" / "d", tmp_path / "gcs" / "link"):
        for _ in range(ATTEMPTS):
            programs.open_to_container(tmp_path / "gcs")
    assert (outside.stat().st_mode, (outside / "x").stat().st_mode) == closed
    assert (tmp_path / "gcs" / "out" / "x").stat().st_mode & 0o777 == 0o666
    assert (tmp_path / "gcs" / "out").stat().st_mode & 0o777 == 0o777


def test_link_beside_buckets_is_reported_without_its_target(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "gcs").mkdir()
    (tmp_path / "gcs" / "beside").symlink_to(outside)
    assert outside_of(tmp_path / "gcs", {"out"}) == ["/gcs/beside"]


def test_metrics_file_of_a_trial_is_not_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.metrics").write_text('{"score": "0.5", "global_step": 1}\n')
    (tmp_path / "gcs").mkdir()
    (tmp_path / "gcs" / ".hypertune").symlink_to(tmp_path / "elsewhere")
    file = tmp_path / "gcs" / ".hypertune" / "a.metrics"
    found = read_report(file, [{"metricId": "score"}], best=False, began=0)
    assert found.measurement is None
