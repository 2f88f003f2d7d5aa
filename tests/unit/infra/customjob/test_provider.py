import base64
import dataclasses
import json

import dill
import pytest
from pulumi.output import Unknown

from localgcp.inventory.store import TENSORBOARD
from tests.unit.infra.customjob.google.test_tensorboards import HERE, PROJECT, add, home, store
from vertex_training.customjob import provider as module
from vertex_training.customjob.google import intent_store
from vertex_training.customjob.protocol.ports import (
    IntentState,
    JobSnapshot,
    StoredIntent,
    TurnRecord,
)
from vertex_training.customjob.protocol.timing import Timing
from vertex_training.customjob.provider import CustomJobProvider
from vertex_training.customjob.refusal_lookup import RefusalLookup
from vertex_training.customjob.request import job_file as spec
from vertex_training.errors import (
    InDoubtError,
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


def test_state_refers_to_the_provider_by_name_and_holds_no_code():
    pickled = base64.b64encode(dill.dumps(PROVIDER, recurse=True)).decode()
    assert len(pickled) < 120
    assert b"vertex_training.customjob.provider" in base64.b64decode(pickled)


def test_create_labels_the_job_with_its_identity(service):
    result = PROVIDER.create(PROPS)
    [(parent, body, labels)] = service.created
    assert result.id == NAME
    assert (parent, body) == ("projects/acme-ml-dev/locations/us-central1", BODY)
    assert labels == {
        "vt-stack": "dev",
        "vt-job": "titanic",
        "vt-run": "1",
        "vt-request-id": "id1",
        "vt-request-digest": spec.digest_of(BODY)[:20],
        "vt-request-turn": "1",
    }


def test_no_label_of_a_stack_file_hides_which_stack_and_job_it_is(service):
    own = {"vt-stack": "mine", "vt-job": "x", "vt-run": "7", "vt-request-id": "y"}
    own |= {"vt-request-turn": "9", "team": "ml", "run": "7"}
    PROVIDER.create(PROPS | {"options": OPTIONS | {"labels": own}})
    [(_, _, labels)] = service.created
    expected = {"vt-stack": "dev", "vt-job": "titanic", "vt-run": "1", "vt-request-id": "id1"}
    expected |= {"vt-request-digest": spec.digest_of(BODY)[:20], "vt-request-turn": "1"}
    assert labels == expected | {"team": "ml", "run": "7"}


def test_a_second_create_adopts_the_first_ones_job(service):
    assert PROVIDER.create(PROPS).id == PROVIDER.create(PROPS).id
    assert len(service.created) == 1


def test_outputs_are_what_finds_and_ends_the_job_and_distinguishes_it_from_others(service):
    assert outputs(service) == {
        "submission": PLACE,
        "requestId": "id1",
        "options": {"controlBucket": "control", "onDelete": "keep"},
        "state": "JOB_STATE_PENDING",
    }


def test_an_unchanged_job_has_no_diff(service):
    result = PROVIDER.diff(NAME, outputs(service), PROPS)
    assert (result.changes, result.replaces) == (False, [])


@pytest.mark.parametrize(
    ("change", "replaces"),
    [
        ({"request": "{}", "requestId": "id2"}, ["request"]),
        ({"submission": PLACE | {"run": 2.0}, "requestId": "id2"}, ["submission"]),
        ({"requestId": Unknown(), "request": Unknown()}, ["request"]),
    ],
)
def test_another_request_replaces_and_names_what_changed(service, change, replaces):
    result = PROVIDER.diff(NAME, outputs(service), PROPS | change)
    assert result.replaces == replaces
    assert result.delete_before_replace


def test_labels_of_the_stack_change_nothing(service):
    others = PROPS | {"options": OPTIONS | {"labels": {"team": "x"}}}
    assert not PROVIDER.diff(NAME, outputs(service), others).changes


def test_a_moved_provider_and_on_delete_are_updates(service):
    outs, deleting = outputs(service), PROPS | {"options": OPTIONS | {"onDelete": "delete"}}
    result = PROVIDER.diff(NAME, outs, deleting)
    assert (result.changes, result.replaces) == (True, [])
    assert PROVIDER.diff(NAME, outs, PROPS | {"__provider": "x"}).changes
    updated = PROVIDER.update(NAME, outs, deleting).outs
    assert updated == outs | {"options": {"controlBucket": "control", "onDelete": "delete"}}


def test_other_messages_submit_nothing_and_are_shown_as_an_update(service):
    told = [{"pubsubTopic": "projects/p/topics/t", "message": {"type": "JOB_STATE_CHANGED"}}]
    outs, with_messages = outputs(service), PROPS | {"options": OPTIONS | {"notifications": told}}
    result = PROVIDER.diff(NAME, outs, with_messages)
    assert (result.changes, result.replaces) == (True, [])
    updated = PROVIDER.update(NAME, outs, with_messages).outs
    assert updated["options"] == outs["options"] | {"notifications": told}
    assert not PROVIDER.diff(NAME, updated, with_messages).changes
    assert PROVIDER.diff(NAME, updated, PROPS).changes
    assert PROVIDER.update(NAME, updated, PROPS).outs == outs
    assert len(service.created) == 1


def test_the_state_keeps_the_folder_of_the_records(service, monkeypatch):
    shared = PROPS | {"options": OPTIONS | {"records": "environments/dev/"}}
    assert PROVIDER.diff(NAME, outputs(service), shared).replaces == []
    outs = PROVIDER.update(NAME, outputs(service), shared).outs
    folders = []
    monkeypatch.undo()
    monkeypatch.setattr(intent_store, "connect", lambda *args: folders.append(args[1:3]))
    for props in (shared, outs, PROPS):
        module._intents(props)
    assert folders == [("control", "environments/dev/")] * 2 + [("control", "")]


def test_a_deleted_record_stays_in_the_stack(service):
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


LATER = f"{NAME}0"


@pytest.mark.parametrize(
    ("own", "later", "kept"),
    [
        ("FAILED", "RUNNING", LATER),
        ("", "RUNNING", LATER),
        ("CANCELLED", "SUCCEEDED", LATER),
        ("CANCELLED", "CANCELLED", NAME),
        ("CANCELLED", "CANCELLING", NAME),
        ("CANCELLED", "", NAME),
        ("SUCCEEDED", "RUNNING", NAME),
        ("RUNNING", "RUNNING", NAME),
    ],
)
def test_a_refresh_takes_over_the_job_that_took_the_place_of_a_failed_one(
    service, monkeypatch, own, later, kept
):
    outs = outputs(service)
    states = {name: state for name, state in ((NAME, own), (LATER, later)) if state}
    jobs = {name: JobSnapshot(name, f"JOB_STATE_{states[name]}", 1, "") for name in states}
    listed = [JobSnapshot(LATER, "JOB_STATE_RUNNING", 1, "")]  # the list lags
    monkeypatch.setattr(service, "get", jobs.get)
    monkeypatch.setattr(service, "find", lambda parent, request_id: listed)
    result = PROVIDER.read(NAME, outs)
    assert (result.id, result.outs["state"]) == (kept, f"JOB_STATE_{states[kept]}")
    assert result.inputs is None


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


def test_a_live_job_goes_on_if_what_replaces_it_would_be_refused(service, google, intents):
    outs, asked = running(service), google(yes=False)
    assert not PROVIDER.check({}, EDITED).failures
    with pytest.raises(JobRefusedError) as refused:
        Impatient().delete(NAME, outs)
    assert str(refused.value).startswith(f"job 'titanic' is not replaced, and {NAME} goes on")
    assert "may not act as t@p.iam.gserviceaccount.com" in str(refused.value)
    assert service.record.state == "JOB_STATE_RUNNING"
    assert intents.stored.record.state is IntentState.DONE
    assert asked.asked == 2


def test_a_live_job_goes_on_if_no_record_can_be_written(service, google, intents, monkeypatch):
    def gone():
        raise OperatorError("the control bucket b is not there; nothing was sent.")

    outs = running(service)
    google(yes=True)
    monkeypatch.setattr(intents, "now", gone)
    assert not PROVIDER.check({}, EDITED).failures
    with pytest.raises(JobRefusedError, match="the control bucket b is not there") as refused:
        Impatient().delete(NAME, outs)
    assert str(refused.value).endswith("nothing was sent. Nothing was cancelled.")
    assert service.record.state == "JOB_STATE_RUNNING"


def test_a_live_job_goes_on_if_the_records_refuse_what_replaces_it(service, google, monkeypatch):
    outs, asked = running(service), []
    google(yes=True)

    def refuse(rungs, replaced, *_):
        asked.append(([each.request_id for each in rungs], replaced))
        return "run 1 of job 'titanic' is FAILED."

    monkeypatch.setattr(module, "refusal_reason", refuse)
    PROVIDER.check({}, EDITED)
    with pytest.raises(JobRefusedError) as refused:
        PROVIDER.delete(NAME, outs)
    assert str(refused.value) == (
        f"job 'titanic' is not replaced, and {NAME} goes on (RUNNING): run 1 would be refused, "
        "since run 1 of job 'titanic' is FAILED. Nothing was cancelled."
    )
    assert asked == [(["id2"], ("id1", NAME))]
    assert service.record.state == "JOB_STATE_RUNNING"


#: A request that names the TensorBoard of its stack, whose number is looked up by a label.
LOGGED = PROPS | {
    "submission": PLACE | {"project": PROJECT},
    "requestId": "id2",
    "request": json.dumps({"jobSpec": {"tensorboard": f"{HERE}/0"}}),
}


@pytest.mark.parametrize("numbers", ["", "78"])
def test_a_live_job_goes_on_if_it_is_not_certain_where_its_successor_logs(
    service, google, store, numbers
):
    outs, _ = running(service), google(yes=True)
    outs = outs | {"submission": LOGGED["submission"]}
    for number in numbers:  # whoever may use Vertex AI in the project may make one more
        add(store, number, "dev")
    PROVIDER.check({}, LOGGED)
    with pytest.raises(
        JobRefusedError, match=r"the TensorBoard of stack dev: .*[^.]\. Nothing was"
    ):
        PROVIDER.delete(NAME, outs)
    assert service.record.state == "JOB_STATE_RUNNING"


def test_a_tensorboard_that_appears_after_a_cancellation_says_what_was_cancelled(
    service, google, store
):
    outs, _ = running(service), google(yes=True)
    add(store, "7", "dev")
    PROVIDER.check({}, LOGGED)
    PROVIDER.delete(NAME, outs | {"submission": LOGGED["submission"]})
    assert service.record.state == "JOB_STATE_CANCELLED"
    add(store, "8", "dev")
    with pytest.raises(NotSubmittedError, match=rf"there are 2 .*For it job 'titanic' .*{NAME}"):
        PROVIDER.create(LOGGED)
    store.delete(TENSORBOARD, f"{HERE}/8")
    service.record = None
    PROVIDER.create(LOGGED)
    assert json.loads(service.created[-1][1])["jobSpec"]["tensorboard"] == f"{HERE}/7"


def test_a_no_answer_is_told_and_cancels_as_any_change(service, google, capsys):
    outs, _ = running(service), google(yes=None)
    PROVIDER.check({}, EDITED)
    PROVIDER.delete(NAME, outs)
    assert service.record.state == "JOB_STATE_CANCELLED"
    told = capsys.readouterr().err.splitlines()
    assert told[1] == (
        "vt: job 'titanic' is replaced, and it is not known whether who deploys may act as "
        "t@p.iam.gserviceaccount.com: 403 Forbidden"
    )


def test_a_refusal_after_a_cancellation_says_what_ran_and_leaves_a_note(
    service, google, monkeypatch, tmp_path
):
    outs, _ = running(service), google(yes=True)
    service.record = dataclasses.replace(
        service.record, started=10**9, ended=313 * 10**9, output="gs://a/x"
    )
    PROVIDER.check({}, EDITED)
    PROVIDER.delete(NAME, outs)

    def refuse(*_):
        raise NotSubmittedError("Vertex AI refused the job.")

    monkeypatch.setattr(service, "create", refuse)
    monkeypatch.setenv("VT_CANCELLED_JOBS", str(tmp_path / "notes"))
    with pytest.raises(NotSubmittedError) as refused:
        PROVIDER.create(EDITED)
    assert str(refused.value) == (
        f"Vertex AI refused the job. For it job 'titanic' (run 1, {NAME}) was cancelled after "
        "5m 12s, and nothing runs now. Its output is in gs://a/x. To bring that back, put its "
        "files back as they were and run `pulumi up`."
    )
    [note] = (tmp_path / "notes").read_text().splitlines()
    assert json.loads(note) == {
        "job": "titanic", "run": 1, "name": NAME, "seconds": 312.0, "output": "gs://a/x"
    }  # fmt: skip


@pytest.mark.parametrize("failure", [InDoubtError, OperatorError])
def test_a_failure_after_a_cancellation_that_leaves_doubt_names_what_was_cancelled(
    service, google, monkeypatch, tmp_path, failure
):
    outs, _ = running(service), google(yes=True)
    PROVIDER.check({}, EDITED)
    PROVIDER.delete(NAME, outs)

    def fail(*_):
        raise failure("the records cannot be read.")

    monkeypatch.setattr(module.Ladder, "place", fail)
    monkeypatch.setenv("VT_CANCELLED_JOBS", str(tmp_path / "notes"))
    with pytest.raises(failure) as failed:
        PROVIDER.create(EDITED)
    assert str(failed.value) == (
        f"the records cannot be read. For it job 'titanic' (run 1, {NAME}) was cancelled."
    )
    assert not (tmp_path / "notes").exists()


def test_a_refusal_of_a_job_that_replaces_none_says_no_more(service, monkeypatch):
    def refuse(*_):
        raise NotSubmittedError("Vertex AI refused the job.")

    monkeypatch.setattr(service, "create", refuse)
    with pytest.raises(NotSubmittedError, match=r"^Vertex AI refused the job.$"):
        PROVIDER.create(PROPS)


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELLED"])
def test_nothing_is_asked_for_a_job_that_has_ended(service, google, state):
    outs, asked = running(service, state), google(yes=False)
    PROVIDER.check({}, EDITED)
    PROVIDER.delete(NAME, outs)
    assert asked.asked == 0


def test_the_next_run_takes_the_place_of_the_one_before(service, google):
    outs, asked = running(service), google(yes=False)
    PROVIDER.check({}, EDITED | {"submission": PLACE | {"run": 2.0}})
    with pytest.raises(JobRefusedError, match=r"\(RUNNING\): run 2 would be refused, since "):
        Impatient().delete(NAME, outs)
    assert (asked.asked, service.record.state) == (2, "JOB_STATE_RUNNING")


def test_nothing_is_asked_where_no_request_takes_the_place(service, google):
    outs, asked = running(service), google(yes=False)
    PROVIDER.check({}, EDITED | {"submission": PLACE | {"job": "other"}})
    PROVIDER.delete(NAME, outs)
    assert (asked.asked, service.record.state) == (0, "JOB_STATE_CANCELLED")


def test_the_same_request_once_more_cancels_nothing(service, google):
    outs, asked = running(service), google(yes=True)
    PROVIDER.check({}, PROPS)
    with pytest.raises(JobRefusedError, match="set run: 2 to submit it once more"):
        PROVIDER.delete(NAME, outs)
    assert (asked.asked, service.record.state) == (0, "JOB_STATE_RUNNING")


@pytest.mark.parametrize("on_delete", ["keep", "delete"])
def test_a_job_that_has_succeeded_is_adopted_by_its_own_request_whatever_becomes_of_records(
    service, on_delete
):
    """Tainted, for instance: without its record the same request would be paid for once more."""
    props = PROPS | {"options": OPTIONS | {"onDelete": on_delete}}
    outs = PROVIDER.create(props).outs | {"state": "JOB_STATE_SUCCEEDED"}
    service.record = dataclasses.replace(service.record, state="JOB_STATE_SUCCEEDED")
    assert not PROVIDER.check({}, props).failures
    PROVIDER.delete(NAME, outs)
    PROVIDER.create(props)
    assert len(service.created) == 1
    module._adopted.clear()  # in another update; its record goes, as it was asked for
    PROVIDER.check({}, props | {"submission": PLACE | {"run": 2.0}, "requestId": "id2"})
    PROVIDER.delete(NAME, outs)
    assert (service.record is None) is (on_delete == "delete")


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


def test_check_lets_unknown_values_pass():
    assert not PROVIDER.check({}, PROPS | {"request": Unknown()}).failures
    assert not PROVIDER.check({}, PROPS | {"request": Unknown(), "requestId": ""}).failures


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


def test_an_unknown_request_is_not_looked_up(service):
    PROVIDER.create(PROPS)
    service.record = JobSnapshot(NAME, "JOB_STATE_FAILED", 1, spec.digest_of(BODY)[:20])
    unknown = PROPS | {"requestId": Unknown(), "request": Unknown()}
    assert not PROVIDER.check({}, unknown).failures


FINISH = PROPS | {"options": OPTIONS | {"onChange": "finish"}, "requestId": "id2"}


def running(service, state="RUNNING"):
    """Outputs of a job that is now in this state."""
    outs = outputs(service)
    digest = spec.digest_of(BODY)[:20]
    service.record = JobSnapshot(NAME, f"JOB_STATE_{state}", 1, digest) if state else None
    return outs


@pytest.mark.parametrize("state", ["QUEUED", "PENDING", "RUNNING", "CANCELLING"])
def test_a_job_that_may_finish_goes_on_and_the_change_waits(service, state):
    outs = running(service, state)
    result = PROVIDER.diff(NAME, outs, FINISH)
    assert (result.changes, result.replaces) == (True, [])
    waiting = PROVIDER.update(NAME, outs, FINISH).outs
    assert (waiting["requestId"], waiting["deferredRequestId"]) == ("id1", "id2")
    assert not PROVIDER.diff(NAME, waiting, FINISH).changes  # a second up does nothing
    assert len(service.created) == 1


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELLED", ""])
def test_once_it_has_ended_the_change_replaces_it(service, state):
    outs = running(service)
    waiting = PROVIDER.update(NAME, outs, FINISH).outs
    digest = spec.digest_of(BODY)[:20]
    service.record = JobSnapshot(NAME, f"JOB_STATE_{state}", 1, digest) if state else None
    assert PROVIDER.diff(NAME, waiting, FINISH).replaces == ["request"]


def test_a_change_taken_back_while_it_waits_leaves_no_trace(service):
    outs = running(service)
    waiting = PROVIDER.update(NAME, outs, FINISH).outs
    back = FINISH | {"requestId": "id1"}
    result = PROVIDER.diff(NAME, waiting, back)
    assert (result.changes, result.replaces) == (True, [])
    assert PROVIDER.update(NAME, waiting, back).outs == outs
    assert not PROVIDER.diff(NAME, outs, back).changes


def test_a_change_made_anew_while_it_waits_takes_the_place_of_the_first(service):
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


def test_a_refresh_keeps_what_waits(service):
    waiting = PROVIDER.update(NAME, running(service), FINISH).outs
    assert PROVIDER.read(NAME, waiting).outs["deferredRequestId"] == "id2"


def test_whether_a_job_may_finish_submits_nothing(service):
    may = PROPS | {"options": OPTIONS | {"onChange": "finish"}}
    assert not PROVIDER.diff(NAME, running(service), may).changes
