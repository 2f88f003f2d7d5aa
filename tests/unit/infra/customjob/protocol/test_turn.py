"""One request of a job at a time, by whole submissions."""

import itertools
from dataclasses import replace

import pytest

from tests.unit.infra.customjob.fakes import EDITED, REQUEST, Killed, Process, World, job
from vertex_training.customjob.protocol import submission, waiting
from vertex_training.customjob.protocol.ports import IntentState, Timing
from vertex_training.errors import (
    InDoubtError,
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
)

TIMING = Timing()
LIVE = ["QUEUED", "PENDING", "RUNNING", "PAUSED", "UPDATING"]


def submit(process, request=REQUEST):
    return submission.submit(request, process, process, TIMING, process.environment())


def killed_after(*point, request=REQUEST, lag=0.0):
    """A world in which a process has died right after a call."""
    world = World(list_lag=lag)

    def kill(*call):
        if call == (*point, "after"):
            raise Killed

    with pytest.raises(Killed):
        submit(Process(world, kill), request)
    return world


def living(world):
    return [found.name for found in world.jobs.values() if found.state.endswith("PENDING")]


@pytest.mark.parametrize("lag", [0, 30])
@pytest.mark.parametrize("state", LIVE)
def test_a_job_that_lives_for_the_request_before_is_named_with_both_ways_out(state, lag):
    world = killed_after("create", lag=lag)
    world.jobs["job-1"] = job("projects/1/locations/r/customJobs/42", state)
    world.jobs["projects/1/locations/r/customJobs/42"] = world.jobs.pop("job-1")
    reported = rf"customJobs/42 is {state}\. Nothing was submitted.*`vt jobs cancel 42 --stack dev`"
    with pytest.raises(JobRefusedError, match=rf"'titanic'.*{reported}.*revert the edits"):
        submit(Process(world), EDITED)
    assert world.sent == 1


def test_the_refused_request_gives_its_claim_back_and_leaves_the_turn():
    world = killed_after("create")
    with pytest.raises(JobRefusedError):
        submit(Process(world), EDITED)
    assert world.records["id2"].record.state is IntentState.RELEASED
    assert world.turns["r/titanic"].request_id == "id1"


def test_put_back_as_it_was_the_job_is_adopted():
    world = killed_after("create")
    with pytest.raises(JobRefusedError):
        submit(Process(world), EDITED)
    found, adopted = submit(Process(world))
    assert (world.sent, adopted, found.name) == (1, True, "job-1")


@pytest.mark.parametrize("state", ["CANCELLING", "CANCELLED", "FAILED", "SUCCEEDED", "EXPIRED"])
def test_once_that_job_is_cancelled_or_has_ended_the_new_request_is_sent(state):
    world = killed_after("create")
    world.jobs["job-1"] = job("job-1", state)
    found, adopted = submit(Process(world), EDITED)
    assert (world.sent, adopted, found.name) == (2, False, "job-2")
    assert world.turns["r/titanic"].request_id == "id2"


def test_a_job_that_only_its_record_names_is_found():
    world = World(list_lag=10_000)
    submit(Process(world))
    with pytest.raises(JobRefusedError, match="job-1 is PENDING"):
        submit(Process(world), EDITED)


def test_a_job_that_only_the_list_names_is_found():
    world = killed_after("create")
    del world.records["id1"]
    with pytest.raises(JobRefusedError, match="job-1 is PENDING"):
        submit(Process(world), EDITED)


def test_a_stale_list_does_not_block_a_submission():
    world = killed_after("create")
    world.jobs["job-1"] = job("job-1", "CANCELLED")

    class Stale(Process):
        def find(self, parent, request_id):
            return [job("job-1", "RUNNING")] if request_id == "id1" else []

    submit(Stale(world), EDITED)
    assert world.sent == 2


def test_a_withdrawn_job_makes_way_at_once():
    world = World()
    found, _ = submit(Process(world))
    world.jobs[found.name] = job(found.name, "CANCELLED")
    waiting.release(Process(world), "id1", found.name)
    submit(Process(world), EDITED)
    assert (world.sent, world.time) == (2, 1000.0)


def test_a_request_that_may_be_on_its_way_is_waited_for():
    world = World()
    with pytest.raises(InDoubtError):
        submit(Process(world, answer=InDoubtError("?"), lands=False))
    fenced_at = world.stored.updated
    submit(Process(world), EDITED)
    assert world.sent == 1
    assert world.time >= fenced_at + TIMING.lease + TIMING.settle
    assert world.stored.record.state is IntentState.RELEASED


