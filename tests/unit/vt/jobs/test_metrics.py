"""`vt jobs list --metrics`, `show` and `compare`: read through the real client and emulator."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from google.cloud.aiplatform_v1.types import CustomJob
from typer.testing import CliRunner

from localgcp.apis.server import serve
from localgcp.inventory.store import SERVICE
from localgcp.runner.gcsfuse import storage_client
from localgcp.vertex.log_entries import LogService
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud
from tests.unit.vt.jobs.event_files import record
from tests.unit.vt.jobs.submitting import done, submit_with
from vertex_training_cli.cli import app
from vertex_training_cli.jobs import objects, scalars
from vertex_training_cli.jobs.metrics import columns
from vertex_training_cli.jobs.objects import StoredFile

HISTORY = "epoch,loss,accuracy\n1,1.0,0.2\n2,0.5,0.6\n3,0.25,0.9\n"


@pytest.fixture
def cloud(
    make_cloud: Callable[..., Cloud], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cloud]:
    """Two jobs `a` and `b`, of which `a` wrote metrics and a history."""
    cloud = make_cloud(storage=True)
    assert cloud.storage is not None
    jobs = JobService(cloud.store, cloud.jobs, cloud.scheduler)
    logs = LogService(cloud.home, cloud.store, cloud.jobs)
    server = serve([jobs, cloud.studies, logs], 0)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.storage.url)
    monkeypatch.delenv("PULUMI_STACK", raising=False)
    cloud.store.put(SERVICE, f"{PROJECT}/logging.googleapis.com", PROJECT, {}, {})
    cloud.bucket("out")
    made = storage_client(cloud.storage.url).bucket("out")
    made.blob("a/model/metrics.json").upload_from_string(json.dumps({"loss": 9}))
    made.blob("a/metrics.json").upload_from_string(json.dumps({"loss": 0.25, "name": "x"}))
    made.blob("a/eval_history.csv").upload_from_string(HISTORY)
    made.blob("b/metrics.json").upload_from_string('{"loss": ')
    for job in ("a", "b"):
        done(cloud, submit_with(cloud, f"true {job}", job, _labels(job), output=f"gs://out/{job}"))
    (tmp_path / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    text = f"config: {{gcp:project: {PROJECT}, gcp:region: us-central1}}\n"
    (tmp_path / "Pulumi.local.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    yield cloud
    server.stop(None).wait()


def _labels(job: str) -> dict[str, str]:
    return {"vt-stack": "local", "vt-job": job, "vt-run": "1", "vt-request-id": job}


@pytest.fixture
def vt(cloud: Cloud) -> Callable[..., str]:
    """`vt jobs …` with the two jobs."""

    def run(*words: str) -> str:
        result = CliRunner().invoke(app, ["jobs", *words, "--stack", "local"])
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


@pytest.mark.parametrize(
    "data",
    [b"", b"a", b"a,b\n", b"a,b\n1,x\n", b"\xff,\xfe\n1,\n", b"a,b\n1,2\n1," + b"2" * 131_073],
    ids=range(6),
)
def test_a_history_that_is_none_has_no_curves(data: bytes) -> None:
    assert columns(data) == {}


def test_a_page_that_cannot_be_written_is_one_line(vt: Callable[..., str]) -> None:
    result = CliRunner().invoke(
        app, ["jobs", "compare", "a", "--stack", "local", "--html", "no/folder.html"]
    )
    assert result.exit_code == 1
    assert "cannot be written: No such file or directory" in result.output


OUT = "gs://out/a"


def job(output: str = f"{OUT}/", number: int = 7) -> CustomJob:
    return CustomJob(
        name=f"projects/1/locations/r/customJobs/{number}", display_name="fit",
        job_spec={"base_output_directory": {"output_uri_prefix": output}},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("stored", "content"),
    [
        (b"", b""),
        (b"plain", b"plain"),
        (gzip.compress(b"packed", mtime=0), b"packed"),
        (gzip.compress(b"packed", mtime=0)[:12], b"p"),
        (b"\x1f\x8bdamaged", b""),
        (b"x" * 8_388_609, b"x" * 8_388_608),
        (gzip.compress(b"x" * 8_388_609), b"x" * 8_388_608),
    ],
    ids=["empty", "plain", "packed", "cut", "damaged", "long", "long and packed"],
)
def test_a_compressed_object_is_unpacked_within_bounds(stored: bytes, content: bytes) -> None:
    assert objects._unpacked(stored) == content


class Stored:
    """Objects with these contents; remembers which ends of them were asked for."""

    def __init__(self, **contents: bytes) -> None:
        self.contents = {name.replace("__", "/"): data for name, data in contents.items()}
        self.asked: list[tuple[str, int, int]] = []

    def end_of(self, uri: str, size: int, count: int) -> bytes:
        self.asked.append((uri, size, count))
        return self.contents[uri.removeprefix("gs://b/logs/")][:size][-count:]

    def files(self) -> list[StoredFile]:
        return [
            StoredFile(name, len(data), datetime(2026, 11, 1, 0, number, tzinfo=UTC))
            for number, (name, data) in enumerate(self.contents.items())
        ]


def read(stored: Stored, files: list[StoredFile] | None = None, *, more: bool = False):
    chosen = stored.files() if files is None else files
    return scalars.read(stored, "gs://b/logs/", chosen, more=more)  # type: ignore[arg-type]


def test_records_are_found_again_behind_what_is_none() -> None:
    assert list(scalars.records(record(b"a") + record(b"") + record(b"b"))) == [b"a", b"", b"b"]
    assert list(scalars.records(b"\1" * 20 + record(b"a"))) == [None, b"a"]
    assert list(scalars.records(b"\1" * 20)) == [None]
    assert list(scalars.records(b"\1" * 11)) == []
    # a length with a right checksum alone: its end is beyond the file
    head = record(b"x" * 300)[:12]
    assert list(scalars.records(b"\1" * 20 + head)) == [None]
