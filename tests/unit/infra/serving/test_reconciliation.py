"""One endpoint is brought to what is declared, step by step, and no request meets a gap."""

from dataclasses import replace

import pytest

from tests.unit.infra.customjob.fakes import Killed
from tests.unit.infra.serving.fakes import (
    ENDPOINT,
    OWNER,
    Process,
    World,
    deployment,
    goal,
    lost,
    with_others,
)
from vertex_training.errors import InDoubtError, NotSubmittedError, OperatorError
from vertex_training.serving.protocol.reconciliation import Goal, reconcile, run_of

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


def test_a_first_version_takes_traffic_once_it_is_deployed():
    world = serving({3: 100})
    assert world.deployed.keys() == ids(3)
    assert world.splits == [{deployment(3).id: 100}]


def test_a_canary_is_deployed_before_the_split_is_written_once():
    world = serving({3: 100})
    bring(world, goal({3: 90, 4: 10}))
    assert world.splits[1:] == [{deployment(3).id: 90, deployment(4).id: 10}]


def test_an_old_version_leaves_after_its_share_is_nothing():
    world = serving({3: 90, 4: 10})
    bring(world, goal({4: 100}))
    assert world.deployed.keys() == ids(4)
    assert world.splits[-1] == {deployment(4).id: 100}


def test_a_share_of_nothing_keeps_a_version_and_a_revert_deploys_nothing():
    world = serving({3: 100})
    bring(world, goal({3: 0, 4: 100}))
    operations = len(world.operations)
    bring(world, goal({3: 100, 4: 0}))
    assert len(world.operations) == operations
    assert world.splits[-1] == {deployment(3).id: 100}


def test_each_step_is_said_with_its_run_or_its_id():
    world = serving({3: 100})
    told = bring(world, goal({4: 100})).said
    assert [each for each in told if "not done" not in each] == [
        "endpoint 'titanic': deploys run 4",
        "endpoint 'titanic': sets the split to run 4: 100",
        f"endpoint 'titanic': undeploys deployed model {deployment(3).id}",
    ]


def test_what_is_as_declared_is_left_alone():
    world = serving({3: 90, 4: 10})
    before = len(world.operations), len(world.splits)
    bring(world, goal({3: 90, 4: 10}))
    assert (len(world.operations), len(world.splits)) == before


def test_other_bounds_of_replicas_deploy_nothing():
    world = serving({3: 100})
    told = bring(world, goal({3: 100}, minimum=2, maximum=5)).said
    assert told == ["endpoint 'titanic': resizes run 3"]
    [there] = world.deployed.values()
    assert (there.minimum, there.maximum) == (2, 5)
    assert len(world.splits) == 1


def test_a_version_that_never_gets_healthy_leaves_the_split_and_ends_in_one_line():
    world = serving({3: 100})
    world.unhealthy = ids(4)
    with pytest.raises(NotSubmittedError) as failed:
        bring(world, goal({3: 50, 4: 50}))
    assert str(failed.value) == (
        "endpoint 'titanic': run 4 (titanic-dev@4) was not deployed: Model server exited "
        "unexpectedly: exit code 1. The split stays {run 3: 100}. Mend the container or the model, "
        "or take the run out of the split, then run `pulumi up` again."
    )
    assert world.deployed.keys() == ids(3)
    assert world.splits == [{deployment(3).id: 100}]


def test_where_nothing_serves_yet_a_failure_speaks_of_no_split():
    world = World()
    world.unhealthy = ids(3)
    with pytest.raises(NotSubmittedError) as failed:
        bring(world, goal({3: 100}))
    assert "code 1. Nothing serves there yet. Mend the container" in str(failed.value)


def test_a_refusal_of_the_service_is_told_and_not_tried_again():
    world, calls = serving({3: 100}), []

    def refuse(name, when):
        if name == "deploy" and when == "before":
            calls.append(name)
            raise NotSubmittedError("RESOURCE_EXHAUSTED: no quota")

    with pytest.raises(
        NotSubmittedError, match=r"run 4 .* RESOURCE_EXHAUSTED: no quota\. The split"
    ):
        bring(world, goal({3: 90, 4: 10}), on_call=refuse)
    assert calls == ["deploy"]
    assert world.deployed.keys() == ids(3)


