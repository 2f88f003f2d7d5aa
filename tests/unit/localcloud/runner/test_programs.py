"""What a replica starts: a command of this machine with its variables, or a container."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from localgcp.containers.engines import Docker
from localgcp.containers.host import ContainerHost
from localgcp.errors import ImageError
from localgcp.runner.environment import Folders
from localgcp.runner.programs import ContainerProgram
from localgcp.system.gpus import Gpu
from localgcp.system.processes import ChildProcess
from tests.unit.localcloud.conftest import wait_until

IMAGE = "us-central1-docker.pkg.dev/local-training/training/x:1"
URL = "http://127.0.0.1:1"


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    made = Folders(work=tmp_path / "work", tmp=tmp_path / "tmp", gcs=tmp_path / "gcs")
    for folder in (made.work, made.tmp, made.gcs):
        folder.mkdir()
    return made


class Host(ContainerHost):
    """Removes containers by a note."""

    def __init__(self) -> None:
        self.port = 5000
        self.removed: list[str] = []

    def remove(self, container: str) -> None:
        self.removed.append(container)

    def environment(self, tmp: Path | None = None) -> dict[str, str]:
        return {"PATH": "/bin", "TMPDIR": str(tmp)}


class Engine(Docker):
    """docker, but that an image's configuration is printed by this Python."""

    def inspect(self, container: str, reference: str) -> list[str]:
        text = CONFIGS[reference.rpartition(":")[2]]
        code = (
            f"import os, sys; print(sys.stdin.read() + {text!r}) if 'USER' not in os.environ else 0"
        )
        return [sys.executable, "-c", code]


CONFIGS = {
    "1": '{"Entrypoint": ["entry"], "Cmd": ["default"]}',
    "2": "{}",
    "3": "no JSON",
}


class Container:
    """A container's program, and the commands that were run to prepare it."""

    def __init__(
        self,
        folders: Folders,
        image: str,
        code: int = 0,
        *,
        engine: str = "docker",
        gpus: tuple[Gpu, ...] = (),
        **task: Any,
    ) -> None:
        self.ran: list[tuple[list[str], Mapping[str, str]]] = []
        self.host, self.code = Host(), code
        program = Engine(engine, "home", "1000:1000", engine)
        self.program = ContainerProgram(
            self.host, program, {"imageUri": image, **task}, name="vt-1", folders=folders,
            storage_url=URL, run=self.run, volumes={"/secret": Path("/s")}, gpus=gpus,
        )  # fmt: skip

    def run(self, command: list[str], env: Mapping[str, str]) -> int:
        self.ran.append((command, env))
        return self.code


@pytest.mark.usefixtures("typed")
@pytest.mark.parametrize(
    ("task", "entry", "rest"),
    [
        ({}, "entry", ["default"]),
        ({"args": ["--id=$(ID)"]}, "entry", ["--id=7"]),
        ({"command": ["own", "$(MINE)"]}, "own", ["m"]),
        ({"command": ["own"], "args": ["/gcs/a", "$(MINE)"]}, "own", ["/gcs/a", "m"]),
    ],
)
def test_a_container_runs_what_its_image_and_its_task_say(
    folders: Folders,
    monkeypatch: pytest.MonkeyPatch,
    task: dict[str, Any],
    entry: str,
    rest: list[str],
) -> None:
    monkeypatch.setenv("USER", "of the server")
    made = Container(folders, IMAGE, **task)
    (folders.gcs / "data").mkdir(0o700)
    (folders.gcs / "data" / "x").touch(0o600)
    service, user = {"ID": "7", "BOTH": "s"}, {"MINE": "m", "BOTH": "u"}
    launch = made.program.launch(service, user)
    reference = "127.0.0.1:5000/local-training/training/x:1"
    engine_env = {"PATH": "/bin", "TMPDIR": str(folders.tmp)}
    assert made.ran == [(["docker", "pull", reference], engine_env)]
    assert made.host.removed == ["vt-1"]
    assert launch.argv == [
        *("docker", "run", "--rm", "--init", "--name", "vt-1"),
        *("--label", "vertex-training.home=home", "--network", "host", "--user", "1000:1000"),
        *("--volume", f"{folders.gcs}:/gcs", "--volume", "/s:/secret"),
        *("--env", "PYTHONUNBUFFERED=1", "--env", f"STORAGE_EMULATOR_HOST={URL}"),
        *("--env", "MINE=m", "--env", "BOTH=s"),
        *("--env", "CUDA_VISIBLE_DEVICES=", "--env", "NVIDIA_VISIBLE_DEVICES=void"),
        *("--env", "ID=7"),
        *("--entrypoint", entry, reference, *rest),
    ]
    assert (launch.env, launch.umask) == (engine_env, 0o022)
    assert (folders.gcs / "data").stat().st_mode & 0o777 == 0o777
    assert (folders.gcs / "data" / "x").stat().st_mode & 0o777 == 0o666
    assert made.program.gcs == Path("/gcs")
    made.program.close()
    assert made.host.removed == ["vt-1", "vt-1"]


