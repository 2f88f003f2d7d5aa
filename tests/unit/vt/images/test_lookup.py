"""Images are looked up all at once and within a time; what cannot be seen is said, not guessed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.vt.images import stand_in
from tests.unit.vt.images.conftest import write_stack
from vertex_training.naming import local_project_number
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.images import lookup
from vertex_training_cli.images import registry as clients
from vertex_training_cli.images.lookup import Look
from vertex_training_cli.images.registry import RegistryClient

HOST = "us-central1-docker.pkg.dev"
PATH = "local-one/training-one/train"
NAME = f"{HOST}/{PATH}"
MISSING = f"{NAME}@sha256:{'5' * 64}"
GOOGLES = f"{HOST}/acme-ml-dev/training-dev/train@sha256:{'5' * 64}"
LABELS = {"org.opencontainers.image.revision": "a" * 40, "vertex-training.context": "jobs/train"}


@pytest.fixture
def no_google(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    asked: list[str] = []

    def session() -> None:
        asked.append("google")

    monkeypatch.setattr(clients, "google_session", session)
    yield asked
    assert asked == []


def test_a_stack_of_the_local_cloud_never_asks_google(
    registry: stand_in.Registry, no_google: list[str]
) -> None:
    found = lookup.look([GOOGLES], is_local=True)[GOOGLES]
    assert found.trouble == (
        "image-not-looked-at",
        "not looked at: project acme-ml-dev is in another cloud than the stack",
    )


def test_a_stack_of_google_never_asks_the_local_registry(registry: stand_in.Registry) -> None:
    assert "another cloud" in lookup.look([MISSING], is_local=False)[MISSING].reason
    assert registry.requests == []


def test_a_placeholder_is_no_image_and_nobody_is_asked(registry: stand_in.Registry) -> None:
    zeros = f"{NAME}@sha256:{'0' * 64}"
    trouble = lookup.look([zeros], is_local=True)[zeros].trouble
    assert trouble == ("image-missing", "the registry has no image of this digest")
    assert registry.requests == []


def test_a_registry_that_never_answers_costs_its_time_once(
    registry: stand_in.Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    forever = threading.Event()
    monkeypatch.setattr(RegistryClient, "facts", lambda *_: forever.wait())
    uris = [f"{NAME}{number}@sha256:{'5' * 64}" for number in range(50)]
    found = lookup.look(uris, is_local=True, seconds=0.2)
    forever.set()  # it ended before any answer, or it would not have ended
    assert {each.reason for each in found.values()} == {"no answer within 0 s"}


def test_more_images_than_the_bound_are_said(registry: stand_in.Registry) -> None:
    uris = [f"{NAME}@sha256:{number:064x}" for number in range(1, lookup.MOST + 2)]
    found = lookup.look(uris, is_local=True)
    assert [uri for uri in uris if found[uri].reason == "there are too many"] == uris[-1:]


@pytest.mark.parametrize("status", [401, 403, 429, 500, 507])
def test_a_refusal_is_a_reason_and_no_mistake(
    status: int, registry: stand_in.Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("vertex_training_cli.images.transport.RETRY_AFTER", (0.0,))
    registry.refuse = {("GET", "manifests"): status}
    looks = lookup.look([MISSING], is_local=True)
    found = lookup.judge({MISSING: ["train"]}, [], looks, tmp_path)
    assert found.problems == ()
    assert f"answered {status}" in found.unseen[0]


def test_an_image_that_cannot_be_run_is_a_problem_with_its_jobs(
    registry: stand_in.Registry, tmp_path: Path
) -> None:
    arm = f"{NAME}@{registry.add_image(PATH, 'arm', arch='arm64')}"
    looks = lookup.look([MISSING, arm], is_local=True)
    found = lookup.judge({MISSING: ["a", "b"], arm: ["c"]}, [], looks, tmp_path)
    assert [problem.rule for problem in found.problems] == ["image-missing", "image-platform"]
    assert "image train of a, b: the registry has no image" in str(found.problems[0])
    assert "is for linux/arm64" in str(found.problems[1])


def test_a_digest_that_another_repository_has_is_missing_in_this_one(
    registry: stand_in.Registry, tmp_path: Path
) -> None:
    digest = registry.add_image("local-two/training-two/train", "latest")
    here = f"{NAME}@{digest}"
    looks = lookup.look([here], is_local=True)
    assert looks[here].trouble == ("image-missing", "the registry has no image of this digest")


def test_offline_the_stack_file_that_built_a_promoted_digest_says_where_it_came_from(
    tmp_path: Path, no_google: list[str]
) -> None:
    digest, tag = f"sha256:{'7' * 64}", f"context-{'b' * 32}"
    pin = f"{{context: jobs/train, digest: '{digest}', builtFrom: {tag}}}"
    write_stack(tmp_path, "one", "local-one", pin)
    write_stack(tmp_path, "two", "local-two", f"{{digest: '{digest}'}}")
    promoted = f"{HOST}/local-two/training-two/train@{digest}"
    ref = StackRef(tmp_path, "x", "two", "local-two", "us-central1")
    found = lookup.for_review(ref, {promoted: ["train"]}, [promoted], offline=True)
    assert found.problems == found.unseen == ()
    assert found.origins == {
        promoted: "jobs/train context-bbbbbbbbbbbb, as Pulumi.one.yaml says; not looked at"
    }


def test_a_promoted_image_says_its_commit_and_folder(
    registry: stand_in.Registry, tmp_path: Path
) -> None:
    uri = f"{NAME}@{registry.add_image(PATH, 'digest-1', **LABELS)}"
    found = lookup.origins_of(tmp_path, [uri], lookup.look([uri], is_local=True))
    assert found == {uri: "jobs/train at commit aaaaaaaaaaaa"}


def test_an_image_of_others_without_a_tag_is_a_warning(
    registry: stand_in.Registry, root: Path, vt
) -> None:
    digest = registry.add_image("local-two/tools/train", "gone")
    del registry.manifests["local-two/tools/train", "gone"]
    outside = f"{HOST}/local-two/tools/train@{digest}"
    write_stack(root, "one", "local-one", f"{{uri: '{outside}'}}")
    result = vt("images", "check", "--stack", "one", "--format", "json")
    rules = {row["rule"]: row["text"] for row in json.loads(result.stdout)}
    assert "gcloud artifacts docker tags add" in rules["image-untagged"]
    registry.put(
        "local-two/tools/train", "v1", *registry.manifests["local-two/tools/train", digest]
    )
    result = vt("images", "check", "--stack", "one", "--format", "json")
    assert "image-untagged" not in {row["rule"] for row in json.loads(result.stdout)}


def test_who_pulls_an_image_of_another_project_is_said_with_the_command(
    registry: stand_in.Registry, root: Path, vt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from localgcp.home import Home
    from localgcp.inventory.store import Binding, Store

    monkeypatch.setenv("VT_LOCAL_HOME", str(tmp_path / "home"))
    digest = registry.add_image("local-two/tools/train", "v1")
    outside = f"{HOST}/local-two/tools/train@{digest}"
    write_stack(root, "one", "local-one", f"{{uri: '{outside}'}}")

    def pulls() -> list[str]:
        result = vt("images", "check", "--stack", "one", "--format", "json")
        rows = json.loads(result.stdout)
        return [row["text"] for row in rows if row["rule"] == "image-pull"]

    assert pulls() == ["who may pull it was not looked at: the local cloud was never started."]
    home = Home.find(cwd=root)
    home.create()
    store = Store(home.database)
    store.set_policy("b/x", (), expected_etag=store.policy("b/x").etag)
    agent, code = pulls()
    assert "gcp-sa-aiplatform.iam.gserviceaccount.com pull: gcloud artifacts" in agent
    assert "gcp-sa-aiplatform-cc" in code
    number = local_project_number("local-one")
    members = [
        f"serviceAccount:service-{number}@gcp-sa-{kind}.iam.gserviceaccount.com"
        for kind in ("aiplatform", "aiplatform-cc")
    ]
    repository = "projects/local-two/locations/us-central1/repositories/tools"
    binding = Binding("roles/artifactregistry.reader", tuple(members))
    store.set_policy(repository, (binding,), expected_etag=store.policy(repository).etag)
    assert pulls() == []


def test_looks_say_nothing_of_an_image_in_order() -> None:
    from vertex_training_cli.images.documents import ImageFacts

    assert Look(ImageFacts("sha256:1", ("linux/amd64",), {})).trouble is None
