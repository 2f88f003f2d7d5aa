"""How long an operation is waited for, how often it is asked for, and who hears of it."""

import pytest

from tests.unit.infra.serving.fakes import Process, World
from vertex_training.customjob.protocol.waiting import PollBackoff
from vertex_training.errors import OperatorError
from vertex_training.serving.protocol.operations import (
    OperationWait,
    wait_for_operation,
    wait_until_idle,
)


def begun(duration):
    """A process that keeps its pauses, how it waits, and an operation of so many seconds."""
    world = World(duration=duration)
    process, pauses = Process(world), []
    sleep = process.sleep

    def paused(seconds):
        pauses.append(seconds)
        sleep(seconds)

    process.sleep = paused
    backoff = PollBackoff(initial=2, maximum=9, heartbeat=20)
    wait = OperationWait(process.environment(), backoff, longest=100, report=process.said.append)
    return process, pauses, wait, world.begin("model", lambda: "no")


def test_an_operation_is_asked_for_ever_less_often_and_told_after_a_silence():
    process, pauses, wait, name = begun(60)
    ended = wait_for_operation(process, name, "it", wait)
    assert (ended.done, ended.error) == (True, "no")
    assert pauses == [2, 3, 4.5, 6.75, 9, 9, 9, 9, 9]
    assert process.said == ["it: not done after 25s", "it: not done after 52s"]


def test_an_operation_that_takes_too_long_is_left_and_named():
    process, pauses, wait, name = begun(1000)
    with pytest.raises(OperatorError) as failed:
        wait_for_operation(process, name, "it", wait)
    assert str(failed.value) == (
        "it: the operation has not ended after 1m 46s, and goes on: model/operations/1. "
        "Run `pulumi up` again to wait for it."
    )
    assert sum(pauses) == 106.25


def test_all_that_runs_is_told_and_waited_for():
    process, _, wait, name = begun(10)
    other = process.world.begin("model", lambda: "")
    wait_until_idle(process, "model", "it", wait)
    assert process.running("model") == []
    told = [f"it: waits for an operation that runs already, {each}" for each in (name, other)]
    assert process.said == told
