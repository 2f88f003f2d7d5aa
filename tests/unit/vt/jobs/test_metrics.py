"""`vt jobs list --metrics`, `show` and `compare`: read through the real client and emulator."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from localgcp.apis.server import serve
from localgcp.inventory.store import SERVICE
from localgcp.runner.gcsfuse import storage_client
from localgcp.vertex.log_entries import LogService
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud
from tests.unit.vt.jobs.event_files import event, file, scalar
from tests.unit.vt.jobs.submitting import done, submit_with, until_running
from vertex_training_cli.cli import app
from vertex_training_cli.jobs import page
from vertex_training_cli.jobs.compare import Compared, curves, parameters
from vertex_training_cli.jobs.metrics import columns, numbers
from vertex_training_cli.jobs.show import compared

HISTORY = "epoch,loss,accuracy\n1,1.0,0.2\n2,0.5,0.6\n3,0.25,0.9\n"


@pytest.fixture
def cloud(
    make_cloud: Callable[..., Cloud], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cloud]:
    """Two jobs `a` and `b`, of which `a` wrote metrics and a history."""
    cloud = make_cloud(storage=True)
    assert cloud.storage is not None
    jobs = JobService(cloud.store, cloud.jobs, cloud.scheduler)
    logs = LogService(cloud.home, cloud.store, cloud.jobs)
    server = serve([jobs, cloud.studies, logs], 0)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.storage.url)
    monkeypatch.delenv("PULUMI_STACK", raising=False)
    cloud.store.put(SERVICE, f"{PROJECT}/logging.googleapis.com", PROJECT, {}, {})
    cloud.bucket("out")
    made = storage_client(cloud.storage.url).bucket("out")
    made.blob("a/model/metrics.json").upload_from_string(json.dumps({"loss": 9}))
    made.blob("a/metrics.json").upload_from_string(json.dumps({"loss": 0.25, "name": "x"}))
    made.blob("a/eval_history.csv").upload_from_string(HISTORY)
    made.blob("b/metrics.json").upload_from_string('{"loss": ')
    for job in ("a", "b"):
        done(cloud, submit_with(cloud, f"true {job}", job, _labels(job), output=f"gs://out/{job}"))
    (tmp_path / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    text = f"config: {{gcp:project: {PROJECT}, gcp:region: us-central1}}\n"
    (tmp_path / "Pulumi.local.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    yield cloud
    server.stop(None).wait()


def _labels(job: str) -> dict[str, str]:
    return {"vt-stack": "local", "vt-job": job, "vt-run": "1", "vt-request-id": job}


@pytest.fixture
def vt(cloud: Cloud) -> Callable[..., str]:
    """`vt jobs …` with the two jobs."""

    def run(*words: str) -> str:
        result = CliRunner().invoke(app, ["jobs", *words, "--stack", "local"])
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


@pytest.fixture
def training(cloud: Cloud) -> Cloud:
    """With a third job `c`, which goes on."""
    job = submit_with(
        cloud, "echo training begins; sleep 600", "c", _labels("c"), output="gs://out/c"
    )
    until_running(cloud, job)
    return cloud


def test_numbers_of_the_nearest_file_are_in_list_and_show(vt: Callable[..., str]) -> None:
    assert "loss" in vt("list", "--metrics")
    listed = {
        each["job"]: each["metrics"]
        for each in json.loads(vt("list", "--metrics", "--format", "json"))
    }
    assert listed == {"a": {"loss": 0.25}, "b": {}}  # a file that was cut short is none
    assert "metrics" not in json.loads(vt("list", "--format", "json"))[0]
    assert "0.25" in vt("show", "a")


def test_jobs_stand_side_by_side_with_what_differs(vt: Callable[..., str]) -> None:
    shown = vt("compare", "a", "b")
    assert "a 1" in shown
    assert "b 1" in shown
    assert "█▃▁ 1 → 0.25" in shown
    one, two = json.loads(vt("compare", "a", "b", "--format", "json"))
    assert one["metrics"] == {"loss": 0.25}
    assert one["curves"] == {"loss": [1.0, 0.5, 0.25], "accuracy": [0.2, 0.6, 0.9]}
    assert (two["metrics"], two["curves"]) == ({}, {})
    assert one["cost"].startswith("$")


def test_parameters_are_the_flags_of_all_pools_without_secrets() -> None:
    pool = {
        "replicaCount": 2,
        "machineSpec": {"machineType": "n1-standard-4"},
        "containerSpec": {
            "imageUri": "a/b:1",
            "args": ["--lr=0.1", "--epochs", "3", "--fast", "x"],
        },
    }
    token = "hf_" + "a" * 34
    found = parameters({"jobSpec": {"workerPoolSpecs": [pool]}})
    wanted = {"--lr": "0.1", "--epochs": "3", "--fast": "x", "pool 0": "2 x n1-standard-4"}
    assert found == {**wanted, "code": "b:1"}
    pool["containerSpec"]["args"] = [f"--token={token}"]  # pyright: ignore
    assert token not in str(parameters({"jobSpec": {"workerPoolSpecs": [pool]}}))
    assert parameters({}) == {}


@pytest.mark.parametrize(
    "data",
    [b"", b"a", b"a,b\n", b"a,b\n1,x\n", b"\xff,\xfe\n1,\n", b"a,b\n1,2\n1," + b"2" * 131_073],
    ids=range(6),
)
def test_a_history_that_is_none_has_no_curves(data: bytes) -> None:
    assert columns(data) == {}


def test_numbers_that_are_not_finite_are_drawn_as_such() -> None:
    assert curves([[1.0, float("nan"), float("inf")], []])[0].startswith("▁??")
    assert numbers([1, 2]) == {}
    largest = int(sys.float_info.max)
    assert numbers({"a": largest, "b": -largest, "c": 2 * largest}) == {"a": largest, "b": -largest}


def test_json_has_numbers_that_are_not_finite_as_googles_json_has_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    values = {"a": float("nan"), "b": float("inf"), "c": -float("inf"), "d": 0.5}
    job = Compared("j", "1", "2", "", "", "", {}, values, {"a": [float("nan"), 1.0]})
    compared([job], as_json=True)

    def refuse(text: str) -> None:
        raise AssertionError(text)

    [shown] = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert shown["metrics"] == {"a": "NaN", "b": "Infinity", "c": "-Infinity", "d": 0.5}
    assert shown["curves"] == {"a": ["NaN", 1.0]}


HOSTILE = "</title><script>alert(1)</script>\u202e"


def test_a_page_has_the_table_and_a_plot_of_each_curve(
    vt: Callable[..., str], tmp_path: Path
) -> None:
    assert "a 1" in vt("compare", "a", "b", "--html", "runs.html")
    shown = (tmp_path / "runs.html").read_text()
    assert shown.count("<polyline") == 2
    assert "<strong>loss</strong>, 0.25 to 1, 3 values" in shown
    assert 'points="0.0,0.0 240.0,133.3 480.0,200.0"' in shown


def test_what_a_bucket_has_becomes_no_markup_and_no_request() -> None:
    values = [1.0, float("nan"), 1.7e308, -1.7e308, float("inf")]
    job = Compared(HOSTILE, "1", "2", HOSTILE, "", "", {HOSTILE: "x"}, {HOSTILE: 1.0},
                   {HOSTILE: values, "flat": [2.0] * 100_000})  # fmt: skip
    shown = page.render([job, replace(job, parameters={}, curves={})])
    assert "<script" not in shown
    assert "\u202e" not in shown
    assert "nan," not in shown
    assert len(shown) < 60_000  # of a hundred thousand points a plot has 480
    assert not re.search(r"(?:src|href|url)\s*[=(]", shown)
    assert "default-src 'none'" in shown
    outside = [float(y) for y in re.findall(r",([\d.-]+)", " ".join(_points(shown)))]
    assert min(outside) >= 0
    assert max(outside) <= page.HEIGHT


def _points(shown: str) -> list[str]:
    return re.findall(r'points="([^"]*)"', shown)


def test_a_page_that_cannot_be_written_is_one_line(vt: Callable[..., str]) -> None:
    result = CliRunner().invoke(
        app, ["jobs", "compare", "a", "--stack", "local", "--html", "no/folder.html"]
    )
    assert result.exit_code == 1
    assert "cannot be written: No such file or directory" in result.output


def _on_a_terminal(words: list[str], done: Callable[[str], bool]) -> tuple[str, int]:
    """What a command writes to a terminal; it is interrupted once ``done`` says that it is enough.

    All of it is read: a command that nobody reads waits at its end for room in the terminal.
    """
    master, slave = os.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    vt = [sys.executable, "-m", "vertex_training_cli.cli"]
    process = subprocess.Popen([*vt, *words], stdin=slave, stdout=slave, stderr=slave, env=env)
    os.close(slave)
    written, interrupted = b"", False
    while True:
        try:
            written += os.read(master, 4096)
        except OSError:  # the command ended, and with it the terminal
            break
        if not interrupted and done(written.decode(errors="replace")):
            process.send_signal(signal.SIGINT)
            interrupted = True
    told, code = written.decode(errors="replace"), process.wait()
    os.close(master)
    return told, code


def test_the_curve_of_a_job_moves_below_its_wait_on_a_terminal_alone(
    training: Cloud,
) -> None:
    assert training.storage is not None
    out = storage_client(training.storage.url).bucket("out")
    out.blob("c/history.csv").upload_from_string("step,loss\n1,1.0\n2,0.5\n")
    told, _ = _on_a_terminal(
        ["jobs", "wait", "c", "--stack", "local"], lambda text: "loss █▁ 1 → 0.5" in text
    )
    assert "loss █▁ 1 → 0.5" in told
    out.blob("c/history.csv").upload_from_string("step,loss\n1,1.0\n2,0.5\n3,0.25\n")
    for_tensorboard = file(event(1, scalar("rate", 0.5)), event(2, scalar("rate", 0.125)))
    out.blob("c/logs/train/events.out.tfevents.1").upload_from_string(for_tensorboard)
    told, _ = _on_a_terminal(  # either may be first: the log and the curve have a thread each
        ["jobs", "logs", "c", "-f", "--stack", "local"],
        lambda text: "→ 0.125" in text and "training begins" in text,
    )
    assert "training begins" in told
    assert "loss █▃▁ 1 → 0.25   train/rate █▁ 0.5 → 0.125" in told
    plain = subprocess.run(
        [sys.executable, "-m", "vertex_training_cli.cli", "jobs", "wait", "c", "--stack", "local",
         "--deadline", "3s"], capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert "→" not in plain.stdout + plain.stderr
