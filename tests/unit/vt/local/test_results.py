"""What ``vt local up`` and ``vt local logs`` read from state, records and buckets."""

from __future__ import annotations

import io
import json
import shutil
import urllib.error
import urllib.request
from dataclasses import replace
from email.message import Message

import pytest

from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.runner.joblog import log_path
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.conftest import Cloud, command_job
from vertex_training_cli.engine import stack_state
from vertex_training_cli.engine.stack_state import StackJob
from vertex_training_cli.local import results
from vertex_training_cli.local.joblogs import find_job, show

JOB_URN = "urn:pulumi:local::demo::pulumi-python:dynamic/vertex:CustomJob::training-titanic"
JOB_NAME = "projects/1/locations/us-central1/customJobs/42"


def write_state(home: Home, **latest: object) -> None:
    folder = home.pulumi / ".pulumi" / "stacks" / "demo"
    folder.mkdir(parents=True)
    stack = {
        "urn": "urn:pulumi:local::demo::pulumi:pulumi:Stack::demo-local",
        "custom": False,
        "type": "pulumi:pulumi:Stack",
        "outputs": {"jobs": {"titanic": {"name": JOB_NAME}}},
    }
    job = {"urn": JOB_URN, "custom": True, "type": "x:y:CustomJob", "id": JOB_NAME}
    provider = {"urn": "u", "custom": True, "type": "pulumi:providers:gcp", "id": "1"}
    state = {"checkpoint": {"latest": {"resources": [stack, provider, job], **latest}}}
    (folder / "local.json").write_text(json.dumps(state))


def test_the_state_gives_resources_and_jobs_by_their_name_in_the_stack(home: Home) -> None:
    write_state(home)
    state = stack_state.read(home, "demo", "local")
    assert dict(state.counts) == {"x:y:CustomJob": 1}
    assert state.jobs == (StackJob("titanic", "42"),)
    assert stack_state.job_ids_named(home, "titanic") == ["42"]


def test_a_stack_that_does_not_exist_is_empty(home: Home) -> None:
    assert stack_state.read(home, "demo", "none").counts.total() == 0


def record(job_id: str, name: str) -> JobRecord:
    time = "2026-11-21T10:00:00.000000Z"
    return JobRecord(job_id, "local-x", "1", "us-central1", name, {}, {}, JobState.SUCCEEDED, time,
                     None, None, time, None, None)  # fmt: skip


def test_logs_finds_the_newest_job_by_any_of_its_names() -> None:
    jobs = [record("3", "b"), record("2", "a"), record("1", "a")]
    assert find_job(jobs, None, []).job_id == "3"
    assert find_job(jobs, "a", []).job_id == "2"
    assert find_job(jobs, "1", []).job_id == "1"
    assert find_job(jobs, "titanic", ["1"]).job_id == "1"
    with pytest.raises(LocalCloudError, match=r"there is no job 'c'. Hint: there are: a, b."):
        find_job(jobs, "c", [])


def test_numbers_come_from_the_metrics_file_in_the_bucket(cloud_with_storage: Cloud) -> None:
    cloud = cloud_with_storage
    bucket = cloud.bucket("out")
    written = {"epochs": 3, "note": "x", "deterministic": True, "test_accuracy": 0.8, "loss": 0.5}
    bucket.blob("run/model/metrics.json").upload_from_string(json.dumps(written))
    bucket.blob("run2/model/metrics.json").upload_from_string("{}")
    output = {"base_output_directory": {"output_uri_prefix": "gs://out/run"}}
    job_id = cloud.run(command_job("true", **output)).name.rpartition("/")[2]
    found = cloud.jobs.get(job_id)
    assert found is not None
    assert cloud.storage is not None
    numbers = results.metrics(found, cloud.storage.port)
    assert list(numbers.items()) == [("test_accuracy", 0.8), ("epochs", 3), ("loss", 0.5)]
    assert results.artifacts(cloud.home, found) == (
        "gs://out/run/",
        str(cloud.home.storage / "out" / "run"),
    )
    shutil.rmtree(cloud.home.storage / "out")
    assert results.artifacts(cloud.home, found) == ("gs://out/run/", results.NOTHING_THERE)


