"""One request makes one model version, whatever process dies in between."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.infra.serving import kills
from tests.unit.infra.serving.fakes import (
    ENDPOINT,
    MODEL,
    OWNER,
    Process,
    World,
    deployment,
    goal,
    request,
)
from vertex_training.customjob.protocol.ports import STACK_LABEL
from vertex_training.errors import (
    InDoubtError,
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
)
from vertex_training.serving import reconciliation, uploads
from vertex_training.serving.ports import VersionSnapshot
from vertex_training.serving.reconciliation import Goal, reconcile
from vertex_training.serving.uploads import foreign_model, upload


def up(world, wanted=None, **hooks):
    process = Process(world, **hooks)
    return upload(wanted or request(), process, process, wait=process.wait())


def test_upload_without_a_permission_is_reported_as_such():
    world = World()
    process = Process(world)
    process.upload = lambda *_: world.begin(MODEL, lambda: "denied")
    look = process.operation
    process.operation = lambda name: replace(look(name), is_permission=True)
    with pytest.raises(PermissionDeniedError, match="was not uploaded: denied"):
        upload(request(), process, process, wait=process.wait())


def test_an_upload_that_ended_and_left_no_version_is_in_doubt():
    world = World()
    process = Process(world)
    process.upload = lambda *_: world.begin(MODEL, lambda: "")
    with pytest.raises(InDoubtError):
        upload(request(), process, process, wait=process.wait())


def test_an_error_while_others_are_deleted_is_none_of_the_version():
    world = World()
    up(world)
    twin = replace(world.versions[f"{MODEL}@1"], name=f"{MODEL}@2", created=2)
    world.versions[twin.name] = twin

    def refuse(name, when):
        if name == "delete version":
            raise NotSubmittedError("no")

    assert up(world, on_call=refuse) == f"{MODEL}@1"


def test_deleted_version_is_created_again():
    world = World()
    up(world)
    world.versions.clear()
    world.aliases.clear()
    assert up(world) == f"{MODEL}@1"
    assert world.uploads == 2


@pytest.mark.parametrize(
    ("labels", "owner"),
    [({STACK_LABEL: "prod"}, "stack 'prod'"), ({}, "no stack")],
)
def test_another_owners_model_of_the_same_name_is_refused(labels, owner):
    world = World(versions={f"{MODEL}@1": VersionSnapshot(f"{MODEL}@1", 1, labels)})
    with pytest.raises(JobRefusedError, match=owner):
        up(world)
    assert world.uploads == 0


@pytest.mark.parametrize(("theirs", "refused"), [("b_dev", True), ("a_dev", False), ("", False)])
def test_a_model_of_another_repositorys_stack_of_one_name_is_refused(theirs, refused):
    """One without the label is older than it, and ours."""
    wanted = request()
    found = {**wanted.labels, **({"vt-program": theirs} if theirs else {})}
    world = World(versions={f"{MODEL}@1": VersionSnapshot(f"{MODEL}@1", 1, found)})
    ours = replace(wanted, labels={**wanted.labels, "vt-program": "a_dev"})
    told = foreign_model(ours, Process(world))
    assert bool(told) is refused
    assert not refused or "'b_dev'" in told


def test_a_hand_made_version_with_our_alias_is_never_taken_for_ours():
    world = World()
    up(world, request("id0", run=2))
    world.versions["by hand"] = VersionSnapshot("by hand", 9, {})
    world.aliases[f"{MODEL}@r-id1"] = "by hand"
    with pytest.raises(JobRefusedError, match="remove its alias r-id1"):
        up(world)


def test_of_two_versions_of_one_request_the_earliest_stays():
    world = World()
    up(world)
    twin = replace(world.versions[f"{MODEL}@1"], name=f"{MODEL}@2", created=2)
    world.versions[twin.name] = twin
    assert up(world) == f"{MODEL}@1"
    assert list(world.versions) == [f"{MODEL}@1"]


def test_an_upload_without_an_end_is_in_doubt_and_nothing_is_sent_twice():
    world = World(duration=10**9)
    with pytest.raises(OperatorError, match="run 3 of model 'titanic'"):
        up(world)
    assert world.uploads == 1


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
    assert told == ["endpoint 'titanic': resizing run 3"]
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

    with pytest.raises(
        NotSubmittedError, match=r"undeploying .* refused: no. The traffic split is {run 4: "
    ):
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
        f"endpoint 'titanic': cannot undeploy the deployed model {deployment(4).id}: busy"
    )


def test_a_step_that_comes_to_nothing_again_and_again_ends():
    world = serving({3: 100})

    def meddle(name, when):
        if (name, when) == ("split", "before"):
            world.etag += 1

    with pytest.raises(OperatorError, match="other processes or users are changing"):
        bring(world, goal({3: 90, 4: 10}), on_call=meddle)


def test_a_process_whose_engine_is_gone_takes_no_step():
    world, process = World(), None
    process = Process(world)
    process.alive = False
    with pytest.raises(OperatorError, match="engine has exited"):
        reconcile(ENDPOINT, goal({3: 100}), process, process.wait())
    assert not world.operations


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_one_request_makes_one_version(data):
    kills.uploads(uploads.upload, lambda n: data.draw(st.integers(0, n - 1)))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_endpoint_reaches_its_declaration_and_the_split_sums_to_100(data):
    kills.endpoints(reconciliation.reconcile, lambda n: data.draw(st.integers(0, n - 1)))


def seeded(scenario, work, count=400):
    """Run a scenario by many seeds."""
    for seed in range(count):
        scenario(work, random.Random(seed).randrange)


def test_the_protocols_as_they_are_pass_the_same_seeds():
    seeded(kills.uploads, uploads.upload, 200)
    seeded(kills.endpoints, reconciliation.reconcile, 200)
