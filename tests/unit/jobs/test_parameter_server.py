import json
import os
import subprocess
import sys

from tests.fixture_project import SAMPLES as JOBS
from tests.unit.localcloud.conftest import free_port


def test_workers_and_servers_train_together_until_the_primary_saves(data, tmp_path):
    cluster = {
        "workerpool0": ["localhost:2222"],
        "workerpool1": ["localhost:2223", "localhost:2224"],
        "workerpool2": [f"localhost:{free_port()}", f"localhost:{free_port()}"],
    }

    def start(pool, index):
        spec = {"cluster": cluster, "task": {"type": pool, "index": index}}
        variables = {"CLUSTER_SPEC": json.dumps(spec), "AIP_MODEL_DIR": str(tmp_path / "model")}
        environment = {**os.environ, "PYTHONPATH": str(JOBS), **variables}
        command = [
            sys.executable,
            "-m",
            "parameter_server.task",
            f"--data={data}",
            "--seconds=3",
        ]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    replicas = {
        (pool, index): start(pool, index) for pool in cluster for index in range(len(cluster[pool]))
    }
    try:
        said, _ = replicas["workerpool0", 0].communicate(timeout=60)
        sent, _ = replicas["workerpool1", 1].communicate(timeout=60)
    finally:
        for replica in replicas.values():  # the service stops the others with the primary
            replica.kill()
            replica.wait()
    assert replicas["workerpool0", 0].returncode == 0
    assert "primary 0" in said
    assert int(sent.split("sent ")[1].split()[0]) > 20
    model = json.loads((tmp_path / "model" / "model.json").read_text())
    assert model["accuracy"] > 0.8
