"""A server that is killed while a job of Batch runs: the next one leaves nothing half done."""

from __future__ import annotations

import subprocess
import sys

import grpc
import psutil
import pytest
from google.cloud import batch_v1
from google.cloud.batch_v1.services.batch_service.transports import BatchServiceGrpcTransport

from localgcp.home import Home
from localgcp.inventory.store import ACCOUNT, SERVICE, Binding, Store
from localgcp.server_info import ServerInfo
from tests.unit.localcloud.batch.conftest import State, job, python
from tests.unit.localcloud.conftest import PARENT, PROJECT, TRAINER, wait_until


def start(home: Home) -> tuple[subprocess.Popen[bytes], batch_v1.BatchServiceClient]:
    """A server of this home, as a process of the test, and a client of it."""
    command = [sys.executable, "-m", "localgcp.server", "--home", str(home.root)]
    log = (home.root / "test.log").open("ab")
    server = subprocess.Popen([*command, "--repo", str(home.repo)], stdout=log, stderr=log)

    def ready() -> ServerInfo | None:
        assert server.poll() is None, (home.root / "test.log").read_text()
        found = ServerInfo.read(home.server_file)
        return found if found and found.pid == server.pid else None

    info = wait_until(ready, 120)
    channel = grpc.insecure_channel(f"127.0.0.1:{info.vertex_port}")
    return server, batch_v1.BatchServiceClient(transport=BatchServiceGrpcTransport(channel=channel))


@pytest.mark.timeout(400)
def test_what_ran_has_failed_its_processes_are_gone_and_what_waited_runs(home: Home) -> None:
    store = Store(home.database)
    for api in ("batch", "compute"):
        store.put(SERVICE, f"{PROJECT}/{api}.googleapis.com", PROJECT, {}, {})
    store.put(ACCOUNT, TRAINER, PROJECT, {}, {"email": TRAINER})
    member = (f"serviceAccount:{TRAINER}",)
    reports = (Binding("roles/batch.agentReporter", member),)
    store.set_policy(f"projects/{PROJECT}", reports, expected_etag="ACAB")
    code = (
        "import subprocess, time; p = subprocess.Popen(['sleep', '6061'], start_new_session=True)"
    )
    slow = job(python(f"{code}; print(p.pid, flush=True); time.sleep(600)"))
    server, client = start(home)
    try:
        made = [client.create_job(parent=PARENT, job=slow, job_id=f"slow-{n}") for n in range(2)]
        waits = client.create_job(parent=PARENT, job=job(python("1")), job_id="waits")
        logs = [home.batch / each.uid / "logs" / "task-0.log" for each in made]
        wait_until(lambda: all(log.is_file() and "\n" in log.read_text() for log in logs), 120)
        pids = [int(log.read_text().splitlines()[-1]) for log in logs]
        server.kill()
        server.wait()
        server, client = start(home)
        assert not [pid for pid in pids if psutil.pid_exists(pid)]
        for each in made:
            ended = client.get_job(name=each.name)
            assert ended.status.state is State.FAILED
            assert "local cloud was stopped" in ended.status.status_events[-1].description
        wait_until(lambda: client.get_job(name=waits.name).status.state is State.SUCCEEDED, 120)
    finally:
        server.terminate()
        server.wait(60)
