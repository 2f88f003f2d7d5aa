"""One image, step by step: what is asked, built, pinned and told, without a program."""

from __future__ import annotations

import tarfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localgcp.containers import mirror
from tests.unit.infra.stacks import BASE
from vertex_training.errors import CommandError, ConfigError, ImageBuildError, TrainingError
from vertex_training.images import identity
from vertex_training.images.identity import Source
from vertex_training.settings.model import Settings
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.images import building
from vertex_training_cli.images.building import BuildOptions, BuildResult
from vertex_training_cli.images.engines.engine import Build

DIGEST, OTHER = "sha256:" + "5" * 64, "sha256:" + "6" * 64
PATH = "acme-ml-prod/training-prod/x"


@dataclass
class Registry:
    """Has the tag from the ``since``-th question on."""

    since: int = 99
    lacks: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list)

    def digest_of(self, path: str, tag: str) -> str | None:
        self.asked.append((path, tag))
        return OTHER if len(self.asked) >= self.since else None

    def lacks_repository(self, path: str) -> bool:
        assert path == PATH
        return self.lacks


@dataclass
class Engine:
    """Keeps what it was asked to build."""

    name: str = "podman"
    digest: str = DIGEST
    builds: list[Build] = field(default_factory=list)
    files: list[list[str]] = field(default_factory=list)

    def build(self, build: Build, write_log: Callable[[str], None]) -> str:
        self.builds.append(build)
        with tarfile.open(build.archive) as tar:
            self.files.append(tar.getnames())
        write_log("a step")
        return self.digest


@dataclass
class Work:
    """A checkout whose stack ``prod`` builds the image ``x``."""

    root: Path
    registry: Registry = field(default_factory=Registry)
    engine: Engine = field(default_factory=Engine)
    pins: list[Any] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    changed: bool = True

    @property
    def tag(self) -> str:
        return identity.tag_of(self.source, self.root)

    @property
    def source(self) -> Source:
        return Source.of("code", "Dockerfile", {"A": "1"}, "last")

    def write_pins(self, root: Path, stack: str, pins: Any) -> bool:
        self.pins.append((root, stack, pins))
        return self.changed

    def build(self, **options: Any) -> BuildResult:
        given = BuildOptions(lambda: self.engine, 60.0, self.reports.append, self.log.append)
        image = {"context": "code", "buildArgs": {"A": "1"}, "target": "last"}
        found = building.build_image(settings(x=image), "x", self.root, replace(given, **options))
        assert 0 <= found.seconds < 60
        return replace(found, seconds=0)

    def refusal(self, error: type[TrainingError] = CommandError, **options: Any) -> str:
        with pytest.raises(error) as refused:
            self.build(**options)
        assert self.pins == []
        return str(refused.value)


def settings(**images: dict[str, Any]) -> Settings:
    return Settings.model_validate(BASE | {"images": images})


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "code" / "a.py").write_text("1")
    made = Work(tmp_path)
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(building.registry, "registry_of", lambda image: (made.registry, PATH))
    monkeypatch.setattr(building.stack_file, "write_pins", made.write_pins)
    monkeypatch.setattr(building.labels, "labels_of", lambda *given: dict(enumerate(given)))
    return made


@pytest.mark.parametrize(("since", "lacks"), [(1, True), (2, False)])
def test_an_image_that_is_there_or_came_meanwhile_is_taken(
    work: Work, since: int, lacks: bool
) -> None:
    work.registry, work.changed = Registry(since, lacks), False
    assert work.build() == BuildResult("x", OTHER, work.tag, False, False, 0)
    assert work.pins[0][2] == {"x": {"digest": OTHER, "builtFrom": work.tag}}
    assert (work.engine.builds, work.reports) == ([], [])


def test_what_keeps_an_image_from_being_built_is_told(work: Work) -> None:
    work.engine.digest = "sha256:5"
    assert work.refusal(ImageBuildError) == "x: podman gave no digest of the image."
    work.registry.lacks = True
    assert work.refusal() == (
        "x: there is no repository acme-ml-prod/training-prod to push to. "
        "Hint: vt up --stack prod, which makes it."
    )
    work.registry.lacks = False
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 4
    (work.root / "code" / "key.pem").write_text(f"{key}-----END PRIVATE KEY-----\n")
    assert "code/key.pem" in work.refusal(ConfigError)
    assert len(work.engine.builds) == 1


