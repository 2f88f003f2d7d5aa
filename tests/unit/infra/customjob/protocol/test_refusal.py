"""Refusals that are reported before a submission, by the same rules and by reads alone."""

import itertools
import threading

import pytest

from tests.unit.infra.customjob.fakes import EDITED, REQUEST, Process, World, job
from vertex_training.customjob.protocol import submission, waiting
from vertex_training.customjob.protocol.ports import Timing
from vertex_training.customjob.refusal_lookup import RefusalLookup, ReplacedJob, refusal_reason
from vertex_training.errors import JobRefusedError, OperatorError

STATES = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "CANCELLING", "EXPIRED", ""]


def submit(world, request=REQUEST):
    process = Process(world)
    return submission.submit(request, process, process, Timing(), process.environment())


OTHER = ReplacedJob("id0", "job-0")


def reason(world, request=REQUEST, replaced=OTHER):
    calls = []
    process = Process(world, lambda name, when: calls.append(name))
    found = refusal_reason([request], replaced, process, process)
    assert not [name for name in calls if name not in ("read", "get", "find", "turn read")]
    return found


def set_state(world, name, state):
    if state:
        world.jobs[name] = job(name, state, turn=world.jobs[name].turn)
    else:
        del world.jobs[name]


def test_what_was_never_submitted_is_not_refused():
    assert reason(World()) == ""


@pytest.mark.parametrize(("state", "released"), list(itertools.product(STATES, [False, True])))
def test_a_job_submitted_before_is_refused_as_the_submission_would(state, released):
    world = World()
    submit(world)
    set_state(world, "job-1", state)
    if released:
        waiting.release(Process(world), "id1", "job-1")
    expected = reason(world)
    if not expected:
        submit(world)
        return
    with pytest.raises(JobRefusedError) as refused:
        submit(world)
    assert str(refused.value) == expected
    assert world.sent == 1


@pytest.mark.parametrize(
    ("first", "second", "released"), list(itertools.product(STATES, STATES, [False, True]))
)
def test_a_job_put_back_is_refused_as_the_submission_would(first, second, released):
    world = World()
    submit(world)
    set_state(world, "job-1", first if first not in ("PENDING", "RUNNING") else "CANCELLED")
    if released:
        waiting.release(Process(world), "id1", "job-1")
    submit(world, EDITED)
    set_state(world, "job-2", second)
    expected = reason(world)
    if not expected:
        submit(world)
        return
    with pytest.raises(JobRefusedError) as refused:
        submit(world)
    assert str(refused.value) == expected
    assert world.sent == 2


def test_the_job_that_is_replaced_does_not_stand_in_its_own_way():
    world = World()
    submit(world)
    assert "job-1 is PENDING" in reason(world, EDITED)
    assert reason(world, EDITED, replaced=ReplacedJob("id1", "job-1")) == ""
    assert reason(world, EDITED, replaced=None) == ""


def test_a_job_that_the_state_does_not_know_is_named_before_another_is_cancelled():
    world = World()
    submit(world)
    found = reason(world, EDITED, replaced=OTHER)
    assert "earlier submission that is missing in this state: job-1 is PENDING" in found


def test_a_job_of_the_replaced_request_that_the_state_does_not_have_is_named():
    world = World()
    submit(world)
    found = reason(world, EDITED, replaced=ReplacedJob("id1", "job-0"))
    assert "job-1 is PENDING, and the state has an older job of that request" in found
    assert "Run `pulumi refresh --stack dev`" in found


def test_records_that_cannot_be_read_are_an_error_here():
    def fail(name, when):
        raise OperatorError("503")

    process = Process(World(), fail)
    with pytest.raises(OperatorError, match="503"):
        refusal_reason([REQUEST], None, process, process)


#: A job of the state, of neither request.
OLD = ReplacedJob("id0", "job-0")


@pytest.fixture
def world():
    """A world in which the job was submitted, and an edit of it would be refused."""
    world = World()
    process = Process(world)
    submission.submit(REQUEST, process, process, Timing(), process.environment())
    return world


class Connection:
    """Counts the calls of all lookups that connect by it."""

    def __init__(self, world, on_call=lambda name, when: None):
        self.made, self.connected = [], 0
        self.process = Process(world, lambda *call: (self.made.append(call), on_call(*call)))

    def __call__(self):
        self.connected += 1
        return self.process, self.process


def test_jobs_that_were_never_submitted_cost_one_listing_together():
    lookup, connection = RefusalLookup(), Connection(World())
    for _ in range(100):
        assert lookup.reason([REQUEST], OLD, "control", connection) == ""
    assert connection.made == [("turn keys", "before"), ("turn keys", "after")]


def test_what_cannot_be_read_is_tried_once_and_fails_nothing(world):
    def fail(name, when):
        raise OperatorError("no credentials")

    lookup, connection = RefusalLookup(), Connection(world, fail)
    assert [lookup.reason([EDITED], OLD, "control", connection) for _ in range(3)] == ["", "", ""]
    assert connection.connected == 1


def test_a_cloud_that_does_not_answer_holds_a_preview_up_once_and_not_for_long(world):
    answers = threading.Event()  # set only afterwards: a lookup that waits for it never ends
    connection = Connection(world, lambda name, when: answers.wait())
    lookup = RefusalLookup(bound=0.2)
    assert [lookup.reason([EDITED], OLD, "control", connection) for _ in range(3)] == ["", "", ""]
    assert connection.connected == 1
    answers.set()


def test_an_offline_preview_connects_to_nothing(monkeypatch, world):
    monkeypatch.setenv("VT_LOCAL_HOME", "/x")
    monkeypatch.setenv("PULUMI_BACKEND_URL", "file:///x/pulumi")
    connection = Connection(world)
    assert RefusalLookup().reason([EDITED], OLD, "control", connection) == ""
    assert connection.connected == 0
