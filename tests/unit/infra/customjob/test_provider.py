import dataclasses
import json

import pytest

from localgcp.inventory.store import TENSORBOARD
from tests.unit.infra.customjob.google.test_connections import (
    INSTANCES,
    PROJECT,
    add_tensorboard,
    home,
    store,
)
from vertex_training.customjob import provider as module
from vertex_training.customjob.protocol.ports import (
    IntentState,
    JobSnapshot,
    StoredIntent,
    Timing,
    TurnRecord,
)
from vertex_training.customjob.provider import CustomJobProvider
from vertex_training.customjob.refusal_lookup import RefusalLookup
from vertex_training.customjob.request import job_file as spec
from vertex_training.errors import (
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
)

__all__ = ["home", "store"]
BODY = json.dumps(
    {"displayName": "x", "jobSpec": {"baseOutputDirectory": {"outputUriPrefix": "gs://a/x"}}}
)
PLACE = {
    "project": "acme-ml-dev",
    "region": "us-central1",
    "stack": "dev",
    "job": "titanic",
    "run": 1.0,  # the engine hands numbers over as floats
}
OPTIONS = {"labels": {}, "controlBucket": "control", "onDelete": "keep"}
PROPS = {"submission": PLACE, "requestId": "id1", "request": BODY, "options": OPTIONS}
NAME = "projects/1/locations/us-central1/customJobs/42"


class Service:
    def __init__(self):
        self.created, self.record = [], None

    def find(self, parent, request_id):
        return [self.record] if self.record else []

    def create(self, parent, body, labels):
        self.created.append((parent, body, dict(labels)))
        self.record = JobSnapshot(NAME, "JOB_STATE_PENDING", 1, labels["vt-request-digest"])
        return self.record

    def get(self, name):
        return self.record

    def delete(self, name):
        self.record = None


class Intents:
    def __init__(self):
        self.stored = self.whose = None

    def now(self):
        return 0.0

    def turn_keys(self):
        return frozenset({"us-central1/titanic"} if self.whose else ())

    def read_turn(self, key):
        return self.whose

    def write_turn(self, key, request_id, number, generation, *, withdrawn=False):
        self.whose = TurnRecord(request_id, generation + 1, number, withdrawn)

    def read(self, request_id):
        return self.stored if self.stored and self.stored.record.request_id == request_id else None

    def write(self, record, generation):
        self.stored = StoredIntent(record, generation + 1, 0.0)
        return self.stored


def unreachable(props):
    raise OperatorError("nobody is asked here")


@pytest.fixture(autouse=True)
def lookup(monkeypatch):
    monkeypatch.setattr(module, "_lookup", RefusalLookup())
    monkeypatch.setattr(module, "_adopted", set())
    monkeypatch.setattr(module, "_declared", {})
    monkeypatch.setattr(module, "_cancelled", {})
    monkeypatch.setattr(module, "_prerequisites", unreachable)
    monkeypatch.setattr(module, "_service", unreachable)
    monkeypatch.setattr(module, "_intents", unreachable)


@pytest.fixture
def intents(monkeypatch, lookup):
    fake = Intents()
    monkeypatch.setattr(module, "_intents", lambda props: fake)
    return fake


@pytest.fixture
def service(monkeypatch, intents):
    fake = Service()
    monkeypatch.setattr(module, "_service", lambda props: fake)
    return fake


PROVIDER = CustomJobProvider()


def outputs(service):
    outs = PROVIDER.create(PROPS).outs
    assert outs is not None
    return outs


def test_labels_of_a_stack_file_do_not_replace_the_identity_of_a_job(service):
    own = {"vt-stack": "mine", "vt-job": "x", "vt-run": "7", "vt-request-id": "y"}
    own |= {"vt-request-turn": "9", "team": "ml", "run": "7"}
    PROVIDER.create(PROPS | {"options": OPTIONS | {"labels": own}})
    [(_, _, labels)] = service.created
    expected = {"vt-stack": "dev", "vt-job": "titanic", "vt-run": "1", "vt-request-id": "id1"}
    expected |= {"vt-request-digest": spec.digest_of(BODY)[:20], "vt-request-turn": "1"}
    assert labels == expected | {"team": "ml", "run": "7"}


