"""Processes killed in the middle of a submission, with the real engine and the real CLI.

A proxy before the local job service holds back the answer to CreateCustomJob: the job exists, and
nobody has been told. There the processes die.
"""

import json
import os
import re
import signal
import sqlite3
import subprocess
import threading
import time
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from localgcp.home import Home
from tests.chaos.ways import provider_of
from tests.fixture_project import sample, source_path

for _name in ("titanic", "data/titanic"):
    sample(_name)
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc: Linux only"),
]
CREATE = "/google.cloud.aiplatform.v1.JobService/CreateCustomJob"


class HoldingProxy(grpc.GenericRpcHandler):
    """Passes every call on; holds back the answers to CreateCustomJob while ``hold`` is set."""

    def __init__(self, target):
        self.channel = grpc.insecure_channel(target)
        self.committed, self.release = threading.Event(), threading.Event()
        self.creates = 0

    def service(self, handler_call_details):
        method = handler_call_details.method

        def forward(request, context):
            try:
                answer = self.channel.unary_unary(method)(request, metadata=_routing(context))
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())
            if method == CREATE:
                self.creates += 1
                self.committed.set()
                self.release.wait(120)
            return answer

        return grpc.unary_unary_rpc_method_handler(forward)


def _routing(context):
    return [(k, v) for k, v in context.invocation_metadata() if k == "x-goog-request-params"]


@contextmanager
def holding(vertex_port):
    """A proxy before the job service at this port; it lets go of what it holds at the end."""
    handler = HoldingProxy(f"127.0.0.1:{vertex_port}")
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers([handler])
    handler.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield handler
    handler.release.set()
    server.stop(None)


@pytest.fixture
def proxy(checkout):
    port = json.loads((checkout.home / "server.json").read_text())["vertex_port"]
    with holding(port) as handler:
        yield handler


def ask_for_run(checkout, run):
    file = checkout.path / "Pulumi.local.yaml"
    text = file.read_text()
    start = text.index("    titanic: {file: jobs/titanic.yaml")
    end = text.index("\n", start)
    file.write_text(
        f"{text[:start]}    titanic: {{file: jobs/titanic.yaml, run: {run}}}{text[end:]}"
    )


def never_end(checkout):
    """The job trains on for longer than any test waits."""
    file = checkout.path / "jobs" / "titanic.yaml"
    many = "--epochs=1000000\n        - --patience=1000000"
    file.write_text(file.read_text().replace("--epochs=200", many))


def up_through(checkout, proxy):
    """`pulumi up` against the proxy, running, its submission committed and not answered."""
    env = {
        **os.environ,
        "VT_LOCAL_HOME": str(checkout.home),
        "PYTHONPATH": source_path(checkout.path),
    }
    command = (
        f"VERTEX_EMULATOR_HOST=127.0.0.1:{proxy.port} exec pulumi up -s local -y --skip-preview"
    )
    process = subprocess.Popen(
        [checkout.path / ".venv/bin/vt", "local", "shell", "-c", command],
        cwd=checkout.path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    if not proxy.committed.wait(90):
        process.kill()
        raise AssertionError(f"no submission arrived:\n{process.communicate()[0]}")
    return process


def provider(checkout):
    """Process id of the dynamic provider of this checkout's engine."""
    pid = provider_of(Home(checkout.home, checkout.path))
    assert pid, "no dynamic provider runs"
    return pid


def submissions(checkout, run):
    """Ids of the jobs the local cloud accepted for a run."""
    with sqlite3.connect(checkout.home / "cloud.sqlite") as database:
        rows = database.execute("select job_id, labels from custom_jobs").fetchall()
    return [job_id for job_id, labels in rows if json.loads(labels)["vt-run"] == str(run)]


def next_up_adopts(checkout, run):
    [accepted] = submissions(checkout, run)
    checkout.run("vt", "local", "up", "--no-wait")
    assert submissions(checkout, run) == [accepted]
    outputs = json.loads(checkout.shell("pulumi stack output -s local --json").stdout)
    assert outputs["jobs"]["titanic"]["name"].endswith(accepted)
    checkout.shell("pulumi preview -s local --expect-no-changes")


def test_a_provider_killed_before_it_heard_the_answer_leaves_one_job(checkout, proxy):
    ask_for_run(checkout, 1)
    process = up_through(checkout, proxy)
    os.kill(provider(checkout), signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode != 0
    next_up_adopts(checkout, 1)
    assert proxy.creates == 1


def test_a_killed_engine_and_its_orphan_leave_one_job(checkout, proxy):
    ask_for_run(checkout, 2)
    process = up_through(checkout, proxy)
    orphan = provider(checkout)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
    proxy.release.set()  # the orphan hears the answer after all, and tells a dead engine
    next_up_adopts(checkout, 2)
    assert proxy.creates == 1
    deadline = time.monotonic() + 30
    while Path(f"/proc/{orphan}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{orphan}").exists()


def test_a_job_edited_after_a_kill_waits_for_the_one_nobody_knows_to_be_cancelled(checkout, proxy):
    never_end(checkout)
    ask_for_run(checkout, 3)
    process = up_through(checkout, proxy)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
    proxy.release.set()
    [unknown] = submissions(checkout, 3)
    ask_for_run(checkout, 4)
    refused = checkout.run("vt", "local", "up", "--no-wait", expect=None)
    assert refused.returncode == 1
    told = " ".join((refused.stdout + refused.stderr).split())
    [command] = set(re.findall(rf"`vt (jobs cancel {unknown} --stack local)`", told))
    assert not submissions(checkout, 4)
    checkout.run("vt", *command.split(), "--yes")
    checkout.run("vt", "local", "up", "--no-wait")
    assert len(submissions(checkout, 4)) == 1
