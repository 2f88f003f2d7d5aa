"""The command lines by which docker, podman and buildah build and push an image."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials

from localgcp.containers import registry as local_registry
from tests.unit.vt.images import stand_in
from vertex_training.errors import ImageBuildError
from vertex_training_cli.images import programs
from vertex_training_cli.images.programs import Build

#: Of what the program below pushes.
DIGEST = f"sha256:{hashlib.sha256(b'{}').hexdigest()}"
PATH = "local-one/training-one/train"
BASE = f"python:3.11-slim-bookworm@{DIGEST}"
#: In place of an engine: keeps its arguments, and does what ``mode`` says for its first word.
PROGRAM = """\
import http.client, json, pathlib, sys
folder = pathlib.Path(__file__).parent
verb = sys.argv[1]
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + chr(10))
modes = json.loads((folder / "modes").read_text())
text, code = modes.get(verb, ["", 0])
if verb == "push" and not code:
    address, _, image = sys.argv[-1].removeprefix("docker://").partition("/")
    url = "/v2/%s/manifests/%s" % tuple(image.split(":"))
    client = http.client.HTTPConnection(address)
    client.request("PUT", url, "{}", {"Content-Type": "application/vnd.oci.image.manifest.v1+json"})
    client.getresponse()
if "--file" in sys.argv:
    file = pathlib.Path(sys.argv[sys.argv.index("--file") + 1])
    (folder / "dockerfile").write_text(file.read_text())