def test_a_moved_provider_and_on_delete_are_updates(service):
    outs, deleting = outputs(service), PROPS | {"options": OPTIONS | {"onDelete": "delete"}}
    result = PROVIDER.diff(NAME, outs, deleting)
    assert (result.changes, result.replaces) == (True, [])
    assert PROVIDER.diff(NAME, outs, PROPS | {"__provider": "x"}).changes
    updated = PROVIDER.update(NAME, outs, deleting).outs
    assert updated == outs | {"options": {"controlBucket": "control", "onDelete": "delete"}}


def test_job_whose_record_is_gone_stays_in_the_stack(service):
    outs = outputs(service)
    service.record = None
    result = PROVIDER.read(NAME, outs)
    assert result.id == NAME
    assert result.outs["state"] == "RECORD_DELETED"
    assert result.inputs is None


def test_a_failed_look_is_never_taken_for_a_deleted_job(service, monkeypatch):
    def refuse(name):
        raise OperatorError("503")

    monkeypatch.setattr(service, "get", refuse)
    with pytest.raises(OperatorError):
        PROVIDER.read(NAME, PROPS)


def test_delete_ends_the_job_and_frees_the_record_of_its_submission(service, intents):
    outs = outputs(service)
    service.record = JobSnapshot(NAME, "JOB_STATE_SUCCEEDED", 1, "")
    PROVIDER.delete(NAME, outs)
    assert intents.stored.record.state is IntentState.RELEASED
    assert service.record is not None
    PROVIDER.delete(NAME, outs | {"options": outs["options"] | {"onDelete": "delete"}})
    assert service.record is None


def test_a_job_that_another_resource_adopted_in_the_same_update_goes_on(service, intents):
    outs = outputs(service)
    service.record = JobSnapshot(
        NAME, "JOB_STATE_RUNNING", 1, service.created[0][2]["vt-request-digest"]
    )
    assert PROVIDER.create(PROPS).id == NAME
    assert len(service.created) == 1
    PROVIDER.delete(NAME, outs)
    assert service.record.state == "JOB_STATE_RUNNING"
    assert intents.stored.record.state is not IntentState.RELEASED


ACCOUNT = json.dumps({"jobSpec": {"serviceAccount": "t@p.iam.gserviceaccount.com"}})
EDITED = PROPS | {"requestId": "id2", "request": ACCOUNT}


class Google:
    """Answers every question about permissions with ``yes``; counts them."""

    def __init__(self, *, yes):
        self.yes, self.asked = yes, 0

    def has_permission(self, resource, permission):
        self.asked += 1
        if self.yes is None:
            raise OperatorError("403 Forbidden")
        return self.yes


class Impatient(CustomJobProvider):
    timing = Timing(gate=0.0)


@pytest.fixture
def google(monkeypatch, service):
    def answering(yes):
        found = Google(yes=yes)
        monkeypatch.setattr(module, "_prerequisites", lambda props: found)

        def cancel(name):
            service.record = dataclasses.replace(service.record, state="JOB_STATE_CANCELLED")

        monkeypatch.setattr(service, "cancel", cancel, raising=False)
        return found

    return answering


def test_a_live_job_goes_on_if_no_record_can_be_written(service, google, intents, monkeypatch):
    def gone():
        raise OperatorError("the control bucket b does not exist. Nothing was submitted.")

    outs = running(service)
    google(yes=True)
    monkeypatch.setattr(intents, "now", gone)
    assert not PROVIDER.check({}, EDITED).failures
    with pytest.raises(JobRefusedError, match="the control bucket b does not exist") as refused:
        Impatient().delete(NAME, outs)
    assert str(refused.value).endswith("Nothing was submitted. Nothing was cancelled.")
    assert service.record.state == "JOB_STATE_RUNNING"


