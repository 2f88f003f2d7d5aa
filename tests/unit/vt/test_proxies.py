"""Behind a proxy, programs of this machine reach each other all the same."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from vertex_training_cli.process import exempt_loopback

#: Nothing listens at port 9, so whatever goes through this proxy fails.
PROXY = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
CALL = """
import sys, grpc
call = grpc.insecure_channel(sys.argv[1]).unary_unary("/test.Service/Ask")
print(call(b"", timeout=60).decode())
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"no_proxy": "127.0.0.1,localhost", "NO_PROXY": "127.0.0.1,localhost"}),
        (
            {"NO_PROXY": "corp.example.com, localhost"},
            {
                "no_proxy": "corp.example.com,localhost,127.0.0.1",
                "NO_PROXY": "corp.example.com,localhost,127.0.0.1",
            },
        ),
        ({"no_proxy": "*"}, {"no_proxy": "*", "NO_PROXY": "*"}),
        (
            {"no_proxy": "127.0.0.1,localhost", "no_grpc_proxy": "a"},
            {
                "no_proxy": "127.0.0.1,localhost",
                "NO_PROXY": "127.0.0.1,localhost",
                "no_grpc_proxy": "a,127.0.0.1,localhost",
            },
        ),
    ],
)
def test_this_machine_is_added_to_what_needs_no_proxy(given, expected):
    environment = {**PROXY, **given}
    exempt_loopback(environment)
    assert environment == {**PROXY, **expected}


@pytest.mark.parametrize("given", [{}, {"no_proxy": "corp.example.com"}, {"http_proxy": ""}])
def test_without_a_proxy_nothing_changes(given):
    environment = dict(given)
    exempt_loopback(environment)
    assert environment == given


@pytest.fixture
def address():
    handler = grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"answered")
    server = grpc.server(ThreadPoolExecutor(1))
    handlers = grpc.method_handlers_generic_handler("test.Service", {"Ask": handler})
    server.add_generic_rpc_handlers([handlers])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


def test_grpc_reaches_this_machine_only_because_it_is_spared(address):
    bare = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")} | PROXY
    spared = dict(bare)
    exempt_loopback(spared)

    def call(environment):
        command = [sys.executable, "-c", CALL, address]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert "127.0.0.1:9" in call(bare).stderr
    assert call(spared).stdout == "answered\n"
