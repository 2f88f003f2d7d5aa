"""Images are looked up all at once and within a time; what cannot be seen is said, not guessed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.vt.images import stand_in
from tests.unit.vt.images.conftest import write_stack
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.images import lookup
from vertex_training_cli.images import registry as clients

HOST = "us-central1-docker.pkg.dev"
PATH = "local-one/training-one/train"
NAME = f"{HOST}/{PATH}"
MISSING = f"{NAME}@sha256:{'5' * 64}"
LABELS = {"org.opencontainers.image.revision": "a" * 40, "vertex-training.context": "jobs/train"}


@pytest.fixture
def no_google(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    asked: list[str] = []

    def session() -> None:
        asked.append("google")

    monkeypatch.setattr(clients, "google_session", session)
    yield asked
    assert asked == []


def test_a_stack_of_google_never_asks_the_local_registry(registry: stand_in.Registry) -> None:
    assert "another cloud" in lookup.look([MISSING], is_local=False)[MISSING].reason
    assert registry.requests == []


def test_a_placeholder_is_no_image_and_nobody_is_asked(registry: stand_in.Registry) -> None:
    zeros = f"{NAME}@sha256:{'0' * 64}"
    trouble = lookup.look([zeros], is_local=True)[zeros].trouble
    assert trouble == ("image-missing", "the registry has no image of this digest")
    assert registry.requests == []


def test_more_images_than_the_bound_are_said(registry: stand_in.Registry) -> None:
    uris = [f"{NAME}@sha256:{number:064x}" for number in range(1, lookup.MOST + 2)]
    found = lookup.look(uris, is_local=True)
    assert [uri for uri in uris if found[uri].reason == "there are too many"] == uris[-1:]


def test_an_image_that_cannot_be_run_is_a_problem_with_its_jobs(
    registry: stand_in.Registry, tmp_path: Path
) -> None:
    arm = f"{NAME}@{registry.add_image(PATH, 'arm', arch='arm64')}"
    looks = lookup.look([MISSING, arm], is_local=True)
    found = lookup.judge({MISSING: ["a", "b"], arm: ["c"]}, [], looks, tmp_path)
    assert [problem.rule for problem in found.problems] == ["image-missing", "image-platform"]
    assert "image train of a, b: the registry has no image" in str(found.problems[0])
    assert "is for linux/arm64" in str(found.problems[1])


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
