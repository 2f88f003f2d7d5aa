"""What a plan does to jobs."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training.catalog import costs
from vertex_training_cli.engine.plan import CheckpointObservation, JobObservation, Observations
from vertex_training_cli.review import formats, jobs
from vertex_training_cli.review.report import build


def only(*told: plans.Event) -> jobs.JobChange:
    [job] = jobs.job_changes(plans.plan(*told))
    return job


def change(old: plans.Event, new: plans.Event, op: str = "replace", state: Any = "") -> plans.Event:
    return plans.step(op, plans.JOB, "training-a", old=old, new=new, outputs={"state": state})


def test_what_the_stack_filled_in_stands_in_the_review() -> None:
    inputs = plans.job("a")
    given = {"serviceAccount": "${serviceAccounts.trainer}", "scheduling.timeout": "3600s"}
    inputs["options"] = {**inputs.get("options", {}), "filledIn": given}
    told = plans.create(plans.JOB, "training-a", **inputs)
    assert only(told).filled_in == ("scheduling.timeout", "serviceAccount")
    text = formats.to_markdown(build(plans.plan(told), source="here"))
    assert "- `a`: fields from `jobDefaults`: `scheduling.timeout, serviceAccount`" in text


def seen(observed: JobObservation | None = None, **more: Any) -> jobs.JobChange:
    made = only(plans.create(plans.JOB, "training-a", **plans.job("a")))
    return dataclasses.replace(made, now=observed, **more)


RUNNING = JobObservation("RUNNING", 3600, 1.5)


@pytest.mark.parametrize(
    ("job", "fate"),
    [
        (seen(action="submit"), "submitted"),
        (seen(action="change"), "labels or options changed, without a submission"),
        (seen(action="defer"), "submitted by the first `up` after the end of the running job"),
        (seen(action="replace"), "new job submitted; previous job cancelled"),
        (
            seen(RUNNING, action="replace", previous_state="PENDING"),
            "new job submitted; previous job cancelled (running for 1h 0m, $1.50 so far)",
        ),
        (
            seen(JobObservation("RECORD_DELETED"), action="cancel"),
            "removed from the stack; job record deleted",
        ),
    ],
)
def test_the_fate_of_a_job_names_what_becomes_of_the_one_before(
    job: jobs.JobChange, fate: str
) -> None:
    assert jobs.fate(job) == fate


@pytest.mark.parametrize(
    ("op", "running", "state", "retained", "refused", "action"),
    [
        # Tainted, or named by --replace, or made after what is replaced:
        ("replace", "id-of-a-1", "RUNNING", False, "has not ended|cancels", "replace"),
        ("replace", "id-of-a-1", "FAILED", False, "is FAILED|submits", "replace"),
        ("replace", "id-of-a-1", "CANCELLED", True, "is CANCELLED|submits", "replace"),
        ("replace", "id-of-a-1", "CANCELLING", True, "has not ended|cancels", "replace"),
        ("replace", "id-of-a-1", "SUCCEEDED", False, "", "adopt"),
        ("replace", "id-of-a-1", "RUNNING", True, "", "adopt"),
        # Of another request, or no replacement:
        ("replace", "id-of-a-0", "RUNNING", False, "", "replace"),
        ("replace", None, "RUNNING", False, "", "replace"),
        ("update", "id-of-a-1", "RUNNING", False, "", "change"),
        ("delete", "id-of-a-1", "RUNNING", False, "", "cancel"),
    ],
)
@pytest.mark.parametrize("seen", [True, False])
def test_a_job_that_its_own_request_replaces_is_adopted_or_refused_as_up_does(
    op: str,
    running: str | None,
    state: str,
    retained: bool,
    refused: str,
    action: str,
    seen: bool,
) -> None:
    inputs = plans.job("a")
    # What is seen now counts more than what the last deployment left.
    outputs = {"state": "JOB_STATE_PENDING" if seen else f"JOB_STATE_{state}"}
    outputs |= {"requestId": running} if running else {}
    event = plans.step(op, plans.JOB, "a", inputs, None if op == "delete" else inputs)
    old = event["resourcePreEvent"]["metadata"]["old"]
    old |= {"outputs": outputs, "retainOnDelete": retained, "id": "id/a"}
    now = Observations({"id/a": JobObservation(state)} if seen else {})
    [job] = jobs.job_changes(plans.plan(event, plans.summary()), now)
    assert (job.action, job.refused) == (action, bool(refused))
    assert job.submits is (action == "replace" and not refused)
    found = jobs.same_requests([job])
    assert [each.rule for each in found] == ([jobs.SAME_REQUEST] if refused else [])
    if refused:
        end = refused.partition("|")[0]
        assert found[0].what == (
            f"job a {end}, and `up` refuses to replace the job by the same request"
        )


def test_what_is_protected_is_not_adopted_since_the_engine_refuses_first() -> None:
    inputs = plans.job("a")
    event = plans.step("replace", plans.JOB, "a", inputs, inputs)
    meta = event["resourcePreEvent"]["metadata"]
    outputs = {"state": "JOB_STATE_SUCCEEDED", "requestId": "id-of-a-1"}
    meta["old"] |= {"outputs": outputs, "protect": True}
    meta["new"] |= {"protect": True}
    [job] = jobs.job_changes(plans.plan(event, plans.summary()))
    assert (job.action, job.protected, job.refused) == ("replace", True, True)
    assert jobs.fate(job) == (
        "not changed: `up` refuses to replace the job, because the job is protected"
    )


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (JobObservation("QUEUED"), "queued"),
        (JobObservation("RUNNING", 125, 0.5), "running for 2m 5s, $0.50 so far"),
        (JobObservation("RUNNING", 125), "running for 2m 5s"),
        (
            JobObservation("RUNNING", 60, None, "", CheckpointObservation(None)),
            "running for 1m, no checkpoint",
        ),
        (
            JobObservation("RUNNING", 600, 1.0, "", CheckpointObservation(30)),
            "running for 10m, $1.00 so far, last checkpoint 30s ago",
        ),
        (JobObservation("PENDING", 0, 1.0, "", CheckpointObservation(30)), "pending"),
    ],
)
def test_what_a_job_is_doing_is_told_with_time_cost_and_what_it_kept(
    now: JobObservation, words: str
) -> None:
    assert jobs.progress(now) == words


def test_a_job_is_told_whole() -> None:
    affinities = [
        {"reservationAffinityType": "SPECIFIC_RESERVATION", "values": ["p/reservations/r1", "r2"]},
        {"reservationAffinityType": "SPECIFIC_RESERVATION", "values": ["p/reservations/r1"]},
        {"reservationAffinityType": "ANY_RESERVATION"},
        {"reservationAffinityType": "NO_RESERVATION"},
        None,
    ]
    pools = [
        plans.pool(image="eu/x:v1", reservationAffinity=affinities[0]),
        plans.pool(image="eu/y:v1", reservationAffinity=affinities[1]),
        plans.pool(image="eu/x:v1", reservationAffinity=affinities[2]),
        {
            "machineSpec": {"reservationAffinity": affinities[3]},
            "replicaCount": 2,
            "pythonPackageSpec": {"executorImageUri": "eu/z:v1"},
        },
        {"machineSpec": {"machineType": "n1-standard-4", "reservationAffinity": affinities[4]}},
    ]
    inputs = plans.job(
        "a",
        *pools,
        network="projects/1/global/networks/n",
        pscInterfaceConfig={"networkAttachment": "psc"},
        scheduling={"timeout": "60s", "strategy": "SPOT"},
    )
    inputs["options"] |= {"filledIn": {"b": "1", "a": "2"}, "idleStop": "5% for 30m"}
    old = plans.job("a", plans.pool("n1-standard-8"))
    old["options"] |= {"idleStop": "1% for 1h"}
    step = change(old, inputs, state="JOB_STATE_RUNNING")
    step["resourcePreEvent"]["metadata"]["old"]["id"] = "id/a"
    [job] = jobs.job_changes(plans.plan(step), Observations({"id/a": RUNNING}))
    assert job == jobs.JobChange(
        name="a",
        action="replace",
        region="us-central1",
        strategy="SPOT",
        reservation="r1, r2, ANY_RESERVATION",
        account=plans.ACCOUNT,
        network="projects/1/global/networks/n",
        images=("eu/x:v1", "eu/y:v1", "eu/z:v1"),
        starts=(),
        cost=costs.of_job(jobs.request(inputs), "us-central1"),
        offers=job.offers,
        differences=job.differences,
        previous_state="RUNNING",
        filled_in=("a", "b"),
        now=RUNNING,
        cost_before=costs.of_job(jobs.request(old), "us-central1"),
        strategy_before="STANDARD",
        ladder=(),
        idle_stop="5% for 30m",
        idle_stop_before="1% for 1h",
    )
    assert job.machines[3] == "2 x no machine type"
    assert job.machines_before == ("1 x n1-standard-8",)
    attached = plans.job("a", pscInterfaceConfig={"networkAttachment": "psc"})
    assert only(plans.create(plans.JOB, "training-a", **attached)).network == "psc"