def test_a_refused_split_is_told_as_such_and_nothing_is_taken_back():
    world = serving({3: 100})

    def refuse(name, when):
        if name == "split" and when == "before":
            raise NotSubmittedError("INVALID_ARGUMENT: no")

    with pytest.raises(NotSubmittedError) as failed:
        bring(world, goal({3: 90, 4: 10}), on_call=refuse)
    assert str(failed.value) == (
        "endpoint 'titanic': it sets the split to run 3: 90, run 4: 10, and that was refused: "
        "INVALID_ARGUMENT: no. The split is {run 3: 100}. The next `pulumi up` goes on from there, "
        "or back, if the stack file was put back."
    )
    assert world.deployed.keys() == ids(3, 4)


def test_a_rival_without_an_end_is_blamed_after_a_few_tries():
    world, calls = serving({3: 100}), []

    def undo(name, when):
        if name == "split" and when == "before":
            calls.append(name)
            world.etag += 1  # somebody has written the endpoint

    with pytest.raises(OperatorError, match="changed by others at the same time"):
        bring(world, goal({3: 90, 4: 10}), on_call=undo)
    assert len(calls) == 4


def test_what_the_endpoint_has_in_the_end_is_returned():
    process = Process(World())
    found = reconcile(ENDPOINT, goal({3: 100}), process, process.wait())
    assert found is not None
    assert (found.deployed.keys(), found.split) == (ids(3), {deployment(3).id: 100})


def test_what_was_deployed_beside_a_version_that_failed_is_taken_back():
    world = serving({3: 100})
    world.unhealthy = ids(5)
    with pytest.raises(NotSubmittedError, match="run 5"):
        bring(world, goal({3: 50, 4: 30, 5: 20}))
    assert world.deployed.keys() == ids(3)


def test_a_version_deployed_before_is_not_taken_back():
    world = serving({3: 100, 4: 0})
    world.unhealthy = ids(5)
    with pytest.raises(NotSubmittedError, match="run 5"):
        bring(world, goal({3: 50, 4: 30, 5: 20}))
    assert world.deployed.keys() == ids(3, 4)


def test_what_others_deployed_stays_without_traffic_and_is_told_in_one_line():
    world = serving({3: 100})
    with_others(world, "7")
    world.write_split({"7": 50, deployment(3).id: 50})
    process = bring(world, goal({3: 100}))
    assert "7" in world.deployed
    assert world.splits[-1] == {deployment(3).id: 100}
    assert [line for line in process.said if "not the stack's" in line] == [
        "endpoint 'titanic': deployed model 7 is not the stack's; it stays, without traffic"
    ]


def test_a_copy_of_a_name_makes_nothing_the_stacks():
    world = serving({3: 100})
    with_others(world, "7", owner=deployment(5).display_name)
    bring(world, goal({3: 100}))
    assert "7" in world.deployed


def test_a_refusal_after_the_split_has_moved_tells_the_split_that_serves():
    world = serving({3: 100})

    def refuse(name, when):
        if (name, when) == ("undeploy", "before"):
            raise NotSubmittedError("no")

    with pytest.raises(NotSubmittedError, match=r"undeploys .* refused: no. The split is {run 4: "):
        bring(world, goal({4: 100}), on_call=refuse)


def test_an_id_that_others_have_taken_is_refused_before_any_step():
    world = serving({3: 100})
    with_others(world, deployment(4).id)
    before = len(world.operations)
    with pytest.raises(NotSubmittedError, match=r"not the stack's: 1000000004\. Nothing was"):
        bring(world, goal({3: 50, 4: 50}))
    assert len(world.operations) == before


def test_a_destroy_takes_the_traffic_away_and_leaves_nothing():
    world = serving({3: 60, 4: 40})
    first, second = (deployment(run).id for run in (3, 4))
    assert bring(world, NOTHING).said == [
        f"endpoint 'titanic': sets the split to {first}: 100",
        f"endpoint 'titanic': undeploys deployed model {second}",
        f"endpoint 'titanic': undeploys deployed model {first}",
    ]
    assert (world.deployed, world.split) == ({}, {})
    assert world.splits[1:] == [{deployment(3).id: 100}, {}]


