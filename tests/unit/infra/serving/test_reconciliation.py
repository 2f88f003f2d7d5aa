"""One endpoint is brought to what is declared, step by step, and no request meets a gap."""

import pytest

from tests.unit.infra.serving.fakes import (
    ENDPOINT,
    OWNER,
    Process,
    World,
    deployment,
    goal,
)
from vertex_training.errors import NotSubmittedError, OperatorError
from vertex_training.serving.protocol.reconciliation import Goal, reconcile

NOTHING = Goal("titanic", OWNER, {}, {})


def ids(*runs):
    return {deployment(run).id for run in runs}


def bring(world, wanted, **hooks):
    process = Process(world, **hooks)
    reconcile(ENDPOINT, wanted, process, process.wait())
    return process


def serving(shares):
    """A world that serves these runs with these shares."""
    world = World()
    bring(world, goal(shares))
    return world


def test_other_bounds_of_replicas_deploy_nothing():
    world = serving({3: 100})
    told = bring(world, goal({3: 100}, minimum=2, maximum=5)).said
    assert told == ["endpoint 'titanic': resizes run 3"]
    [there] = world.deployed.values()
    assert (there.minimum, there.maximum) == (2, 5)
    assert len(world.splits) == 1


def test_deployments_beside_a_failed_version_are_undone():
    world = serving({3: 100})
    world.unhealthy = ids(5)
    with pytest.raises(NotSubmittedError, match="run 5"):
        bring(world, goal({3: 50, 4: 30, 5: 20}))
    assert world.deployed.keys() == ids(3)


def test_a_refusal_after_the_split_has_moved_tells_the_split_that_serves():
    world = serving({3: 100})

    def refuse(name, when):
        if (name, when) == ("undeploy", "before"):
            raise NotSubmittedError("no")

    with pytest.raises(NotSubmittedError, match=r"undeploys .* refused: no. The split is {run 4: "):
        bring(world, goal({4: 100}), on_call=refuse)


def test_an_endpoint_that_is_gone_is_destroyed_already_and_cannot_be_brought_to_anything():
    world = World(is_gone=True)
    bring(world, NOTHING)
    with pytest.raises(OperatorError, match="pulumi refresh"):
        bring(world, goal({3: 100}))


def test_failed_undo_is_reported_beside_the_failed_deployment():
    world = serving({3: 100})
    world.unhealthy = ids(5)

    def refuse(name, when):
        if (name, when) == ("undeploy", "before"):
            raise NotSubmittedError("busy")

    process = Process(world, on_call=refuse)
    with pytest.raises(NotSubmittedError, match="run 5"):
        reconcile(ENDPOINT, goal({3: 50, 4: 30, 5: 20}), process, process.wait())
    assert process.said[-1] == (
        f"endpoint 'titanic': deployed model {deployment(4).id} stays for now: busy"
    )


def test_a_step_that_comes_to_nothing_again_and_again_ends():
    world = serving({3: 100})

    def meddle(name, when):
        if (name, when) == ("split", "before"):
            world.etag += 1

    with pytest.raises(OperatorError, match="changed by others at the same time"):
        bring(world, goal({3: 90, 4: 10}), on_call=meddle)


def test_a_process_whose_engine_is_gone_takes_no_step():
    world, process = World(), None
    process = Process(world)
    process.alive = False
    with pytest.raises(OperatorError, match="engine is gone"):
        reconcile(ENDPOINT, goal({3: 100}), process, process.wait())
    assert not world.operations
