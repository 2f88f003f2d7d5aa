"""Images of a review: problems of jobs, where each image comes from, and what is not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.vt.images import stand_in
from tests.unit.vt.images.conftest import write_stack
from vertex_training.errors import Problem
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.images import lookup
from vertex_training_cli.images import registry as clients
from vertex_training_cli.images.lookup import Look, Lookup

HOST = "us-central1-docker.pkg.dev"
PATH = "local-one/training-one/train"
NAME = f"{HOST}/{PATH}"
MISSING = f"{NAME}@sha256:{'5' * 64}"
ZEROS = f"{NAME}@sha256:{'0' * 64}"
LABELS = {"org.opencontainers.image.revision": "a" * 40, "vertex-training.context": "jobs/train"}
LACKS = "the registry does not have this digest"


@pytest.fixture(autouse=True)
def no_google(monkeypatch: pytest.MonkeyPatch) -> None:
    def session() -> None:
        raise AssertionError("Google's registry is asked")

    monkeypatch.setattr(clients, "google_session", session)


def ref(root: Path, name: str = "one", project: str = "local-one") -> StackRef:
    return StackRef(root, "x", name, project, "us-central1")


def missing(uri: str, jobs: str) -> Problem:
    image = uri.rpartition("@")[0].rpartition("/")[2]
    text = f"image {image} of {jobs}: {LACKS}"
    return Problem(text, uri, "run `vt images check`", rule="image-missing")


def test_review_looks_at_pinned_images_of_its_own_cloud(
    registry: stand_in.Registry, root: Path
) -> None:
    good = f"{NAME}@{registry.add_image(PATH, 'digest-1', **LABELS)}"
    arm = f"{NAME}@{registry.add_image(PATH, 'arm', arch='arm64')}"
    plain = f"{NAME}@{registry.add_image(PATH, 'plain')}"
    foreign = f"us-docker.pkg.dev/acme/i/t@sha256:{'5' * 64}"
    jobs = {MISSING: ["a", "b"], arm: ["c"], good: ["d"], ZEROS: ["e"], foreign: ["f"],
            f"{NAME}:v1": ["g"], f"n@sha256:{'5' * 64}": ["h"]}  # fmt: skip
    found = lookup.for_review(ref(root), jobs, [good, MISSING, plain, foreign], offline=False)
    assert found.problems == (
        missing(MISSING, "a, b"),
        Problem("image train of c: the image is for linux/arm64; Vertex AI needs linux/amd64", arm,
                "run `vt images check`", rule="image-platform"),
        missing(ZEROS, "e"),
    )  # fmt: skip
    other = "project acme is not in the same cloud as the stack"
    assert found.unseen == (f"t: {other}",)
    assert found.origins == {
        good: "jobs/train at commit aaaaaaaaaaaa",
        MISSING: "image missing in the registry",
        plain: "the image's labels name no source folder and no commit",
        foreign: f"image not checked: {other}",
    }
    registry.requests.clear()
    assert lookup.for_review(ref(root), {f"{NAME}:v1": ["a"]}, [], offline=False) == Lookup()
    found = lookup.for_review(ref(root), {MISSING: ["a"]}, [MISSING], offline=True)
    assert found == Lookup({MISSING: "not checked"})
    assert registry.requests == []


def test_without_a_running_local_cloud_images_are_not_looked_at(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARTIFACT_REGISTRY_EMULATOR_HOST", raising=False)
    monkeypatch.delenv("VERTEX_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("VT_LOCAL_HOME", str(tmp_path / "home"))
    found = lookup.for_review(ref(root), {MISSING: ["a"]}, [], offline=False)
    assert found.problems == ()
    assert "the local cloud has no registry for " in found.unseen[0]


def test_stack_of_google_never_asks_the_local_registry(registry: stand_in.Registry) -> None:
    assert lookup.look([MISSING, ZEROS], is_local=False) == {
        MISSING: Look(reason="project local-one is not in the same cloud as the stack"),
        ZEROS: Look(),
    }
    assert registry.requests == []


def test_more_images_than_the_bound_are_named(registry: stand_in.Registry) -> None:
    uris = [f"{NAME}@sha256:{number:064x}" for number in range(1, lookup.MOST + 2)]
    found = lookup.look(uris, is_local=True)
    assert [uri for uri in uris if found[uri].reason == "too many images for one check"] == uris[
        -1:
    ]


def test_offline_the_stack_file_of_the_build_names_the_origin_of_a_promoted_image(
    root: Path,
) -> None:
    digest, tag = f"sha256:{'7' * 64}", f"context-{'b' * 32}"
    pin = f"{{context: jobs/train, digest: '{digest}', builtFrom: {tag}}}"
    write_stack(root, "one", "local-one", pin)
    promoted = f"{HOST}/local-two/training-two/train@{digest}"
    there = ref(root, "two", "local-two")
    found = lookup.for_review(there, {promoted: ["train"]}, [promoted], offline=True)
    assert found == Lookup(
        {promoted: "jobs/train context-bbbbbbbbbbbb, recorded in Pulumi.one.yaml; not checked"}
    )
