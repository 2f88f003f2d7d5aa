"""Google's SDK and curl with models and endpoints, and a server that is killed meanwhile."""

from __future__ import annotations

import json
import os
import signal
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from localgcp import lifecycle
from localgcp.inventory.store import ENDPOINT, Store
from localgcp.system import processes
from tests.clients.conftest import PROJECT, TRAINER, Shell

SERVER = Path(__file__).parents[1] / "unit/localcloud/serving/model_server.py"
BUCKET = f"{PROJECT}-models"
IMAGE = "us-docker.pkg.dev/vertex-ai/prediction/sklearn-cpu.1-6:latest"
SCRIPT = """
import json, subprocess, sys
from google.cloud import aiplatform

aiplatform.init(project="local-training", location="us-central1", staging_bucket="gs://%(bucket)s")
COMMAND = [%(python)r, %(server)r]


def upload(version, *words, **more):
    folder = f"gs://%(bucket)s/runs/{version}/model"
    from google.cloud import storage
    blob = storage.Client().bucket("%(bucket)s").blob(f"runs/{version}/model/model.json")
    blob.upload_from_string(json.dumps({"slope": version}))
    return aiplatform.Model.upload(
        display_name="doubler", serving_container_image_uri=%(image)r, artifact_uri=folder,
        serving_container_command=COMMAND, serving_container_args=list(words), **more,
    )

"""


def run(shell: Shell, name: str, text: str, expect: int = 0) -> str:
    """What a script prints in the local shell."""
    known = {"bucket": BUCKET, "python": sys.executable, "server": str(SERVER), "image": IMAGE}
    (shell.folder / f"{name}.py").write_text(SCRIPT % known + textwrap.dedent(text))
    return shell.run(f"python {name}.py", expect).stdout


@pytest.fixture(scope="module")
def project(shell: Shell) -> Store:
    return shell.make_project(TRAINER, BUCKET)


def test_sdk_uploads_deploys_predicts_and_undeploys(shell: Shell, project: Store) -> None:
    text = """
        first = upload(1, model_id="doubler")
        second = upload(2, parent_model=first.resource_name, is_default_version=False)
        print(first.version_id, second.version_id, sorted(first.version_aliases))
        endpoint = aiplatform.Endpoint.create(
            display_name="doubler", endpoint_id="77", dedicated_endpoint_enabled=True
        )
        endpoint.deploy(first, machine_type="n1-standard-2", traffic_percentage=100)
        rows = list(range(100))
        assert endpoint.predict(instances=rows).predictions == [1.0 * row for row in rows]
        endpoint.deploy(second, machine_type="n1-standard-2", traffic_percentage=30)
        seen = [endpoint.predict(instances=[1]).predictions[0] for _ in range(60)]
        assert 3 <= seen.count(2.0) <= 36, seen  # 18 expected, 4.2 standard deviations
        ids = {each.model_version_id: each.id for each in endpoint.list_models()}
        endpoint.update(traffic_split={ids["1"]: 0, ids["2"]: 100})
        endpoint.undeploy(deployed_model_id=ids["1"])
        assert endpoint.predict(instances=[3]).predictions == [6.0]
        shared = aiplatform.Endpoint.create(display_name="shared", endpoint_id="78")
        shared.deploy(second, machine_type="n1-standard-2")
        answer = shared.predict(instances=[4])
        assert (answer.predictions, answer.model_version_id) == ([8.0], "2")
        shared.undeploy_all()
        shared.delete()
        print("done")
    """
    assert run(shell, "tour", text).split("\n")[-2] == "done"


def test_curl_predicts(shell: Shell, project: Store) -> None:
    place = f"projects/{PROJECT}/locations/us-central1/endpoints/77"
    body = json.dumps({"instances": [1, 2]})
    url = f"http://$VERTEX_EMULATOR_HOST/v1/{place}:predict"
    found = json.loads(shell.run(f"curl -sS -X POST -d '{body}' {url}").stdout)
    assert found["predictions"] == [2.0, 4.0]


def test_operation_outlives_killed_server(shell: Shell, project: Store, tmp_path: Path) -> None:
    go = tmp_path / "go"
    text = f"""
        model = upload(3, "until", {str(go)!r}, model_id="late")
        client = aiplatform.gapic.EndpointServiceClient()
        endpoint = aiplatform.Endpoint.create(display_name="late", endpoint_id="79")
        resources = {{"machine_spec": {{"machine_type": "n1-standard-2"}}, "min_replica_count": 1}}
        deployed = {{"id": "9", "model": model.resource_name, "dedicated_resources": resources}}
        client.deploy_model(
            endpoint=endpoint.resource_name, deployed_model=deployed, traffic_split={{"0": 100}}
        )
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
    """
    run(shell, "killed", text, expect=137)
    server = lifecycle.running(shell.home)
    assert server is not None
    os.kill(server.pid, signal.SIGKILL)
    while processes.start_time(server.pid):  # it holds its lock until it is gone
        time.sleep(0.02)
    go.touch()
    lifecycle.start(shell.home, print)
    place = f"projects/{PROJECT}/locations/us-central1/endpoints/79"
    deadline = time.monotonic() + 60
    while not (found := project.get(ENDPOINT, place)) or not found.outputs["deployedModels"]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert found.outputs["trafficSplit"] == '{"9": 100}'
    text = """
        import time
        for name, deadline in (("79", time.time() + 60), ("77", time.time() + 60)):
            while True:  # a container that was started again is healthy after a moment
                try:
                    print(aiplatform.Endpoint(name).predict(instances=[2]).predictions)
                    break
                except Exception:
                    if time.time() > deadline:
                        raise
                    time.sleep(0.2)
    """
    assert run(shell, "after", text).split("\n")[-3:-1] == ["[6.0]", "[4.0]"]
    serving = [
        each for each in psutil.process_iter() if _home(each).startswith(str(shell.home.root))
    ]
    assert len(serving) == 2  # those of the killed server are gone


def _home(process: psutil.Process) -> str:
    """Of a container of a model, its home; of another process, nothing."""
    try:
        return process.environ()["HOME"] if str(SERVER) in process.cmdline() else ""
    except (psutil.Error, KeyError):
        return ""