OBJECTS = "http://127.0.0.1:8002/storage/v1/b/out/o"
LIST, NEAREST = (
    f"{OBJECTS}?prefix=run%2F1%2F",
    f"{OBJECTS}/run%2F1%2Fmodel%2Fmetrics.json?alt=media",
)
NAMES = ("run/1/a/b/metrics.json", "run/1/model/metrics.json", "run/1/x/my-metrics.json")
LISTED = json.dumps({"items": [{"name": name} for name in NAMES]}).encode()
OTHERS = json.dumps({"items": [{"name": NAMES[2]}]}).encode()


@pytest.mark.parametrize(
    ("answers", "numbers"),
    [
        ({LIST: LISTED, NEAREST: b'{"loss": 0.5}'}, {"loss": 0.5}),
        ({LIST: LISTED, NEAREST: 404}, {}),
        ({LIST: OTHERS}, {}),
        ({LIST: b"{}"}, {}),
        ({LIST: 404}, {}),
        ({LIST: 500}, None),
        ({LIST: LISTED, NEAREST: 403}, None),
    ],
)
def test_numbers_are_those_of_the_file_nearest_to_the_output_directory(
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[str, bytes | int],
    numbers: dict[str, float] | None,
) -> None:
    asked: list[str] = []

    def urlopen(url: str, timeout: float) -> io.BytesIO:
        asked.append(url)
        assert timeout == 10
        found = answers[url]
        if isinstance(found, int):
            raise urllib.error.HTTPError(url, found, "no", Message(), None)
        return io.BytesIO(found)

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    prefix = {"jobSpec": {"baseOutputDirectory": {"outputUriPrefix": "gs://out/run/1"}}}
    job = replace(record("1", "a"), request=prefix)
    if numbers is None:
        with pytest.raises(urllib.error.HTTPError):
            results.metrics(job, 8002)
    else:
        assert results.metrics(job, 8002) == numbers
    assert asked == list(answers)


def test_a_job_without_an_output_directory_left_nothing(home: Home) -> None:
    assert results.metrics(record("1", "a"), 8002) == {}
    assert results.artifacts(home, record("1", "a")) is None


@pytest.mark.parametrize("written", ['{"loss": 0.5', "[1, 2]", b"\xff\xfe"])
def test_a_metrics_file_that_makes_no_sense_gives_no_numbers(
    cloud_with_storage: Cloud, written: str | bytes
) -> None:
    cloud = cloud_with_storage
    cloud.bucket("out").blob("run/metrics.json").upload_from_string(written)
    assert cloud.storage is not None
    prefix = {"jobSpec": {"baseOutputDirectory": {"outputUriPrefix": "gs://out/run"}}}
    job = replace(record("1", "a"), request=prefix)
    assert results.metrics(job, cloud.storage.port) == {}


def test_a_followed_log_keeps_a_character_that_was_written_in_two_parts(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = replace(record("1", "a"), state=JobState.RUNNING)
    table = JobTable(home.database)
    table.insert(job)
    file = log_path(home, job.job_id, "workerpool0-0")
    file.parent.mkdir(parents=True)
    rest = "ü is whole\n".encode()
    file.write_bytes(rest[:1])

    def write_the_rest(_seconds: float) -> None:
        with file.open("ab") as log:
            log.write(rest[1:])
        table.move("1", JobState.SUCCEEDED)

    monkeypatch.setattr("vertex_training_cli.local.joblogs.time.sleep", write_the_rest)
    show(home, "1", "workerpool0-0", follow=True)
    assert capsys.readouterr().out == "ü is whole\n"
