"""What a plan does to jobs."""

from __future__ import annotations

import pytest

from tests.unit.vt.review import plans
from vertex_training.catalog import costs
from vertex_training_cli.review import jobs, markdown
from vertex_training_cli.review.headline import verdict
from vertex_training_cli.review.report import build


def only(*told: plans.Event) -> jobs.JobChange:
    [job] = jobs.job_changes(plans.plan(*told))
    return job


def change(old: plans.Event, new: plans.Event, op: str = "replace", state: str = "") -> plans.Event:
    return plans.step(op, plans.JOB, "training-a", old=old, new=new, outputs={"state": state})


@pytest.mark.parametrize(
    ("told", "action"),
    [
        (plans.create(plans.JOB, "training-a", **plans.job("a")), "submit"),
        (plans.delete(plans.JOB, "training-a", **plans.job("a")), "cancel"),
        (change(plans.job("a"), plans.job("a", run=2)), "replace"),
        (change(plans.job("a"), plans.job("a"), op="update"), "change"),
        (change(plans.job("a"), plans.job("a"), op="same"), "keep"),
    ],
)
def test_a_step_says_what_happens_to_the_job(told: plans.Event, action: str) -> None:
    assert only(told).action == action


def test_a_job_says_what_it_runs_on_and_can_cost() -> None:
    gpus = plans.pool(
        "a3-megagpu-8g", 4, acceleratorType="NVIDIA_H100_MEGA_80GB", acceleratorCount=8
    )
    job = only(plans.create(plans.JOB, "training-a", **plans.job("a", plans.pool(), gpus)))
    assert job.machines == (
        "1 x n1-standard-4",
        "4 x a3-megagpu-8g (8 NVIDIA_H100_MEGA_80GB)",
    )
    message = jobs.request(plans.job("a", plans.pool(), gpus))
    assert job.cost == costs.of_job(message, "us-central1")
    assert job.cost.worst_case is not None


def test_the_difference_is_told_field_by_field_without_the_ids_that_follow() -> None:
    old, new = plans.job("a", plans.pool(replicas=1)), plans.job("a", plans.pool(replicas=2), run=2)
    assert [(each.path, each.old, each.new) for each in only(change(old, new)).differences] == [
        ("jobSpec.workerPoolSpecs[0].replicaCount", "1", "2"),
        ("run", "1", "2"),
    ]


def test_changed_labels_are_told() -> None:
    old = plans.job("a")
    new = old | {"options": old["options"] | {"labels": {"stack": "dev", "team": "ml"}}}
    told = only(change(old, new, op="update")).differences
    assert [(each.path, each.new) for each in told] == [("labels.team", "ml")]


@pytest.mark.parametrize(
    ("state", "cancels"),
    [("JOB_STATE_RUNNING", True), ("JOB_STATE_SUCCEEDED", False), ("", True)],
)
def test_a_job_that_ended_is_not_cancelled(state: str, cancels: bool) -> None:
    assert only(change(plans.job("a"), plans.job("a", run=2), state=state)).cancels is cancels


def test_reservation_network_and_images_are_found() -> None:
    affinity = {
        "reservationAffinityType": "SPECIFIC_RESERVATION",
        "values": ["projects/p/zones/z/reservations/h100"],
    }
    inputs = plans.job(
        "a",
        plans.pool(image="eu/x:v1", reservationAffinity=affinity),
        plans.pool(
            image="eu/x:v1", reservationAffinity={"reservationAffinityType": "NO_RESERVATION"}
        ),
        pscInterfaceConfig={"networkAttachment": "projects/p/regions/r/networkAttachments/psc"},
    )
    job = only(plans.create(plans.JOB, "training-a", **inputs))
    assert (job.reservation, job.images) == ("h100", ("eu/x:v1",))
    assert job.network.endswith("/psc")


def test_a_request_that_is_not_known_yet_has_no_price() -> None:
    inputs = plans.job("a") | {"request": "04da6b54-80e4-46f7-96ec-b56ff0331ba9"}
    job = only(plans.create(plans.JOB, "training-a", **inputs))
    assert job.machines == ()
    assert job.cost.worst_case is None


def test_a_job_that_an_earlier_run_left_to_delete_is_cancelled() -> None:
    left = plans.step("delete-replaced", plans.JOB, "training-a", old=plans.job("a"))
    [job] = jobs.job_changes(plans.plan(left))
    assert (job.name, job.action, job.cancels) == ("a", "cancel", True)


@pytest.mark.parametrize("op", ["update", "same"])
def test_a_job_that_waits_for_the_running_one_is_said_to_be_submitted_later(op: str) -> None:
    old, new = plans.job("a", run=2), plans.job("a", run=2)
    waits = plans.step(
        op, plans.JOB, "training-a", old=old, new=new,
        outputs={"requestId": "id-of-a-1", "deferredRequestId": "id-of-a-2"},
    )  # fmt: skip
    [job] = jobs.job_changes(plans.plan(waits))
    assert (job.action, job.submits, job.cancels) == ("defer", False, False)
    report = build(plans.plan(waits), source="")
    assert "1 job submitted later, when the running one has ended (at most $" in verdict(report)
    assert not report.nothing


def test_a_job_whose_options_change_waits_for_nothing() -> None:
    old, new = plans.job("a"), plans.job("a")
    told = plans.step(
        "update", plans.JOB, "training-a", old=old, new=new, outputs={"requestId": "id-of-a-1"}
    )
    assert only(told).action == "change"


def test_what_the_stack_filled_in_stands_in_the_review() -> None:
    inputs = plans.job("a")
    given = {"serviceAccount": "${serviceAccounts.trainer}", "scheduling.timeout": "3600s"}
    inputs["options"] = {**inputs.get("options", {}), "filledIn": given}
    told = plans.create(plans.JOB, "training-a", **inputs)
    assert only(told).filled_in == ("scheduling.timeout", "serviceAccount")
    text = markdown.render(build(plans.plan(told), source="here"))
    assert "- `a`: `jobDefaults` fill in `scheduling.timeout, serviceAccount`" in text


def test_a_job_that_had_ended_is_not_told_as_cancelled() -> None:
    def told(state: str) -> str:
        outputs = {"state": f"JOB_STATE_{state}"}
        step = plans.step("delete", plans.JOB, "training-a", plans.job("a"), outputs=outputs)
        return verdict(build(plans.plan(step), source="here"))

    assert told("SUCCEEDED") == "1 job that had ended leaves the stack; nothing destroyed."
    assert told("RUNNING") == "1 job cancelled; nothing destroyed."
