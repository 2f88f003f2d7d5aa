"""What a job ran on in place of what it asked for is kept, and told."""

from __future__ import annotations

import stat

import pytest

from localgcp.home import Home
from localgcp.runner import executors, substitutes

PREBUILT = "us-docker.pkg.dev/vertex-ai/training"


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("us-docker.pkg.dev/deeplearning-platform-release/gcr.io/pytorch-gpu.2-0.py310", "3.10"),
        (f"{PREBUILT}/tf-cpu.2-17.py39:latest", "3.9"),
        ("python:3.12-slim", "3.12"),
        ("docker.io/library/python:3.9", "3.9"),
        ("docker.io/acme/mypython:3.9", ""),
        ("docker.io/acme/own:1", ""),
    ],
)
def test_the_python_of_an_image_is_in_its_name(image: str, version: str) -> None:
    assert substitutes.python_of(image) == version


@pytest.mark.parametrize(
    ("image", "version", "text"),
    [
        ("docker.io/acme/own:1", "3.10", ""),
        ("docker.io/acme/own:1", "3.11", "on Python 3.11, not the image's 3.10"),
        ("python:3.12", "3.12", ""),
        ("python:3.12", "3.10", "on Python 3.10, not the image's 3.12"),
    ],
)
def test_another_python_is_told(image: str, version: str, text: str) -> None:
    assert substitutes.python_for(image, version) == text


def test_another_version_than_the_images_is_told() -> None:
    sklearn = executors.for_image(f"{PREBUILT}/sklearn-cpu.1-6:latest")
    assert sklearn is not None
    assert substitutes.version_for(f"{PREBUILT}/sklearn-cpu.1-6:latest", sklearn) == ""
    old = f"{PREBUILT}/sklearn-cpu.1-0:latest"
    for image in (old, f"{old}@sha256:{'0' * 64}"):
        told = substitutes.version_for(image, sklearn)
        assert told == "on scikit-learn 1.6.1, not in sklearn-cpu.1-0"


def test_the_nearest_version_is_taken_while_it_is_asked_for(home: Home) -> None:
    assert substitutes.takes_nearest(home) is False
    for on in (True, True, False, False):
        substitutes.take_nearest(home, on=on)
        assert substitutes.takes_nearest(home) is on
    substitutes.take_nearest(home, on=True)
    assert stat.S_IMODE(home.nearest_images.stat().st_mode) == 0o600


def test_what_a_job_ran_on_is_kept_once_and_in_order(home: Home) -> None:
    folder = home.jobs / "42"
    folder.mkdir(parents=True)
    assert substitutes.read(home, "42") == []
    substitutes.note(folder, "")
    assert list(folder.iterdir()) == []
    for text in ("on this host, not in x", "on Python 3.11", "on this host, not in x", ""):
        substitutes.note(folder, text)
    assert substitutes.read(home, "42") == ["on this host, not in x", "on Python 3.11"]
    assert (folder / "substitutes").read_text() == "on this host, not in x\non Python 3.11\n"
    assert substitutes.host_for("x") == "on this host, not in x"
    (folder / "substitutes").write_bytes(b"\xff")
    assert substitutes.read(home, "42") == []


def test_a_state_is_told_with_what_the_job_ran_on() -> None:
    assert substitutes.marked("SUCCEEDED", []) == "SUCCEEDED"
    assert substitutes.marked("FAILED", ["on a", "on b"]) == "FAILED (on a; on b)"