#: A request that names the TensorBoard of its stack, whose number is looked up by a label.
LOGGED = PROPS | {
    "submission": PLACE | {"project": PROJECT},
    "requestId": "id2",
    "request": json.dumps({"jobSpec": {"tensorboard": f"{INSTANCES}/0"}}),
}


def test_a_tensorboard_that_appears_after_a_cancellation_says_what_was_cancelled(
    service, google, store
):
    outs, _ = running(service), google(yes=True)
    add_tensorboard(store, "7", "dev")
    PROVIDER.check({}, LOGGED)
    PROVIDER.delete(NAME, outs | {"submission": LOGGED["submission"]})
    assert service.record.state == "JOB_STATE_CANCELLED"
    add_tensorboard(store, "8", "dev")
    text = rf"2 TensorBoards .*Before that, job 'titanic' .*{NAME}"
    with pytest.raises(NotSubmittedError, match=text):
        PROVIDER.create(LOGGED)
    store.delete(TENSORBOARD, f"{INSTANCES}/8")
    service.record = None
    PROVIDER.create(LOGGED)
    assert json.loads(service.created[-1][1])["jobSpec"]["tensorboard"] == f"{INSTANCES}/7"


def test_an_unanswered_question_is_reported_and_blocks_no_change(service, google, capsys):
    outs, _ = running(service), google(yes=None)
    PROVIDER.check({}, EDITED)
    PROVIDER.delete(NAME, outs)
    assert service.record.state == "JOB_STATE_CANCELLED"
    told = capsys.readouterr().err.splitlines()
    assert told[1] == (
        "vt: job 'titanic' is replaced: the permission to act as t@p.iam.gserviceaccount.com was "
        "not checked: 403 Forbidden"
    )


def test_a_refusal_after_a_cancellation_says_what_ran(service, google, monkeypatch):
    outs, _ = running(service), google(yes=True)
    service.record = dataclasses.replace(
        service.record, started=10**9, ended=313 * 10**9, output="gs://a/x"
    )
    PROVIDER.check({}, EDITED)
    PROVIDER.delete(NAME, outs)

    def refuse(*_):
        raise NotSubmittedError("Vertex AI refused the job.")

    monkeypatch.setattr(service, "create", refuse)
    with pytest.raises(NotSubmittedError) as refused:
        PROVIDER.create(EDITED)
    assert str(refused.value) == (
        f"Vertex AI refused the job. Before that, job 'titanic' (run 1, {NAME}) was cancelled "
        "after 5m 12s, and no job runs now. Its output is in gs://a/x. To submit the old job "
        "again, revert its files and run `pulumi up`."
    )


def test_the_next_run_takes_the_place_of_the_one_before(service, google, intents):
    outs, asked = running(service), google(yes=False)
    PROVIDER.check({}, EDITED | {"submission": PLACE | {"run": 2.0}})
    with pytest.raises(JobRefusedError, match=r"\(RUNNING\), because run 2 would be refused: "):
        Impatient().delete(NAME, outs)
    assert (asked.asked, service.record.state) == (2, "JOB_STATE_RUNNING")
    assert intents.stored.record.state is not IntentState.RELEASED


def test_the_same_request_once_more_cancels_nothing(service, google):
    outs, asked = running(service), google(yes=True)
    PROVIDER.check({}, PROPS)
    with pytest.raises(JobRefusedError, match="set run: 2 to submit the job again"):
        PROVIDER.delete(NAME, outs)
    assert (asked.asked, service.record.state) == (0, "JOB_STATE_RUNNING")


