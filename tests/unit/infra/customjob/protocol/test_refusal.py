"""What a submission would be refused for, told beforehand: by the same rules, and only reading."""

import itertools

import pytest

from tests.unit.infra.customjob.fakes import EDITED, REQUEST, Process, World, job
from vertex_training.customjob.protocol import submission, withdrawal
from vertex_training.customjob.protocol.refusal import ReplacedJob, refusal_reason
from vertex_training.customjob.protocol.timing import Timing
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
        withdrawal.release(Process(world), "id1", "job-1")
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
        withdrawal.release(Process(world), "id1", "job-1")
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
    assert "earlier submission that this state does not know: job-1 is PENDING" in found


def test_a_job_of_the_replaced_request_that_the_state_does_not_have_is_named():
    world = World()
    submit(world)
    found = reason(world, EDITED, replaced=ReplacedJob("id1", "job-0"))
    assert "job-1 is PENDING, and the state has another job of that request" in found
    assert "Run `pulumi refresh --stack dev`" in found


def test_records_that_cannot_be_read_are_an_error_here():
    def fail(name, when):
        raise OperatorError("503")

    process = Process(World(), fail)
    with pytest.raises(OperatorError, match="503"):
        refusal_reason([REQUEST], None, process, process)
