import itertools
from dataclasses import replace

import pytest

from tests.unit.infra.customjob.fakes import REQUEST, Killed, Process, World, job
from vertex_training.customjob.protocol import submission, waiting
from vertex_training.customjob.protocol.ports import IntentState, Timing
from vertex_training.errors import (
    InDoubtError,
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
    PreconditionFailedError,
)

TIMING = Timing()


def submit(process):
    return submission.submit(REQUEST, process, process, TIMING, process.environment())


def world_with(*jobs):
    return World(jobs={j.name: j for j in jobs})


def test_a_new_request_is_sent_exactly_once_and_recorded():
    world = World()
    found, adopted = submit(Process(world))
    assert (world.sent, adopted, found.state) == (1, False, "JOB_STATE_PENDING")
    assert (world.stored.record.state, world.stored.record.job_name) == (IntentState.DONE, "job-1")


def test_a_second_process_adopts_what_the_record_names():
    world = World()
    submit(Process(world))
    found, adopted = submit(Process(world))
    assert (world.sent, adopted, found.name) == (1, True, "job-1")


@pytest.mark.parametrize(
    "state",
    ["QUEUED", "PENDING", "RUNNING", "PAUSED", "UPDATING", "SUCCEEDED", "PARTIALLY_SUCCEEDED"],
)
def test_a_live_or_succeeded_job_is_adopted_and_nothing_is_sent(state):
    world = world_with(job("a", state))
    found, adopted = submit(Process(world))
    assert (world.sent, adopted, found.name) == (0, True, "a")


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "CANCELLING", "EXPIRED"])
def test_an_ended_run_is_refused_with_a_hint_how_to_run_again(state):
    world = world_with(job("a", state, error="exit code 1"))
    with pytest.raises(
        JobRefusedError, match=rf"run 3 of job 'titanic' is {state}.*exit code 1.*run: 4"
    ):
        submit(Process(world))
    assert world.sent == 0


def test_another_request_under_the_same_id_is_refused():
    world = world_with(job("a", "RUNNING", digest="e" * 20))
    with pytest.raises(JobRefusedError, match="the digest of another request"):
        submit(Process(world))


def test_a_job_whose_record_at_vertex_was_deleted_is_not_sent_again():
    world = World()
    submit(Process(world))
    world.jobs.clear()
    with pytest.raises(JobRefusedError, match=r"was deleted.*run: 4"):
        submit(Process(world))
    assert world.sent == 1


def test_a_certain_no_frees_the_record_for_a_corrected_try():
    world = World()
    with pytest.raises(NotSubmittedError):
        submit(Process(world, answer=NotSubmittedError("no"), lands=False))
    assert world.stored.record.state is IntentState.RELEASED
    began = world.time
    submit(Process(world))
    assert (world.sent, world.time) == (1, began)


def test_only_a_missing_right_is_tried_again():
    made = []
    process = Process(
        World(), lambda *call: made.append(call), answer=NotSubmittedError("no"), lands=False
    )
    with pytest.raises(NotSubmittedError):
        submit(process)
    assert made.count(("create", "before")) == 1


def test_a_right_granted_just_now_is_waited_for():
    world = World()
    process = Process(world, answer=PermissionDeniedError("no actAs"), lands=False)

    def allow_after_20_seconds(name, when):
        if name == "create" and world.time >= 1020:
            process.answer, process.lands = None, True

    process.on_call = allow_after_20_seconds
    submit(process)
    assert (world.sent, world.time) == (1, 1020)


def test_a_job_that_came_to_be_although_it_was_refused_is_adopted_and_not_sent_again():
    world = World()
    found, adopted = submit(Process(world, answer=PermissionDeniedError("no actAs"), lands=True))
    assert (world.sent, adopted, found.name) == (1, True, "job-1")


def test_a_right_that_is_not_granted_is_an_error_within_a_bound():
    world = World()
    with pytest.raises(PermissionDeniedError):
        submit(Process(world, answer=PermissionDeniedError("no actAs"), lands=False))
    assert world.time - 1000 <= TIMING.gate
    assert world.stored.record.state is IntentState.RELEASED