@pytest.mark.parametrize("on_delete", ["keep", "delete"])
def test_succeeded_job_is_adopted_by_its_own_request_also_with_on_delete_delete(service, on_delete):
    """Tainted, for instance: without its record the same request would be paid for once more."""
    props = PROPS | {"options": OPTIONS | {"onDelete": on_delete}}
    outs = PROVIDER.create(props).outs | {"state": "JOB_STATE_SUCCEEDED"}
    service.record = dataclasses.replace(service.record, state="JOB_STATE_SUCCEEDED")
    assert not PROVIDER.check({}, props).failures
    PROVIDER.delete(NAME, outs)
    PROVIDER.create(props)
    assert len(service.created) == 1


def test_check_misses_what_makes_a_job_and_names_no_property():
    [failure] = PROVIDER.check({}, PROPS | {"request": ""}).failures
    assert failure.property == ""
    assert "request must not be empty" in failure.reason
    [failure] = PROVIDER.check({}, {"submission": PLACE | {"job": ""}}).failures
    assert failure.reason == (
        "CustomJob: submission.job, request, requestId, options.controlBucket, options.onDelete "
        "must not be empty"
    )
    assert not PROVIDER.check({}, PROPS).failures


def test_a_new_job_that_would_be_refused_fails_its_check(service):
    PROVIDER.create(PROPS)
    service.record = JobSnapshot(NAME, "JOB_STATE_FAILED", 1, spec.digest_of(BODY)[:20], "oom")
    [failure] = PROVIDER.check({}, PROPS).failures
    assert failure.property == ""
    assert "run 1 of job 'titanic' is FAILED" in failure.reason
    assert not PROVIDER.check(PROPS, PROPS).failures  # it is in the state: nothing is submitted


def test_a_replacement_that_would_be_refused_fails_before_the_old_job_is_cancelled(service):
    outs = outputs_of_run_2_after_run_1_failed(service)
    with pytest.raises(JobRefusedError, match=r"run 1 .* FAILED .*run: 2 .* Nothing was cancelled"):
        PROVIDER.diff("other", outs, PROPS)


def outputs_of_run_2_after_run_1_failed(service):
    """Run 1 failed in the turn that it still has; the state has run 2 from a copy of the file."""
    outs = outputs(service)
    service.record = JobSnapshot(NAME, "JOB_STATE_FAILED", 1, spec.digest_of(BODY)[:20])
    return outs | {"submission": PLACE | {"run": 2.0}, "requestId": "id2"}


def test_what_cannot_be_looked_up_fails_no_preview():
    assert not PROVIDER.check({}, PROPS).failures
    olds = {**PROPS, "requestId": "id0"}
    assert PROVIDER.diff(NAME, olds, PROPS).replaces == ["request"]


FINISH = PROPS | {"options": OPTIONS | {"onChange": "finish"}, "requestId": "id2"}


def running(service, state="RUNNING"):
    """Outputs of a job that is now in this state."""
    outs = outputs(service)
    digest = spec.digest_of(BODY)[:20]
    service.record = JobSnapshot(NAME, f"JOB_STATE_{state}", 1, digest) if state else None
    return outs


def test_a_second_change_replaces_a_waiting_one(service):
    waiting = PROVIDER.update(NAME, running(service), FINISH).outs
    again = FINISH | {"requestId": "id3"}
    assert PROVIDER.diff(NAME, waiting, again).changes
    assert PROVIDER.update(NAME, waiting, again).outs["deferredRequestId"] == "id3"


def test_finish_taken_back_while_it_waits_cancels_as_any_change(service):
    waiting = PROVIDER.update(NAME, running(service), FINISH).outs
    assert PROVIDER.diff(NAME, waiting, PROPS | {"requestId": "id2"}).replaces == ["request"]


def test_a_job_that_cannot_be_read_is_left_alone(service, monkeypatch):
    outs = running(service)
    monkeypatch.setattr(module, "_service", unreachable)
    assert PROVIDER.diff(NAME, outs, FINISH).replaces == []
    ended = outs | {"state": "JOB_STATE_FAILED"}
    assert PROVIDER.diff(NAME, ended, FINISH).replaces == ["request"]
