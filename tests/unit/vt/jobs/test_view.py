"""Jobs as rows for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Final

import pytest
from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob, JobState

from vertex_training_cli.jobs import show, view

CREATED: Final = datetime(2026, 11, 22, 7, 30, tzinfo=UTC)
STARTED: Final = CREATED + timedelta(minutes=3)


def job(**fields: Any) -> CustomJob:
    name = "projects/1/locations/us-central1/customJobs/42"
    return CustomJob(name=name, create_time=CREATED, **fields)


@pytest.mark.parametrize(
    ("fields", "duration"),
    [
        ({}, ""),
        ({"end_time": STARTED}, ""),
        ({"start_time": STARTED}, "57m"),
        ({"start_time": STARTED, "end_time": STARTED + timedelta(seconds=125)}, "2m 5s"),
    ],
    ids=["pending", "never started", "running", "ended"],
)
def test_a_duration_is_from_the_start_to_the_end_or_to_now(
    fields: dict[str, datetime], duration: str
) -> None:
    assert view.row(job(**fields), CREATED + timedelta(hours=1))["duration"] == duration


def test_the_facts_of_a_job_have_its_times_in_utc() -> None:
    ended = job(
        state=JobState.JOB_STATE_SUCCEEDED, start_time=STARTED,
        end_time=STARTED + timedelta(hours=1),
    )  # fmt: skip
    facts = dict(view.facts(ended, "acme-ml-dev", "us-central1", CREATED + timedelta(days=1)))
    assert facts["state"] == "SUCCEEDED"
    assert facts["created"] == "2026-11-22 07:30:00"
    assert facts["started"] == "2026-11-22 07:33:00"
    assert facts["ended"] == "2026-11-22 08:33:00"
    assert facts["duration"] == "1h 0m"


def test_a_fact_that_a_job_does_not_have_is_left_out() -> None:
    facts = dict(view.facts(job(), "acme-ml-dev", "us-central1", CREATED))
    assert {"error", "run", "started", "ended", "duration", "worker pool"}.isdisjoint(facts)


@pytest.mark.parametrize(
    ("accelerator", "text"),
    [
        ({}, "2 x n1-standard-4"),
        (
            {"accelerator_type": "NVIDIA_TESLA_T4", "accelerator_count": 1},
            "2 x n1-standard-4 with 1 x NVIDIA_TESLA_T4",
        ),
    ],
)
def test_a_worker_pool_is_a_count_of_machines(accelerator: dict[str, Any], text: str) -> None:
    machine = {"machine_type": "n1-standard-4", **accelerator}
    pools = [{"replica_count": 2, "machine_spec": machine}]
    facts = dict(
        view.facts(job(job_spec={"worker_pool_specs": pools}), "p", "us-central1", CREATED)
    )
    assert facts["worker pool"] == text


def test_submissions_of_one_run_are_counted() -> None:
    def submission(number: int, run: str) -> CustomJob:
        name = f"projects/1/locations/us-central1/customJobs/{number}"
        labels = {"vt-request-id": "x", "vt-job": "titanic", "vt-run": run}
        return CustomJob(name=name, create_time=CREATED + timedelta(hours=number), labels=labels)

    jobs = [submission(4, "2"), submission(3, "1"), submission(2, "1"), submission(1, "1")]
    assert list(view.run_texts(jobs).values()) == ["1", "1 #2", "1 #3", "2"]


def test_submissions_of_two_stacks_are_not_counted_together() -> None:
    jobs = [
        CustomJob(name=name, create_time=CREATED, labels=OWN | {"vt-stack": stack})
        for name, stack in (("1", "vision"), ("2", "speech"), ("3", "vision"))
    ]
    assert list(view.run_texts(jobs).values()) == ["2", "2", "2 #2"]


def test_jobs_of_others_have_no_run_to_count() -> None:
    assert list(view.run_texts([job(display_name="x")]).values()) == [""]


def test_slots_and_rungs_are_fields_of_the_jobs_that_have_them() -> None:
    labels = {"vt-request-id": "x", "vt-job": "titanic", "vt-run": "1"}
    slot, rung = {"vt-slot": "20261130t060000z"}, {"vt-rung": "2"}
    first, second, third = (job(labels=labels | more) for more in ({}, slot, rung))
    rows = [view.row(each, CREATED) for each in (first, second, third)]
    assert [(row.get("slot"), row.get("rung")) for row in rows] == [
        (None, None), ("20261130t060000z", None), (None, "2"),
    ]  # fmt: skip
    facts = [dict(view.facts(each, "p", "us-central1", CREATED)) for each in (second, third)]
    assert (facts[0]["slot"], facts[1]["rung"]) == ("20261130t060000z", "2")
    assert view.row(job(labels={"vt-rung": "2"}), CREATED).get("rung") is None  # another's


def test_the_list_has_columns_for_them_where_a_job_has_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    ref: Any = SimpleNamespace(is_local=False)
    labels = {"vt-request-id": "x", "vt-job": "titanic", "vt-run": "1"}

    def heads(*more: dict[str, str]) -> list[str]:
        jobs = [job(labels=labels | each) for each in more]
        show.table_of(jobs, ref, 9, as_json=False, log=lambda _: None)
        return capsys.readouterr().out.split("\n")[0].split()

    assert heads({}) == ["JOB", "RUN", "STATE", "CREATED", "DURATION", "ID"]
    assert heads({}, {"vt-rung": "2"})[:3] == ["JOB", "RUN", "RUNG"]
    assert heads({}, {"vt-slot": "20261130t060000z"})[:3] == ["JOB", "RUN", "SLOT"]


def test_a_tuning_job_says_how_many_of_its_trials_there_are() -> None:
    made = HyperparameterTuningJob(
        name="projects/1/locations/us-central1/hyperparameterTuningJobs/7", max_trial_count=12,
        parallel_trial_count=3, trials=[{"state": "ACTIVE"}, {"state": "SUCCEEDED"}],
    )  # fmt: skip
    facts = view.facts(made, "acme", "us-central1", CREATED)
    assert ("trials", "2 of 12, 3 at once: 1 ACTIVE, 1 SUCCEEDED") in facts


OWN = {"vt-request-id": "x", "vt-job": "titanic", "vt-run": "2"}


def test_the_facts_of_a_job_are_whole_and_in_their_order() -> None:
    pool = {"replica_count": 1, "machine_spec": {"machine_type": "n1-standard-4"}}
    made = job(
        labels=OWN | {"team": "ml", "vt-slot": "20261130t060000z", "vt-rung": "2"},
        state=JobState.JOB_STATE_FAILED,
        start_time=STARTED,
        end_time=STARTED + timedelta(seconds=61),
        error={"code": 3, "message": "out of memory"},
        job_spec={
            "worker_pool_specs": [pool, pool],
            "service_account": "t@p.iam.gserviceaccount.com",
            "base_output_directory": {"output_uri_prefix": "gs://out/a"},
        },
    )
    *facts, console, logs = view.facts(made, "acme", "us-central1", CREATED)
    assert facts == [
        ("state", "FAILED"),
        ("error", "out of memory"),
        ("run", "2"),
        ("slot", "20261130t060000z"),
        ("rung", "2"),
        ("name", "projects/1/locations/us-central1/customJobs/42"),
        ("created", "2026-11-22 07:30:00"),
        ("started", "2026-11-22 07:33:00"),
        ("ended", "2026-11-22 07:34:01"),
        ("duration", "1m 1s"),
        ("worker pool", "1 x n1-standard-4"),
        ("worker pool", "1 x n1-standard-4"),
        ("account", "t@p.iam.gserviceaccount.com"),
        ("artifacts", "gs://out/a"),
        ("labels", "team=ml vt-job=titanic vt-request-id=x vt-run=2 vt-rung=2 "
         "vt-slot=20261130t060000z"),
    ]  # fmt: skip
    assert (console[0], logs[0]) == ("console", "logs")
    assert "42" in console[1]
    assert "42" in logs[1]


def test_an_entry_for_scripts_is_the_row_and_what_does_not_fit_into_one() -> None:
    token = "hf_" + "a" * 34
    made = job(labels=OWN, display_name="dev-titanic", error={"message": f"token {token}"})
    entry = view.list_entry(made, CREATED)
    assert token not in entry.pop("error")
    assert entry == {
        "job": "titanic", "run": "2", "state": "UNSPECIFIED", "created": "2026-11-22 07:30:00",
        "duration": "", "id": "42", "name": "projects/1/locations/us-central1/customJobs/42",
        "displayName": "dev-titanic", "section": "jobs", "labels": OWN,
    }  # fmt: skip


def test_a_job_of_others_is_called_by_its_display_name() -> None:
    other = job(display_name="theirs\x1b[2J", labels={"vt-job": "titanic", "vt-run": "7"})
    assert "\x1b" not in view.title(other)
    assert view.title(other).startswith("theirs")
    assert (view.run(other), view.slot(other), view.rung(other), view.is_rung(other)) == (
        "", "", "", False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("state", "ended"),
    [
        (JobState.JOB_STATE_RUNNING, False),
        (JobState.JOB_STATE_CANCELLING, False),
        (JobState.JOB_STATE_QUEUED, False),
        (JobState.JOB_STATE_SUCCEEDED, True),
        (JobState.JOB_STATE_FAILED, True),
        (JobState.JOB_STATE_CANCELLED, True),
        (JobState.JOB_STATE_EXPIRED, True),
    ],
)
def test_a_job_has_ended_in_a_final_state(state: JobState, ended: bool) -> None:
    assert view.has_ended(job(state=state)) is ended


@pytest.mark.filterwarnings("ignore:Unrecognized")
def test_what_is_newer_than_the_client_is_a_number_and_no_traceback() -> None:
    machine = {"machine_type": "x", "accelerator_type": 999, "accelerator_count": 1}
    pools = [{"replica_count": 2, "machine_spec": machine}]
    found = job(state=99, job_spec={"worker_pool_specs": pools})
    assert (view.row(found, CREATED)["state"], view.has_ended(found)) == ("99", False)
    facts = dict(view.facts(found, "p", "us-central1", CREATED))
    assert facts["worker pool"] == "2 x x with 1 x 999"


def test_replicas_are_called_as_their_logs_call_them() -> None:
    pools = [{"replica_count": 1}, {"replica_count": 2}]
    made = job(job_spec={"worker_pool_specs": pools})
    assert view.replicas(made) == ["workerpool0-0", "workerpool1-0", "workerpool1-1"]
    batch = CustomJob(
        name="projects/p/locations/us-central1/jobs/fit-1", job_spec={"worker_pool_specs": pools}
    )
    assert view.replicas(batch) == ["task-0", "task-1", "task-2"]


def test_submissions_of_slots_are_not_counted_together() -> None:
    def submission(number: int, **labels: str) -> CustomJob:
        name = f"projects/1/locations/us-central1/customJobs/{number}"
        return CustomJob(
            name=name, create_time=CREATED + timedelta(hours=number), labels=OWN | labels
        )

    jobs = [
        submission(1, **{"vt-slot": "a"}), submission(2, **{"vt-slot": "b"}),
        submission(3, **{"vt-slot": "a"}), submission(4), submission(5, **{"vt-job": "other"}),
    ]  # fmt: skip
    assert list(view.run_texts(jobs).values()) == ["2", "2", "2 #2", "2", "2"]
