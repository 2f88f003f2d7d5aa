"""Which buckets a job has at ``/gcs``: copied, shown as they are, or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from localgcp.inventory.store import BUCKET, Binding, Store
from localgcp.runner import buckets as module
from localgcp.runner.buckets import JobBuckets
from localgcp.runner.gang import hosts
from localgcp.runner.gang.cluster import Replica
from localgcp.vertex.admission import Access

PROJECT, ACCOUNT = "local-training", "trainer@x"


class Mount:
    """In place of a copy: notes what is asked of it."""

    made: list[Mount]

    def __init__(self, folder: Path, objects: Path, _access: Any, url: str, _report: Any) -> None:
        self.folder, self.objects, self.bucket, self.url = folder, objects, objects.name, url
        self.calls: list[Any] = []
        self.refused: set[str] = set()
        self.made.append(self)

    def fill(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.calls.append("fill")

    def sync(self, *, final: bool) -> None:
        self.calls.append(final)


class Buckets:
    """Buckets of a project, and a job whose account has roles on some."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        Mount.made = []
        monkeypatch.setattr(module, "Mount", Mount)
        monkeypatch.setattr(hosts, "has_mounts", lambda: True)
        self.storage, self.gcs = root / "storage", root / "job" / "gcs"
        self.storage.mkdir()
        self.store, self.said = Store(root / "cloud.sqlite"), list[str]()
        access = Access(self.store, PROJECT, ACCOUNT)
        self.job = JobBuckets(
            self.gcs, storage=self.storage, store=self.store, access=access, url="http://s",
            report=self.said.append,
        )  # fmt: skip

    def add(self, name: str, role: str = "", files: int = 0) -> None:
        self.store.put(BUCKET, name, PROJECT, {}, {"name": name, "project": PROJECT})
        (self.storage / name).mkdir()
        for number in range(files):
            (self.storage / name / str(number)).write_bytes(b"12345678")
        if role:
            bindings = (Binding(f"roles/storage.{role}", (f"serviceAccount:{ACCOUNT}",)),)
            etag = self.store.policy(f"b/{name}").etag
            self.store.set_policy(f"b/{name}", bindings, expected_etag=etag)

    def prepare(self, *args: str, output: str | None = None, image: str = "x") -> list[str]:
        """The buckets that are copied, in their order."""
        task = {"imageUri": image, "command": ["train"], "args": [*args]}
        self.job.prepare([Replica(0, 0, {"containerSpec": task})], output)
        return [mount.bucket for mount in Mount.made]


@pytest.fixture
def buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Buckets:
    return Buckets(tmp_path, monkeypatch)


def test_a_bucket_that_is_named_and_not_there_is_told(buckets: Buckets) -> None:
    buckets.add("b", "objectUser")
    assert buckets.prepare("/gcs/none/x", "/gcs/b/y") == ["b"]
    assert buckets.said == ["/gcs/none: there is no such bucket."]


LARGE = (
    "/gcs/{} is read-only here, for it is large and the job does not name it. To write to it, put "
    "the path into an argument or a variable."
)


def test_a_large_bucket_is_copied_only_if_its_path_is_named(
    buckets: Buckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_FILES", 3)
    buckets.add("big", "objectUser", files=4)
    buckets.add("fits", "objectUser", files=3)
    assert buckets.prepare() == ["fits"]
    assert buckets.said == [LARGE.format("big")]
    view = buckets.job.view
    assert view is not None
    assert view.objects == {"big": buckets.storage / "big"}
    Mount.made = []
    assert buckets.prepare("/gcs/big/x") == ["big", "fits"]


def test_the_limits_are_five_thousand_files_and_a_quarter_of_a_gibibyte() -> None:
    assert (module._MOST_FILES, module._MOST_BYTES) == (5_000, 268_435_456)


def test_a_container_has_all_that_its_task_names(
    buckets: Buckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "has_mounts", lambda: False)
    for name in ("a", "b", "out"):
        buckets.add(name, "objectUser")
    image = "us-docker.pkg.dev/local-training/r/x:1"
    assert buckets.prepare("gs://a/x", output="gs://out/y", image=image) == ["a", "out"]


def test_folders_and_buckets_are_brought_in_step(buckets: Buckets) -> None:
    buckets.add("a", "objectUser")
    buckets.add("b", "objectUser")
    buckets.prepare()
    buckets.job.sync()
    one, two = Mount.made
    two.refused.add("file")
    buckets.job.close()
    assert [each.calls for each in (one, two)] == [["fill", False, True]] * 2
    assert (one.folder.exists(), two.folder.exists()) == (False, True)


def test_what_was_written_beside_the_buckets_is_lost(buckets: Buckets) -> None:
    buckets.add("a", "objectUser")
    buckets.prepare()
    (buckets.gcs / "a" / "kept").touch()
    assert buckets.job.lost() == ""
    (buckets.gcs / "beside").touch()
    assert buckets.job.lost().startswith("The job wrote /gcs/beside, which reached no bucket: ")


def test_a_file_that_goes_while_a_folder_is_measured_has_no_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "gone", "z"):
        (tmp_path / name).write_bytes(b"12345678")
    lstat = os.lstat

    def late(path: str) -> os.stat_result:
        if path.endswith("gone"):
            raise FileNotFoundError(path)
        return lstat(path)

    monkeypatch.setattr(os, "lstat", late)
    assert module._measure(tmp_path, 9, 99) == (3, 16)
