"""Images by their names, digests and users: whole values, from hand-made jobs and versions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import pytest

from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.review import images
from vertex_training_cli.review.images import ImageChange, RunningImage

AR: Final = "us-central1-docker.pkg.dev/acme/training"
A, B, C = ("a" * 64, "b" * 64, "c" * 64)
PATH: Final = "jobSpec.workerPoolSpecs[0].containerSpec.imageUri"


def at(digest: str, name: str = "train", registry: str = AR) -> str:
    return f"{registry}/{name}@sha256:{digest}"


def job(
    name: str, *uris: str, action: str = "replace", old: str | None = "", path: str = PATH
) -> Any:
    """A job that runs images; with ``old``, the first one takes its place."""
    change = (FieldDifference(path, old, uris[0]),) if old != "" else ()
    return SimpleNamespace(name=name, action=action, images=uris, differences=change)


def version(title: str, image: str, before: str = "", action: str = "upload") -> Any:
    return SimpleNamespace(title=title, image=image, image_before=before, action=action)


def test_an_image_that_changes_is_listed_once_by_name_and_by_its_digest_before() -> None:
    jobs = [
        job("z", at(C), old=at(B)),
        job("b", at(B), old=at(A)),
        job("a", at(B), old=at(A)),
        job("tag", f"{AR}/other:v2", old=f"{AR}/other:v1"),
    ]
    models = [
        version("model m run 1", at(B), at(A)),
        version("model m run 2", at(B, "serve"), at(A, "serve")),
        version("model new run 1", at(A, "serve")),
        version("model gone run 1", "", at(A, "serve"), "delete"),
    ]
    assert images.image_changes(jobs, models) == (
        ImageChange("other", f"{AR}/other:v1", f"{AR}/other:v2", f"{AR}/other:v2", ("tag",)),
        ImageChange("serve", f"sha256:{A}", f"sha256:{B}", at(B, "serve"), ("model m run 2",)),
        ImageChange("train", f"sha256:{A}", f"sha256:{B}", at(B), ("b", "a", "model m run 1")),
        ImageChange("train", f"sha256:{B}", f"sha256:{C}", at(C), ("z",)),
    )


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        (PATH, True),
        (PATH.replace("0", "12"), True),
        (PATH.replace("jobSpec", "trialJobSpec"), True),
        (PATH.replace("0", "x"), False),
        (f"{PATH}s", False),
        (f"trial.{PATH}", False),
        ("jobSpec.workerPoolSpecs[0].pythonPackageSpec.executorImageUri", False),
    ],
)
def test_only_the_image_of_a_container_is_an_image_that_changes(path: str, counts: bool) -> None:
    assert bool(images.image_changes([job("a", at(B), old=at(A), path=path)])) is counts


def test_an_image_that_comes_with_a_pool_took_no_others_place() -> None:
    assert images.image_changes([job("a", at(B), old=None)]) == ()


def test_images_that_stay_in_use_are_by_name_with_all_that_run_them() -> None:
    jobs = [
        job("b", at(A), action="submit"),
        job("a", at(A), at(B, "check"), action="keep"),
        job("changed", at(C), old=at(B)),
        job("ended", at(A, "ended"), action="cancel"),
        job("left", at(A, "left"), action="forget"),
        job("tag", f"{AR}/train:v1", action="submit"),
        job("hub", at(A, "x", "docker.io/acme"), action="submit"),
        job("short", f"{AR}/train@sha256:{'a' * 63}", f"{at(A)}0", action="submit"),
    ]
    models = [
        version("model m run 1", at(A), action="keep"),
        version("model m run 2", at(A, "deleted"), action="delete"),
        version("model m run 3", at(A, "leaves"), action="leave"),
    ]
    assert images.other_images(jobs, models) == (
        RunningImage("check", f"sha256:{B}", at(B, "check"), ("a",)),
        RunningImage("train", f"sha256:{A}", at(A), ("b", "a", "model m run 1")),
    )


def test_a_row_has_twelve_digits_and_where_the_image_was_built_from() -> None:
    change = ImageChange("train", f"sha256:{A}", f"{AR}/train:v1", at(B), ("a", "b"))
    assert change.versions == ("sha256:aaaaaaaaaaaa", f"{AR}/train:v1")
    assert images.COLUMNS == ("image", "before", "after", "built from", "used by")
    row = ("train", "sha256:aaaaaaaaaaaa", f"{AR}/train:v1")
    assert images.cells(change, {at(B): "commit 1"}) == (*row, "commit 1", "a, b")
    assert images.cells(change, {at(A): "commit 1"}) == (*row, "not looked at", "a, b")
    running = RunningImage("train", f"sha256:{A}", at(A), ("a", "b"))
    short = "train@sha256:aaaaaaaaaaaa"
    assert images.line(running, {at(A): "commit 1"}) == (short, "commit 1", "a, b")
    assert images.line(running, {}) == (short, "not looked at", "a, b")


@pytest.mark.parametrize(
    ("uri", "name", "shown"),
    [
        (at(A), "train", "train@sha256:aaaaaaaaaaaa"),
        (f"{AR}/train:v1", "train", "train:v1"),
        (f"{AR}/train:v1@sha256:{B}", "train", "train:v1@sha256:bbbbbbbbbbbb"),
        ("localhost:5000/x/train", "train", "train"),
        ("python:3.11", "python", "python:3.11"),
        ("", "", ""),
    ],
)
def test_an_image_is_named_without_its_registry(uri: str, name: str, shown: str) -> None:
    assert (images.name_of(uri), images.shown(uri)) == (name, shown)
