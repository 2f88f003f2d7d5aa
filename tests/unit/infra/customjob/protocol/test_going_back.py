"""A request that is asked for again after another one had its turn, by whole submissions."""

import pytest

from tests.unit.infra.customjob.fakes import EDITED, REQUEST, Killed, Process, World, job
from vertex_training.customjob.protocol import submission, waiting
from vertex_training.customjob.protocol.ports import IntentState, Timing
from vertex_training.errors import InDoubtError, JobRefusedError, NotSubmittedError

TIMING = Timing()
ENDED = ["CANCELLED", "FAILED", "EXPIRED"]


def submit(process, request=REQUEST):
    return submission.submit(request, process, process, TIMING, process.environment())


def end(world, name, state="CANCELLED"):
    """The job ends, without a trace in its record."""
    world.jobs[name] = job(name, state, turn=world.jobs[name].turn)


def withdraw(world, name, request, state="CANCELLED"):
    """What the provider's ``delete`` does before a replacement."""
    end(world, name, state)
    waiting.release(Process(world), request.request_id, name)


def edited_after(state="CANCELLED", lag=0.0):
    """A world in which the job was submitted, edited, and is about to be put back."""
    world = World(list_lag=lag)
    first, _ = submit(Process(world))
    withdraw(world, first.name, REQUEST, state)
    second, _ = submit(Process(world), EDITED)
    withdraw(world, second.name, EDITED)
    world.time += 100  # lists show both
    return world


@pytest.mark.parametrize("lag", [0, 30])
@pytest.mark.parametrize("state", ENDED)
def test_a_job_put_back_after_an_edit_is_submitted_once_more(state, lag):
    world = edited_after(state, lag)
    found, adopted = submit(Process(world))
    assert (world.sent, adopted, found.name, found.turn) == (3, False, "job-3", 3)
    assert world.turns["r/titanic"].number == 3


def test_put_back_twice_it_is_submitted_each_time_and_the_edit_as_well():
    world = edited_after()
    found, _ = submit(Process(world))
    withdraw(world, found.name, REQUEST)
    found, _ = submit(Process(world), EDITED)
    withdraw(world, found.name, EDITED)
    found, adopted = submit(Process(world))
    assert (world.sent, adopted, found.turn) == (5, False, 5)


def test_a_second_process_adopts_what_was_submitted_once_more():
    world = edited_after()
    found, _ = submit(Process(world))
    again, adopted = submit(Process(world))
    assert (world.sent, adopted, again.name) == (3, True, found.name)


@pytest.mark.parametrize("state", ENDED)
def test_in_its_own_turn_a_job_that_ended_is_still_refused(state):
    world = edited_after()
    found, _ = submit(Process(world))
    end(world, found.name, state)
    with pytest.raises(JobRefusedError, match=rf"run 3 of job 'titanic' is {state} \(job-3\)"):
        submit(Process(world))
    waiting.release(Process(world), "id1", found.name)
    with pytest.raises(JobRefusedError, match=r"job-3"):
        submit(Process(world))
    assert world.sent == 3


@pytest.mark.parametrize("lag", [0, 30])
def test_a_job_that_succeeded_is_adopted_and_not_repeated(lag):
    world = edited_after("SUCCEEDED", lag)
    found, adopted = submit(Process(world))
    assert (world.sent, adopted, found.name) == (2, True, "job-1")


def test_a_job_whose_record_vertex_deleted_since_is_submitted_once_more():
    world = World()
    submit(Process(world))
    end(world, "job-1")
    submit(Process(world), EDITED)
    end(world, "job-2")
    del world.jobs["job-1"]
    assert world.stored.record.state is IntentState.DONE
    found, adopted = submit(Process(world))
    assert (world.sent, adopted, found.turn) == (3, False, 3)


def test_deleted_in_its_own_turn_it_is_still_refused():
    world = edited_after()
    found, _ = submit(Process(world))
    del world.jobs[found.name]
    with pytest.raises(JobRefusedError, match=r"job-3\) was deleted"):
        submit(Process(world))
    assert world.sent == 3


def test_the_edit_that_goes_on_is_not_joined_by_the_job_put_back():
    world = World()
    submit(Process(world))
    end(world, "job-1")
    submit(Process(world), EDITED)
    with pytest.raises(JobRefusedError, match="job-2 is PENDING"):
        submit(Process(world))
    assert world.sent == 2


def test_records_of_the_first_versions_have_no_number_and_are_put_back_as_well():
    world = edited_after()
    world.jobs = {name: job(name, "CANCELLED") for name in world.jobs}
    turn = world.turns["r/titanic"]
    world.turns["r/titanic"] = type(turn)(turn.request_id, turn.generation)
    found, _ = submit(Process(world))
    assert (world.sent, found.turn) == (3, 2)


def calls_of_a_submission(lag=0):
    """Every call that a job put back takes, as (name, when)."""
    made = []
    submit(Process(edited_after(lag=lag), lambda *call: made.append(call)))
    return made


@pytest.mark.parametrize("lag", [0, 30])
def test_killed_at_any_call_the_next_run_submits_it_exactly_once(lag):
    for moment in range(len(calls_of_a_submission(lag))):
        world, made = edited_after(lag=lag), []

        def kill(*call, made=made, moment=moment):
            made.append(call)
            if len(made) == moment + 1:
                raise Killed

        with pytest.raises(Killed):
            submit(Process(world, kill))
        found, _ = submit(Process(world))
        assert (world.sent, found.name, found.turn) == (3, "job-3", 3), moment


@pytest.mark.parametrize("lands", [True, False])
def test_a_lost_answer_is_settled_by_looking_for_the_new_job_alone(lands):
    world = edited_after(lag=20)
    process = Process(world, answer=InDoubtError("?"), lands=lands)
    if lands:
        found, adopted = submit(process)
        assert (world.sent, adopted, found.name) == (3, True, "job-3")
        return
    with pytest.raises(InDoubtError, match="Nothing was sent twice"):
        submit(process)
    found, _ = submit(Process(world))
    assert (world.sent, found.turn) == (3, 3)


def test_two_runs_that_put_it_back_at_once_submit_it_once():
    for moment, call in enumerate(calls_of_a_submission()):
        if call == ("create", "before"):
            continue  # a request that takes longer than its deadline is no request
        world, made, other = edited_after(), [], []

        def let_the_other_in(*call, world=world, made=made, other=other, moment=moment):
            made.append(call)
            if len(made) == moment + 1:
                other.append(submit(Process(world)))

        try:
            found, _ = submit(Process(world, let_the_other_in))
        except NotSubmittedError:  # held up: the other one waited out its lease and took over
            found, _ = submit(Process(world))
        assert world.sent == 3, moment
        assert {found.name, other[0][0].name} == {"job-3"}, moment
