"""Tests serving, from a run's artifacts to an endpoint: canary, promotion, roll-back, failures.

A stranger's code: plain scikit-learn, and a server of the standard library. The tests of this file
are one story and run in order: each starts where the one before it ended.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from typing import Any

import pytest

from tests.conftest import Checkout
from tests.e2e.small_stacks import MACHINE, PROGRAMS, REGION, SmallStack
from tests.unit.localcloud.conftest import wait_until
from vertex_training.serving.declared import ENDPOINT_LABEL, MODEL_LABEL
from vertex_training.serving.google import connect_endpoints

# The first job with the image waits for its environment.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

#: The local cloud has an environment for it, where the model is trained and served.
IMAGE = "us-docker.pkg.dev/vertex-ai/training/sklearn-cpu.1-6.py310:latest"
TRAIN = PROGRAMS["serving"]["TRAIN"]
#: Answers 500 to a row of 13 in a hundred; one that was trained to be broken does not start.
SERVER = PROGRAMS["serving"]["SERVER"]
#: Arguments of the training, by run.
RUNS = {1: ["good", "1.0"], 2: ["good", "0.01"], 3: ["broken", "1.0"]}


@pytest.fixture(scope="module")
def story(checkout: Checkout) -> SmallStack:
    (checkout.path / "jobs").mkdir(exist_ok=True)
    (checkout.path / "jobs" / "plain.py").write_text(TRAIN)
    (checkout.path / "jobs" / "server.py").write_text(SERVER)
    return SmallStack(checkout, "serving")


def write(
    story: SmallStack,
    run: int,
    versions: list[int],
    split: dict[str, int],
    timeout: int = 900,
    **more: dict[str, Any],
) -> None:
    """Write the stack file: the job's run, versions of its model, and the split of its endpoint.

    ``more`` are further models, of which each has an endpoint, by key: their containers.
    """
    task = {
        "executorImageUri": IMAGE,
        "packageUris": ["${packages.plain}"],
        "pythonModule": "plain",
        "args": RUNS[run],
    }
    job = {
        "serviceAccount": "${serviceAccounts.trainer}",
        "baseOutputDirectory": {"outputUriPrefix": "${buckets.artifacts}/${job.requestId}"},
        "scheduling": {"timeout": f"{timeout}s"},
        "workerPoolSpecs": [{"replicaCount": 1, "machineSpec": MACHINE, "pythonPackageSpec": task}],
    }
    container = {"image": IMAGE, "command": server(story)}
    model = {"job": "plain", "run": versions, "container": container, "files": ["model.pkl"]}
    machine = {"model": "iris", "machine": "n1-standard-2"}
    serving = {
        "models": {
            "iris": model,
            **{key: {**model, "run": 1, "container": given} for key, given in more.items()},
        },
        "endpoints": {
            "iris": {**machine, "split": split},
            # Another team's, which hardly any of this is about.
            "other": {**machine, "split": {"run 1": 100}, "team": "vision"},
            **{key: {**machine, "model": key, "split": {"run 1": 100}} for key in more},
        },
        "teams": {"vision": {"submitters": ["group:vision@example.com"]}},
    }
    story.write(
        {"plain": job},
        jobs={"plain": {"file": "jobs/serving-plain.yaml", "run": run}},
        packages={"plain": {"path": "jobs/plain.py"}},
        **(serving if versions else {}),
    )


def server(story: SmallStack) -> list[str]:
    return ["python", str(story.checkout.path / "jobs" / "server.py")]


def up(story: SmallStack) -> None:
    """Deploy the stack, and wait for the run."""
    story.checkout.run("vt", "local", "up", "--stack", story.name)


def client(story: SmallStack, kind: str) -> Any:
    """Return an official client."""
    import google.cloud.aiplatform_v1 as api

    from vertex_training_cli.engine import stacks
    from vertex_training_cli.serving import service

    assert api
    stacks.find(story.name, story.checkout.path).connect_clients()
    return service.client(story.project, REGION, kind)  # pyright: ignore[reportArgumentType]


def endpoint(story: SmallStack, key: str = "iris") -> Any:
    """Return the endpoint from the service."""
    name = story.outputs()["endpoints"][key]["name"]
    return client(story, "endpoint").get_endpoint(name=name)


def endpoints_by_key(story: SmallStack) -> dict[str, Any]:
    """Return all endpoints of the service, by key of the stack file."""
    parent = f"projects/{story.project}/locations/{REGION}"
    found = client(story, "endpoint").list_endpoints(parent=parent)
    return {each.labels[ENDPOINT_LABEL]: each for each in found}


def by_run(story: SmallStack, key: str = "iris") -> dict[int, tuple[str, int]]:
    """Return id and traffic share of the DeployedModels, by run."""
    found = endpoint(story, key)
    return {
        int(each.display_name.split(" ")[-2]): (each.id, found.traffic_split.get(each.id, 0))
        for each in found.deployed_models
        if each.display_name.startswith("vt ")
    }


def ask(story: SmallStack, rows: list[Any], key: str = "iris") -> Any:
    found = endpoint(story, key)
    return client(story, "prediction").predict(endpoint=found.name, instances=rows)


def own(story: SmallStack, run: int) -> dict[str, Any]:
    """Return the predictions of the run's script."""
    [job] = [job for job in story.jobs() if job.labels["vt-run"] == str(run)]
    assert job.output_prefix
    folder = story.checkout.home / "storage" / job.output_prefix.removeprefix("gs://")
    return json.loads((folder / "model" / "own.json").read_text())


