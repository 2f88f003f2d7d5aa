"""Tests that a stack creates a TensorBoard instance, and its jobs reference it before creation."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from localgcp.home import Home, cache_dir
from localgcp.inventory.store import TENSORBOARD, Store
from tests.conftest import Checkout, copy_checkout
from tests.e2e.small_stacks import PROGRAMS, SmallStack, job_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = copy_checkout(tmp_path_factory.mktemp("board") / "checkout", sample_code=False)
    yield made
    made.run("vt", "local", "down")


@pytest.fixture(scope="module")
def stack(checkout: Checkout) -> SmallStack:
    made = SmallStack(checkout, "board")
    job = job_file(tensorboard="${tensorboard.name}")
    task = job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
    task["command"] = ["sh", "-c", "env | grep AIP_TENSORBOARD"]
    made.write({"curves": job}, tensorboard="curves of small jobs")
    return made


def _request_id(said: str) -> str:
    return re.findall(r"requestId\W+([0-9a-f]{20})", said)[0]


def test_first_up_creates_the_instance_and_submits_the_job(
    checkout: Checkout, stack: SmallStack
) -> None:
    review = checkout.run(
        "vt", "local", "shell", "-c", "vt review --stack board", expect=None
    ).stdout
    before = _request_id(stack.pulumi("preview --json"))
    checkout.run("vt", "local", "up", "--stack", "board")
    told = checkout.shell("vt jobs logs curves --stack board").stdout
    store = Store(Home(checkout.home, checkout.path).database)
    [instance] = store.list(TENSORBOARD, stack.project)
    assert instance.outputs["displayName"] == "curves of small jobs"
    assert re.search(rf"AIP_TENSORBOARD_RESOURCE_NAME={instance.id}\b", told)
    assert re.search(r"AIP_TENSORBOARD_LOG_DIR=gs://\S+/logs/", told)
    member = f"serviceAccount:trainer-board@{stack.project}.iam.gserviceaccount.com"
    assert "roles/aiplatform.user" in store.roles(f"projects/{stack.project}", member)
    assert "roles/aiplatform.user" in review
    assert "billed by the amount of data that jobs log" in review
    # Nothing is unknown before, and nothing changes after the instance is there.
    assert _request_id(stack.pulumi("preview --json")) == before
    assert "to replace" not in stack.pulumi("preview --expect-no-changes")


def test_single_run_uses_the_same_tensorboard_instance(
    checkout: Checkout, stack: SmallStack
) -> None:
    [instance] = Store(Home(checkout.home, checkout.path).database).list(TENSORBOARD)
    told = checkout.shell("vt run curves --stack board").stdout
    assert f"AIP_TENSORBOARD_RESOURCE_NAME={instance.id}" in told


def test_removed_tensorboard_instance_is_reported_as_a_loss(
    checkout: Checkout, stack: SmallStack
) -> None:
    store = Store(Home(checkout.home, checkout.path).database)
    [instance] = store.list(TENSORBOARD)
    listed = checkout.shell("vt destroy --stack board", expect=None)
    assert "its experiments" in listed.stdout + listed.stderr
    store.delete(TENSORBOARD, instance.id)
    refused = checkout.shell("vt run curves --stack board", expect=None)
    assert "has the label stack=board. Run `pulumi up`" in refused.stdout + refused.stderr
    store.put(TENSORBOARD, instance.id, stack.project, instance.inputs, instance.outputs)


#: A job's program as any that logs to TensorBoard, by TensorBoard's own writer.
EVENTS = PROGRAMS["tensorboard"]["EVENTS"]


def _answer(url: str, seconds: float = 60) -> Any:
    ends = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                if found := json.load(answer):
                    return found
        except OSError:
            pass
        assert time.monotonic() < ends, url
        time.sleep(0.5)


def test_installed_tensorboard_shows_logs_of_a_job(
    checkout: Checkout, stack: SmallStack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    shutil.copy(cache_dir() / "local-home.key", cache)  # the home was made with it
    monkeypatch.setenv("VT_CACHE_DIR", str(cache))
    refused = checkout.shell("vt tensorboard --stack board", expect=1)
    assert "TensorBoard is not installed. Hint: run `vt tensorboard --install`" in refused.stderr
    told = checkout.shell("vt tensorboard --install").stderr
    python = f"{told.split()[-1]}/bin/python"
    job = job_file()
    job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["command"] = [python, "-c", EVENTS]
    stack._dump("jobs/events.yaml", job)
    checkout.shell("vt run jobs/events.yaml --stack board")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    line = ["-m", "vertex_training_cli.cli", "tensorboard", "--stack", "board", "--port", str(port)]
    env = {**os.environ, "VT_LOCAL_HOME": str(checkout.home)}
    server = subprocess.Popen(
        [sys.executable, *line], cwd=checkout.path, env=env, start_new_session=True
    )
    try:
        runs = _answer(f"http://127.0.0.1:{port}/data/runs")
        assert [re.sub("[0-9]{10,}", "ID", run) for run in runs] == ["run_events-1-ID/train"]
        scalars = f"http://127.0.0.1:{port}/data/plugin/scalars/scalars?tag=loss&run={runs[0]}"
        assert [point[2] for point in _answer(scalars)][::2] == [1.0, pytest.approx(1 / 3)]
    finally:
        os.killpg(server.pid, signal.SIGINT)  # as Ctrl-C of a terminal
        server.wait(30)
