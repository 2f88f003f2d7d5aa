"""A job with rungs, as the provider of ``CustomJob`` has it: inputs, outputs, changes, the end."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

import pytest

from tests.unit.infra.customjob.google.test_tensorboards import HERE, PROJECT, add, home, store
from tests.unit.infra.customjob.test_provider import (
    BODY,
    NAME,
    OPTIONS,
    PLACE,
    PROPS,
    Impatient,
    google,
    intents,
    lookup,
    service,
)
from vertex_training.customjob import provider as module
from vertex_training.customjob.google import utilization
from vertex_training.customjob.protocol.idle import IdleRule, IdleStop, Reading
from vertex_training.customjob.protocol.ladder import Ladder
from vertex_training.customjob.protocol.ports import (
    IntentState,
    JobSnapshot,
    SubmissionRequest,
    TurnRecord,
)
from vertex_training.errors import JobRefusedError, NotSubmittedError, OperatorError

__all__ = ["google", "home", "intents", "lookup", "service", "store"]

PROVIDER = module.CustomJobProvider()
SPOT = json.dumps({"displayName": "x", "jobSpec": {"scheduling": {"strategy": "SPOT"}}})
KEPT = {"controlBucket": "control", "onDelete": "keep"}


def with_ladder(*ids: str, first: str = "id1", **options: Any) -> dict[str, Any]:
    """Inputs of the job with rungs of these ids after the first."""
    ladder = [{"requestId": each, "request": SPOT, "words": "strategy SPOT"} for each in ids]
    return PROPS | {"requestId": first, "options": {**OPTIONS, **options, "ladder": ladder}}


JOB = with_ladder("id2", labels={"team": "ml", "vt-rung": "9"})


def requests_of_job() -> list[SubmissionRequest]:
    """The rungs of ``JOB``, as a submission gets them."""
    made = []
    for number, (id_, body, words) in enumerate(
        [("id1", BODY, "as in the job file"), ("id2", SPOT, "strategy SPOT")], start=1
    ):
        digest = hashlib.sha256(body.encode()).hexdigest()
        labels = {
            "team": "ml",
            "vt-stack": "dev",
            "vt-job": "titanic",
            "vt-run": "1",
            "vt-request-id": id_,
            "vt-request-digest": digest[:20],
            "vt-rung": str(number),
        }
        parent = "projects/acme-ml-dev/locations/us-central1"
        ids = ("id1", "id2")
        made.append(
            SubmissionRequest(
                parent, "dev", "titanic", 1, id_, body, digest, labels, ladder=ids, words=words
            )
        )
    return made


def test_each_rung_is_a_request_with_its_number_its_words_and_the_ids_of_all():
    assert module.rungs_of(JOB) == requests_of_job()
    [alone] = module.rungs_of(PROPS)
    assert (alone.ladder, alone.words, alone.rung) == ((), "", 1)
    assert "vt-rung" not in alone.labels


def test_the_state_has_what_finds_the_rungs_again_and_no_request():
    olds = {"submission": PLACE, "requestId": "id1", "ladder": ["id1", "id2"]}
    assert module._known_request(olds | {"earlierRungs": ["id0"]}) == SubmissionRequest(
        "projects/acme-ml-dev/locations/us-central1", "dev", "titanic", 1, "id1", "", "", {},
        ladder=("id1", "id2", "id0"),
    )  # fmt: skip


def test_who_waits_for_the_job_gets_its_rungs_with_the_service_and_the_records(service, intents):
    assert module.ladder_of(JOB) == Ladder(requests_of_job(), service, intents)


def test_rungs_have_the_number_of_the_tensorboard(service, store):
    add(store, "7", "dev")
    body = json.dumps({"jobSpec": {"tensorboard": f"{HERE}/0"}})
    job = PROPS | {"submission": PLACE | {"project": PROJECT}, "request": body}
    [rung] = module.ladder_of(job).rungs
    assert json.loads(rung.body)["jobSpec"]["tensorboard"] == f"{HERE}/7"


def test_outputs_of_a_job_with_rungs_have_their_ids(service):
    made = PROVIDER.create(JOB)
    assert (made.id, made.outs) == (
        NAME,
        {
            "state": "JOB_STATE_PENDING",
            "submission": PLACE,
            "requestId": "id1",
            "options": KEPT,
            "ladder": ["id1", "id2"],
        },
    )
    assert service.created[0][2]["vt-rung"] == "1"


@pytest.mark.parametrize(
    ("declared", "ids"),
    [
        (
            with_ladder("id2"),
            {"requestId": "id1", "ladder": ["id1", "id2"], "earlierRungs": ["id0"]},
        ),
        (
            with_ladder("id3"),
            {"requestId": "id1", "ladder": ["id1", "id3"], "earlierRungs": ["id2", "id0"]},
        ),
        (with_ladder("id2", "id0"), {"requestId": "id1", "ladder": ["id1", "id2", "id0"]}),
        (PROPS, {"requestId": "id1", "ladder": ["id1"], "earlierRungs": ["id2", "id0"]}),
        (
            with_ladder("id1", first="id9"),
            {"requestId": "id9", "ladder": ["id9", "id1"], "earlierRungs": ["id2", "id0"]},
        ),
    ],
)
def test_an_update_keeps_the_ids_of_rungs_that_may_still_have_the_turn(intents, declared, ids):
    intents.whose = TurnRecord("id1", 1)
    found = PROVIDER.update(
        NAME,
        STATE | {"earlierRungs": ["id0"], "deferredRequestId": "id7", "__provider": "x"},
        declared,
    )
    state = {"state": "JOB_STATE_PENDING", "submission": PLACE, "options": KEPT}
    assert found.outs == state | ids


STATE = {
    "state": "JOB_STATE_PENDING",
    "submission": PLACE,
    "requestId": "id1",
    "options": KEPT,
    "ladder": ["id1", "id2"],
}


@pytest.mark.parametrize(
    ("turn", "declared", "changes", "replaces"),
    [
        ("id1", with_ladder("id2"), False, []),
        ("id2", with_ladder("id2"), False, []),
        ("id9", with_ladder("id2"), False, []),
        ("id1", with_ladder("id3"), True, []),
        ("id2", with_ladder("id3"), True, ["request"]),
        ("id2", with_ladder("id2", first="id9"), True, []),
        ("id1", with_ladder("id2", first="id9"), True, ["request"]),
        ("id1", PROPS, True, []),
        ("id2", PROPS, True, ["request"]),
        ("", with_ladder("id3"), True, []),  # then the state tells: the first one
        ("", with_ladder("id2", first="id9"), True, ["request"]),
        ("id2", with_ladder("id3", onChange="finish"), True, []),
    ],
)
def test_a_job_is_replaced_if_the_rung_that_has_the_turn_is_declared_no_more(
    service, intents, turn, declared, changes, replaces
):
    intents.whose = TurnRecord(turn, 1) if turn else None
    service.record = JobSnapshot(NAME, "JOB_STATE_PENDING", 1, "")
    found = PROVIDER.diff(NAME, STATE, declared)
    assert (found.changes, found.replaces) == (changes, replaces)


@pytest.mark.parametrize(
    ("state", "now", "replaces"),
    [
        ("FAILED", "RUNNING", []),  # another rung runs since
        ("RUNNING", "FAILED", ["request"]),
    ],
)
def test_what_may_finish_is_the_job_of_the_current_rung_whatever_state_was_written(
    service, intents, state, now, replaces
):
    intents.whose = TurnRecord("id2", 1)
    service.record = JobSnapshot(NAME, f"JOB_STATE_{now}", 1, "")
    olds = STATE | {"state": f"JOB_STATE_{state}"}
    assert PROVIDER.diff(NAME, olds, with_ladder("id3", onChange="finish")).replaces == replaces


def test_the_first_rung_counts_where_the_turn_cannot_be_read_and_a_line_says_so(capsys):
    declared = with_ladder("id3")
    assert PROVIDER.diff(NAME, STATE, declared).replaces == []
    line = "vt: job 'titanic': which rung it is on could not be read: nobody is asked here\n"
    assert capsys.readouterr().err == line


def test_a_preview_against_the_stand_in_reads_no_turn(monkeypatch, capsys):
    monkeypatch.setenv("VT_LOCAL_HOME", "/x")
    monkeypatch.setenv("PULUMI_BACKEND_URL", "file:///x/pulumi")
    assert PROVIDER.diff(NAME, STATE, with_ladder("id3")).replaces == []
    assert capsys.readouterr().err == ""


def test_a_refresh_reads_the_job_of_the_rung_that_has_the_turn(service, intents, monkeypatch):
    PROVIDER.create(JOB)
    later = f"{NAME}0"
    intents.stored = dataclasses.replace(
        intents.stored,
        record=dataclasses.replace(intents.stored.record, request_id="id2", job_name=later),
    )
    intents.whose = TurnRecord("id2", 2)
    jobs = {later: JobSnapshot(later, "JOB_STATE_RUNNING", 1, "")}
    monkeypatch.setattr(service, "get", jobs.get)
    found = PROVIDER.read(NAME, STATE | {"__provider": "x"})
    assert (found.id, found.outs) == (later, STATE | {"state": "JOB_STATE_RUNNING"})


def test_a_job_that_leaves_the_stack_ends_and_its_turn_is_withdrawn(service, intents, google):
    outs = PROVIDER.create(JOB).outs
    google(yes=True)
    service.record = dataclasses.replace(service.record, request_id="id1")
    PROVIDER.delete(NAME, outs)
    assert service.record.state == "JOB_STATE_CANCELLED"
    assert intents.stored.record.state is IntentState.RELEASED
    assert (intents.whose.request_id, intents.whose.withdrawn) == ("id1", True)


def test_a_job_none_of_whose_rungs_has_the_turn_ends_by_its_name(service, intents, google):
    outs = PROVIDER.create(JOB).outs
    google(yes=True)
    intents.whose = TurnRecord("id9", 5)
    PROVIDER.delete(NAME, outs)
    assert service.record.state == "JOB_STATE_CANCELLED"
    assert intents.whose == TurnRecord("id9", 5)


def test_what_all_rungs_need_is_asked_once(service, google):
    outs, asked = PROVIDER.create(JOB).outs, google(yes=False)
    service.record = dataclasses.replace(service.record, request_id="id1")
    assert not PROVIDER.check({}, with_ladder("id3", first="id8")).failures
    with pytest.raises(JobRefusedError) as refused:
        Impatient().delete(NAME, outs)
    assert str(refused.value) == (
        f"job 'titanic' is not replaced, and {NAME} goes on (PENDING): run 1 would be refused, "
        "since who deploys may not submit jobs in acme-ml-dev (aiplatform.customJobs.create). "
        "Hint: gcloud projects add-iam-policy-binding acme-ml-dev --member=MEMBER "
        "--role=roles/aiplatform.user. Nothing was cancelled."
    )
    assert asked.asked == 1


IMAGE = "us-central1-docker.pkg.dev/acme-ml-dev/training/titanic:1"
WITH_IMAGE = PROPS | {
    "requestId": "id2",
    "request": json.dumps(
        {"jobSpec": {"workerPoolSpecs": [{"containerSpec": {"imageUri": IMAGE}}]}}
    ),
}


@pytest.mark.parametrize("there", [True, False])
def test_a_preview_of_a_replacement_asks_only_what_holds_for_the_deployment(
    service, google, monkeypatch, there
):
    outs, asked = PROVIDER.create(PROPS).outs, google(yes=False)
    monkeypatch.setattr(asked, "has_image", lambda *_: there, raising=False)
    if there:
        assert PROVIDER.diff(NAME, outs, WITH_IMAGE).replaces == ["request"]
    else:
        with pytest.raises(JobRefusedError) as refused:
            PROVIDER.diff(NAME, outs, WITH_IMAGE)
        assert str(refused.value) == (
            f"there is no image {IMAGE}. Hint: vt images build titanic --stack dev, or name "
            "another. Nothing was cancelled."
        )
    assert asked.asked == 0


def test_nothing_is_asked_for_a_new_job(service, google, monkeypatch):
    asked = google(yes=False)
    monkeypatch.setattr(asked, "has_image", lambda *_: False, raising=False)
    assert not PROVIDER.check({}, WITH_IMAGE).failures


def test_nothing_is_sent_once_the_engine_is_gone(service, monkeypatch):
    monkeypatch.setattr(module, "is_engine_alive", lambda: False)
    with pytest.raises(NotSubmittedError, match=r"^the Pulumi engine is gone; nothing was sent\.$"):
        PROVIDER.create(PROPS)
    assert service.created == []


ROBOT = "robot@acme-ml.iam.gserviceaccount.com"


def test_a_job_is_stopped_as_its_inputs_say_by_the_account_that_acts(service, intents, monkeypatch):
    asked: list[Any] = []

    def read(*arguments: Any) -> Reading:
        asked.append(arguments)
        return Reading(1.0, ())

    monkeypatch.setattr(utilization, "read", read)
    options = {**OPTIONS, "idleStop": "5% for 30m", "impersonate": ROBOT}
    found = module.idle_stop_of(PROPS | {"options": options})
    assert found is not None
    assert found == IdleStop(IdleRule("5% for 30m"), service, intents, found.read)
    assert found.read(NAME, 60.0) == Reading(1.0, ())
    assert asked == [("acme-ml-dev", NAME, 60.0, ROBOT)]
    assert module.idle_stop_of(PROPS) is None


def test_why_a_job_was_stopped_stands_in_its_record(service, intents):
    PROVIDER.create(PROPS)
    assert module.stop_reason(PROPS, NAME, "id1") == ""
    record = dataclasses.replace(intents.stored.record, stopped="no accelerator worked")
    intents.write(record, 1)
    assert module.stop_reason(PROPS, NAME, "id1") == "no accelerator worked"
    assert module.stop_reason(PROPS, f"{NAME}0", "id1") == ""


def test_a_state_keeps_of_the_options_what_a_later_update_or_the_end_needs(service):
    told = [{"pubsubTopic": "projects/p/topics/t"}]
    more = {
        "impersonate": ROBOT,
        "records": "environments/dev/",
        "idleStop": "5% for 30m",
        "notifications": told,
    }
    others = {"labels": {"team": "ml"}, "onChange": "finish", "filledIn": {"a": "b"}}
    made = PROVIDER.create(PROPS | {"options": {**KEPT, **more, **others}})
    assert made.outs is not None
    assert made.outs["options"] == {**KEPT, **more}


def test_a_job_that_cannot_be_read_may_still_run(service, monkeypatch):
    def fail(name: str) -> None:
        raise OperatorError("503")

    outs = PROVIDER.create(PROPS).outs
    monkeypatch.setattr(service, "get", fail)
    finish = PROPS | {"requestId": "id2", "options": OPTIONS | {"onChange": "finish"}}
    assert PROVIDER.diff(NAME, outs, finish).replaces == []