def test_a_lost_answer_is_settled_by_looking_and_never_by_sending_again():
    world = World(list_lag=20)
    found, adopted = submit(Process(world, answer=InDoubtError("?")))
    assert (world.sent, adopted, found.name) == (1, True, "job-1")
    assert world.stored.record.state is IntentState.DONE


def test_a_request_that_never_shows_up_fails_closed_and_the_next_run_resolves_it():
    world = World()
    with pytest.raises(InDoubtError, match="Nothing was sent twice"):
        submit(Process(world, answer=InDoubtError("?"), lands=False))
    assert world.stored.record.state is IntentState.SENDING
    submit(Process(world))
    assert world.sent == 1


def killed_after(point):
    """A world in which a process has died right after a call."""
    world = World()

    def kill(*call):
        if call == (point, "after"):
            raise Killed

    with pytest.raises(Killed):
        submit(Process(world, kill))
    return world


def test_the_job_of_a_killed_process_ends_the_wait_for_its_lease():
    world = killed_after("create")
    submit(Process(world))
    assert (world.sent, world.time) == (1, 1000.0)


def test_a_claim_of_a_killed_process_is_taken_over_at_once():
    world = killed_after("write INTENT")
    submit(Process(world))
    assert (world.sent, world.time) == (1, 1000.0)


def test_a_record_that_another_frees_ends_the_wait_for_its_lease():
    world = killed_after("write SENDING")

    def refuse_the_other(name, when):
        if world.stored.record.state is IntentState.SENDING and world.time >= 1010:
            freed = replace(world.stored.record, state=IntentState.RELEASED)
            world.stored = replace(world.stored, record=freed, generation=99)

    submit(Process(world, refuse_the_other))
    assert (world.sent, world.time) == (1, 1010.0)


def test_who_loses_the_fence_waits_until_the_winners_lease_is_over():
    world, sent_at = World(), []

    def overtaken(name, when):
        if (name, when) == ("write SENDING", "before") and not won:
            won.append(world.time)
            with pytest.raises(InDoubtError):
                submit(Process(world, answer=InDoubtError("?"), lands=False))
        if (name, when) == ("create", "before"):
            sent_at.append(world.time)

    won = []
    submit(Process(world, overtaken))
    [at] = sent_at
    assert at >= won[0] + TIMING.lease + TIMING.settle


def test_a_withdrawn_job_that_no_list_shows_yet_is_not_sent_again():
    world = World(list_lag=30)
    found, _ = submit(Process(world))
    world.jobs[found.name] = job(found.name, "CANCELLED")
    waiting.release(Process(world), "id1", found.name)
    with pytest.raises(JobRefusedError, match=r"run 3 .* is CANCELLED"):
        submit(Process(world))
    assert world.sent == 1


def test_a_deleted_job_that_a_list_still_shows_is_not_adopted():
    world = World()

    class Stale(Process):
        def find(self, parent, request_id):
            return [job("deleted", "RUNNING"), *super().find(parent, request_id)]

    found, adopted = submit(Stale(world))
    assert (found.name, adopted) == ("job-1", False)


def test_an_orphan_does_not_begin_to_send():
    world = World()
    process = Process(world)
    process.alive = False
    with pytest.raises(NotSubmittedError, match="engine has exited"):
        submit(process)
    assert (world.sent, world.stored.record.state) == (0, IntentState.RELEASED)


def test_a_process_that_slept_through_its_lease_does_not_send():
    world = World()

    def freeze(name, when):
        if (name, when) == ("write SENDING", "after"):
            world.time += TIMING.send_within + 1

    with pytest.raises(NotSubmittedError, match="delayed for too long"):
        submit(Process(world, freeze))
    assert world.sent == 0


