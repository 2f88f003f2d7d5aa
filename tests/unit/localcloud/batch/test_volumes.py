"""What a runnable of Batch has of the volumes of its job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localgcp.batch.records import BatchJob, State
from localgcp.batch.runnables import HOSTS_FILE, Volumes
from localgcp.containers.host import ContainerHost
from localgcp.home import Home
from localgcp.inventory.store import BUCKET, Store
from localgcp.runner.programs import CloudHost
from tests.unit.localcloud.conftest import PROJECT, TRAINER, set_grant

GCS = {"gcs": {"remotePath": "data"}, "mountPath": "/gcs/data"}
DISK = {"gcs": {"remotePath": "data/sub/"}, "mountPath": "/mnt/disk/"}


class Estate:
    """A home with a bucket; ``said`` is what the agent of a job wrote."""

    def __init__(self, home: Home) -> None:
        self.home, self.store, self.said = home, Store(home.database), list[str]()
        (home.batch / "u").mkdir(parents=True)
        self.store.put(BUCKET, "data", PROJECT, {}, {"name": "data", "project": PROJECT})
        (home.storage / "data").mkdir(parents=True)
        set_grant(self.store, "b/data", "roles/storage.objectViewer", TRAINER)

    def volumes(self, *volumes: Any) -> Volumes:
        body = {
            "taskGroups": [{"taskSpec": {"runnables": [], "volumes": [*volumes]}}],
            "allocationPolicy": {"serviceAccount": {"email": TRAINER}},
        }
        name = "projects/1/locations/us-central1/jobs/j"
        job = BatchJob(name, "u", PROJECT, "us-central1", body, State.RUNNING, [], "", "")
        containers = ContainerHost(self.home, 0)
        cloud = CloudHost(self.home, self.store, containers, "http://127.0.0.1:9", "")
        return Volumes(job, cloud, self.said.append)


@pytest.fixture
def estate(home: Home) -> Estate:
    return Estate(home)


def test_a_runnable_finds_volumes_where_it_mounts_them(estate: Estate) -> None:
    volumes = estate.volumes(GCS, DISK)
    root = volumes.folder
    data, sub = root / "data", root / "data/sub"
    on_machine = {"/gcs/data": data, "/mnt/disk": sub}
    assert volumes.of(None) == volumes.of({}) == on_machine
    volumes.hosts_file.write_text("")
    assert volumes.of(None) == on_machine | {HOSTS_FILE: volumes.hosts_file}
    assert volumes.of({}) == on_machine
    volumes.prepare()
    container = {"volumes": [
        "/mnt/disk:/data:ro", "/mnt/disk/a/b:/ab/", "/gcs/data", f"{HOSTS_FILE}:/hosts",
        "/etc:/etc", "/mnt/disk/../x:/y", "/mnt/diskette:/z",
    ]}  # fmt: skip
    assert volumes.of(container) == {
        "/data": sub, "/ab": sub / "a/b", "/gcs/data": data, "/hosts": volumes.hosts_file,
    }  # fmt: skip
    assert estate.said[-3:] == [
        "volume /etc:/etc is ignored: /etc does not exist on this machine.",
        "volume /mnt/disk/../x:/y is ignored: /mnt/disk/../x does not exist on this machine.",
        "volume /mnt/diskette:/z is ignored: /mnt/diskette does not exist on this machine.",
    ]


def test_a_link_out_of_a_volume_is_left_out(estate: Estate, tmp_path: Path) -> None:
    volumes = estate.volumes(DISK)
    volumes.prepare()
    inside, outside = volumes.folder / "data/sub/in", volumes.folder / "data/sub/out"
    inside.symlink_to(volumes.folder / "data")
    outside.symlink_to(tmp_path)
    named = volumes.of({"volumes": ["/mnt/disk/in:/in", "/mnt/disk/out:/out"]})
    assert named == {"/in": inside}


def test_a_container_has_an_empty_folder_at_gcs_if_it_mounts_nothing_there(
    estate: Estate, tmp_path: Path
) -> None:
    volumes = estate.volumes(GCS, DISK)
    empty = tmp_path / "empty"
    assert volumes.gcs({"/gcs/data": volumes.folder / "data"}, empty) == volumes.folder
    assert not empty.exists()
    for at in ({"/gcs/other": volumes.folder / "data"}, {"/mnt/disk": volumes.folder / "data/sub"}):
        assert volumes.gcs(at, empty) == empty
    assert empty.is_dir()
