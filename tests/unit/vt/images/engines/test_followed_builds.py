"""A build of Cloud Build from its request to its end, by a scripted service and clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.cloud.devtools import cloudbuild_v1

from vertex_training.errors import ImageBuildError
from vertex_training.naming import Names
from vertex_training_cli.images.engines import Build, cloud_build, processes
from vertex_training_cli.images.engines.build_service import StoredSource
from vertex_training_cli.images.engines.cloud_build import _Run, build_message
from vertex_training_cli.images.engines.processes import LastLines

NAMES = Names("acme", "", "us-central1", "dev")
IMAGE = "us-central1-docker.pkg.dev/acme/training-dev/titanic"
BUILD = Build(
    name="titanic", archive=Path("a.tar"), context="jobs/titanic", dockerfile="Dockerfile",
    build_args={}, target="", image=IMAGE, tag="context-1", labels={}, identity="i", timeout=60.0,
)  # fmt: skip
PARENT = "projects/acme/locations/us-central1"
Status = cloudbuild_v1.Build.Status


def wanted() -> cloudbuild_v1.Build:
    return build_message(BUILD, NAMES, StoredSource("b", "o", 5))


def found(
    id_: str = "7", status: str = "WORKING", minute: int = 0, **more: Any
) -> cloudbuild_v1.Build:
    made = wanted()
    made.id, made.status = id_, Status[status]
    made.create_time = datetime(2026, 1, 2, 3, minute, tzinfo=UTC)
    made.log_url = f"https://log/{id_}"
    for name, value in more.items():
        setattr(made, name, value)
    return made


def ended(digest: str = "sha256:x", name: str = f"{IMAGE}:context-1") -> cloudbuild_v1.Build:
    results = cloudbuild_v1.Results(images=[{"name": name, "digest": digest}])
    return found(status="SUCCESS", results=results)


class Service:
    """What Cloud Build answers, call by call; the last answer stays."""

    parent = PARENT

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.listed: list[list[cloudbuild_v1.Build]] = [[]]
        self.states: list[cloudbuild_v1.Build] = []
        self.made: cloudbuild_v1.Build | None = None
        self.refusal: ImageBuildError | None = None

    def create(self, _: cloudbuild_v1.Build) -> cloudbuild_v1.Build | None:
        self.calls.append(("create",))
        return self.made

    def list_tagged(self, tag: str) -> list[cloudbuild_v1.Build]:
        assert tag == "context-1"
        return self.listed.pop(0) if len(self.listed) > 1 else self.listed[0]

    def get(self, name: str) -> cloudbuild_v1.Build:
        self.calls.append(("get", name))
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def cancel(self, name: str) -> None:
        self.calls.append(("cancel", name))
        if self.refusal:
            raise self.refusal


class Followed:
    """A run with its log, on a clock that its pauses move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.service, self.lines, self.pauses = Service(), list[str](), list[float]()
        self.interrupts_after = -1
        self.now = 0.0
        clock = SimpleNamespace(sleep=self.sleep, monotonic=lambda: self.now)
        monkeypatch.setattr(cloud_build, "time", clock)
        monkeypatch.setattr(processes, "time", clock)
        log = LastLines(self.lines.append)
        self.run = _Run(BUILD, wanted(), cast(Any, self.service), NAMES, 2.0, log)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        if len(self.pauses) == self.interrupts_after:
            raise KeyboardInterrupt

    def follow(self, build: cloudbuild_v1.Build, *, started: bool = True) -> str:
        log = SimpleNamespace(refused=False, new_lines=list)
        return self.run.follow(build, cast(Any, log), started=started)

    def failure(self, call: Callable[[], object]) -> tuple[str, str | None]:
        with pytest.raises(ImageBuildError) as failed:
            call()
        return failed.value.message, failed.value.hint


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> Followed:
    return Followed(monkeypatch)


def test_earliest_live_build_of_the_same_image_is_joined(followed: Followed) -> None:
    another = found("4", "QUEUED")
    another.images = ["other"]
    followed.service.listed = [
        [found("8", "QUEUED", 2), another, found("9", "PENDING", 1),
         found("6", "FAILURE"), found("3", "WORKING", 1)],
    ]  # fmt: skip
    joined, started = followed.run.join_or_start()
    assert (joined.id, started) == ("3", False)
    assert followed.service.calls == []
    assert followed.lines == ["titanic: follows build 3, which runs already"]


@pytest.mark.parametrize("name", ["", f"{PARENT}/builds/own"])
def test_later_of_two_simultaneous_builds_is_cancelled(followed: Followed, name: str) -> None:
    followed.service.made = found(minute=1, name=name)
    first = found("5")
    followed.service.listed = [[], [followed.service.made, first]]
    assert followed.run.join_or_start() == (first, False)
    assert followed.service.calls[1:] == [("cancel", name or f"{PARENT}/builds/7")]
    assert followed.lines[1:] == ["titanic: build 5 was started before: 7 ends"]


@pytest.mark.parametrize("build", [ended(""), ended(name="other"), found(status="SUCCESS")])
def test_successful_build_without_a_digest_is_an_error(
    followed: Followed, build: cloudbuild_v1.Build
) -> None:
    text, _ = followed.failure(lambda: followed.follow(build))
    assert text == "titanic: build 7 ended well and reports no digest of the image."


def test_endless_build_is_given_up_with_its_limit(followed: Followed) -> None:
    followed.service.states = [found()]
    text, _ = followed.failure(lambda: followed.follow(found()))
    assert text == "titanic: build 7 has not ended after 1890 s."
    assert followed.pauses == [2.0] * 945


STOP = "gcloud builds cancel 7 --region us-central1"


def test_ctrl_c_leaves_what_another_command_started(followed: Followed) -> None:
    followed.interrupts_after = 1
    with pytest.raises(KeyboardInterrupt):
        followed.follow(found(), started=False)
    assert followed.service.calls == []
    assert followed.lines == [f"titanic: build 7 goes on; to end it: {STOP}"]


def test_build_that_does_not_end_may_still_run(followed: Followed) -> None:
    followed.service.states = [found()]
    followed.run.cancel(found())
    assert followed.lines == [f"titanic: build 7 may still run: {STOP}"]
    assert followed.pauses == [2.0] * 15
    followed.service.refusal = ImageBuildError("403")
    followed.run.cancel(found())
    assert followed.lines[1:] == followed.lines[:1]
