"""What a machine of Batch gives a runnable: its variables, secrets, script and volumes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from localgcp import secretmanager
from localgcp.batch.capacity import Capacity
from localgcp.batch.records import BatchJob, BatchTable
from localgcp.batch.runnables import Machine
from localgcp.batch.volumes import HOSTS_FILE
from localgcp.containers.host import ContainerHost
from localgcp.errors import ImageError, PreparationError
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import SERVICE, Store
from localgcp.projects import local_project_number
from localgcp.runner.programs import HostProgram
from tests.unit.localcloud.batch.machines import DISK, GCS, Estate
from tests.unit.localcloud.batch.rows import batch_row
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


def test_a_runnable_finds_volumes_where_it_mounts_them(estate: Estate) -> None:
    estate.bucket()
    volumes = estate.volumes(GCS, DISK)
    root = volumes.root
    data, sub = root / "data", root / "data/sub"
    on_machine = {"/gcs/data": data, "/mnt/disk": sub}
    assert volumes.of(None) == volumes.of({}) == on_machine
    volumes.hosts_file.write_text("")
    assert volumes.of(None) == on_machine | {HOSTS_FILE: volumes.hosts_file}
    assert volumes.of({}) == on_machine
    volumes.prepare()
    container = {"volumes": [
        "/mnt/disk:/data:ro", "/mnt/disk/a/b:/ab/", "/gcs/data", f"{HOSTS_FILE}:/hosts",
        "/etc:/etc", "/mnt/disk/../x:/y", "/mnt/diskette:/z",
    ]}  # fmt: skip
    assert volumes.of(container) == {
        "/data": sub, "/ab": sub / "a/b", "/gcs/data": data, "/hosts": volumes.hosts_file,
    }  # fmt: skip
    assert estate.said[-3:] == [
        "volume /etc:/etc: this machine has nothing at /etc; left out.",
        "volume /mnt/disk/../x:/y: this machine has nothing at /mnt/disk/../x; left out.",
        "volume /mnt/diskette:/z: this machine has nothing at /mnt/diskette; left out.",
    ]


def test_a_link_out_of_a_volume_is_left_out(estate: Estate, tmp_path: Path) -> None:
    estate.bucket()
    volumes = estate.volumes(DISK)
    volumes.prepare()
    inside, outside = volumes.root / "data/sub/in", volumes.root / "data/sub/out"
    inside.symlink_to(volumes.root / "data")
    outside.symlink_to(tmp_path)
    named = volumes.of({"volumes": ["/mnt/disk/in:/in", "/mnt/disk/out:/out"]})
    assert named == {"/in": inside}


def test_a_container_has_an_empty_folder_at_gcs_if_it_mounts_nothing_there(
    estate: Estate, tmp_path: Path
) -> None:
    volumes = estate.volumes(GCS, DISK)
    empty = tmp_path / "empty"
    assert volumes.gcs({"/gcs/data": volumes.root / "data"}, empty) == volumes.root
    assert not empty.exists()
    for at in ({"/gcs/other": volumes.root / "data"}, {"/mnt/disk": volumes.root / "data/sub"}):
        assert volumes.gcs(at, empty) == empty
    assert empty.is_dir()


T4 = [{"type": "nvidia-tesla-t4", "count": "2"}]


class Asked:
    """Capacity over one home; ``quotas`` is what Compute Engine answers."""

    def __init__(self, home: Home) -> None:
        self.home, self.jobs = home, BatchTable(home)
        self.quotas: Any = None
        self.requests: list[tuple[str, str, bytes]] = []
        store, faults = Store(home.database), FaultTable(home.faults)
        self.capacity = Capacity(store, self.jobs, faults, self._ask)

    def _ask(self, verb: str, target: str, body: bytes) -> bytes | None:
        self.requests.append((verb, target, body))
        return self.quotas if self.quotas is None else json.dumps({"quotas": self.quotas}).encode()

    def wants(self, job: BatchJob) -> str:
        return self.capacity.wanting(job)


@pytest.fixture
def asked(home: Home) -> Asked:
    return Asked(home)


def test_a_quota_that_is_not_known_is_none(asked: Asked) -> None:
    gpu = batch_row(policy={"accelerators": T4})
    assert asked.wants(gpu) == ""
    for quotas in ([], [{"metric": "CPUS", "limit": 2}], [{"metric": "IN_USE_ADDRESSES"}]):
        asked.quotas = quotas
        assert asked.wants(gpu) == ""
    asked.quotas = [{"metric": "CPUS"}]
    assert asked.wants(gpu).endswith(" [Quota: CPUS, limit: 0, usage: 0, wanted: 2.].")
