"""The server in this process: what it serves, what it leaves, and how it ends."""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from localgcp import processes, server
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.home import Home, Ports
from localgcp.inventory.store import ACCOUNT, SERVICE, Store, connection
from localgcp.server_info import ServerInfo
from tests.unit.localcloud.conftest import PARENT, PROJECT, TRAINER, wait_until

APIS = ("aiplatform", "compute", "batch", "cloudbuild", "logging", "secretmanager", "bigquery")
#: What an empty project answers, by service.
ANSWERS = {
    f"/v1/{PARENT}/customJobs": {},
    f"/v1/{PARENT}/hyperparameterTuningJobs": {},
    f"/v1/{PARENT}/trainingPipelines": {},
    f"/v1/{PARENT}/metadataStores/default": 404,
    f"/v1/{PARENT}/tensorboards": {},
    f"/v1/{PARENT}/models": {},
    f"/v1/{PARENT}/endpoints": {},
    f"/v1/{PARENT}/jobs": {},
    f"/v1/projects/{PROJECT}/builds": {},
    f"/v1/projects/{PROJECT}/secrets/none/versions/latest:access": 404,
    f"/bigquery/v2/projects/{PROJECT}/jobs": {"kind": "bigquery#jobList", "jobs": []},
    f"/v1/projects/{PROJECT}/locations/us-central1/models/7": 404,
}
NO_REFUSAL = cast(Any, SimpleNamespace(refusal=None))
#: When the server started that a test has killed.
KILLED = "then"
#: Whether there is a registry -> what a server says of it.
REGISTRY_LINES = {True: [], False: ["no container registry: `make containers` installs one"]}


@dataclass
class Running:
    """A server that runs, as another thread of this process sees it."""

    home: Home
    info: ServerInfo
    ended: threading.Event
    seen: dict[str, Any] = field(default_factory=dict)

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """The answer, or the code of a refusal."""
        url = f"http://127.0.0.1:{self.info.vertex_port}{path}"
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code


def is_ready(info: ServerInfo | None) -> bool:
    """Whether it is of the server here, and not of the killed one of a test."""
    return info is not None and info.started != KILLED


Look = Callable[[Running], None]
Serve = Callable[[Look], tuple[ServerInfo, dict[str, Any]]]


@pytest.fixture
def serve(home: Home) -> Iterator[Serve]:
    """Serves while another thread looks, and ends then; returns how it was found, and what seen."""
    handlers = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}

    def run(look: Look) -> tuple[ServerInfo, dict[str, Any]]:
        found: list[Running] = []
        errors: list[BaseException] = []
        ended = threading.Event()

        def watch() -> None:
            try:
                wait_until(lambda: ended.is_set() or is_ready(ServerInfo.read(home.server_file)))
                if info := ServerInfo.read(home.server_file):
                    found.append(Running(home, info, ended))
                    look(found[0])
            except BaseException as error:
                errors.append(error)
            finally:
                if not ended.is_set():  # nothing else takes this signal
                    os.kill(os.getpid(), signal.SIGTERM)

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            server.run(home)
        finally:
            ended.set()
            thread.join()
        if errors:
            raise errors[0]
        return found[0].info, found[0].seen

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_a_server_answers_for_each_service_and_runs_jobs(
    home: Home, serve: Serve, capfd: pytest.CaptureFixture[str]
) -> None:
    store = Store(home.database)
    for api in APIS:
        store.put(SERVICE, f"{PROJECT}/{api}.googleapis.com", PROJECT, {}, {})
    store.put(ACCOUNT, TRAINER, PROJECT, {}, {"email": TRAINER})

    def look(running: Running) -> None:
        seen = running.seen
        seen["answers"] = {path: running.ask(path) for path in ANSWERS}
        seen["project"] = running.ask(f"/v3/projects/{PROJECT}")["projectId"]
        script = "echo $STORAGE_EMULATOR_HOST; env | grep -o 'http://127.0.0.1:[0-9]*/' | sort -u"
        pool = {
            "machineSpec": {"machineType": "n1-standard-4"},
            "replicaCount": "1",
            "containerSpec": {"imageUri": "python:3.11", "command": ["sh", "-c", script]},
        }
        job = {"displayName": "j", "jobSpec": {"workerPoolSpecs": [pool]}}
        name = running.ask(f"/v1/{PARENT}/customJobs", job)["name"]
        ended = ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED")
        wait_until(lambda: running.ask(f"/v1/{name}")["state"] in ended)
        seen["state"] = running.ask(f"/v1/{name}")["state"]
        id_ = name.rpartition("/")[2]
        asked = {
            "resourceNames": [f"projects/{PROJECT}"],
            "filter": f'resource.labels.job_id="{id_}"',
        }
        entries = running.ask("/v2/entries:list", asked)["entries"]
        seen["log"] = [each["textPayload"] for each in entries]

    info, seen = serve(look)
    ports = info.ports
    assert (info.pid, info.warnings) == (os.getpid(), server._warnings(NO_REFUSAL))
    assert all(port >= 20_000 for port in ports if port)
    assert datetime.datetime.strptime(info.started, "%Y-%m-%dT%H:%M:%S%z").tzinfo
    assert seen["answers"] == ANSWERS
    assert seen["project"] == PROJECT
    storage, api = f"http://127.0.0.1:{ports.storage}", f"http://127.0.0.1:{ports.vertex}/"
    assert seen["state"] == "JOB_STATE_SUCCEEDED"
    assert {storage, f"{storage}/", api} <= {*seen["log"]}
    assert not home.server_file.exists()
    assert capfd.readouterr().out.splitlines() == [
        *REGISTRY_LINES[bool(ports.registry)],
        f"ready: vertex 127.0.0.1:{ports.vertex}, storage {storage}",
        "stopped",
    ]


def test_the_next_server_keeps_the_ports_and_clears_what_a_killed_one_left(
    home: Home, serve: Serve, capfd: pytest.CaptureFixture[str]
) -> None:
    vertex, storage, registry = (server.choose_port(0, "test") for _ in range(3))
    ServerInfo(os.getpid(), vertex, storage, KILLED, registry).write(home.server_file)
    left = home.sockets / "vertex-1"
    left.mkdir(parents=True)
    faults = FaultTable(home.faults)
    held = faults.add(Fault.parse(service="jobs", kind="hold"))
    with connection(home.faults, "") as db:
        db.execute("INSERT INTO held (fault, call) VALUES (?, ?)", (held, "CreateCustomJob x"))
    assert faults.get(held).held
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as orphan:
        processes.register_child(home.children, orphan.pid, "job")

        def look(running: Running) -> None:
            home.server_file.write_text("{")
            wait_until(lambda: ServerInfo.read(home.server_file) == running.info)

        info, _ = serve(look)
        assert orphan.wait(10) == -signal.SIGTERM
    assert info.ports == Ports(vertex, storage, registry if info.registry_port else 0)
    assert not left.exists()
    assert not faults.get(held).held
    assert processes.live_children(home.children) == []
    line = f"ended process {orphan.pid} (job), left behind by a killed server"
    assert capfd.readouterr().out.splitlines()[0] == line


def test_a_server_whose_folder_is_gone_ends_and_leaves_its_successor_alone(
    home: Home, serve: Serve
) -> None:
    def look(running: Running) -> None:
        home.root.rename(home.root.with_name("removed"))
        home.create()
        running.info.write(home.server_file)
        home.server_lock.touch()
        running.ended.wait(30)

    info, _ = serve(look)
    assert ServerInfo.read(home.server_file) == info