print(text, end="")
sys.exit(code)
"""


class Machine:
    """Engines of this machine, and what they were called with."""

    def __init__(self, folder: Path, registry: stand_in.Registry) -> None:
        self.folder, self.registry = folder, registry
        self.lines: list[str] = []
        for name in ("docker", "podman", "buildah"):
            program = folder / name
            program.write_text(f"#!{sys.executable}\n{PROGRAM}")
            program.chmod(0o755)
        self.local = f"{registry.address}/{PATH}:context-1"
        self.set()

    def set(self, **modes: tuple[str, int]) -> None:
        """Set text and exit code by verb."""
        (self.folder / "modes").write_text(json.dumps(modes))

    def build(self, name: str, build: Build) -> str:
        engine = programs.find(name)
        assert engine
        return engine.build(build, self.lines.append)

    @property
    def called(self) -> list[list[str]]:
        """Arguments of each call; the work folder is called FOLDER."""
        found = [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]
        context = next(each[-1] for each in found if each[0] == "build")
        folder = context.removesuffix("/context")
        return [[part.replace(folder, "FOLDER") for part in call] for call in found]


@pytest.fixture
def machine(
    tmp_path: Path, registry: stand_in.Registry, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin:/bin")
    monkeypatch.delenv("BUILDAH_ISOLATION", raising=False)
    monkeypatch.setattr(local_registry, "has_stand_in", lambda: True)
    return Machine(folder, registry)


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
        build_args={"A": "b c", "D": ""}, target="last",
        image=f"us-docker.pkg.dev/{PATH}", tag="context-1",
        labels={"x": "1", "y": "$2"}, identity="1" * 64, timeout=60.0,
    )  # fmt: skip


def options(local: str, *more: str, file: str = "context/sub/Dockerfile") -> list[str]:
    return [
        *("--platform", "linux/amd64", "--file", f"FOLDER/{file}", "--tag", local),
        *("--build-arg", "A=b c", "--build-arg", "D=", *more, "FOLDER/context"),
    ]


LABELS = ("--label", "x=1", "--label", "y=$2", "--target", "last")


def test_docker_builds_and_pushes_as_it_is_configured(build: Build, machine: Machine) -> None:
    assert machine.build("docker", build) == DIGEST
    assert machine.lines == []
    assert machine.called == [
        ["version", "--format", "{{.Server.Version}}"],
        ["build", *options(machine.local, *LABELS)],
        ["push", machine.local],
    ]


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_image_that_the_registry_does_not_have_after_the_push_is_no_image(
    build: Build, machine: Machine, name: str
) -> None:
    program = machine.folder / name
    program.write_text(program.read_text().replace('verb == "push" and not code', "False"))
    message = f"train: {name} pushed {machine.local}, but the registry does not have this digest."
    assert refusal(name, build, machine)[0] == message


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("podman", ["--layers", "--force-rm"]),
        ("buildah", ["--layers", "--force-rm", "--network=host", "--isolation=chroot"]),
    ],
)
def test_podman_and_buildah_push_without_tls_to_the_local_registry(
    build: Build, machine: Machine, name: str, more: list[str]
) -> None:
    assert machine.build(name, build) == DIGEST
    assert machine.called == [
        ["build", *more, *options(machine.local, *LABELS)],
        ["push", "--tls-verify=false", machine.local, f"docker://{machine.local}"],
    ]


def test_all_labels_are_one_instruction_of_a_single_stage(build: Build, machine: Machine) -> None:
    machine.build("buildah", dataclasses.replace(build, target=""))
    assert machine.called[0][5:] == options(machine.local, file="Dockerfile")
    text = (machine.folder / "dockerfile").read_text()
    assert text == 'FROM x\nLABEL "x"="1" "y"="\\$2"\n'


def refusal(name: str, build: Build, machine: Machine) -> tuple[str, Sequence[str], str]:
    with pytest.raises(ImageBuildError) as refused:
        machine.build(name, build)
    return refused.value.message, refused.value.last_lines, refused.value.hint


def test_image_that_another_build_pushed_meanwhile_is_taken(build: Build, machine: Machine) -> None:
    theirs = machine.registry.add_image(PATH, "context-1")
    assert machine.build("podman", build) == theirs
    text = f"another build has pushed {build.reference}: this image is used."
    assert machine.lines == [text]
    assert [call[0] for call in machine.called] == ["build"]


FULL = "free disk space, and run the command again"


@pytest.mark.parametrize(
    ("name", "step", "says", "hint"),
    [
        ("podman", "build", "no such package", ""),
        ("docker", "build", "", ""),
        ("docker", "push", "denied", "run `gcloud auth configure-docker us-docker.pkg.dev`"),
        ("podman", "push", "denied", ""),
        ("buildah", "push", "got 507 Insufficient Storage", FULL),
        ("buildah", "build", "no space left on device", FULL),
    ],
)
def test_failed_program_is_reported_with_its_last_lines(
    build: Build, machine: Machine, name: str, step: str, says: str, hint: str
) -> None:
    machine.set(**{step: (says, 3)})
    lines = (says,) if says else ()
    message = f"train: the {step} of {name} ended with exit code 3."
    assert refusal(name, build, machine) == (message, lines, hint)


def test_context_that_leads_out_of_its_folder_is_refused(build: Build, machine: Machine) -> None:
    build.archive.write_text("no archive")
    assert refusal("podman", build, machine)[0].startswith("train: cannot unpack the context")
    with tarfile.open(build.archive, "w") as tar:
        tar.addfile(tarfile.TarInfo("../out"))
    message, _, _ = refusal("podman", build, machine)
    assert message.startswith("train: cannot unpack the context: '../out' would be extracted")
    assert not (machine.folder / "calls").exists()


def test_program_that_cannot_run_is_named(build: Build, machine: Machine) -> None:
    (machine.folder / "podman").write_text("#!/nonexistent\n")
    message, lines, hint = refusal("podman", build, machine)
    assert message.startswith(f"train: cannot run {machine.folder}/podman: ")
    assert (lines, hint) == ((), "")
    (machine.folder / "podman").unlink()
    assert programs.find("podman") is None


def test_docker_without_its_daemon_is_not_used(machine: Machine) -> None:
    machine.set(version=("no daemon", 1))
    assert programs.find("docker") is None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (f"# syntax=docker/dockerfile:1\nARG BASE={BASE}\nFROM $BASE\n", {}),
        (f'ARG BASE="{BASE}"\nFROM ${{BASE}} AS one\n', {}),
        (f"ARG DIGEST={DIGEST}\nFROM python:3.11-slim-bookworm@${{DIGEST}}\n", {}),
        ("ARG BASE=scratch\nFROM $BASE\n", {"BASE": BASE}),
        ("ARG BASE\nFROM $BASE\n", {"BASE": BASE}),
    ],
)
def test_base_that_an_argument_names_is_replaced_by_its_stand_in(
    tmp_path: Path, machine: Machine, text: str, values: dict[str, str]
) -> None:
    file = tmp_path / "Dockerfile"
    file.write_text(text)
    found = programs.stand_ins(file, values)
    assert list(found.values()) == [BASE]
    names = programs.stand_in_options(found)[1::2]
    assert [each.partition("=docker-image://")[0] for each in names] == [*found, BASE]


def with_base(build: Build, **changes: Any) -> Build:
    with tarfile.open(build.archive, "w") as tar:
        entry = tarfile.TarInfo("sub/Dockerfile")
        text = f"FROM {BASE}\n".encode()
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    return dataclasses.replace(build, **changes)


@pytest.mark.parametrize(
    ("name", "made", "replaced"),
    [("buildah", True, True), ("podman", True, True), ("docker", True, False),
     ("buildah", False, False)],
)  # fmt: skip
def test_base_is_replaced_for_the_local_registry_by_buildah_and_podman(
    build: Build,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    made: bool,
    replaced: bool,
) -> None:
    monkeypatch.setattr(local_registry, "has_stand_in", lambda: made)
    machine.build(name, with_base(build))
    calls = [call for call in machine.called if call[0] == "build"]
    assert ("--build-context" in calls[0]) is replaced


def test_image_for_google_is_never_built_on_a_stand_in(
    build: Build, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("google.auth.default", lambda scopes: (AnonymousCredentials(), None))
    machine.set(build=("stop", 1))
    image = "us-docker.pkg.dev/acme-ml-dev/training-dev/train"
    refusal("buildah", with_base(build, image=image), machine)
    assert "--build-context" not in machine.called[0]


def run_alone(build: Build, folder: Path) -> int:
    """Run a build in the form that the local cloud starts as a process."""
    request = folder / "build.json"
    request.write_text(json.dumps(dataclasses.asdict(build) | {"archive": str(build.archive)}))
    return programs.main([str(request), str(folder / "result")])


def test_build_of_the_local_cloud_leaves_its_digest_or_its_reason(
    build: Build, machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.set(version=("", 1), build=("step 1\n", 0))  # no docker
    assert run_alone(build, tmp_path) == 0
    assert (tmp_path / "result").read_text() == DIGEST
    assert capsys.readouterr().out == "step 1\n"
    (tmp_path / "result").unlink()
    machine.set(version=("", 1), build=("step 1\n", 4))
    assert run_alone(build, tmp_path) == 1
    assert not (tmp_path / "result").exists()
    out = capsys.readouterr().out
    assert out.startswith("step 1\ntrain: the build of podman ended with exit code 4.")