def test_preview_refuses_a_model_of_a_missing_run(story: SmallStack) -> None:
    write(story, 1, [], {})
    up(story)
    write(story, 1, [1, 2], {"run 1": 100})
    told = story.pulumi("preview", expect=None)
    assert "2). Hint: raise `run` of the job" in told
    assert "Traceback" not in told


def test_endpoint_predicts_100_rows_like_the_script(story: SmallStack) -> None:
    write(story, 2, [1], {"run 1": 100})  # the next run trains meanwhile
    up(story)
    rows = own(story, 1)
    answer = ask(story, rows["instances"])
    assert [list(each) for each in answer.predictions] == rows["predictions"]
    assert answer.deployed_model_id == by_run(story)[1][0]


def test_second_preview_of_a_served_stack_has_no_changes(story: SmallStack) -> None:
    story.is_settled()


def test_canary_receives_its_share_and_predicts_like_its_script(story: SmallStack) -> None:
    before = by_run(story)
    write(story, 3, [1, 2], {"run 1": 90, "run 2": 10})
    up(story)
    after = by_run(story)
    assert {run: share for run, (_, share) in after.items()} == {1: 90, 2: 10}
    assert after[1][0] == before[1][0]
    assert by_run(story, "other")[1][1] == 100
    assert endpoint(story, "other").labels["team"] == "vision"
    assert "team" not in endpoint(story).labels
    told = {after[run][0]: own(story, run) for run in (1, 2)}
    asked = Counter[str]()
    found, predictions = endpoint(story), client(story, "prediction")
    for _ in range(100):
        answer = predictions.predict(endpoint=found.name, instances=told[after[1][0]]["instances"])
        asked[answer.deployed_model_id] += 1
        expected = told[answer.deployed_model_id]["predictions"]
        assert [list(each) for each in answer.predictions] == expected
    assert 0 < asked[after[2][0]] < 30


def test_promotion_and_its_revert_deploy_no_model(story: SmallStack) -> None:
    created = {each.id: each.create_time for each in endpoint(story).deployed_models}
    write(story, 3, [1, 2], {"run 1": 0, "run 2": 100})
    story.up()
    assert {share for _, share in by_run(story).values()} == {0, 100}
    write(story, 3, [1, 2], {"run 1": 90, "run 2": 10})
    story.up()
    assert by_run(story)[1][1] == 90
    assert {each.id: each.create_time for each in endpoint(story).deployed_models} == created


def test_lost_state_is_restored_despite_an_edited_job(story: SmallStack) -> None:
    versions = [1, 2, 3], {"run 1": 90, "run 2": 10}
    write(story, 3, *versions)
    up(story)
    write(story, 3, *versions, timeout=901)
    told = story.checkout.shell(f"vt review --stack {story.name}", expect=None).stdout
    assert (
        "job replaced, although a model version uses its run: `plain` (`model iris has a version"
        in told
    )
    up(story)
    before = by_run(story)
    first = next(job for job in story.jobs() if job.labels["vt-run"] == "3")
    told = story.comes_back()
    assert by_run(story) == before
    [adopted] = [line for line in told.splitlines() if "will adopt" in line]
    assert {"serving-iris-run-3", "serving-iris-traffic", "training-plain"} <= {
        *adopted.rpartition(": ")[2].split(", ")
    }
    found = story.resources()
    [version] = [each["outputs"] for each in found if each["urn"].endswith("serving-iris-run-3")]
    assert version["resolved"]["job"] == first.name


