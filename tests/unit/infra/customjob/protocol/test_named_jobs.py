"""A service that takes the job's name from the request: one name, one job, whoever dies."""

from __future__ import annotations

import contextlib
import itertools
import random
from dataclasses import replace

import pytest

from tests.unit.infra.customjob.fakes import EDITED, REQUEST, Killed, Process, World, job
from vertex_training.customjob.batch import job_id
from vertex_training.customjob.protocol import submission, waiting
from vertex_training.customjob.protocol.ports import (
    REQUEST_ID_LABEL,
    TURN_LABEL,
    IntentState,
    Timing,
)
from vertex_training.errors import InDoubtError, JobRefusedError, NotSubmittedError, OperatorError

TIMING = Timing()
LABELS = {REQUEST_ID_LABEL: "batch-1"}
MINE = replace(REQUEST, request_id="batch-1", labels=LABELS)
OTHER = replace(REQUEST, request_id="batch-2", labels={REQUEST_ID_LABEL: "batch-2"})
ENDED = ("JOB_STATE_CANCELLED", "JOB_STATE_FAILED", "JOB_STATE_SUCCEEDED")


class Batch(Process):
    """A process whose service names jobs by request and turn, and knows no second of a name."""

    def create(self, parent, body, labels):
        id_, turn = labels.get(REQUEST_ID_LABEL, "id1"), int(labels[TURN_LABEL])
        if not id_.startswith("batch-"):
            return super().create(parent, body, labels)

        def act():
            name = f"{parent}/jobs/{job_id('dev', 'titanic', id_, turn)}"
            if self.lands and name not in self.world.jobs:
                self.world.sent += 1
                self.world.jobs[name] = job(name, "PENDING", created=self.world.sent, turn=turn)
                self.world.born[name] = self.world.time
                self.world.requests[name] = id_
            if self.answer is not None:
                raise self.answer
            return self.world.jobs[name]

        return self._call("create", act)


def submit(process, request=MINE):
    return submission.submit(request, process, process, TIMING, process.environment())


def running(world):
    return [each.name for each in world.jobs.values() if each.state not in ENDED]


def kill_at(number):
    calls = itertools.count()

    def on_call(_name, _when):
        if next(calls) == number:
            raise Killed

    return on_call


def test_a_process_killed_at_any_call_leaves_one_job_without_a_wait():
    for number in range(40):
        world = World(list_lag=30.0)
        with contextlib.suppress(Killed):
            submit(Batch(world, kill_at(number)))
        began = world.time
        made, _adopted = submit(Batch(world))
        assert running(world) == [made.name]
        assert world.sent == 1
        assert world.time == began, f"waited after call {number}"
        assert world.records["batch-1"].record.state is IntentState.DONE


def test_an_edit_beside_a_request_that_may_be_on_its_way_waits_for_its_lease():
    for number in range(40):
        world = World(list_lag=20.0)
        with contextlib.suppress(Killed):
            submit(Batch(world, kill_at(number)))
        with contextlib.suppress(JobRefusedError):  # it runs already
            submit(Batch(world), OTHER)
        assert len(running(world)) == 1


@pytest.mark.parametrize(("before", "after"), [(REQUEST, MINE), (MINE, EDITED)])
def test_a_job_that_moves_to_the_other_service_is_refused_beside_the_one_that_runs(before, after):
    world = World()
    old, _ = submit(Batch(world), before)
    with pytest.raises(JobRefusedError, match="earlier submission that is missing in this state"):
        submit(Batch(world), after)
    assert running(world) == [old.name]
    process = Batch(world)
    waiting.withdraw(process, old.name, delete_record=False, sleep=process.sleep)
    waiting.release(process, before.request_id, old.name)
    new, adopted = submit(process, after)
    assert not adopted
    assert running(world) == [new.name]


