"""What a plan does to jobs."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training.catalog import costs
from vertex_training_cli.engine.plan import CheckpointObservation, JobObservation, Observations
from vertex_training_cli.review import jobs, markdown
from vertex_training_cli.review.headline import verdict
from vertex_training_cli.review.report import build


def only(*told: plans.Event) -> jobs.JobChange:
    [job] = jobs.job_changes(plans.plan(*told))
    return job


def change(old: plans.Event, new: plans.Event, op: str = "replace", state: Any = "") -> plans.Event:
    return plans.step(op, plans.JOB, "training-a", old=old, new=new, outputs={"state": state})


@pytest.mark.parametrize(
    ("told", "action"),
    [
        (plans.create(plans.JOB, "training-a", **plans.job("a")), "submit"),
        (plans.delete(plans.JOB, "training-a", **plans.job("a")), "cancel"),
        (change(plans.job("a"), plans.job("a", run=2)), "replace"),
        (plans.step("create-replacement", plans.JOB, "training-a", new=plans.job("a")), "submit"),
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


def seen(observed: JobObservation | None = None, **more: Any) -> jobs.JobChange:
    made = only(plans.create(plans.JOB, "training-a", **plans.job("a")))
    return dataclasses.replace(made, now=observed, **more)


RUNNING = JobObservation("RUNNING", 3600, 1.5)


@pytest.mark.parametrize(
    ("job", "fate"),
    [
        (seen(action="submit"), "submitted"),
        (seen(action="change"), "labels or options change, nothing is submitted"),
        (seen(action="defer"), "submitted by the first up after the running job has ended"),
        (seen(action="keep"), "unchanged"),
        (seen(action="replace"), "submitted anew; the old one is cancelled"),
        (
            seen(action="replace", previous_state="RUNNING"),
            "submitted anew; the old one is cancelled (running when last seen)",
        ),
        (
            seen(RUNNING, action="replace", previous_state="PENDING"),
            "submitted anew; the old one is cancelled (running for 1h 0m, $1.50 so far)",
        ),
        (
            seen(action="cancel", previous_state="SUCCEEDED"),
            "leaves the stack; the old one succeeded",
        ),
        (
            seen(JobObservation("FAILED", 60, 1.0), action="cancel", previous_state="RUNNING"),
            "leaves the stack; the old one failed after 1m, $1.00 so far",
        ),
        (
            seen(JobObservation("RECORD_DELETED"), action="cancel"),
            "leaves the stack; the old one record deleted",
        ),
        (
            seen(RUNNING, action="cancel", retained=True),
            "leaves the stack; the old one goes on without the stack (running for 1h 0m, $1.50 so"
            " far)",
        ),
        (
            seen(action="replace", retained=True),
            "submitted anew; the old one goes on without the stack",
        ),
        (
            seen(action="cancel", previous_state="FAILED", retained=True),
            "leaves the stack; the old one failed",
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
        end, does = refused.split("|")
        assert found[0].what == (
            f"job a is replaced by its own request, and {end}: `up` refuses that, and {does} "
            "nothing"
        )


@pytest.mark.parametrize("retained", [True, False])
def test_a_record_that_is_gone_is_adopted_by_nothing(retained: bool) -> None:
    inputs = plans.job("a")
    event = plans.step("replace", plans.JOB, "a", inputs, inputs)
    old = event["resourcePreEvent"]["metadata"]["old"]
    old |= {"outputs": {"requestId": "id-of-a-1"}, "retainOnDelete": retained, "id": "id/a"}
    now = Observations({"id/a": JobObservation("RECORD_DELETED")})
    [job] = jobs.job_changes(plans.plan(event, plans.summary()), now)
    assert (job.action, job.refused) == ("replace", True)


def test_what_is_protected_is_not_adopted_since_the_engine_refuses_first() -> None:
    inputs = plans.job("a")
    event = plans.step("replace", plans.JOB, "a", inputs, inputs)
    meta = event["resourcePreEvent"]["metadata"]
    outputs = {"state": "JOB_STATE_SUCCEEDED", "requestId": "id-of-a-1"}
    meta["old"] |= {"outputs": outputs, "protect": True}
    meta["new"] |= {"protect": True}
    [job] = jobs.job_changes(plans.plan(event, plans.summary()))
    assert (job.action, job.protected, job.refused) == ("replace", True, True)
    assert jobs.fate(job) == "refused, it is protected; otherwise submitted anew"


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (JobObservation("QUEUED"), "queued"),
        (JobObservation("RUNNING", 125, 0.5), "running for 2m 5s, $0.50 so far"),
        (JobObservation("RUNNING", 125), "running for 2m 5s"),
        (
            JobObservation("PARTIALLY_SUCCEEDED", 60, 0.0),
            "partially succeeded after 1m, $0.00 so far",
        ),
        (
            JobObservation("RUNNING", 60, None, "", CheckpointObservation(None)),
            "running for 1m, no checkpoint",
        ),
        (
            JobObservation("RUNNING", 600, 1.0, "", CheckpointObservation(30)),
            "running for 10m, $1.00 so far, last checkpoint 30s ago",
        ),
        (
            JobObservation("RUNNING", 600, None, "", CheckpointObservation(30, at_most=True)),
            "running for 10m, last checkpoint at most 30s ago",
        ),
        (JobObservation("PENDING", 0, 1.0, "", CheckpointObservation(30)), "pending"),
    ],
)
def test_what_a_job_is_doing_is_told_with_time_cost_and_what_it_kept(
    now: JobObservation, words: str
) -> None:
    assert jobs.progress(now) == words


@pytest.mark.parametrize(
    "state", ["SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"]
)
def test_what_was_seen_now_counts_more_than_the_state_of_the_last_deployment(state: str) -> None:
    assert not seen(JobObservation(state), action="cancel", previous_state="RUNNING").cancels
    assert not seen(action="replace", previous_state=state).cancels
    assert seen(JobObservation("RUNNING"), action="replace", previous_state=state).cancels
    for action in ("submit", "change", "defer", "keep"):
        assert not seen(RUNNING, action=action).cancels


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


def test_a_job_without_inputs_is_told_by_its_resource_and_costs_nothing_known() -> None:
    job = only(plans.create(plans.JOB, "training-a"))
    assert (job.name, job.region, job.strategy, job.account) == ("training-a", "", "STANDARD", "")
    assert (job.reservation, job.network, job.images, job.filled_in) == ("", "", (), ())
    assert (job.previous_state, job.idle_stop, job.idle_stop_before) == ("", "", "")
    assert (job.cost_before, job.strategy_before, job.trials) == (None, "", "")
    gone = only(plans.delete(plans.JOB, "training-a", **plans.job("a")))
    assert (gone.cost_before, gone.strategy_before) == (None, "")
    idle = plans.job("a")
    idle["options"] |= {"idleStop": "5% for 30m"}
    left = only(plans.delete(plans.JOB, "training-a", **idle))
    assert (left.idle_stop, left.idle_stop_before) == ("", "5% for 30m")


@pytest.mark.parametrize("state", ["<b>", "job_state_running", "A" * 61, 7])
def test_a_state_that_is_no_word_of_the_api_is_not_shown(state: object) -> None:
    assert only(change(plans.job("a"), plans.job("a", run=2), state=state)).previous_state == ""


def test_jobs_are_by_name_and_what_does_nothing_to_one_is_left_out() -> None:
    plan = plans.plan(
        plans.create(plans.JOB, "training-b", **plans.job("b")),
        plans.create(plans.JOB, "training-a", **plans.job("a")),
        plans.step("refresh", plans.JOB, "training-c", plans.job("c"), plans.job("c")),
        plans.create(plans.BUCKET, "d"),
    )
    assert [each.name for each in jobs.job_changes(plan)] == ["a", "b"]


def test_what_a_job_costs_is_told_for_both_services() -> None:
    # n1-standard-4 is $0.19 an hour, and 15 % more on Vertex AI; Batch begins the timeout anew with
    # each of its three retries.
    job = only(plans.create(plans.JOB, "training-a", **plans.job("a")))
    assert jobs.at_most(job) == ("Vertex $0.22 (1 h)", "or Batch $0.76 (4 attempts of 1 h)")
    without = only(plans.create(plans.JOB, "training-a", **plans.job("a", timeout="0s")))
    assert jobs.at_most(without)[0] == "Vertex $36.71 (168 h, no timeout set)"
    stop = plans.job("a")
    stop["options"] |= {"idleStop": "5% for 30m"}
    idle = only(plans.create(plans.JOB, "training-a", **stop))
    assert jobs.at_most(idle) == ("Vertex $0.22 (1 h)", "not Batch: it has no idleStop")


def test_differences_are_of_the_request_then_of_the_run_then_of_the_options() -> None:
    old, new = plans.job("a"), plans.job("a", plans.pool("n1-standard-8", 2), run=2)
    new["options"] |= {"onDelete": "delete"}
    found = only(change(old, new)).differences
    assert [(each.path, each.old, each.new) for each in found] == [
        ("jobSpec.workerPoolSpecs[0].containerSpec.imageUri", "example/n1-standard-4:v1",
         "example/n1-standard-8:v1"),
        ("jobSpec.workerPoolSpecs[0].machineSpec.machineType", "n1-standard-4", "n1-standard-8"),
        ("jobSpec.workerPoolSpecs[0].replicaCount", "1", "2"),
        ("run", "1", "2"),
        ("onDelete", "keep", "delete"),
    ]  # fmt: skip
    assert only(change(old, new, op="same")).differences == ()
    assert only(plans.create(plans.JOB, "training-a", **new)).differences == ()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"request": '{"displayName": "a"}'}, {"displayName": "a"}),
        *(({"request": odd}, {}) for odd in ('["a"]', "7", "null", "{", "", None)),
        ({}, {}),
    ],
)
def test_the_request_of_a_job_is_a_message_or_not_known(
    inputs: dict[str, Any], message: dict[str, Any]
) -> None:
    assert jobs.request(inputs) == message
