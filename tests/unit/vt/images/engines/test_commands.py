"""The command lines by which docker, podman and buildah build and push an image."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localgcp.containers import mirror
from vertex_training.errors import ImageBuildError
from vertex_training_cli.images import registry
from vertex_training_cli.images.engines import commands
from vertex_training_cli.images.engines.commands import CommandEngine
from vertex_training_cli.images.engines.engine import Build
from vertex_training_cli.images.engines.processes import Deadline, LastLines

DIGEST, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64
IMAGE = "us-docker.pkg.dev/acme/r/train"
LOCAL = "us-docker.pkg.dev/acme/r/train:context-1"


@pytest.fixture
def build(tmp_path: Path) -> Build:
    archive = tmp_path / "context.tar"
    with tarfile.open(archive, "w") as tar:
        for name, text in {"sub/Dockerfile": "FROM x\n", "train.py": "1"}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return Build(
        name="train", archive=archive, context="jobs/train", dockerfile="sub/Dockerfile",
        build_args={"A": "b c", "D": ""}, target="last", image=IMAGE, tag="context-1",
        labels={"x": "1", "y": "2"}, identity="1" * 64, timeout=60.0,
    )  # fmt: skip


@dataclass
class FakeRegistry:
    """A registry that has a tag from the ``since``-th question on."""

    is_local: bool = False
    credentials: str = "a-token"
    since: int = 99
    asked: list[tuple[str, str]] = field(default_factory=list)
    address: str = "us-docker.pkg.dev"

    def digest_of(self, path: str, tag: str) -> str | None:
        self.asked.append((path, tag))
        return OTHER if len(self.asked) >= self.since else None

    def token(self) -> str:
        return self.credentials


@dataclass
class Machine:
    """Programs that are called in order, each with its exit code."""

    at: FakeRegistry = field(default_factory=FakeRegistry)
    codes: dict[str, int | Exception] = field(default_factory=dict)
    says: str = ""
    digests: str = json.dumps([f"elsewhere/train@{OTHER}", f"{IMAGE}@{DIGEST}"])
    """What docker has of an image."""
    called: list[list[str]] = field(default_factory=list)
    environments: list[Mapping[str, str]] = field(default_factory=list)
    look: Callable[[list[str]], None] = lambda _: None
    """Called with each command, while its files are there."""

    def run(
        self, command: Sequence[str], env: Mapping[str, str], log: LastLines, deadline: Deadline
    ) -> int:
        self.called.append(list(command))
        self.environments.append(env)
        self.look(self.called[-1])
        assert 50 < deadline.seconds_left <= 60
        if self.says:
            log.write(self.says)
        if "--digestfile" in command:
            Path(command[command.index("--digestfile") + 1]).write_text(f"{DIGEST}\n")
        ends = self.codes.get(command[1], 0)
        if isinstance(ends, Exception):
            raise ends
        return ends

    def output(self, command: Sequence[str], *, text: bool) -> str:
        self.called.append(list(command))
        assert text
        return self.digests


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(registry, "registry_of", lambda image: (made.at, "acme/r/train"))
    monkeypatch.setattr(commands.processes, "run", made.run)
    monkeypatch.setattr(subprocess, "check_output", made.output)
    monkeypatch.delenv("BUILDAH_ISOLATION", raising=False)
    return made


def engine(name: str) -> CommandEngine:
    return CommandEngine(name, f"/bin/{name}")


def built(name: str, build: Build, machine: Machine) -> tuple[str, list[str]]:
    """Digest and lines of the log."""
    lines: list[str] = []
    return engine(name).build(build, lines.append), lines


def options(folder: Path, *labels: str, file: str = "context/sub/Dockerfile") -> list[str]:
    return [
        *("--platform", "linux/amd64", "--file", str(folder / file), "--tag", LOCAL),
        *("--build-arg", "A=b c", "--build-arg", "D="),
        *(part for label in labels for part in ("--label", label)),
    ]


def folder_of(machine: Machine) -> Path:
    """The work folder, by the context at the end of the first command."""
    return Path(machine.called[0][-1]).parent


def test_docker_builds_and_pushes_as_it_is_configured(build: Build, machine: Machine) -> None:
    assert built("docker", build, machine) == (DIGEST, [])
    folder = folder_of(machine)
    assert machine.called == [
        ["/bin/docker", "build", *options(folder, "x=1", "y=2"), "--target", "last",
         str(folder / "context")],
        ["/bin/docker", "push", LOCAL],
        ["/bin/docker", "image", "inspect", "--format", "{{json .RepoDigests}}", LOCAL],
    ]  # fmt: skip
    assert [env["BUILDX_NO_DEFAULT_ATTESTATIONS"] for env in machine.environments] == ["1", "1"]
    assert all("PATH" in env for env in machine.environments)
    assert machine.at.asked == [("acme/r/train", "context-1")] * 2
    assert not folder.exists()


@pytest.mark.parametrize(
    ("digests", "digest"),
    [
        (f'["127.0.0.1:5000/acme/r/train@{DIGEST}"]', DIGEST),
        (f'["127.0.0.1:5000/acme/r/trainer@{DIGEST}"]', ""),
        ("null", ""),
        ("", ""),
    ],
)
def test_a_digest_that_docker_does_not_have_is_the_registrys(
    build: Build, machine: Machine, digests: str, digest: str
) -> None:
    machine.digests = digests
    for since, wanted in ((3, digest), (2, OTHER)):
        machine.at = FakeRegistry(since=since, address="127.0.0.1:5000")
        assert built("docker", build, machine) == (wanted, [])


@pytest.mark.parametrize(("is_local", "more"), [(True, ["--tls-verify=false"]), (False, [])])
def test_a_registry_without_credentials_gets_none(
    build: Build, machine: Machine, is_local: bool, more: list[str]
) -> None:
    machine.at = FakeRegistry(is_local, "")
    built("podman", build, machine)
    digest = str(folder_of(machine) / "digest")
    command = ["/bin/podman", "push", "--digestfile", digest, *more, LOCAL, f"docker://{LOCAL}"]
    assert machine.called[1] == command


def test_a_base_that_is_stood_in_for_is_told(
    build: Build, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.at = FakeRegistry(is_local=True)
    monkeypatch.setattr(mirror, "has_stand_in", lambda: True)
    base = f"python:3.11-slim-bookworm@{DIGEST}"
    monkeypatch.setattr(commands.stand_in_bases, "stand_ins", lambda *_: {base: base})
    _, lines = built("podman", build, machine)
    text = "is stood in for by Debian's packages of the same release and Python"
    assert lines == [f"{base} {text}"]
    stood = f"{base}=docker-image://docker.io/library/python:3.11-slim-bookworm"
    context = str(folder_of(machine) / "context")
    assert machine.called[0][-3:] == ["--build-context", stood, context]


@pytest.mark.parametrize(
    ("since", "pushes", "told", "digest"),
    [
        (1, 0, [f"{LOCAL} was pushed by another build in between: taken."], OTHER),
        (2, 1, [], OTHER),  # the registry says what the tag has
        (3, 1, [], DIGEST),
    ],
)
def test_the_digest_is_that_of_the_tag(
    build: Build, machine: Machine, since: int, pushes: int, told: list[str], digest: str
) -> None:
    machine.at = FakeRegistry(since=since)
    assert built("podman", build, machine) == (digest, told)
    assert [command[1] for command in machine.called] == ["build", *["push"] * pushes]


def refusal(name: str, build: Build, machine: Machine) -> tuple[str, Sequence[str], str]:
    with pytest.raises(ImageBuildError) as refused:
        built(name, build, machine)
    return refused.value.message, refused.value.last_lines, refused.value.hint


def test_a_refused_push_takes_the_image_of_another_build(build: Build, machine: Machine) -> None:
    machine.codes = {"push": 125}
    machine.at = FakeRegistry(since=2)
    assert built("podman", build, machine) == (OTHER, [])
    machine.at = FakeRegistry()
    message = "train: podman push ended with exit code 125."
    assert refusal("podman", build, machine) == (message, (), "")


FULL = "a disk is full: free space, and run the command again"


@pytest.mark.parametrize(
    ("name", "step", "code", "says", "message", "hint"),
    [
        ("podman", "build", 3, "no such package",
         "train: podman build ended with exit code 3.", ""),
        ("docker", "build", 1, "", "train: docker build ended with exit code 1.", ""),
        ("docker", "push", 1, "denied", "train: docker push ended with exit code 1.",
         "gcloud auth configure-docker us-docker.pkg.dev"),
        ("buildah", "push", 1, "got 507 Insufficient Storage",
         "train: buildah push ended with exit code 1.", FULL),
        ("podman", "build", TimeoutError(), "slow",
         "train: the build took longer than 60 s; cancelled.", "raise --timeout."),
    ],
)  # fmt: skip
def test_a_program_that_fails_is_told_with_its_last_lines(
    build: Build,
    machine: Machine,
    name: str,
    step: str,
    code: int | Exception,
    says: str,
    message: str,
    hint: str,
) -> None:
    machine.codes, machine.says = {step: code}, says
    lines = (says,) * (2 if step == "push" else 1) if says else ()
    assert refusal(name, build, machine) == (message, lines, hint)


def test_a_program_or_a_context_that_cannot_be_used_is_told(
    build: Build, machine: Machine, tmp_path: Path
) -> None:
    machine.codes = {"build": PermissionError(13, "Permission denied")}
    message = "train: /bin/podman cannot be run: Permission denied."
    assert refusal("podman", build, machine) == (message, (), "")
    machine.called.clear()
    build.archive.write_text("no archive")
    message, _, _ = refusal("podman", build, machine)
    assert message.startswith("train: the context cannot be unpacked: ")
    assert message.endswith(".")
    with tarfile.open(build.archive, "w") as tar:
        tar.addfile(tarfile.TarInfo("../out"))
    message, _, _ = refusal("podman", build, machine)
    assert message.startswith("train: the context cannot be unpacked: '../out' would be extracted")
    assert machine.called == []


@pytest.mark.parametrize(
    ("name", "there", "answer", "found", "asked"),
    [
        ("podman", True, None, True, []),
        ("podman", False, None, False, []),
        ("docker", True, 0, True, [10]),
        ("docker", True, 1, False, [10]),
        ("docker", True, OSError(), False, [10]),
        ("docker", True, subprocess.TimeoutExpired("docker", 10), False, [10]),
    ],
)
def test_docker_is_there_if_its_daemon_answers(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    there: bool,
    answer: int | Exception | None,
    found: bool,
    asked: list[int],
) -> None:
    seconds: list[int] = []

    def run(command: list[str], *, timeout: int, capture_output: bool, check: bool) -> Any:
        assert (capture_output, check) == (True, False)
        assert command == ["/bin/docker", "version", "--format", "{{.Server.Version}}"]
        seconds.append(timeout)
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(returncode=answer)

    monkeypatch.setattr(commands.shutil, "which", lambda name: f"/bin/{name}" if there else None)
    monkeypatch.setattr(commands.subprocess, "run", run)
    wanted = CommandEngine(name, f"/bin/{name}") if found else None
    assert commands.find(name, "acme", "us-central1") == wanted
    assert seconds == asked
