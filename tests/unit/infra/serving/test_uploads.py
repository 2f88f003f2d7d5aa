"""One request makes one model version, whatever process dies in between."""

from dataclasses import replace

import pytest

from tests.unit.infra.customjob.fakes import Killed
from tests.unit.infra.serving.fakes import MODEL, Process, World, lost, request
from vertex_training.customjob.protocol.ports import STACK_LABEL, IntentState
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


def test_a_version_is_uploaded_and_recorded():
    world = World()
    assert up(world) == f"{MODEL}@1"
    assert world.records["id1"].record.state is IntentState.DONE
    assert world.records["id1"].record.job_name == f"{MODEL}@1"


def test_the_same_request_adopts_it_and_another_run_makes_one_more():
    world = World()
    assert up(world) == up(world) == f"{MODEL}@1"
    assert up(world, request("id2", run=4)) == f"{MODEL}@2"
    assert world.uploads == 2


def test_an_upload_that_outlives_its_lease_is_waited_for():
    world = World(duration=1200)

    def die(name, when):
        if (name, when) == ("upload", "after"):
            raise Killed

    with pytest.raises(Killed):
        up(world, on_call=die)
    world.time += 400  # the lease is long over
    assert up(world) == f"{MODEL}@1"
    assert world.uploads == 1


def test_a_lost_answer_is_settled_by_looking():
    world = World()
    assert up(world, lose=lost("upload")) == f"{MODEL}@1"
    assert world.uploads == 1


def test_an_upload_that_fails_frees_the_record_and_is_told():
    world = World()
    process = Process(world)

    def refused(*_):
        return world.begin(MODEL, lambda: "no such image. Hint: push it.")

    process.upload = refused
    with pytest.raises(NotSubmittedError, match="run 3 of model 'titanic' was not uploaded: no "):
        upload(request(), process, process, wait=process.wait())
    assert world.records["id1"].record.state is IntentState.RELEASED
    assert up(world) == f"{MODEL}@1"


def test_an_upload_that_fails_for_a_missing_right_is_told_as_that():
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


def test_a_model_is_ours_where_any_version_of_it_is():
    own = VersionSnapshot(f"{MODEL}@2", 2, request().labels)
    other = VersionSnapshot(f"{MODEL}@1", 1, {STACK_LABEL: "prod"})
    world = World(versions={each.name: each for each in (other, own)})
    assert foreign_model(request(), Process(world)) == ""


@pytest.mark.parametrize(
    ("labels", "owner"),
    [
        ({}, "somebody outside of this program"),
        ({"vt-program": "b_dev"}, "somebody outside of this program"),
        ({STACK_LABEL: "prod"}, "stack 'prod'"),
        ({STACK_LABEL: "prod", "vt-program": "b_dev"}, "stack 'prod' of program 'b_dev'"),
    ],
)
def test_a_model_of_others_is_told_with_whose_it_is(labels, owner):
    name = f"{MODEL}@1"
    world = World(versions={name: VersionSnapshot(name, 1, labels)})
    assert foreign_model(request(), Process(world)) == (
        f"model 'titanic': {MODEL} is there and belongs to {owner}. Nothing was uploaded. Give the "
        "model another key in the stack file."
    )


def test_an_error_while_others_are_deleted_is_none_of_the_version():
    world = World()
    up(world)
    twin = replace(world.versions[f"{MODEL}@1"], name=f"{MODEL}@2", created=2)
    world.versions[twin.name] = twin

    def refuse(name, when):
        if name == "delete version":
            raise NotSubmittedError("no")

    assert up(world, on_call=refuse) == f"{MODEL}@1"


def test_a_version_that_somebody_deleted_is_made_anew():
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


def test_a_version_that_others_have_under_the_recorded_number_is_not_ours_and_ours_is_made_anew():
    world = World()
    up(world)
    del world.versions[f"{MODEL}@1"]  # somebody deleted the model, and another run came first
    up(world, request("id2", run=4))
    assert world.versions.keys() == {f"{MODEL}@1"}
    world.aliases.pop(f"{MODEL}@r-id1")
    assert up(world) == f"{MODEL}@2"


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