@pytest.mark.parametrize(
    ("state", "created", "kept", "cancelled"),
    [
        ("RUNNING", 100, "other", ["job-1"]),
        ("RUNNING", 101, "job-1", ["other"]),
        ("RUNNING", 102, "job-1", ["other"]),
        ("CANCELLING", 102, "job-1", ["other"]),
        ("SUCCEEDED", 100, "other", ["job-1"]),
        ("SUCCEEDED", 102, "job-1", []),
        ("PARTIALLY_SUCCEEDED", 102, "job-1", []),
        *((state, 100, "job-1", []) for state in ("FAILED", "CANCELLED", "EXPIRED")),
    ],
)
def test_of_jobs_for_one_request_one_that_is_of_use_stays_and_what_ended_is_not_cancelled(
    state, created, kept, cancelled
):
    world, ended = World(), []

    class Other(Process):
        def cancel(self, name):
            ended.append(name)
            super().cancel(name)

    def arrive(name, when):
        if (name, when) == ("create", "before"):
            world.jobs["other"] = job("other", state, created=created)

    found, adopted = submit(Other(world, arrive))
    assert (found.name, adopted, ended) == (kept, False, cancelled)
    record = world.stored.record
    assert (record.state, record.job_name) == (IntentState.DONE, kept)


def test_an_error_after_the_answer_does_not_lose_the_job():
    world = World()

    def fail(name, when):
        if world.sent and when == "before":
            raise OperatorError("503")

    found, _ = submit(Process(world, fail))
    assert found.name == "job-1"


def test_a_look_that_fails_is_not_an_absence():
    world = World()

    def fail(name, when):
        if name == "find":
            raise OperatorError("503")

    with pytest.raises(OperatorError):
        submit(Process(world, fail))
    assert world.sent == 0


def test_a_lost_answer_to_our_own_write_is_recognised():
    world = World()

    def lose(name, when):
        if name.startswith("write") and when == "after" and name not in lost:
            lost.add(name)
            raise PreconditionFailedError  # the client repeats a write whose answer it lost

    lost = set()
    submit(Process(world, lose))
    assert (world.sent, world.stored.record.state, world.time) == (1, IntentState.DONE, 1000.0)
    assert len(lost) == 3


def calls_of_an_undisturbed_run(lag=0):
    made = []
    submit(Process(World(list_lag=lag), lambda name, when: made.append((name, when))))
    return made


@pytest.mark.parametrize(
    ("lag", "point"),
    [(lag, point) for lag in (0, 30) for point in range(len(calls_of_an_undisturbed_run(lag)))],
)
def test_killed_at_any_point_the_next_run_ends_with_one_job(point, lag):
    world = World(list_lag=lag)
    counter = itertools.count()

    def kill(name, when):
        if next(counter) == point:
            raise Killed

    with pytest.raises(Killed):
        submit(Process(world, kill))
    found, _ = submit(Process(world))
    assert world.sent == 1
    assert found.name == "job-1"
    assert world.stored.record.job_name == "job-1"


@pytest.mark.parametrize("point", range(len(calls_of_an_undisturbed_run())))
def test_a_whole_other_run_in_between_any_two_steps_leaves_one_job(point):
    world = World()
    counter = itertools.count()
    names = []

    def interrupt(name, when):
        if next(counter) == point:
            names.append(submit(Process(world))[0].name)

    try:
        names.append(submit(Process(world, interrupt))[0].name)
    except NotSubmittedError:  # the other one had to wait, and took the submission over meanwhile
        names.append(submit(Process(world))[0].name)
    assert [j.name for j in world.live()] == [names[0]]
    assert names[0] == names[1]


def test_a_record_names_no_job_before_vertex_ai_has_one():
    world, named = World(), []

    def note(name, when):
        if world.stored is not None:
            named.append((world.stored.record.state, world.stored.record.job_name))

    with pytest.raises(NotSubmittedError):
        submit(Process(world, note, answer=NotSubmittedError("no"), lands=False))
    states = (IntentState.INTENT, IntentState.SENDING, IntentState.RELEASED)
    assert set(named) == {(state, "") for state in states}


def test_a_run_after_a_kill_waits_for_the_lease_of_120_seconds_and_35_more():
    world = killed_after("write SENDING")
    submit(Process(world))
    assert (world.sent, world.time) == (1, 1000 + 120 + 35)


def test_a_lost_answer_is_looked_for_during_90_seconds():
    world = World()
    with pytest.raises(InDoubtError):
        submit(Process(world, answer=InDoubtError("?"), lands=False))
    assert world.time == 1000 + 90
