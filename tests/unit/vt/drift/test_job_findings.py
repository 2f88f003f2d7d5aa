"""Jobs that run as accounts of the stack: whose they are, and which are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.cloud.aiplatform_v1 import CustomJob, HyperparameterTuningJob, Trial

from tests.unit.localcloud.conftest import (
    PROJECT,
    TRAINER,
    Cloud,
    cloud,
    command_job,
    home,
    make_cloud,
)
from tests.unit.vt.jobs.submitting import until_running
from vertex_training_cli.drift import job_findings
from vertex_training_cli.drift.findings import PropertyDifference, ResourceDifference
from vertex_training_cli.drift.job_findings import orphaned_jobs, submitted_by_hand
from vertex_training_cli.engine.stacks import StackRef

__all__ = ["cloud", "home", "make_cloud"]

OWN = f"serviceAccount:{TRAINER}"


@pytest.fixture
def ref(tmp_path: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> StackRef:
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{cloud.port}")
    return StackRef(tmp_path, "demo", "local", PROJECT, "us-central1")


def by_hand(cloud: Cloud, name: str = "the job", **labels: str) -> str:
    """Id of a job that runs as the stack's account."""
    body = command_job("sh", "-c", "sleep 600", service_account=TRAINER)
    job = cloud.submit({**body, "display_name": name, "labels": labels})
    return until_running(cloud, job.name.rpartition("/")[2])


def name_of(cloud: Cloud, number: str) -> str:
    """A job's name, as the service has it: with the project's number."""
    record = cloud.jobs.get(number)
    assert record is not None
    return record.name


def by_a_stack(cloud: Cloud, stack: str) -> str:
    return by_hand(
        cloud,
        "train",
        **{
            "vt-stack": stack,
            "vt-request-id": "0" * 20,
            "vt-job": "t",
            "vt-run": "1",
        },
    )


def test_a_job_of_nobody_is_told_with_the_account_and_how_to_end_or_keep_it(
    ref: StackRef, cloud: Cloud
) -> None:
    number = by_hand(cloud)
    assert submitted_by_hand(ref, (), {OWN}, ()) == (
        [
            ResourceDifference(
                "submitted",
                "the job",
                "CustomJob",
                name_of(cloud, number),
                (PropertyDifference("account", TRAINER, ""),),
                f"To end it: `vt jobs cancel {number} --stack local`; to keep it: list "
                "`customJobs/the job` with its reason under `drift.allowedResources`. "
                "Who submitted it is in the project's audit log.",
                resource="customJobs/the job",
            )
        ],
        [],
    )


def test_jobs_of_other_accounts_and_of_the_state_are_not_the_stacks_to_tell(
    ref: StackRef, cloud: Cloud
) -> None:
    name = name_of(cloud, by_hand(cloud))
    assert (
        submitted_by_hand(ref, (), {"serviceAccount:other@x.iam.gserviceaccount.com"}, ())[0] == []
    )
    assert submitted_by_hand(ref, (), (), ())[0] == []
    assert submitted_by_hand(ref, {name}, {OWN}, ())[0] == []


def test_a_job_of_the_stack_itself_is_an_orphaned_one_and_told_once(
    ref: StackRef, cloud: Cloud
) -> None:
    number = by_a_stack(cloud, ref.stack)
    assert submitted_by_hand(ref, (), {OWN}, ()) == ([], [])
    assert orphaned_jobs(ref, ()) == [
        ResourceDifference(
            "runs",
            "t (run 1)",
            "CustomJob",
            name_of(cloud, number),
            (PropertyDifference("state", "RUNNING", ""),),
            "A killed run submitted it, perhaps, before it was removed or renamed. To end it: "
            f"`vt jobs cancel {number} --stack local`; to keep it: declare it as it was, "
            "and `vt up --stack local --refresh` takes it over.",
        )
    ]


def test_a_job_of_a_stack_beside_is_listed_and_one_that_only_says_so_is_told(
    ref: StackRef, cloud: Cloud
) -> None:
    number = by_a_stack(cloud, "eu")
    name = name_of(cloud, number)
    line = f"{name} runs as {TRAINER} and says that it is of stack eu"
    assert submitted_by_hand(ref, (), {OWN}, {"eu"}) == ([], [line])
    assert [each.name for each in submitted_by_hand(ref, (), {OWN}, {"us"})[0]] == ["train"]


def test_a_label_without_a_request_is_no_submission_of_a_stack(ref: StackRef, cloud: Cloud) -> None:
    by_hand(cloud, **{"vt-stack": "eu"})
    assert len(submitted_by_hand(ref, (), {OWN}, {"eu"})[0]) == 1


def test_a_job_that_ended_is_not_told(ref: StackRef, cloud: Cloud) -> None:
    cloud.client.cancel_custom_job(name=f"{ref.parent}/customJobs/{by_hand(cloud)}")
    assert submitted_by_hand(ref, (), {OWN}, ())[0] == []


def test_trials_of_a_tuning_job_that_runs_are_its_own(
    ref: StackRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    def job(number: int) -> CustomJob:
        spec = {"service_account": TRAINER}
        return CustomJob(name=f"customJobs/{number}", display_name=f"{number}", job_spec=spec)

    tuning = HyperparameterTuningJob(name="tuningJobs/7", trial_job_spec={"service_account": "b"})
    whole = HyperparameterTuningJob(tuning)
    whole.trials = [Trial(custom_job="customJobs/1"), Trial(custom_job="customJobs/2")]
    live = [tuning, *map(job, (1, 2, 3))]
    monkeypatch.setattr(job_findings.Jobs, "list", lambda *_, **__: live)
    read = {"tuningJobs/7": whole}
    monkeypatch.setattr(job_findings.Jobs, "get_if_exists", lambda _, name: read.get(name))
    found, not_judged = submitted_by_hand(ref, (), {OWN}, ())
    assert ([each.name for each in found], not_judged) == (["3"], [])
    read.clear()  # it went meanwhile
    assert len(submitted_by_hand(ref, (), {OWN}, ())[0]) == 3
