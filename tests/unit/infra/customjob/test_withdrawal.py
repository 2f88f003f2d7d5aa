import pytest

from infra.customjob import submission, withdrawal
from infra.customjob.ports import OperatorError, State
from tests.unit.infra.customjob.fakes import REQUEST, Process, World, job


def world_with(*jobs):
    return World(jobs={j.name: j for j in jobs})


def submit(process):
    return submission.submit(REQUEST, process, process, around=process.around())


def test_withdrawing_cancels_waits_keeps_the_record_and_is_repeatable():
    world = world_with(job("a", "RUNNING"))
    for _ in range(2):
        withdrawal.withdraw(Process(world), "a", delete_record=False)
    assert world.jobs["a"].state == "JOB_STATE_CANCELLED"


def test_withdrawing_an_ended_or_missing_job_is_fine():
    world = world_with(job("a", "SUCCEEDED"))
    withdrawal.withdraw(Process(world), "a", delete_record=True)
    withdrawal.withdraw(Process(world), "a", delete_record=True)
    assert world.jobs == {}


def test_a_job_that_does_not_end_is_an_error_within_a_bound():
    class Stubborn(Process):
        def cancel(self, name):
            pass

    with pytest.raises(OperatorError, match="still RUNNING after 120 s"):
        withdrawal.withdraw(
            Stubborn(world_with(job("a", "RUNNING"))),
            "a",
            delete_record=False,
            sleep=lambda _: None,
        )


def test_a_withdrawn_job_frees_its_record_once():
    world = World()
    submit(Process(world))
    withdrawal.release(Process(world), "id1")
    generation = world.stored.generation
    withdrawal.release(Process(world), "id1")
    assert (world.stored.record.state, world.stored.generation) == (State.RELEASED, generation)


def test_a_withdrawn_and_deleted_job_may_be_submitted_again():
    world = World()
    first, _ = submit(Process(world))
    withdrawal.withdraw(Process(world), first.name, delete_record=True)
    withdrawal.release(Process(world), "id1")
    second, adopted = submit(Process(world))
    assert (world.sent, adopted) == (2, False)
    assert second.name != first.name