def test_a_destroy_is_refused_whole_where_others_deployed_something():
    world = serving({3: 100})
    with_others(world, "7")
    with pytest.raises(NotSubmittedError, match="gcloud ai endpoints undeploy-model 123456789"):
        bring(world, NOTHING)
    assert world.split == {deployment(3).id: 100}


def test_an_endpoint_that_is_gone_is_destroyed_already_and_cannot_be_brought_to_anything():
    world = World(is_gone=True)
    bring(world, NOTHING)
    with pytest.raises(OperatorError, match="pulumi refresh"):
        bring(world, goal({3: 100}))


def test_of_versions_with_equal_shares_the_latest_leaves_last():
    world = serving({3: 50, 4: 50})
    bring(world, NOTHING)
    assert world.splits[1:] == [{deployment(4).id: 100}, {}]


@pytest.mark.parametrize(("number", "run"), [("3", 3), ("x", 0), ("٣", 0), ("-3", 0)])
def test_a_run_is_read_from_a_display_name_that_anybody_may_write(number, run):
    assert run_of(replace(deployment(3), display_name=f"{OWNER}run {number} 7")) == run


def test_a_refusal_tells_the_shares_of_others_by_their_ids():
    world = serving({3: 100})
    with_others(world, "7")
    world.write_split({"7": 40, deployment(3).id: 60})

    def refuse(name, when):
        if (name, when) == ("split", "before"):
            raise NotSubmittedError("no.")

    with pytest.raises(NotSubmittedError, match=r"refused: no\. The split is {run 3: 60, 7: 40}\."):
        bring(world, goal({3: 100}), on_call=refuse)


def test_what_cannot_be_taken_back_is_told_and_the_failure_is_still_that_of_the_deployment():
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


def test_a_call_that_came_to_nothing_is_repeated_once_it_cannot_take_effect_any_more():
    world, began = serving({3: 90, 4: 10}), []

    def lose(name, when):
        if (name, when) == ("split", "before"):
            began.append(world.time)
            if len(began) == 1:
                raise InDoubtError("UNAVAILABLE")

    bring(world, goal({3: 50, 4: 50}), on_call=lose)
    assert world.splits[-1] == {deployment(3).id: 50, deployment(4).id: 50}
    assert began[1] - began[0] == 90  # OperationWait.doubt


@pytest.mark.parametrize("ending", ["", "refused"])
def test_a_step_that_another_process_took_meanwhile_is_no_failure(ending):
    world = serving({3: 100})

    def overtaken(name, when):
        if name == "deploy" and when == ("before" if ending else "after"):
            world.deployed[deployment(4).id] = deployment(4)
            if ending:
                raise NotSubmittedError("the id is in use")
            world.operations[-1].act = lambda: "the id is in use"

    bring(world, goal({3: 90, 4: 10}), on_call=overtaken)
    assert world.splits[-1] == {deployment(3).id: 90, deployment(4).id: 10}


@pytest.mark.parametrize("call", ["deploy", "split", "undeploy"])
def test_a_lost_answer_is_settled_by_looking(call):
    world = serving({3: 100})
    bring(world, goal({4: 100}), lose=lost(call))
    assert world.deployed.keys() == ids(4)
    assert world.splits[-1] == {deployment(4).id: 100}


def test_a_deployment_whose_process_died_is_waited_for_and_not_repeated():
    world = serving({3: 100})
    world.duration = 900

    def die(name, when):
        if (name, when) == ("deploy", "after"):
            raise Killed

    with pytest.raises(Killed):
        bring(world, goal({3: 90, 4: 10}), on_call=die)
    process = bring(world, goal({3: 90, 4: 10}))
    assert [line for line in process.said if "an operation that runs already" in line]
    assert len(world.operations) == 2


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


def test_an_operation_without_an_end_is_named_and_left():
    world = serving({3: 100})
    world.duration = 10**9
    with pytest.raises(OperatorError, match="has not ended after 2h"):
        bring(world, goal({4: 100}))
    assert world.splits == [{deployment(3).id: 100}]
