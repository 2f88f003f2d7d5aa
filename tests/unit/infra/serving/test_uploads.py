"""One request makes one model version, whatever process dies in between."""

from dataclasses import replace

import pytest

from tests.unit.infra.serving.fakes import MODEL, Process, World, request
from vertex_training.customjob.protocol.ports import STACK_LABEL
from vertex_training.errors import (
    InDoubtError,
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
)
from vertex_training.serving.protocol.ports import VersionSnapshot
from vertex_training.serving.protocol.uploads import foreign_model, upload


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
    [({STACK_LABEL: "prod"}, "stack 'prod'"), ({}, "somebody outside of this program")],
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
    with pytest.raises(JobRefusedError, match="Remove its alias r-id1"):
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
