"""The script that tells a task its rank, run by a real shell."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from vertex_job.cluster import read_cluster

from vertex_training.customjob import batch as message
from vertex_training.customjob.rules.batch import LATE

HOSTS = ["node-a", "node-b", "node-c"]


def run(folder: Path, hosts: list[str], task: int, self: str = "elsewhere") -> dict[str, str]:
    """The variables of a task on the host ``self``."""
    (folder / "bin").mkdir(exist_ok=True)
    hostname = folder / "bin" / "hostname"
    hostname.write_text(f"#!/bin/sh\necho {self}\n")
    hostname.chmod(0o755)
    (folder / "hosts").write_text("\n".join([*hosts, ""]))
    env = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "TMPDIR": str(folder),
        "BATCH_HOSTS_FILE": str(folder / "hosts"),
        "BATCH_TASK_INDEX": str(task),
    }
    subprocess.run(["sh", "-c", message.SCRIPT], env=env, check=True, timeout=30)
    lines = (folder / message.ENV_NAME).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_tensorflow_and_torch_find_their_variables(tmp_path: Path) -> None:
    variables = run(tmp_path, HOSTS, 1)
    assert set(variables) == set(LATE)
    config = json.loads(variables["TF_CONFIG"])
    assert config["cluster"] == {"chief": ["node-a:2222"], "worker": ["node-b:2222", "node-c:2222"]}
    assert config["task"] == {"type": "worker", "index": 0}
    assert variables["WORLD_SIZE"] == "3"


def test_without_hosts_the_task_fails_and_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", message.SCRIPT],
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), "BATCH_TASK_INDEX": "0"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode
    assert "Batch gave no file of hosts" in done.stderr


def test_one_machine_is_its_own_primary() -> None:
    found = read_cluster({"CLUSTER_SPEC": message.ALONE})
    assert (found.node_rank, found.nodes, found.master_address) == (0, 1, "localhost")
