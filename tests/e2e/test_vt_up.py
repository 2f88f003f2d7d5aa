"""Tests `vt up` after kills, with the real CLI and a submission whose answer is delayed.

A proxy before the local job service holds back the answer to CreateCustomJob: the job exists, and
nobody has been told. There the processes die.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from localgcp.home.servers import ServerInfo
from localgcp.system import processes
from tests.chaos.ways import provider_of
from tests.e2e import only_jobs
from tests.e2e.only_jobs import Project
from tests.unit.localcloud.conftest import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc: Linux only"),
]
CREATE = "/google.cloud.aiplatform.v1.JobService/CreateCustomJob"
UP = "pulumi up -s local --yes --skip-preview --non-interactive"


class HoldingProxy(grpc.GenericRpcHandler):
    """A proxy that delays answers to CreateCustomJob until ``release`` is set."""

    def __init__(self, target: str) -> None:
        self.channel = grpc.insecure_channel(target)
        self.committed, self.release = threading.Event(), threading.Event()
        self.creates, self.port = 0, 0

    def service(self, handler_call_details: Any) -> Any:
        method = handler_call_details.method

        def forward(request: bytes, context: Any) -> bytes:
            routing = [x for x in context.invocation_metadata() if x[0] == "x-goog-request-params"]
            call: Any = self.channel.unary_unary(method)
            try:
                answer = call(request, metadata=routing)
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())  # pyright: ignore
            if method == CREATE:
                self.creates += 1
                self.committed.set()
                self.release.wait(120)
            return answer

        return grpc.unary_unary_rpc_method_handler(forward)


@pytest.fixture
def proxy(project: Project) -> Iterator[HoldingProxy]:
    info = ServerInfo.read(project.home.server_file)
    assert info
    handler = HoldingProxy(f"127.0.0.1:{info.vertex_port}")
    server = grpc.server(futures.ThreadPoolExecutor(8), handlers=[handler])
    handler.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield handler
    handler.release.set()
    server.stop(None)


def submitting(project: Project, proxy: HoldingProxy) -> subprocess.Popen[str]:
    """Return a `pulumi up` whose job exists, but whose answer is missing."""
    process = project.start("env", f"VERTEX_EMULATOR_HOST=127.0.0.1:{proxy.port}", UP)
    if not proxy.committed.wait(120):
        process.kill()
        raise AssertionError(f"no submission arrived:\n{process.communicate()[0]}")
    return process


def killed_while_it_submitted(project: Project, proxy: HoldingProxy) -> int:
    """Return the process id of a `pulumi up` that was killed before the answer for its existing
    job.
    """
    process = submitting(project, proxy)
    process.kill()
    process.wait(60)
    return process.pid


def kill_provider_while_it_submits(project: Project, proxy: HoldingProxy) -> None:
    process = submitting(project, proxy)
    provider = provider_of(project.home)
    assert provider
    os.kill(provider, signal.SIGKILL)
    process.communicate(timeout=120)
    assert process.returncode != 0


def lock_files(project: Project) -> list[Path]:
    return list((project.home.pulumi / ".pulumi" / "locks").rglob("*.json"))


def test_vt_up_after_a_kill_leaves_one_job(project: Project, proxy: HoldingProxy) -> None:
    project.want(train={"script": "true"})
    pid = killed_while_it_submitted(project, proxy)
    orphan = provider_of(project.home)
    assert [o["type"] for o in project.state()["pending_operations"]] == ["creating"]
    assert lock_files(project)
    assert "currently locked" in project.up(code=None)  # what a person meets without `vt up`

    told = project.vt("up", "--stack", "local", "--yes", "--skip-preview", "--non-interactive")

    assert f"removed the lock of stack local, because process {pid} has ended" in told
    assert "training-train, and the creation is complete. Removing the pending operation" in told
    assert len(project.accepted("train")) == 1
    assert proxy.creates == 1
    assert not project.state().get("pending_operations")
    assert not lock_files(project)
    again = project.vt("up", "-s", "local", "--expect-no-changes", "--yes", "--skip-preview")
    assert "vt:" not in again
    proxy.release.set()  # the orphan hears the answer after all, and tells a dead engine
    wait_until(lambda: not Path(f"/proc/{orphan}").exists())


def test_state_with_missing_attributes_after_a_kill_is_readable(project: Project) -> None:
    stacks = project.home.pulumi / ".pulumi" / "stacks" / "only-jobs"
    (stacks / "local.json.attrs").write_text("")
    assert "failed to load checkpoint" in project.up(code=None)

    told = project.vt("up", "-s", "local", "--expect-no-changes", "--yes", "--skip-preview")

    assert "removed local.json.attrs, which a killed run left truncated" in told
    assert len(project.accepted("train")) == 1


def test_recovery_steps_of_the_guide_leave_one_job(project: Project) -> None:
    guide = (only_jobs.ROOT / "docs" / "local-stack.md").read_text()
    script = guide.partition("### Barriers")[2].partition("```sh\n")[2].partition("```")[0]
    project.want(train={"script": "true", "run": 2})
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=project.path, env=project.env, text=True, timeout=300,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "CreateCustomJob train" in done.stdout
    assert "removed the lock of stack" in done.stdout
    assert len(project.accepted("train")) == 2
    assert not project.state().get("pending_operations")


def test_vt_up_leaves_a_running_update_alone(project: Project) -> None:
    project.want(train={"script": "true"}, long={"script": "sleep 600", "wait": "succeeded"})
    running = project.start_until("job long: RUNNING", UP)
    try:
        told = project.vt("up", "-s", "local", "--yes", code=1)
        assert f"stack local is in use by pulumi, process {running.pid}" in told
        assert lock_files(project)
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=120)
    assert not lock_files(project)


def test_interrupt_of_vt_up_interrupts_pulumi_once(project: Project) -> None:
    command = ["up", "-s", "local", "--yes", "--skip-preview", "--non-interactive"]
    with subprocess.Popen(
        ["vt", *command], cwd=project.path, env=project.env, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout
        told = next(line for line in process.stdout if "job long: RUNNING" in line)
        os.killpg(process.pid, signal.SIGINT)
        told += process.stdout.read()
    assert "update canceled" in told
    assert process.returncode == 1
    assert not lock_files(project)
    assert not project.state().get("pending_operations")


def test_renamed_job_of_killed_provider_is_reported(project: Project, proxy: HoldingProxy) -> None:
    project.want(lost={"script": "sleep 600"})
    kill_provider_while_it_submits(project, proxy)
    assert not project.state().get("pending_operations")  # nothing tells of it
    project.want(found={"script": "true"})

    told = project.vt("up", "-s", "local", "--yes", "--skip-preview", "--non-interactive")

    [lost] = project.accepted("lost")
    assert f"customJobs/{lost.job_id}. Possibly a killed run submitted this job" in told
    drift = project.vt("drift", "--stack", "local", code=7)
    assert "lost \\(run 1\\) runs, but is not in the state" in drift
    assert "local: drifted, 1 difference" in drift
    [command] = re.findall(r"`vt (jobs cancel [0-9]+ --stack local)`", told)
    project.vt(*command.split(), "--yes")
    assert "has no drift" in project.vt("drift", "--stack", "local")
    again = project.vt("up", "-s", "local", "--expect-no-changes", "--yes", "--skip-preview")
    assert "vt:" not in again


def test_up_after_a_killed_provider_adopts_its_job(project: Project, proxy: HoldingProxy) -> None:
    project.want(alone={"script": "true"})
    kill_provider_while_it_submits(project, proxy)
    project.up()
    assert (len(project.accepted("alone")), proxy.creates) == (1, 1)
    project.settled()


def test_edited_job_waits_for_an_unconfirmed_submission(
    project: Project, proxy: HoldingProxy
) -> None:
    up = ("up", "-s", "local", "--yes", "--skip-preview", "--non-interactive")
    project.want(edited={"script": "sleep 600"})
    killed_while_it_submitted(project, proxy)
    proxy.release.set()
    [unknown] = project.accepted("edited")
    project.want(edited={"script": "sleep 600", "run": 2})
    told = " ".join(project.vt(*up, code=1).split())
    [command] = set(re.findall(rf"`vt (jobs cancel {unknown.job_id} --stack local)`", told))
    assert project.live("edited") == ["1"]
    project.vt(*command.split(), "--yes")
    project.vt(*up)
    assert project.live("edited") == ["2"]


def test_pending_creation_is_explained_and_not_removed(
    project: Project, proxy: HoldingProxy
) -> None:
    train = {"script": "true"}
    project.want(train=train, other={"script": "sleep 600"})
    killed_while_it_submitted(project, proxy)
    project.want(train=train)  # somebody changed his mind
    told = project.vt("up", "-s", "local", "--yes", "--skip-preview", "--non-interactive")
    assert "a killed run may have created training-other" in told
    assert "vt jobs list --stack local" in told
    assert "job other (run 1) is " in told
    noted = [each["resource"]["urn"] for each in project.state()["pending_operations"]]
    assert [urn for urn in noted if urn.endswith("::training-other")]


def test_lock_of_another_machine_is_explained_and_not_removed(project: Project) -> None:
    folder = project.home.pulumi / ".pulumi" / "locks" / "organization" / "only-jobs" / "local"
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / "of-another.json"
    lock.write_text(json.dumps({"pid": os.getpid(), "hostname": f"not-{socket.gethostname()}"}))
    try:
        told = project.vt("up", "-s", "local", "--yes", code=1)
        assert f"on not-{socket.gethostname()}" in told
        assert "pulumi cancel --yes --stack local" in told
        assert lock.exists()
    finally:
        lock.unlink()  # or the local cloud cannot be removed either
    assert processes.program(os.getpid())  # a live process of this number is no proof
