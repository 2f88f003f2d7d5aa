from dataclasses import replace

import pytest

from tests.unit.infra.customjob.fakes import REQUEST, Process, World, job
from vertex_training.customjob.protocol import submission, waiting
from vertex_training.customjob.protocol.ports import IntentRecord, IntentState, StoredIntent
from vertex_training.errors import JobRefusedError, OperatorError


def world_with(*jobs):
    return World(jobs={j.name: j for j in jobs})


def submit(process):
    return submission.submit(REQUEST, process, process, environment=process.environment())


def test_withdrawing_cancels_waits_keeps_the_record_and_is_repeatable():
    world = world_with(job("a", "RUNNING"))
    for _ in range(2):
        waiting.withdraw(Process(world), "a", delete_record=False, sleep=lambda _: None)
    assert world.jobs["a"].state == "JOB_STATE_CANCELLED"


def test_withdrawing_an_ended_or_missing_job_is_fine():
    world = world_with(job("a", "SUCCEEDED"))
    waiting.withdraw(Process(world), "a", delete_record=True)
    waiting.withdraw(Process(world), "a", delete_record=True)
    assert world.jobs == {}


def test_a_job_that_does_not_end_is_an_error_within_a_bound():
    class Stubborn(Process):
        def cancel(self, name):
            pass

    with pytest.raises(OperatorError, match="still RUNNING 120 s after"):
        waiting.withdraw(
            Stubborn(world_with(job("a", "RUNNING"))),
            "a",
            delete_record=False,
            sleep=lambda _: None,
        )


def test_a_withdrawn_job_frees_its_record_once():
    world = World()
    submit(Process(world))
    waiting.release(Process(world), "id1", "job-1")
    generation = world.stored.generation
    waiting.release(Process(world), "id1", "job-1")
    assert (world.stored.record.state, world.stored.generation) == (
        IntentState.RELEASED,
        generation,
    )


def test_a_withdrawn_and_deleted_job_may_be_submitted_again():
    world = World()
    first, _ = submit(Process(world))
    waiting.withdraw(Process(world), first.name, delete_record=True)
    waiting.release(Process(world), "id1", first.name)
    second, adopted = submit(Process(world))
    assert (world.sent, adopted) == (2, False)
    assert second.name != first.name


def test_a_freed_record_still_names_its_job_which_a_list_that_lags_does_not_show():
    world = World(list_lag=3600.0)
    first, _ = submit(Process(world))
    waiting.withdraw(Process(world), first.name, delete_record=False, sleep=lambda _: None)
    waiting.release(Process(world), "id1", first.name)
    with pytest.raises(JobRefusedError, match=f"CANCELLED \\({first.name}\\)"):
        submit(Process(world))
    assert world.sent == 1


def test_a_record_that_names_another_job_by_now_is_left_alone():
    world = World()
    submit(Process(world))
    waiting.release(Process(world), "id1", "an-earlier-job")
    assert world.stored.record.state is IntentState.DONE


def test_only_a_finished_submission_is_freed():
    world = World()
    world.stored = StoredIntent(
        IntentRecord("id1", IntentState.SENDING, "other", "job-1"), 1, 1000.0
    )
    waiting.release(Process(world), "id1", "job-1")
    assert world.stored.record.state is IntentState.SENDING


def test_a_record_claimed_meanwhile_is_no_longer_ours_to_free():
    world = World()
    submit(Process(world))

    def claim(name, when):
        if (name, when) == ("write RELEASED", "before"):
            world.stored = replace(world.stored, generation=99)

    waiting.release(Process(world, claim), "id1", "job-1")
    assert world.stored.record.state is IntentState.DONE