def test_what_was_not_looked_at_for_secrets_is_told(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = building.leaving_files.Scan((), ("code/big.bin",))
    monkeypatch.setattr(building.leaving_files, "scan_context", lambda *_: scan)
    work.build()
    assert work.reports == [f"x: {scan.note}", "x: building code with podman"]


def test_a_context_that_changes_or_cannot_be_copied_is_not_built(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building.identity, "write_archive", lambda *_: "another")
    changed = "code: changed while it was read. Hint: run the command again"
    assert work.refusal(ConfigError) == changed

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(building.identity, "write_archive", full)
    text = "the context code cannot be copied: No space left on device."
    assert work.refusal() == text
    assert work.engine.builds == []


BASE_IMAGE = f"python:3.11-slim-bookworm@{DIGEST}"


@pytest.mark.parametrize(
    ("project", "engine", "told"),
    [
        ("local-a", "podman", True),
        ("local-a", "docker", False),
        ("acme-ml-prod", "podman", False),
    ],
)
def test_a_base_that_is_stood_in_for_in_the_local_cloud_is_told(
    work: Work, monkeypatch: pytest.MonkeyPatch, project: str, engine: str, told: bool
) -> None:
    monkeypatch.setattr(mirror, "has_stand_in", lambda: True)
    monkeypatch.setattr(building, "is_local", lambda _: project == "local-a")
    (work.root / "code" / "Dockerfile").write_text(f"ARG A\nFROM ${{A:-x}}\nFROM {BASE_IMAGE}\n")
    work.engine.name = engine
    work.build()
    text = "is stood in for by Debian's packages of the same release and Python"
    stands = [f"{BASE_IMAGE} {text}"] if told else []
    assert work.reports == [f"x: building code with {engine}", *stands]


def test_two_builds_of_one_context_wait_for_each_other(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "_POLL", 0.001)
    options = BuildOptions(lambda: work.engine, 0.0, work.reports.append, work.log.append)
    with building._lock("key", options):
        [file] = (work.root / "cache" / "image-builds").iterdir()
        assert (file.suffix, file.stat().st_mode & 0o777) == (".lock", 0o600)
        assert file.parent.stat().st_mode & 0o777 == 0o700
        assert work.reports == []
        with pytest.raises(ImageBuildError) as refused, building._lock("key", options):
            pass
        with building._lock("other", options):
            pass
    text = "another build of the same context is still running. Hint: raise --timeout."
    assert str(refused.value) == text
    assert work.reports == ["another build of the same context runs here: waiting for it"]
    with building._lock("key", options):
        waits, entered, told = threading.Event(), threading.Event(), list[str]()
        paused = list[float]()

        def pause(seconds: float) -> None:
            paused.append(seconds)
            if len(paused) > 2:
                waits.set()
            waits.wait(0.001)

        monkeypatch.setattr(building, "time", SimpleNamespace(monotonic=time.monotonic,
                                                              sleep=pause))  # fmt: skip

        def second() -> None:
            patient = replace(options, timeout=60.0, report=told.append)
            with building._lock("key", patient):
                entered.set()

        thread = threading.Thread(target=second, daemon=True)
        thread.start()
        assert waits.wait(30)
        assert not entered.is_set()
    thread.join(30)
    assert entered.is_set()
    assert set(paused) == {0.001}
    assert told == ["another build of the same context runs here: waiting for it"]


X, Y, Z = {"context": "code"}, {"context": "more"}, {"digest": DIGEST}


@pytest.mark.parametrize(
    ("project", "region", "is_right"),
    [("acme", "us-east1", True), ("acme", "us-west1", False), ("other", "us-east1", False)],
)
def test_a_branch_builds_for_the_project_of_the_checkout_that_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: str, region: str, is_right: bool
) -> None:
    ref = StackRef(tmp_path, "x", "prod", project, region)
    trusted = StackRef(tmp_path / "trusted", "x", "prod", "acme", "us-east1")
    (tmp_path / "Pulumi.prod.yaml").touch()
    asked: list[Any] = []

    def find(root: Path, stack: str) -> StackRef:
        asked.append((root, stack))
        return trusted

    monkeypatch.setattr(building.stacks, "find_unchecked", find)
    building.check_target(ref, None)
    assert asked == []
    if is_right:
        building.check_target(ref, trusted.root)
    else:
        with pytest.raises(CommandError) as refused:
            building.check_target(ref, trusted.root)
        assert str(refused.value) == (
            f"stack prod is {project} in {region} here, and acme in us-east1 in {trusted.root}."
        )
    assert asked == [(trusted.root, "prod")]
    (tmp_path / "Pulumi.prod.yaml").rename(tmp_path / "elsewhere")
    (tmp_path / "Pulumi.prod.yaml").symlink_to("elsewhere")
    with pytest.raises(CommandError) as refused:
        building.check_target(ref, trusted.root)
    assert str(refused.value) == "Pulumi.prod.yaml is a link; it must be a file."