@pytest.mark.parametrize(
    ("engine", "chosen", "options", "numbers", "ids"),
    [
        ("docker", {}, ["--gpus", '"device=GPU-a,MIG-b"'], "0,1", "GPU-a,MIG-b"),
        ("docker", {"CUDA_VISIBLE_DEVICES": "1"}, ["--gpus", '"device=MIG-b"'], "0", "MIG-b"),
        ("podman", {}, ["--device", "nvidia.com/gpu=4", "--device", "nvidia.com/gpu=5:1"], "0,1",
         "GPU-a,MIG-b"),
        ("podman", {"NVIDIA_VISIBLE_DEVICES": "all", "CUDA_VISIBLE_DEVICES": ""}, [], "", "void"),
    ],
)  # fmt: skip
def test_a_container_has_the_gpus_of_its_replica_and_no_others(
    folders: Folders,
    engine: str,
    chosen: dict[str, str],
    options: list[str],
    numbers: str,
    ids: str,
) -> None:
    gpus = (Gpu("GPU-a", number=4), Gpu("MIG-b", number=5, part=1))
    argv = Container(folders, IMAGE, engine=engine, gpus=gpus).program.launch({}, chosen).argv
    assert [
        word for word in argv if "nvidia.com" in word or "device" in word or word == "--gpus"
    ] == options
    assert [word for word in argv if "VISIBLE_DEVICES" in word] == [
        *(f"NVIDIA_VISIBLE_DEVICES={ids}" if name[0] == "N" else f"{name}={numbers}"
          for name in {**chosen, "CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": ""}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("version", "code", "text"),
    [
        ("1", 1, "cannot pull the image {}; see the job's log."),
        ("2", 0, "the image {} has neither ENTRYPOINT nor CMD. Set a command."),
        ("3", 0, "cannot inspect the image {}: Expecting value: line 1 column 1 (char 0)"),
    ],
)
def test_an_image_that_cannot_be_had_or_runs_nothing_is_refused(
    folders: Folders, version: str, code: int, text: str
) -> None:
    image = IMAGE.removesuffix("1") + version
    with pytest.raises(ImageError) as refused:
        Container(folders, image, code).program.launch({}, {})
    assert str(refused.value) == text.format(image)


@pytest.mark.parametrize("name", ["buildah-chroot-exec", "other"])
def test_a_containers_first_process_alone_is_asked_to_end(
    folders: Folders, tmp_path: Path, name: str
) -> None:
    first = f"exec -a {name} bash -c 'sleep 600 & echo > {tmp_path}/begun; wait; exit 7'"
    engine = subprocess.Popen(["bash", "-c", f"({first}); exit $?"], start_new_session=True)
    try:
        wait_until((tmp_path / "begun").exists)
        launch = Container(folders, IMAGE).program.launch({}, {})
        asked = launch.terminate(ChildProcess(engine.pid, "", "job"))
        assert asked is (name == "buildah-chroot-exec")
        if asked:
            assert engine.wait(20) == 7
        else:
            assert engine.poll() is None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(engine.pid, signal.SIGKILL)
        engine.wait()
    assert launch.terminate(ChildProcess(engine.pid, "", "job")) is False