def test_a_job_that_comes_to_be_meanwhile_is_named():
    world = killed_after("write SENDING")

    def land(name, when):
        if world.time >= 1060 and not world.jobs:
            world.create()

    with pytest.raises(JobRefusedError, match="job-1 is PENDING"):
        submit(Process(world, land), EDITED)
    assert world.time < 1000 + TIMING.lease


def test_a_process_that_slept_through_the_lease_looks_once_more():
    world = killed_after("write SENDING")

    def sleep(name, when):
        if (name, when) == ("now", "before") and not world.jobs:
            world.create()
            world.time += 1000

    with pytest.raises(JobRefusedError, match="job-1 is PENDING"):
        submit(Process(world, sleep), EDITED)


def test_a_request_whose_owner_gives_it_up_is_waited_for_no_longer():
    world = killed_after("write SENDING")

    def give_up(name, when):
        if world.time >= 1010 and world.stored.record.state is IntentState.SENDING:
            freed = replace(world.stored.record, state=IntentState.RELEASED)
            world.stored = replace(world.stored, record=freed, generation=99)

    submit(Process(world, give_up), EDITED)
    assert (world.sent, world.time) == (1, 1010.0)


def test_an_unsent_claim_is_released():
    world = killed_after("turn write")
    assert world.stored.record.state is IntentState.INTENT
    owner = world.stored.record.owner
    submit(Process(world), EDITED)
    assert (world.sent, world.time) == (1, 1000.0)
    assert world.stored.record.state is IntentState.RELEASED
    assert world.stored.record.owner != owner  # who claimed it cannot take this write for its own


@pytest.mark.parametrize(
    ("call", "nth"), [("turn read", 1), ("read", 2), ("find", 2), ("turn write", 1)]
)
def test_a_look_that_fails_sends_nothing_and_gives_the_claim_back(call, nth):
    world, counter = killed_after("create"), itertools.count(1)
    world.jobs["job-1"] = job("job-1", "CANCELLED")

    def fail(name, when):
        if (name, when) == (call, "before") and next(counter) == nth:
            raise OperatorError("503")

    with pytest.raises(OperatorError, match="503"):
        submit(Process(world, fail), EDITED)
    assert (world.sent, world.records["id2"].record.state) == (1, IntentState.RELEASED)


def calls_before_sending(request):
    made = []
    submit(Process(World(), lambda *call: made.append(call)), request)
    return range(made.index(("create", "before")))


@pytest.mark.parametrize("point", calls_before_sending(EDITED))
def test_the_old_file_run_at_any_moment_of_the_new_ones_run_leaves_one_living_job(point):
    world = World()
    counter = itertools.count()

    def interrupt(name, when):
        if next(counter) == point:
            attempt(Process(world), REQUEST)

    def attempt(process, request):
        try:
            submit(process, request)
        except (JobRefusedError, NotSubmittedError) as error:
            reported.append(str(error))

    reported = []
    attempt(Process(world, interrupt), EDITED)
    assert world.sent == 1
    [one] = living(world)
    assert any(one in text or "delayed for too long" in text for text in reported)


@pytest.mark.parametrize("request_id", ["id1", "id2"])
def test_an_ended_job_is_not_adopted_while_the_one_sent_after_it_lives(request_id):
    world = World()
    found, _ = submit(Process(world))
    world.jobs[found.name] = job(found.name, "SUCCEEDED")
    waiting.release(Process(world), "id1", found.name)
    submit(Process(world), EDITED)
    if request_id == "id2":
        assert submit(Process(world), EDITED)[0].name == "job-2"
        return
    with pytest.raises(JobRefusedError, match="job-2 is PENDING"):
        submit(Process(world))
    world.jobs["job-2"] = job("job-2", "CANCELLED")
    assert submit(Process(world))[0].name == "job-1"


def test_adopting_a_live_job_takes_no_turn():
    world, made = killed_after("create"), []
    submit(Process(world, lambda name, when: made.append(name)))
    assert not {"turn read", "turn write"} & set(made)


@pytest.mark.parametrize(
    "other",
    [
        {"job": "iris"},
        {"parent": "projects/p/locations/europe-west4"},
    ],
    ids=str,
)
def test_other_jobs_take_other_turns(other):
    world = World()
    submit(Process(world))
    submit(Process(world), replace(EDITED, **other))
    assert len(living(world)) == 2
