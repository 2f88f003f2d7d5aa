"""Images of jobs and models: each is asked for once, and who may pull those of others."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.infra.stacks import unjudged
from tests.unit.vt.preflight.documents import FORBIDDEN, context
from vertex_training.stack import Stack
from vertex_training_cli.declared import DeclaredStack
from vertex_training_cli.images.lookup import Look
from vertex_training_cli.preflight import names
from vertex_training_cli.preflight.context import Answer, question

HOST = "us-central1-docker.pkg.dev"
OWN = f"{HOST}/acme-ml-prod/training-prod/titanic@sha256:{'a' * 64}"
THEIRS = f"{HOST}/acme-shared/images/flash@sha256:{'b' * 64}"
TAGGED = f"{HOST}/acme-ml-prod/training-prod/other:v1"
GOOGLES = "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310:latest"
SERVED = "us-docker.pkg.dev/vertex-ai/prediction/sklearn-cpu.1-6:latest"
REPOSITORY = "projects/acme-shared/locations/us-central1/repositories/images"
POLICY = (
    f"https://artifactregistry.googleapis.com/v1/{REPOSITORY}:getIamPolicy"
    "?options.requestedPolicyVersion=3"
)
AGENT, CODE_AGENT = (
    f"service-109876543210@{domain}.iam.gserviceaccount.com"
    for domain in ("gcp-sa-aiplatform", "gcp-sa-aiplatform-cc")
)


def spec(*names: str, field: str = "jobSpec") -> SimpleNamespace:
    """A request whose pools run these images, the last one a package."""
    tasks = [{"containerSpec": {"imageUri": name}} for name in names[:-1]]
    pools = [*tasks, {"pythonPackageSpec": {"executorImageUri": names[-1]}}]
    return SimpleNamespace(body=json.dumps({field: {"workerPoolSpecs": pools}}))


Ask = Callable[..., list[Answer]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Ask:
    """What is told of requests and models, where the registry has ``looks``."""

    def ask(
        requests: dict[str, Any],
        models: dict[str, Any] | None = None,
        looks: dict[str, Look] | None = None,
        policy: Any = None,
    ) -> list[Answer]:
        def look(uris: list[str], *, is_local: bool) -> dict[str, Look]:
            assert (sorted(set(uris)), is_local) == (uris, False)
            return {uri: (looks or {}).get(uri, FINE) for uri in uris}

        monkeypatch.setattr(names.lookup, "look", look)
        settings = unjudged(models=models or {}, jobs={"train": {"file": "x", "run": 2}})
        stack = Stack(settings, Path("/nonexistent"), {})
        declared = DeclaredStack(stack, requests, ())
        made = dataclasses.replace(context({POLICY: policy}), declared=declared)
        return list(names.check_images(made))

    return ask


FINE = Look(facts=SimpleNamespace(platforms=("linux/amd64",)))  # pyright: ignore


def exists(name: str) -> Answer:
    return question(name, "existence of the image")


def model(image: str, *runs: int) -> dict[str, Any]:
    return {"job": "train", "run": list(runs or (1,)), "container": {"image": image}}


def test_an_image_is_asked_for_once_whoever_runs_it(asked: Ask) -> None:
    requests = {"b": spec(OWN, GOOGLES), "a": spec(TAGGED, OWN, field="trialJobSpec")}
    assert asked(requests, {"m": model(OWN, 1, 2), "n": model(SERVED)}) == [
        exists(TAGGED).unknown("not checked: a tag can move", mend="use the digest of the image"),
        exists(OWN).ok("yes"),
    ]
    assert asked({}) == []


@pytest.mark.parametrize(
    ("reason", "permission"),
    [
        ("403 Forbidden", "artifactregistry.repositories.downloadArtifacts"),
        ("no route", ""),
    ],
)
def test_an_image_that_nobody_looked_at_is_not_known(
    asked: Ask, reason: str, permission: str
) -> None:
    assert asked({"a": spec(OWN)}, looks={OWN: Look(reason=reason)}) == [
        exists(OWN).unknown(f"image not checked: {reason}", permission)
    ]


def pulls(agent: str) -> Answer:
    return question(REPOSITORY, f"pull access of {agent}")


def bound(*members: str, role: str = "roles/artifactregistry.reader") -> dict[str, Any]:
    return {"bindings": [{"role": role, "members": list(members)}]}


def lets(agent: str) -> str:
    return (
        "gcloud artifacts repositories add-iam-policy-binding images --project=acme-shared "
        f"--location=us-central1 --member='serviceAccount:{agent}' "
        "--role=roles/artifactregistry.reader"
    )


PAST = "the image cannot be pulled, unless a role on the project allows it"
NOT = {
    agent: pulls(agent).refused("not granted by the repository's IAM policy", PAST, lets(agent))
    for agent in (AGENT, CODE_AGENT)
}
YES = {agent: pulls(agent).ok("yes") for agent in (AGENT, CODE_AGENT)}


@pytest.mark.parametrize(
    ("policy", "answers"),
    [
        ({}, NOT),
        (bound(f"serviceAccount:{AGENT}", f"serviceAccount:{CODE_AGENT}"), YES),
        (bound("allUsers"), YES),
        (bound(f"serviceAccount:{CODE_AGENT}"), {**NOT, CODE_AGENT: YES[CODE_AGENT]}),
        (None, {agent: pulls(agent).refused("the repository does not exist",
                                            "images of the repository cannot be pulled",
                                            "use another repository")
                for agent in NOT}),
        (FORBIDDEN, {agent: pulls(agent).unknown(
            f"{REPOSITORY} cannot be read: 403 Forbidden",
            "artifactregistry.repositories.getIamPolicy") for agent in NOT}),
    ],
)  # fmt: skip
def test_agents_must_be_let_pull_images_of_another_project(
    asked: Ask, policy: Any, answers: dict[str, Answer]
) -> None:
    of_job, of_model = {"a": spec(THEIRS)}, {"m": model(THEIRS)}
    there = exists(THEIRS).ok("yes")
    assert asked(of_job, policy=policy) == [there, answers[AGENT], answers[CODE_AGENT]]
    # models are pulled by the one agent alone
    assert asked({}, of_model, policy=policy) == [there, answers[AGENT]]
    assert asked(of_job, of_model, policy=policy) == [
        there, answers[AGENT], answers[CODE_AGENT],
    ]  # fmt: skip


def test_members_with_an_unconditional_role_may_pull() -> None:
    def binding(role: str, member: Any, **more: Any) -> dict[str, Any]:
        return {"role": f"roles/artifactregistry.{role}", "members": member, **more}

    bindings: list[Any] = [
        binding("reader", ["a"]), binding("writer", ["b"]), binding("repoAdmin", ["c"]),
        binding("admin", ["d", "e"]), binding("createOnPushWriter", ["no"]),
        binding("reader", ["no"], condition={"expression": "x"}), binding("reader", "no"),
        "no", {"members": ["no"]},
    ]  # fmt: skip
    assert list(names.pulling(bindings)) == ["a", "b", "c", "d", "e"]