def test_a_job_of_somebody_elses_with_our_labels_is_not_taken_for_ours():
    world = World()
    foreign = f"{MINE.parent}/jobs/theirs"
    world.jobs[foreign] = job(foreign, "RUNNING", created=1)
    world.born[foreign], world.requests[foreign] = 0.0, MINE.request_id
    process = Batch(world)
    assert [each.name for each in process.find(MINE.parent, MINE.request_id)] == [foreign]
    made, adopted = submit(process)
    assert (made.name == foreign, adopted) == (False, False)
    assert world.sent == 1


def test_going_back_gives_the_job_another_name():
    world, process = World(), None
    names = []
    for request in (MINE, OTHER, MINE):
        process = Batch(world)
        made, adopted = submit(process, request)
        assert not adopted
        names.append(made.name)
        waiting.withdraw(process, made.name, delete_record=False, sleep=process.sleep)
        waiting.release(process, request.request_id, made.name)
    assert names[2].endswith("-1-t3")
    assert len(set(names)) == 3


def test_a_job_that_was_deleted_after_sixty_days_is_never_run_again():
    world = World()
    made, _ = submit(Batch(world))
    del world.jobs[made.name]
    with pytest.raises(JobRefusedError, match=r"jobs/dev-titanic-1\) was deleted"):
        submit(Batch(world))
    assert world.sent == 1


def test_a_name_whose_job_has_failed_is_refused_and_stays_recorded():
    """A list that lags shows nothing; the name itself tells."""
    world = World(list_lag=1e9)
    made, _ = submit(Batch(world))
    world.jobs[made.name] = job(made.name, "FAILED")
    world.records.clear()
    with pytest.raises(JobRefusedError, match="is FAILED"):
        submit(Batch(world))
    assert world.sent == 1


def test_a_refusal_while_another_process_may_have_sent_releases_nothing():
    world = World()

    def die(*call):
        if call == ("create", "before"):
            raise Killed

    with pytest.raises(Killed):
        submit(Batch(world, die))
    with pytest.raises(NotSubmittedError):
        submit(Batch(world, answer=NotSubmittedError("no"), lands=False))
    assert world.records["batch-1"].record.state is IntentState.SENDING


def test_a_turn_that_cannot_be_read_releases_nothing_that_another_may_have_sent():
    world = World()

    def die(*call):
        if call == ("create", "before"):
            raise Killed

    def fail(*call):
        if call == ("turn read", "before"):
            raise OperatorError("no answer")

    with pytest.raises(Killed):
        submit(Batch(world, die))
    with pytest.raises(OperatorError, match="no answer"):
        submit(Batch(world, fail))
    assert world.records["batch-1"].record.state is IntentState.SENDING
    assert world.sent == 0


@pytest.mark.parametrize("seed", range(8))
def test_whatever_dies_or_lies_no_two_jobs_of_one_job_run(seed):
    """125 examples of 8 steps each: requests of both services, kills, lost answers, ends."""
    chance = random.Random(seed)
    for _ in range(125):
        world = World(list_lag=chance.choice([0.0, 30.0]))
        for _step in range(8):
            request = chance.choice([REQUEST, EDITED, MINE, OTHER])
            kill = kill_at(chance.randrange(30)) if chance.random() < 0.5 else lambda *_: None
            answer = InDoubtError("lost") if chance.random() < 0.3 else None
            lands = answer is None or chance.random() < 0.5
            process = Batch(world, kill, answer=answer, lands=lands)
            with contextlib.suppress(Killed, OperatorError):
                submit(process, request)
            assert len(running(world)) <= 1, (seed, world.jobs)
            if chance.random() < 0.3:
                for name in running(world):
                    state = chance.choice(["CANCELLED", "FAILED"])
                    turn = world.jobs[name].turn
                    world.jobs[name] = job(name, state, turn=turn)
            world.time += chance.choice([0.0, 10.0, 400.0])
        names = [name for name in world.jobs if "/jobs/" in name]
        assert len(names) == len(set(names))
