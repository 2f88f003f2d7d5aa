"""Tests that a job calls the local cloud as its own account, whatever connection it names."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest

from localgcp.access import callers, gate
from localgcp.errors import ApiError

METHOD = "/test.Service/WhoAmI"
#: Calls with the metadata KEY=VALUE, once a line was read.
JOB = """
import grpc, sys
sys.stdin.readline()
channel = grpc.insecure_channel("127.0.0.1:" + sys.argv[1])
more = [tuple(pair.split("=", 1)) for pair in sys.argv[2:]]
print(channel.unary_unary("/test.Service/WhoAmI")(b"", metadata=more).decode())
"""


class WhoAmI(grpc.GenericRpcHandler):
    """Answers with the account of the calling job; ``owner`` for other callers."""

    peers: list[str]

    def __init__(self) -> None:
        self.peers = []

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        def answer(_request: bytes, context: grpc.ServicerContext) -> bytes:
            self.peers.append(context.peer())
            try:
                guest = gate.guest_behind(context)
            except ApiError as error:
                return str(error).encode()
            return guest.account.encode() if guest else b"owner"

        return grpc.unary_unary_rpc_method_handler(answer)


@pytest.fixture
def service() -> WhoAmI:
    return WhoAmI()


@pytest.fixture
def port(service: WhoAmI) -> Iterator[int]:
    made = grpc.server(futures.ThreadPoolExecutor(4), handlers=[service])
    started = gate.GatedServer(made, 0, "test")
    yield started.port
    started.stop(None).wait()


def ask_as_job(port: int, *metadata: str) -> str:
    """Return the account that the server assigns to a job that runs as ``trainer``."""
    command = [sys.executable, "-c", JOB, str(port), *metadata]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as job, callers.job_process(job.pid, "trainer"):
        return job.communicate("go\n", timeout=60)[0].strip()


def test_job_naming_the_owners_connection_is_not_the_owner(port: int, service: WhoAmI) -> None:
    assert ask_as_job(port) == "trainer"
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:  # of a person who is at work
        method: Any = channel.unary_unary(METHOD)
        assert method(b"", timeout=60) == b"owner"
        peer = service.peers[-1]  # whose number is the next one
        for name in (peer, peer.removeprefix("unix:")):
            assert ask_as_job(port, f"vt-connection={name}") != "owner"
