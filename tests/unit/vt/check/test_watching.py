"""`vt check --watch` checks again after each change, and ends by Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from vertex_training_cli.check import command

JOB = """\
serviceAccount: trainer@acme-ml.iam.gserviceaccount.com
workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-4}
    replicaCount: 1
    containerSpec: {imageUri: us-docker.pkg.dev/acme-ml/images/x:1}
"""
PATIENCE = 60


@pytest.fixture
def watched(tmp_path):
    """The command on a file, and its lines of output as they come."""
    (tmp_path / "job.yaml").write_text(JOB)
    process = subprocess.Popen(
        [sys.executable, "-m", "vertex_training_cli.cli", "check", "--watch", "job.yaml"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    yield process, tmp_path / "job.yaml"
    timer.cancel()
    process.kill()
    process.wait()


def until(process, text):
    said = ""
    while text not in said:
        line = process.stdout.readline()
        assert line, f"it ended before it said {text!r}:\n{said}"
        said += line
    return said


def test_a_change_is_checked_and_ctrl_c_ends_it(watched):
    process, file = watched
    assert "no mistakes" in until(process, "waiting for changes")
    file.write_text(JOB.replace("replicaCount", "replicas"))
    assert "replicas: is no field" in until(process, "waiting for changes")
    file.unlink()
    assert "no such file" in until(process, "waiting for changes")
    file.with_suffix(".new").write_text(JOB)
    file.with_suffix(".new").replace(file)  # as editors save
    assert "no mistakes" in until(process, "waiting for changes")
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 130
    assert "Traceback" not in process.stdout.read()


def test_stack_files_and_packages_are_watched_too(tmp_path):
    (tmp_path / "jobs" / "titanic" / "__pycache__").mkdir(parents=True)
    for name in ("Pulumi.yaml", "Pulumi.dev.yaml", "jobs/x.yaml", "jobs/titanic/task.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "jobs" / "titanic" / "__pycache__" / "task.pyc").write_text("")
    found = {path.name for path in command.watched(["jobs/x.yaml"], tmp_path, "dev")}
    assert {"Pulumi.dev.yaml", "x.yaml", "task.py"} <= found
    assert "task.pyc" not in found


def test_watched_files_of_a_folder_are_bounded(tmp_path, monkeypatch):
    for number in range(5):
        (tmp_path / f"{number}").write_text("")
    found = {}
    for most in (4, 5, 6):
        monkeypatch.setattr(command, "MAX_FILES", most)
        found[most] = len(list(command.watched([str(tmp_path)], None, "")))
    assert found == {4: 4, 5: 5, 6: 5}
