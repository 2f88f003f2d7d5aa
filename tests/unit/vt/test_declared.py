"""What a program registers, recorded without an engine."""

from __future__ import annotations

from pathlib import Path

import pulumi
import pulumi_gcp as gcp
import pytest

from tests.fixture_project import copy_project
from vertex_training.catalog.resource_types import JOB
from vertex_training.errors import CommandError, ConfigError
from vertex_training_cli.declared import (
    DeclaredResource,
    World,
    declare_stack,
    record_resources,
)

ACCOUNT = "gcp:serviceaccount/account:Account"
ROLE = "gcp:projects/iAMCustomRole:IAMCustomRole"
BUCKET = "gcp:storage/bucket:Bucket"


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "Pulumi.yaml").write_text("name: search\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {search:limit: 3}\n")
    return World(tmp_path, "dev", "acme-ml")


def seen(world: World, *properties: str) -> tuple[list[DeclaredResource], dict[str, object]]:
    """What is recorded of one resource of each kind, by name, and what is read of them."""
    read: dict[str, object] = {}

    def note(name: str) -> object:
        return lambda value: read.update({name: value})

    def declare() -> None:
        made = {
            "account": gcp.serviceaccount.Account("a", account_id="robot"),
            "other": gcp.serviceaccount.Account("b", account_id="robot", project="theirs"),
            "role": gcp.projects.IAMCustomRole(
                "r", role_id="reader", title="t", permissions=["storage.objects.get"]
            ),
            "bucket": gcp.storage.Bucket("k", name="acme-data", location="EU"),
        }
        for name in properties:
            key, _, field = name.partition(".")
            getattr(made[key], field).apply(note(name))
        read["dry run"] = pulumi.runtime.is_dry_run()
        read["limit"] = pulumi.Config("search").get("limit")
        read["place"] = (pulumi.get_project(), pulumi.get_stack())

    found = record_resources(world, declare)  # in the order in which their inputs are known
    return sorted(found, key=lambda each: each.name), read


def test_resources_are_recorded_with_their_inputs_and_have_what_the_cloud_fills_in(
    world: World,
) -> None:
    emails = [f"robot@{each}.iam.gserviceaccount.com" for each in ("acme-ml", "theirs")]
    names = ("email", "member", "unique_id", "name", "id")
    found, read = seen(
        world, *(f"account.{name}" for name in names), "other.email", "other.project",
        "role.name", "role.project", "bucket.id", "bucket.name", "bucket.project",
    )  # fmt: skip
    bucket = found.pop(2)
    assert found == [
        DeclaredResource(ACCOUNT, "a", {"accountId": "robot"}),
        DeclaredResource(ACCOUNT, "b", {"accountId": "robot", "project": "theirs"}),
        DeclaredResource(
            ROLE, "r",
            {"roleId": "reader", "title": "t", "permissions": ["storage.objects.get"]},
        ),
    ]  # fmt: skip
    assert (bucket.type, bucket.name, bucket.id) == (BUCKET, "k", "acme-data")
    assert read == {
        "account.email": emails[0],
        "account.member": f"serviceAccount:{emails[0]}",
        "account.unique_id": emails[0],
        "account.name": f"projects/acme-ml/serviceAccounts/{emails[0]}",
        "account.id": "a",
        "other.email": emails[1],
        "other.project": "theirs",
        "role.name": "projects/acme-ml/roles/reader",
        "role.project": "acme-ml",
        "bucket.id": "acme-data",
        "bucket.name": "acme-data",
        "bucket.project": "acme-ml",
        "dry run": True,
        "limit": "3",
        "place": ("search", "dev"),
    }


def test_nothing_of_a_recording_stays_for_the_next_one(world: World) -> None:
    first = seen(world)
    assert seen(world) == first
    assert pulumi.Config("search").get("limit") is None


def test_a_program_that_looks_something_up_is_told_what_to_do_instead(world: World) -> None:
    with pytest.raises(CommandError) as refused:
        record_resources(world, lambda: gcp.storage.get_bucket(name="theirs"))
    assert str(refused.value) == (
        "the program looks something up: gcp:storage/getBucket:getBucket, and recording it asks "
        "no cloud. Hint: name it in extra.py; `vt review` shows what is made of what is looked up."
    )


def test_an_error_of_the_program_itself_is_raised_as_it_is(world: World) -> None:
    def declare() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        record_resources(world, declare)
    assert pulumi.Config("search").get("limit") is None


def test_code_of_a_team_that_cannot_be_loaded_is_no_stack(tmp_path: Path) -> None:
    copy_project(tmp_path)
    (tmp_path / "extra.py").write_text("def declare(environment:\n")
    with pytest.raises(ConfigError) as refused:
        declare_stack(tmp_path, "dev")
    assert [problem.location.file for problem in refused.value.problems] == ["extra.py"]


def test_a_stack_has_the_requests_of_its_jobs_and_the_resources_of_all_of_it(project: Path) -> None:
    found = declare_stack(project, "dev")
    assert found.stack.settings.stack == "dev"
    [(key, request)] = found.requests.items()
    assert (key, request.submission.job) == ("train", "train")
    [job] = (each for each in found.resources if each.type == JOB)
    assert (job.inputs["requestId"], job.id) == (request.request_id, "")
    buckets = {each.id for each in found.resources if each.type == BUCKET}
    assert buckets >= {f"acme-ml-dev-{name}-dev" for name in ("artifacts", "data", "staging")}


def test_every_mistake_in_jobs_is_told_before_anything_is_declared(project: Path) -> None:
    job = project / "jobs" / "train.yaml"
    text = job.read_text().replace("n1-standard-4", "n1-standard-3")
    job.write_text(text.replace("replicaCount: 1", "replicaCount: -1"))
    with pytest.raises(ConfigError) as refused:
        declare_stack(project, "dev")
    assert [each.location.file for each in refused.value.problems] == ["jobs/train.yaml"] * 2
