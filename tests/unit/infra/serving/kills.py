"""Runs of both protocols in which processes die, lose answers, or meet another one, at any call.

``choose(n)`` decides: hypothesis in ``test_protocols``, a seeded generator for mutants. A scenario
raises ``AssertionError`` where a promise is broken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.infra.customjob.fakes import Killed
from tests.unit.infra.serving.fakes import (
    ENDPOINT,
    MODEL,
    OWNER,
    Process,
    World,
    deployment,
    goal,
    request,
    with_others,
)
from vertex_training.customjob.protocol.ports import REQUEST_ID_LABEL
from vertex_training.errors import InDoubtError, OperatorError
from vertex_training.serving.reconciliation import Goal

#: How many processes at most die or are refused before one is let through.
PROCESSES = 6
#: How many answers one process loses at most; it has to get along with that.
LOST = 2
#: One call in so many is disturbed.
RARELY = 8
GOALS = ({3: 100}, {3: 90, 4: 10}, {3: 0, 4: 100}, {4: 100}, {4: 50, 5: 50})

Choose = Callable[[int], int]
Work = Callable[[Process], Any]


class Disturbance:
    """What happens at the calls of one process: it dies, or another one runs first."""

    def __init__(self, choose: Choose, other: Callable[[], None] | None) -> None:
        self.choose, self.other = choose, other
        self.lost = 0

    def on_call(self, name: str, when: str) -> None:
        if self.choose(RARELY):
            return
        if self.other is not None and self.choose(2):
            other, self.other = self.other, None
            other()
        else:
            raise Killed

    def lose(self, name: str) -> None:
        if self.lost < LOST and not self.choose(RARELY):
            self.lost += 1
            raise InDoubtError("UNAVAILABLE: the answer was lost")


def attempt(
    world: World,
    work: Work,
    choose: Choose,
    other: Callable[[], None] | None,
    *,
    may_refuse: bool = False,
) -> bool:
    """One process; whether it came to an end that it calls good.

    It may be refused if it met somebody who wants something else, or a container that fails.
    """
    disturbed = Disturbance(choose, other)
    process = Process(world, disturbed.on_call, disturbed.lose)
    refused = None
    try:
        work(process)
    except Killed:
        return False
    except OperatorError as error:
        refused = error
    assert refused is None or may_refuse or world.unhealthy, refused
    return refused is None


def through(world: World, work: Work) -> None:
    """The same without a disturbance: this one has to succeed."""
    work(Process(world))


def uploads(upload: Callable[..., str], choose: Choose) -> None:
    """One request, one version, and no version of it is ever lost or taken for another's."""
    world = World(duration=(5.0, 60.0, 700.0)[choose(3)])

    def work(process: Process, wanted: Any = None) -> None:
        wait = process.wait()
        name = upload(wanted or request(), process, process, wait=wait)
        assert name in world.versions, "it names a version that is not there"

    def other() -> None:
        attempt(world, work, choose, None)

    for _ in range(PROCESSES):
        if attempt(world, work, choose, other):
            break
        world.time += (0.0, 30.0, 500.0)[choose(3)]
        world.carry_out()
    through(world, work)
    through(world, lambda process: work(process, request("id2", run=4)))
    world.time += 10_000
    world.carry_out()
    found = [each.labels[REQUEST_ID_LABEL] for each in world.versions.values()]
    assert sorted(found) == ["id1", "id2"], found
    assert world.aliases[f"{MODEL}@r-id1"] in world.versions


def endpoints(reconcile: Callable[..., Any], choose: Choose) -> None:
    """Any way from one declared state to another keeps every promise that is made of a split."""
    world = World(duration=(5.0, 60.0, 700.0)[choose(3)])
    with_others(world, "7")
    told: list[Goal] = []

    def bring(wanted: Goal) -> Work:
        return lambda process: reconcile(ENDPOINT, wanted, process, process.wait())

    def pick() -> Goal:
        told.append(goal(GOALS[choose(len(GOALS))]))
        return told[-1]

    for _ in range(2):
        wanted = pick()
        rival = pick() if choose(2) else wanted
        world.unhealthy = {deployment(5).id} if choose(3) == 0 else set()
        differs = rival.split != wanted.split

        def other(rival: Goal = rival, *, differs: bool = differs) -> None:
            attempt(world, bring(rival), choose, None, may_refuse=differs)

        for _ in range(PROCESSES):
            if attempt(world, bring(wanted), choose, other, may_refuse=differs):
                break
            _check(world)
            world.time += (0.0, 30.0, 900.0)[choose(3)]
            world.carry_out()
        _check(world)
        world.unhealthy = set()
        through(world, bring(wanted))
        _reached(world, wanted)
    world.deployed.pop("7")
    through(world, bring(Goal("titanic", OWNER, {}, {})))
    assert not world.deployed
    assert not world.split


def _check(world: World) -> None:
    """What a watcher may see at any time; ``World.write_split`` checks every split."""
    assert "7" in world.deployed, "what others deployed was removed"
    assert not world.split.get("7"), "traffic went to what others deployed"
    if world.splits:
        assert sum(world.split.values()) == 100


def _reached(world: World, wanted: Goal) -> None:
    _check(world)
    assert world.split == wanted.split_by_id
    assert world.deployed.keys() == {*wanted.by_id, "7"}
