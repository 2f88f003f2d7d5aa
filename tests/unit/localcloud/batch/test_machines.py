"""What a machine of Batch gives a runnable: its variables, secrets, script and volumes."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localgcp import secretmanager
from localgcp.batch.runnables import Machine
from localgcp.containers.engines import Docker
from localgcp.containers.host import ContainerHost
from localgcp.errors import ImageError, PreparationError
from localgcp.inventory.store import SERVICE
from localgcp.projects import local_project_number
from localgcp.runner import executors
from localgcp.runner.programs import ContainerProgram, HostProgram, Launch
from tests.unit.localcloud.batch.machines import DISK, Estate
from tests.unit.localcloud.conftest import PROJECT, TRAINER, set_grant

SECRET = f"projects/{PROJECT}/secrets/key/versions/latest"
ACCESSOR = "roles/secretmanager.secretAccessor"


def prepared(machine: Machine, runnable: Any, index: int = 0) -> Any:
    program, launch = machine.prepare(index, runnable, {"BATCH_TASK_INDEX": "0"}, "name")
    assert isinstance(program, HostProgram)
    return launch


def refusal(machine: Machine, runnable: Any) -> str:
    with pytest.raises(PreparationError) as told:
        machine.prepare(0, runnable, {}, "name")
    return str(told.value)


SCRIPT = {"script": {"text": "echo"}}


def test_a_secret_is_read_when_its_runnable_starts(estate: Estate) -> None:
    number = local_project_number(PROJECT)
    given = {"secretVariables": {"KEY": SECRET}}
    machine = estate.machine(environment=given)
    assert refusal(machine, SCRIPT) == (
        f"{SECRET} cannot be read: secretmanager.googleapis.com is not enabled."
    )
    api = "secretmanager.googleapis.com"
    estate.store.put(SERVICE, f"{PROJECT}/{api}", PROJECT, {}, {})
    text = f"Permission 'secretmanager.versions.access' denied for resource '{SECRET}'"
    denied = f"{text} (or it may not exist). It runs as {TRAINER}."
    assert refusal(machine, SCRIPT) == denied
    for place in (f"projects/{PROJECT}/secrets/key", f"projects/{PROJECT}"):
        set_grant(estate.store, place, ACCESSOR, TRAINER)
        text = f"Secret Version [{SECRET}] not found."
        assert refusal(machine, SCRIPT) == f"{text} Give it a value: vt local secret set key"
        set_grant(estate.store, place, "roles/viewer", TRAINER)
        assert refusal(machine, SCRIPT) == denied
    set_grant(estate.store, f"projects/{PROJECT}", ACCESSOR, TRAINER)
    for value in (b"first", b"second"):
        secretmanager.add_version(estate.home.secrets, PROJECT, "key", value)
    # Values are there, and no secret of that name: it was deleted, or is still to be made.
    text = f"Secret Version [{SECRET}] not found."
    assert refusal(machine, SCRIPT) == f"{text} Give it a value: vt local secret set key"
    kind, id_ = "gcp:secretmanager/secret:Secret", f"projects/{PROJECT}/secrets/key"
    estate.store.put(kind, id_, PROJECT, {}, {})
    assert prepared(machine, SCRIPT).env["KEY"] == "second"
    first = f"projects/{number}/secrets/key/versions/1"
    own = {"environment": {"secretVariables": {"KEY": first}}}
    assert prepared(estate.machine(), SCRIPT | own).env["KEY"] == "first"
    secretmanager.add_version(estate.home.secrets, PROJECT, "key", b"\xff")
    assert refusal(machine, SCRIPT) == f"{SECRET} is no text: no variable can have it."


def test_a_script_of_a_file_runs_by_its_first_line(estate: Estate, tmp_path: Path) -> None:
    file = tmp_path / "run"
    for text, shell in (("echo", ["/bin/sh"]), ("#!/bin/bash -e\necho", ["/bin/bash", "-e"])):
        file.write_text(text)
        runnable = {"script": {"path": str(file)}}
        assert prepared(estate.machine(), runnable).argv == [*shell, str(file)]
    file.write_bytes(b"\xff\xfe echo")
    runnable = {"script": {"path": str(file)}}
    assert prepared(estate.machine(), runnable).argv == ["/bin/sh", str(file)]
    file.unlink()
    assert refusal(estate.machine(), {"script": {"path": str(file)}}) == (
        f"{file}: No such file or directory"
    )


def test_a_container_has_the_variables_of_a_file_that_a_script_wrote(estate: Estate) -> None:
    machine = estate.machine(environment={"variables": {"B": "job"}})
    (machine.folders.tmp / "env").write_text("# A=no\nA=1=2\nB=file\nnothing\nC=\n")
    container = {"imageUri": "python:3.11", "entrypoint": sys.executable, "commands": ["-V"]}
    bare = prepared(machine, {"container": container}).env
    assert bare["B"] == "job"
    for options in ("--env-file=/tmp/env", "-x --env-file /tmp/env --y"):
        env = prepared(machine, {"container": container | {"options": options}}).env
        assert env == bare | {"A": "1=2", "C": ""}
    options = {"options": "--env-file=/tmp/none"}
    said = refusal(machine, {"container": container | options})
    assert said == "--env-file=/tmp/none: No such file or directory"
    env = prepared(machine, {"container": container | {"options": "--my-env-file=/tmp/env"}}).env
    assert "A" not in env


def test_googles_own_image_has_the_programs_of_its_stand_in(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = estate.home.batch / "environment" / "bin" / "tool"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o700)
    asked = list[str]()

    def environment(executor: executors.Executor, report: Any) -> Path:
        asked.append(executor.name)
        return tool.parents[1]

    monkeypatch.setattr(executors, "environment", environment)
    image = "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-3.py310:latest"
    launch = prepared(
        estate.machine(), {"container": {"imageUri": image, "entrypoint": "tool", "commands": []}}
    )
    assert asked == ["pytorch-2.3"]
    assert launch.env["PATH"] == f"{tool.parent}:{os.environ['PATH']}"
    own = {"imageUri": "python:3.11", "entrypoint": sys.executable}
    assert prepared(estate.machine(), {"container": own}).env["PATH"] == os.environ["PATH"]
    monkeypatch.delenv("PATH")
    assert prepared(estate.machine(), SCRIPT).env["PATH"] == os.defpath


def test_an_image_of_the_local_registry_needs_the_right_to_pull_it(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ContainerHost, "engine", None)
    image = f"us-central1-docker.pkg.dev/{PROJECT}/training/x:1"
    place = f"projects/{PROJECT}/locations/us-central1/repositories/training"

    def told() -> str:
        with pytest.raises(ImageError) as error:
            estate.machine().prepare(0, {"container": {"imageUri": image}}, {}, "name")
        return str(error.value)

    denied = f"{TRAINER} does not have artifactregistry.repositories.downloadArtifacts on {place}."
    assert told() == f"{image} cannot be pulled: {denied}"
    role = "roles/artifactregistry.{}"
    for name in ("reader", "writer", "repoAdmin", "admin"):
        set_grant(estate.store, place, role.format(name), TRAINER)
        assert told() == f"{image} cannot run: nothing runs containers here."
    set_grant(estate.store, place, "roles/storage.admin", TRAINER)
    assert told() == f"{image} cannot be pulled: {denied}"
    set_grant(estate.store, f"projects/{PROJECT}", "roles/viewer", TRAINER)
    assert told() == f"{image} cannot run: nothing runs containers here."


@pytest.mark.parametrize(
    ("container", "task"),
    [
        ({}, {"args": []}),
        ({"commands": ["train", "$(PATH)"]}, {"args": ["train", "$$(PATH)"]}),
        ({"entrypoint": "$(A)", "commands": []}, {"command": ["$$(A)"], "args": []}),
    ],
)
def test_an_image_of_the_local_registry_runs_with_its_words_buckets_and_files(
    estate: Estate, monkeypatch: pytest.MonkeyPatch, container: Any, task: Any
) -> None:
    engine = Docker("docker", "home", "1000:1000")
    monkeypatch.setattr(ContainerHost, "engine", engine)
    place = f"projects/{PROJECT}/locations/us-central1/repositories/training"
    set_grant(estate.store, place, "roles/artifactregistry.reader", TRAINER)
    image = f"us-central1-docker.pkg.dev/{PROJECT}/training/x:1"
    estate.bucket()
    volumes = estate.volumes(DISK)
    volumes.prepare()
    machine = estate.machine(volumes=volumes, environment={"variables": {"A": "/mnt/disk"}})
    given: list[Any] = []

    def launch(_program: ContainerProgram, *variables: Any) -> Launch:
        given.extend(variables)
        return Launch([], {})

    monkeypatch.setattr(ContainerProgram, "launch", launch)
    runnable = {"container": {"imageUri": image, **container}}
    program, _ = machine.prepare(0, runnable, {"BATCH_TASK_INDEX": "0"}, "name")
    assert isinstance(program, ContainerProgram)
    assert given == [{"BATCH_TASK_INDEX": "0"}, {"A": "/mnt/disk"}]
    empty = machine.folders.work.parent / "no-gcs"
    assert vars(program) == {
        "host": machine.containers, "engine": engine, "task": {"imageUri": image, **task},
        "name": "name", "folders": replace(machine.folders, gcs=empty),
        "storage_url": "http://127.0.0.1:9", "run": machine.run, "reference": "",
        "volumes": {"/gcs": empty, "/mnt/disk": volumes.root / "data/sub"},
    }  # fmt: skip
    assert empty.is_dir()


def test_programs_of_a_gang_are_told_of_the_file_with_all_hosts(estate: Estate) -> None:
    volumes = estate.volumes()
    volumes.hosts_file.write_text("127.0.0.1 a\n")
    env = prepared(estate.machine(volumes=volumes), SCRIPT).env
    assert env["BATCH_HOSTS_FILE"] == str(volumes.hosts_file)


@pytest.mark.parametrize(
    ("text", "shell"), [("echo $(A)", "/bin/sh"), ("#!/bin/bash\necho", "/bin/bash")]
)
def test_a_script_is_a_file_that_its_interpreter_reads(
    estate: Estate, text: str, shell: str
) -> None:
    machine = estate.machine()
    file = machine.folders.work.with_name("script-3")
    assert prepared(machine, {"script": {"text": text}}, 3).argv == [shell, str(file)]
    assert file.read_text() == text
