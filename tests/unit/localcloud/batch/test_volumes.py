"""Where a runnable of Batch finds the buckets that its job mounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp.batch.volumes import HOSTS_FILE
from localgcp.runner.gcsfuse import Mount
from tests.unit.localcloud.batch.machines import DISK, GCS, Estate


def test_files_that_reach_no_bucket_are_told_at_the_end(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Mount, "sync", lambda _mount, *, final: estate.said.append(f"{final}"))
    estate.bucket()
    volumes = estate.volumes(GCS)
    volumes.close()  # nothing was prepared
    assert estate.said == []
    volumes.prepare()
    (volumes.root / "data" / "kept").touch()
    (volumes.root / "other").mkdir()
    (volumes.root / "other" / "lost").touch()
    volumes.sync()
    volumes.close()
    first, told, last = estate.said
    assert (first, last) == ("False", "True")
    assert told.startswith("The job wrote /gcs/other/lost, which reached no bucket: ")
    assert not (volumes.root / "data").exists()


def test_a_runnable_finds_volumes_where_it_mounts_them(estate: Estate) -> None:
    estate.bucket()
    volumes = estate.volumes(GCS, DISK)
    root = volumes.root
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
        "volume /etc:/etc: this machine has nothing at /etc; left out.",
        "volume /mnt/disk/../x:/y: this machine has nothing at /mnt/disk/../x; left out.",
        "volume /mnt/diskette:/z: this machine has nothing at /mnt/diskette; left out.",
    ]


def test_the_volume_that_is_nearest_is_the_one_that_a_runnable_names(estate: Estate) -> None:
    estate.bucket()
    estate.bucket("other")
    deep = {"gcs": {"remotePath": "other"}, "mountPath": "/mnt/disk/deep"}
    volumes = estate.volumes(DISK, deep)
    volumes.prepare()
    named = volumes.of({"volumes": ["/mnt/disk/deep/a:/a", "/mnt/disk/a:/b"]})
    assert named == {"/a": volumes.root / "other/a", "/b": volumes.root / "data/sub/a"}


def test_a_link_out_of_a_volume_is_left_out(estate: Estate, tmp_path: Path) -> None:
    estate.bucket()
    volumes = estate.volumes(DISK)
    volumes.prepare()
    inside, outside = volumes.root / "data/sub/in", volumes.root / "data/sub/out"
    inside.symlink_to(volumes.root / "data")
    outside.symlink_to(tmp_path)
    named = volumes.of({"volumes": ["/mnt/disk/in:/in", "/mnt/disk/out:/out"]})
    assert named == {"/in": inside}


def test_a_container_has_an_empty_folder_at_gcs_if_it_mounts_nothing_there(
    estate: Estate, tmp_path: Path
) -> None:
    volumes = estate.volumes(GCS, DISK)
    empty = tmp_path / "empty"
    assert volumes.gcs({"/gcs/data": volumes.root / "data"}, empty) == volumes.root
    assert not empty.exists()
    for at in ({"/gcs/other": volumes.root / "data"}, {"/mnt/disk": volumes.root / "data/sub"}):
        assert volumes.gcs(at, empty) == empty
    assert empty.is_dir()
