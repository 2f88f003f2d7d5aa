"""GPUs of this machine in jobs: counted, divided among jobs, and named where a job got others.

A program in place of ``nvidia-smi`` prints the lists in ``tests/fixtures/nvidia-smi``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.home import Home
from localgcp.runner.allotment import GpuShortage
from localgcp.runner.executors import read_substitutes, read_wait
from localgcp.runner.refusals import refusals
from localgcp.system import gpus
from tests.unit.localcloud.conftest import Cloud, command_job, wait_until

LISTS = Path(__file__).parents[3] / "fixtures" / "nvidia-smi"
SHOW = 'echo "has [$CUDA_VISIBLE_DEVICES] $LD_LIBRARY_PATH"'

SetList = Callable[[str], None]


def ids(name: str) -> list[str]:
    """UUIDs of a list, MIG devices among them."""
    text = (LISTS / f"{name}.txt").read_text()
    return [line.partition("UUID: ")[2].rstrip(")") for line in text.splitlines() if "UUID" in line]


ONE, EIGHT, MIG = ids("1"), ids("8"), ids("mig")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SetList:
    """Sets the list of this machine's GPUs; no other test shares its locks."""
    bin_, runtime = tmp_path / "bin", tmp_path / "runtime"
    bin_.mkdir()
    runtime.mkdir()
    program, listing = bin_ / "nvidia-smi", tmp_path / "list"
    program.write_text(f'#!/bin/sh\ntest "$*" = -L || exit 9\ncat {listing}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.delenv(gpus.VISIBLE)

    def set_list(name: str) -> None:
        listing.write_bytes((LISTS / f"{name}.txt").read_bytes())

    return set_list


def gpu_job(
    script: str = SHOW, count: int = 1, kind: str = "NVIDIA_TESLA_T4", *, env: str | None = None
) -> dict[str, Any]:
    """A job of one replica that requests GPUs, with its own CUDA_VISIBLE_DEVICES in ``env``."""
    job = command_job("sh", "-c", script)
    pool = job["job_spec"]["worker_pool_specs"][0]
    types = {"NVIDIA_H200_141GB": "a3-ultragpu-8g", "NVIDIA_H100_80GB": f"a3-highgpu-{count}g"}
    spec = {"machine_type": types.get(kind, "n1-standard-4")}
    added = {"accelerator_type": kind, "accelerator_count": count} if count else {}
    pool["machine_spec"] = {**spec, **added}
    if env is not None:
        pool["container_spec"]["env"] = [{"name": gpus.VISIBLE, "value": env}]
    return job


def job_id(job: vertex.CustomJob) -> str:
    return job.name.rpartition("/")[2]


T4 = "1 NVIDIA_TESLA_T4"


@pytest.mark.parametrize(
    ("listing", "of_server", "job", "visible", "note"),
    [
        ("0", None, gpu_job(), [], f"on CPUs, not on {T4}: this machine has no GPU"),
        ("1", None, gpu_job(count=0), [], ""),
        ("1", None, gpu_job(), ONE, f"on 1 NVIDIA H200, not on {T4}"),
        ("1", "", gpu_job(), [], f"on CPUs, not on {T4}: this machine has no GPU"),
        ("1", None, gpu_job(count=2), [],
         "on CPUs, not on 2 NVIDIA_TESLA_T4: this machine has 1 NVIDIA H200"),
        ("8", None, gpu_job(count=8, kind="NVIDIA_H100_80GB"), EIGHT, ""),
        ("8", "5,2", gpu_job(count=2, kind="NVIDIA_H100_80GB"), [EIGHT[5], EIGHT[2]], ""),
        ("8", EIGHT[3][:12], gpu_job(kind="NVIDIA_H100_80GB"), [EIGHT[3]], ""),
        ("8", "9,1", gpu_job(), [], f"on CPUs, not on {T4}: this machine has no GPU"),
        ("8", None, gpu_job(count=4, kind="NVIDIA_H100_80GB", env="3,1"), [EIGHT[3], EIGHT[1]], ""),
        ("8", None, gpu_job(kind="NVIDIA_H100_80GB", env=EIGHT[7]), [], ""),
        ("8", None, gpu_job(count=0, env="0,1,2"), [], ""),
        ("mig", None, gpu_job(), [MIG[1]], f"on 1 NVIDIA A100-SXM4-40GB MIG 3g.20gb, not on {T4}"),
        ("mig", None, gpu_job(count=2), [],
         "on CPUs, not on 2 NVIDIA_TESLA_T4: this machine has 2 NVIDIA A100-SXM4-40GB MIG "
         "3g.20gb, 1 NVIDIA A100-SXM4-40GB"),
    ],
)  # fmt: skip
def test_a_job_gets_the_gpus_that_it_requests_or_says_what_it_ran_on(
    cloud: Cloud,
    machine: SetList,
    monkeypatch: pytest.MonkeyPatch,
    listing: str,
    of_server: str | None,
    job: dict[str, Any],
    visible: list[str],
    note: str,
) -> None:
    machine(listing)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/cuda/lib")
    if of_server is not None:
        monkeypatch.setenv(gpus.VISIBLE, of_server)
    done = cloud.run(job)
    log = cloud.log(done)
    assert done.state.name == "JOB_STATE_SUCCEEDED", log
    assert f"has [{','.join(visible)}] /opt/cuda/lib" in log
    recorded = [line for line in read_substitutes(cloud.home, job_id(done)) if "host" not in line]
    assert recorded == [note] * bool(note)
    assert note in log
    own = "CUDA_VISIBLE_DEVICES of the job selects among the GPUs that the replica has"
    assert (own in log) == bool(
        job["job_spec"]["worker_pool_specs"][0]["container_spec"].get("env")
    )


def test_replicas_of_a_job_have_different_gpus(cloud: Cloud, machine: SetList) -> None:
    machine("8")
    job = gpu_job(count=4, kind="NVIDIA_H100_80GB")
    first = job["job_spec"]["worker_pool_specs"][0]
    workers = {**first, "replica_count": 2, "machine_spec": {"machine_type": "n1-standard-4",
        "accelerator_type": "NVIDIA_TESLA_T4", "accelerator_count": 2}}  # fmt: skip
    job["job_spec"]["worker_pool_specs"].append(workers)
    done = cloud.run(job)
    logs = (cloud.home.jobs / job_id(done) / "logs").glob("*.log")
    shown = [line for log in logs for line in log.read_text().splitlines() if "has [" in line]
    used = [id_ for line in shown for id_ in line.partition("[")[2].partition("]")[0].split(",")]
    assert sorted(used) == sorted(EIGHT)


@pytest.mark.parametrize("choice", ["auto", "cpu"])
def test_a_gpu_in_use_delays_a_job_or_runs_it_on_cpus(
    cloud: Cloud, machine: SetList, choice: str
) -> None:
    machine("1")
    GpuShortage(choice).keep(cloud.home)
    first = cloud.submit(gpu_job("sleep 600"))
    wait_until(lambda: cloud.client.get_custom_job(name=first.name).state == 3)
    second = cloud.submit(gpu_job())
    reason = "0 of 1 GPUs of this machine are free"
    if choice == "auto":
        waits = f"{reason}, and the job requests {T4}"
        wait_until(lambda: read_wait(cloud.home, job_id(second)) == waits)
        assert cloud.client.get_custom_job(name=second.name).state.name == "JOB_STATE_PENDING"
        assert cloud.log(second).count(waits) == 1
        cloud.client.cancel_custom_job(name=first.name)
    wait_until(lambda: cloud.client.get_custom_job(name=second.name).state == 4)
    got = ONE if choice == "auto" else []
    assert f"has [{','.join(got)}]" in cloud.log(second)
    noted = f"on 1 NVIDIA H200, not on {T4}" if got else f"on CPUs, not on {T4}: {reason}"
    assert noted in read_substitutes(cloud.home, job_id(second))
    assert read_wait(cloud.home, job_id(second)) == ""


def test_a_job_may_wait_until_the_machine_has_the_gpus(cloud: Cloud, machine: SetList) -> None:
    machine("0")
    GpuShortage.WAIT.keep(cloud.home)
    job = cloud.submit(gpu_job())
    waits = f"this machine has no GPU, and the job requests {T4}"
    wait_until(lambda: read_wait(cloud.home, job_id(job)) == waits)
    machine("1")
    wait_until(lambda: cloud.client.get_custom_job(name=job.name).state == 4)
    assert f"has [{ONE[0]}]" in cloud.log(job)


def test_gpus_are_counted_again_for_every_job(cloud: Cloud, machine: SetList) -> None:
    machine("1")
    assert f"has [{ONE[0]}]" in cloud.log(cloud.run(gpu_job()))
    machine("0")
    assert "has []" in cloud.log(cloud.run(gpu_job()))


#: Another local cloud: it locks the GPUs that are free, and prints how many.
OTHER = """
import sys, time
from pathlib import Path
from localgcp.system import gpus
with gpus.free(gpus.list_gpus(), Path(sys.argv[1])) as locks:
    held, number = dict(locks), len(locks)
    locks.clear()
print(number, flush=True)
time.sleep(600)
"""


def other_cloud(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", OTHER, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_killed_local_cloud_frees_its_gpus_for_another_one(
    cloud: Cloud, machine: SetList, tmp_path: Path
) -> None:
    machine("1")
    with other_cloud(tmp_path / "runtime" / "vertex-training-gpus") as other:
        assert other.stdout
        assert other.stdout.readline() == "1\n"
        job = cloud.submit(gpu_job())
        wait_until(lambda: "0 of 1 GPUs" in read_wait(cloud.home, job_id(job)))
        other.send_signal(signal.SIGKILL)
    wait_until(lambda: cloud.client.get_custom_job(name=job.name).state == 4)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_program_of_a_job_keeps_its_gpu_if_the_server_is_killed(
    cloud: Cloud, machine: SetList, tmp_path: Path
) -> None:
    machine("1")
    log = cloud.log(cloud.run(gpu_job("readlink /proc/self/fd/*")))
    assert f"{tmp_path}/runtime/vertex-training-gpus/{ONE[0]}" in log
    with other_cloud(tmp_path / "runtime" / "vertex-training-gpus") as other:
        assert other.stdout
        assert other.stdout.readline() == "1\n"  # the job has ended
        other.kill()


def test_device_files_count_where_there_is_no_nvidia_smi(tmp_path: Path) -> None:
    for name in ("nvidia1", "nvidia3", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    env = {"PATH": str(tmp_path)}
    assert [gpu.id for gpu in gpus.list_gpus(env, tmp_path)] == ["0", "1"]
    env[gpus.VISIBLE] = "1"
    assert [gpu.id for gpu in gpus.list_gpus(env, tmp_path)] == ["1"]
    assert gpus.list_gpus(env, tmp_path / "none") == []


def test_an_unknown_choice_in_the_home_is_the_default(home: Home) -> None:
    assert GpuShortage.of(home) is GpuShortage.AUTO
    home.gpu_shortage.write_text("sometimes")
    assert GpuShortage.of(home) is GpuShortage.AUTO


@pytest.mark.parametrize(
    ("listing", "count", "choice", "text"),
    [
        ("0", 1, "auto", f"this machine has no GPU, and the job requests {T4}: the job "
                         "runs on CPUs"),
        ("0", 1, "wait", f"this machine has no GPU, and the job requests {T4}: the job waits"),
        ("1", 1, "auto", f"the job runs on 1 NVIDIA H200, not on {T4}"),
        ("1", 2, "cpu", "this machine has 1 NVIDIA H200, and the job requests 2 NVIDIA_TESLA_T4: "
                        "the job runs on CPUs"),
        ("8", 0, "wait", ""),
    ],
)  # fmt: skip
def test_a_check_reports_the_gpus_that_a_job_will_get(
    machine: SetList, listing: str, count: int, choice: str, text: str
) -> None:
    machine(listing)
    spec: dict[str, Any] = {"machineType": "n1-standard-4"}
    if count:
        spec |= {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": count}
    pool = {"machineSpec": spec, "containerSpec": {"imageUri": "docker.io/x", "command": ["true"]}}
    job = {"jobSpec": {"workerPoolSpecs": [{}, pool]}}
    found = refusals(job, lambda: "", 1 << 33, shortage=GpuShortage(choice))
    notes = [(refusal.path[2:], refusal.what) for refusal in found if refusal.level == "note"]
    assert notes == [((1, "machineSpec"), text)] * bool(text)