def test_version_that_does_not_start_receives_no_traffic(story: SmallStack) -> None:
    before = by_run(story)
    write(story, 3, [1, 2, 3], {"run 1": 90, "run 3": 10})
    told = story.pulumi("up -y --skip-preview", expect=None)
    report = told.partition("Diagnostics:")[2]
    [line] = [line for line in report.splitlines() if "exited unexpectedly" in line]
    assert "endpoint 'iris': run 3" in line
    assert "exit code 3" in line
    assert "Traceback" not in told
    assert by_run(story) == before
    assert len(ask(story, own(story, 1)["instances"]).predictions) == 100


def test_unhealthy_container_fails_up_with_one_line(story: SmallStack) -> None:
    container = {"image": IMAGE, "command": ["sleep", "600"], "deploymentTimeout": "5s"}
    write(story, 3, [1, 2], {"run 1": 90, "run 2": 10}, deaf=container)
    told = story.pulumi("up -y --skip-preview", expect=None)
    report = told.partition("Diagnostics:")[2]
    [line] = [line for line in report.splitlines() if "never became ready" in line]
    assert "endpoint 'deaf': run 1" in line
    assert "The endpoint serves no version" in line
    assert not endpoints_by_key(story)["deaf"].deployed_models


def test_model_of_a_killed_first_up_is_deleted_with_its_endpoint(story: SmallStack) -> None:
    container = {"image": IMAGE, "command": server(story)}
    write(story, 3, [1, 2], {"run 1": 90, "run 2": 10}, late=container)
    noted = story.checkout.path / "up.pid"
    command = f"echo $$ >{noted}; exec pulumi up -s {story.name} -y --skip-preview"
    killed = threading.Thread(target=story.checkout.shell, args=[command, None])
    killed.start()
    made = wait_until(lambda: endpoints_by_key(story).get("late"), 300)
    wait_until(lambda: connect_endpoints(story.project, REGION).running(made.name), 60)
    os.kill(int(noted.read_text()), signal.SIGKILL)
    killed.join()
    wait_until(lambda: bool(endpoints_by_key(story)["late"].deployed_models), 120)
    assert not [each for each in story.resources() if each["urn"].endswith("-late-traffic")]

    write(story, 3, [1, 2], {"run 1": 90, "run 2": 10})
    told = story.checkout.run(
        *("vt", "up", "--stack", story.name, "--yes", "--skip-preview", "--non-interactive")
    )
    assert "the creation is complete. Removing the pending operation" in told.stdout + told.stderr
    assert endpoints_by_key(story).keys() == {"iris", "other"}
    story.is_settled()


def test_invalid_row_is_reported_with_the_lines_of_its_request(story: SmallStack) -> None:
    rows = own(story, 1)["instances"]
    rows[41] = [-1, 0, 0, 0]
    file = story.checkout.path / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    told = story.checkout.run(
        *("vt", "endpoints", "predict", "other", "--stack", story.name, "--input", str(file)),
        expect=1,
    )
    assert told.stdout == ""
    assert "the endpoint did not answer the request for lines 1 to 100: 500" in told.stderr


def test_manually_deployed_model_stays_until_it_is_undeployed(story: SmallStack) -> None:
    write(story, 3, [1, 2], {"run 1": 90, "run 2": 10})
    found, service = endpoint(story), client(story, "endpoint")
    deployed = {
        "id": "77",
        "model": story.outputs()["models"]["iris"]["run 1"],
        "display_name": "by hand",
        "dedicated_resources": {
            "machine_spec": {"machine_type": "n1-standard-2"}, "min_replica_count": 1,
        },
    }  # fmt: skip
    service.deploy_model(endpoint=found.name, deployed_model=deployed).result(60)
    assert "77" in story.pulumi("refresh -y") + story.pulumi("up -y --skip-preview")
    assert "77" in [each.id for each in endpoint(story).deployed_models]
    assert {run: share for run, (_, share) in by_run(story).items()} == {1: 90, 2: 10}
    told = story.pulumi("destroy -y --skip-preview", expect=None)
    assert "deployed models that do not belong to the stack: 77" in told
    service.undeploy_model(endpoint=found.name, deployed_model_id="77").result(60)


def test_destroy_deletes_endpoints_and_keeps_model_versions(story: SmallStack) -> None:
    story.pulumi("destroy -y --skip-preview")
    parent = f"projects/{story.project}/locations/{REGION}"
    assert not list(client(story, "endpoint").list_endpoints(parent=parent))
    models = client(story, "model")
    by_key = {each.labels[MODEL_LABEL]: each for each in models.list_models(parent=parent)}
    assert by_key.keys() == {"iris", "deaf", "late"}
    model = by_key["iris"]
    assert len(list(models.list_model_versions(name=model.name.partition("@")[0]))) == 3
