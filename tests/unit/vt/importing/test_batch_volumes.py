"""Volumes of a job of Google Batch: where a job has each bucket, and what is told of the others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.importing.test_batch_fields import pool_of, read


def bucket(path: str, remote: str = "acme", **more: Any) -> dict[str, Any]:
    return {"gcs": {"remotePath": remote}, "mountPath": path, **more}


def moved(path: str, there: str) -> str:
    what = f"{path} is {there} here, in its arguments and variables"
    return f"{what}: change it in code and image as well"


def unnamed(path: str, there: str) -> str:
    what = f"no argument or variable names {path}, where it has a bucket"
    return f"{what}: a job has the buckets that it names, so name {there} there"


def not_mounted(volume: str) -> str:
    return f"{volume} of the machine is not mounted: a container has its own files"


def read_only(volume: str) -> str:
    return f"{volume} is read-only; here the job may write what its account may"


NFS = {"nfs": {"server": "10.0.0.2", "remotePath": "/share"}, "mountPath": "/mnt/team"}
USERS = "mount options -o a --uid=1 are left out"


@pytest.mark.parametrize(
    ("volumes", "inside", "words", "args", "remarks"),
    [
        ([bucket("/mnt/x")], [], ["/mnt/x", "--a=/mnt/x/a", "/mnt/xy", "/a/mnt/x", "/mnt/x.b"],
         ["/gcs/acme", "--a=/gcs/acme/a", "/mnt/xy", "/a/mnt/x", "/mnt/x.b"],
         [moved("/mnt/x", "/gcs/acme")]),
        ([bucket("/mnt/x/", "gs://acme/v1/")], [], ["/mnt/x/a"], ["/gcs/acme/v1/a"],
         [moved("/mnt/x", "/gcs/acme/v1")]),
        ([bucket("/mnt/x")], [], ["a"], ["a"], [unnamed("/mnt/x", "/gcs/acme")]),
        # a bucket that is where a job has it has to be named, in any way
        ([bucket("/gcs/acme")], [], ["/gcs/acme/a"], ["/gcs/acme/a"], []),
        ([bucket("/gcs/acme")], [], ["gs://acme/a"], ["gs://acme/a"], []),
        ([bucket("/gcs/acme")], [], ["a"], ["a"], [unnamed("/gcs/acme", "/gcs/acme")]),
        # the longest path wins
        ([bucket("/mnt"), bucket("/mnt/y", "two")], [], ["/mnt/y/a", "/mnt/z"],
         ["/gcs/two/a", "/gcs/acme/z"], [moved("/mnt/y", "/gcs/two"), moved("/mnt", "/gcs/acme")]),
        # what the container has of them
        ([bucket("/mnt/x")], ["/mnt/x/v1:/data"], ["/data/a", "/mnt/x/b"],
         ["/gcs/acme/v1/a", "/mnt/x/b"], [moved("/data", "/gcs/acme/v1")]),
        ([bucket("/mnt/x")], ["/mnt/x/"], ["/mnt/x/a"], ["/gcs/acme/a"],
         [moved("/mnt/x", "/gcs/acme")]),
        ([bucket("/mnt/x")], ["/mnt/x:/data/:rw,Z"], ["/data"], ["/gcs/acme"],
         [moved("/data", "/gcs/acme")]),
        ([bucket("/mnt/x")], ["/mnt/x:/data:Z,ro"], ["/data"], ["/gcs/acme"],
         [read_only("/mnt/x:/data:Z,ro"), moved("/data", "/gcs/acme")]),
        ([bucket("/mnt/x"), bucket("/mnt/y", "two")], ["/mnt:/all:ro"],
         ["/all/x", "/all/y", "/all"], ["/gcs/acme", "/gcs/two", "/all"],
         [read_only("/mnt:/all:ro"), moved("/all/x", "/gcs/acme"), moved("/all/y", "/gcs/two")]),
        ([bucket("/mnt/x")], ["/mnt/xy:/data"], ["/data"], ["/data"],
         [not_mounted("/mnt/xy:/data")]),
        ([bucket("/mnt/x")], ["/var/x:/x:ro"], ["/x"], ["/x"], [not_mounted("/var/x:/x:ro")]),
        ([bucket("/mnt/x")], ["/mnt/x:/"], ["/a"], ["/a"], []),
        # of a share of files there is nothing to say
        ([NFS], ["/mnt/team/a:/data:ro"], ["/data"], ["/data"], []),
        ([{**NFS, "mountOptions": ["-o", "a", "--uid=1"]}], [], ["a"], ["a"], [USERS]),
        ([bucket("/gcs/acme", mountOptions=["-o", "a", "--uid=1"])], [], ["/gcs/acme"],
         ["/gcs/acme"], [f"{USERS}: all users of the container read and write a bucket"]),
        ([bucket("/gcs/acme", mountOptions=[])], [], ["/gcs/acme"], ["/gcs/acme"], []),
        ([bucket("")], [], ["a"], ["a"], []),
        ([{"deviceName": "d", "mountPath": "/mnt/d"}, {"deviceName": "e"}], [], ["/mnt/d"],
         ["/mnt/d"],
         [f"the disk {disk} is left out: put its files into a bucket, or write to a larger boot "
          "disk" for disk in ("d at /mnt/d", "e at ")]),
    ],
)  # fmt: skip
def test_a_bucket_is_where_a_job_has_it_and_what_is_not_is_told(
    volumes: list[Any], inside: list[str], words: list[str], args: list[str], remarks: list[str]
) -> None:
    container = {"commands": words, **({"volumes": inside} if inside else {})}
    found = read(container=container, task={"volumes": volumes})
    task = pool_of(found)["containerSpec"]
    assert (task, found.remarks) == ({"imageUri": "a/b/c:1", "args": args}, remarks)


def test_paths_in_a_command_and_in_variables_are_those_of_a_job_as_well() -> None:
    found = read(
        container={"entrypoint": "/mnt/x/run"}, task={"volumes": [bucket("/mnt/x")]},
        step={"environment": {"variables": {"IN": "/mnt/x/in", "A": "$(IN)"}}},
    )  # fmt: skip
    assert pool_of(found)["containerSpec"] == {
        "imageUri": "a/b/c:1",
        "command": ["/gcs/acme/run"],
        "env": [{"name": "IN", "value": "/gcs/acme/in"}, {"name": "A", "value": "$$(IN)"}],
    }
    assert found.remarks == [moved("/mnt/x", "/gcs/acme")]


def test_a_share_of_files_is_one_of_the_pool() -> None:
    bare = {"nfs": {}}
    found = read(task={"volumes": [NFS, bare]})
    assert pool_of(found)["nfsMounts"] == [
        {"server": "10.0.0.2", "path": "/share", "mountPoint": "team"},
        {"server": "", "path": "", "mountPoint": ""},
    ]
    assert found.remarks == []
    assert "nfsMounts" not in pool_of(read())
