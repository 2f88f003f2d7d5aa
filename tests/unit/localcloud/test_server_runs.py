"""The server in this process: what it serves, what it leaves, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import Conflict
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery, storage

from localgcp import server
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.home import Home, Ports
from localgcp.home.servers import ServerInfo, choose_port
from localgcp.inventory.store import BUCKET, Store, connection
from localgcp.system import processes
from tests.unit.localcloud.conftest import wait_until
from tests.warehouse import install_engine

#: When the server started that a test has killed.
KILLED = "then"


@dataclass
class Running:
    """A server that runs, as another thread of this process sees it."""

    home: Home
    info: ServerInfo
    ended: threading.Event


def is_ready(info: ServerInfo | None) -> bool:
    """Whether it is of the server here, and not of the killed one of a test."""
    return info is not None and info.started != KILLED


Look = Callable[[Running], None]
Serve = Callable[[Look], ServerInfo]


@pytest.fixture
def serve(home: Home) -> Iterator[Serve]:
    """Run the server while another thread inspects it; return its description."""
    handlers = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}

    def run(look: Look) -> ServerInfo:
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
        return found[0].info

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_the_next_server_keeps_the_ports_and_clears_what_a_killed_one_left(
    home: Home, serve: Serve, capfd: pytest.CaptureFixture[str]
) -> None:
    vertex, storage, registry = (choose_port(0, "test") for _ in range(3))
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

        info = serve(look)
        assert orphan.wait(10) == -signal.SIGTERM
    assert info.ports == Ports(vertex, storage, registry if info.registry_port else 0)
    assert not left.exists()
    assert not faults.get(held).held
    assert processes.live_children(home.children) == []
    line = f"ended process {orphan.pid} (job) of a killed server"
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

    info = serve(look)
    assert ServerInfo.read(home.server_file) == info


def test_googles_clients_reach_policies_of_buckets_and_query(serve: Serve, home: Home) -> None:
    """Each client of Google knows one host."""

    def look(running: Running) -> None:
        project, credentials = "local-training", AnonymousCredentials()
        store = Store(home.database)
        store.put(BUCKET, "local-data", project, {}, {"name": "local-data", "project": project})
        at = {"api_endpoint": f"http://127.0.0.1:{running.info.storage_port}"}
        bucket = storage.Client(project, credentials, client_options=at).bucket("local-data")
        policy = bucket.get_iam_policy(requested_policy_version=3)
        policy.bindings.append({"role": "roles/storage.objectViewer", "members": {"user:a@x.com"}})
        bucket.set_iam_policy(policy)
        assert store.policy("b/local-data").bindings[0].members == ("user:a@x.com",)
        assert bucket.test_iam_permissions(["storage.objects.get"]) == ["storage.objects.get"]
        with pytest.raises(Conflict):
            bucket.set_iam_policy(policy)  # with the tag of the policy before
        at = {"api_endpoint": f"http://127.0.0.1:{running.info.vertex_port}"}
        warehouse = bigquery.Client(project, credentials, client_options=at)
        warehouse.create_dataset("web")
        assert [row.id for row in warehouse.query_and_wait("SELECT 1 AS id")] == [1]

    install_engine()
    serve(look)


LEAST = {"pid": 7, "vertex_port": 1, "storage_port": 2, "started": 5}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, ServerInfo(7, 1, 2, "5", 0, ())),
        ({"vertex_port": 65535}, ServerInfo(7, 65535, 2, "5")),
        ({"vertex_port": 65536}, None),
        ({"storage_port": -1}, None),
        ({"registry_port": "3"}, None),
        ({"warnings": 5}, None),
        *(({key: None}, None) for key in LEAST if key != "started"),
    ],
)
def test_server_file_with_wrong_values_is_ignored(
    tmp_path: Path, changes: dict[str, Any], found: ServerInfo | None
) -> None:
    file = tmp_path / "server.json"
    assert ServerInfo.read(file) is None
    file.write_text(json.dumps(LEAST | changes))
    assert ServerInfo.read(file) == found
