"""Which jobs `vt up` tells of after an `up`, by the official client against a service in this
process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localgcp.apis.server import serve
from localgcp.vertex.records import JobRecord
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud, wait_until
from tests.unit.localcloud.tuning import studies
from tests.unit.vt.jobs.submitting import done, submit, submit_with, until_running
from vertex_training.customjob.google.vertex_api import CustomJob
from vertex_training.customjob.kinds import TUNING_JOB
from vertex_training.customjob.protocol.ports import (
    JOB_LABEL,
    REQUEST_ID_LABEL,
    RUN_LABEL,
    SLOT_LABEL,
    STACK_LABEL,
)
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.up.flow import report_orphaned_jobs

Told = Callable[..., list[str]]


@pytest.fixture
def told(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    """What is told of stack `local` whose state holds the resources with these ids."""
    server = serve([JobService(cloud.store, cloud.jobs, cloud.scheduler), cloud.studies], 0)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")

    def tell(*ids: str) -> list[str]:
        said: list[str] = []
        where = StackRef(Path(), "demo", "local", PROJECT, "us-central1")
        resources = [{"urn": "of the stack itself"}, *({"id": id_} for id_ in ids)]
        report_orphaned_jobs(where, {"resources": resources}, said.append)
        return said

    yield tell
    server.stop(None).wait()


def running(cloud: Cloud, job: str, stack: str = "local") -> JobRecord:
    """A job of the stack that runs."""
    job_id = until_running(cloud, submit(cloud, "sleep 600", job, run=2, stack=stack))
    record = cloud.jobs.get(job_id)
    assert record
    return record


def test_a_job_that_the_state_does_not_know_is_told_with_the_ways_out(
    told: Told, cloud: Cloud
) -> None:
    job = running(cloud, "train")
    [line] = told("projects/1/locations/us-central1/customJobs/1")
    assert "job train (run 2) is RUNNING" in line
    assert f"stack local does not know it: {job.name}." in line
    assert f"`vt jobs cancel {job.job_id} --stack local`" in line
    assert "declare it as it was" in line


def test_what_is_known_or_ended_or_anothers_is_not(told: Told, cloud: Cloud) -> None:
    done(cloud, submit(cloud, "true", "short"))
    known = running(cloud, "train")
    running(cloud, "train", stack="other")
    assert told(known.name) == []


def test_the_job_of_a_slot_is_known_by_its_schedule(told: Told, cloud: Cloud) -> None:
    labels = {
        STACK_LABEL: "local", JOB_LABEL: "weekly", RUN_LABEL: "1", SLOT_LABEL: "20261130t050000z",
        REQUEST_ID_LABEL: "20261130t050000z-1",
    }  # fmt: skip
    until_running(cloud, submit_with(cloud, "sleep 600", "weekly", labels))
    place = f"projects/{PROJECT}/locations/us-central1/schedules"
    assert told(f"{place}/jobs/weekly") == []
    assert len(told(f"{place}/tuning/weekly", f"{place}/jobs/other")) == 1  # its schedule is gone


def test_a_list_that_lags_alarms_nobody(
    told: Told, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = running(cloud, "train")
    before = Jobs(StackRef(Path(), "demo", "local", PROJECT, "us-central1")).list()
    assert [each.name for each in before] == [job.name]
    assert len(told()) == 1
    cloud.scheduler.cancel(job.job_id)
    done(cloud, job.job_id)

    def lagging(_self: Jobs, **_of: bool) -> list[CustomJob]:
        deleted = CustomJob(name=job.name + "9", state="JOB_STATE_RUNNING")
        return [*before, deleted]

    monkeypatch.setattr(Jobs, "list", lagging)
    assert told() == []


def test_a_service_that_does_not_answer_is_told_and_no_failure(
    told: Told, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("VERTEX_EMULATOR_HOST")
    monkeypatch.setenv("VT_LOCAL_HOME", str(tmp_path / "home"))
    [line] = told()
    assert line.startswith("it is not known whether jobs run that stack local does not know: ")
    assert "the local cloud does not run" in line


def test_a_tuning_job_is_orphaned_and_its_trials_are_not(told: Told, cloud: Cloud) -> None:
    """Trials carry the labels of their tuning job here: they must not be taken for jobs."""
    labels = {STACK_LABEL: "local", JOB_LABEL: "tune", RUN_LABEL: "1", REQUEST_ID_LABEL: "x"}
    made = studies.tuning(
        studies.python("import time; time.sleep(600)"),
        labels=TUNING_JOB.sent_labels(labels), study={"algorithm": "RANDOM_SEARCH"},
    )  # fmt: skip
    name = studies.submit(cloud, made)
    wait_until(lambda: bool(studies.get(cloud, name).trials))
    [said] = told()
    assert "job tune (run 1) is " in said
    assert name in said
    assert told(name) == []
    cloud.client.cancel_hyperparameter_tuning_job(name=name)
    studies.wait(cloud, name)
