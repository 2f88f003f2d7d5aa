"""What a replica sees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localgcp.runner import environment
from localgcp.runner.environment import Placement

FOLDERS = environment.Folders(work=Path("/j/work"), tmp=Path("/j/tmp"), gcs=Path("/j/gcs"))
SPEC = {
    "workerPoolSpecs": [
        {"pythonPackageSpec": {"pythonModule": "a.b", "packageUris": ["gs://p/a"], "args": ["-x"]}}
    ]
}


def variables(**spec: object) -> dict[str, str]:
    return environment.service_variables(
        job_id="42",
        project_number="123456789012",
        spec={**SPEC, **spec},
        placement=Placement(0, 0, {"workerpool0": ["localhost:2222"]}),
    )


def test_the_service_sets_exactly_these_variables_without_an_output_directory() -> None:
    found = variables()
    assert set(found) == {"CLOUD_ML_PROJECT_ID", "CLOUD_ML_JOB_ID", "CLUSTER_SPEC"}
    assert found["CLOUD_ML_PROJECT_ID"] == "123456789012"
    assert found["CLOUD_ML_JOB_ID"] == "42"
    assert json.loads(found["CLUSTER_SPEC"]) == {
        "cluster": {"workerpool0": ["localhost:2222"]},
        "environment": "cloud",
        "task": {"type": "workerpool0", "index": 0},
        "job": '{"python_module": "a.b", "package_uris": ["gs://p/a"], "job_args": ["-x"]}',
    }


POOLS = {
    "workerpool0": ["a:2222"],
    "workerpool1": ["b:2222", "c:2222"],
    "workerpool2": ["d:2222"],
    "workerpool3": ["e:2222"],
}


@pytest.mark.parametrize(
    ("pool", "index", "role"),
    [(0, 0, "chief"), (1, 1, "worker"), (2, 0, "ps"), (3, 0, "evaluator")],
)
def test_replicas_of_several_pools_get_the_cluster_in_both_forms(
    pool: int, index: int, role: str
) -> None:
    args = [{"containerSpec": {"args": [f"--pool={number}"]}} for number in range(4)]
    found = environment.service_variables(
        job_id="42",
        project_number="1",
        spec={"workerPoolSpecs": args},
        placement=Placement(pool, index, POOLS),
    )
    job = f'{{"python_module": "", "package_uris": [], "job_args": ["--pool={pool}"]}}'
    assert {key: json.loads(found[key]) for key in ("CLUSTER_SPEC", "TF_CONFIG")} == {
        "CLUSTER_SPEC": {
            "cluster": POOLS,
            "environment": "cloud",
            "task": {"type": f"workerpool{pool}", "index": index},
            "job": job,
        },
        "TF_CONFIG": {  # an evaluator is a task, and no member
            "cluster": {
                "chief": ["a:2222"], "worker": ["b:2222", "c:2222"], "ps": ["d:2222"],
            },
            "environment": "cloud",
            "task": {"type": role, "index": index, "cloud": "local"},
            "job": job,
        },
    }  # fmt: skip


@pytest.mark.parametrize("prefix", ["gs://out/run", "gs://out/run/"])
def test_an_output_directory_adds_the_three_aip_folders(prefix: str) -> None:
    found = variables(baseOutputDirectory={"outputUriPrefix": prefix})
    assert {name: value for name, value in found.items() if name.startswith("AIP_")} == {
        "AIP_MODEL_DIR": "gs://out/run/model/",
        "AIP_CHECKPOINT_DIR": "gs://out/run/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": "gs://out/run/logs/",
    }


def test_a_tensorboard_adds_its_name_and_the_address_of_its_api() -> None:
    name = "projects/1/locations/europe-west4/tensorboards/7"
    found = variables(tensorboard=name)
    assert {key: value for key, value in found.items() if key.startswith("AIP_")} == {
        "AIP_TENSORBOARD_RESOURCE_NAME": name,
        "AIP_TENSORBOARD_API_URI": "europe-west4-aiplatform.googleapis.com",
    }


def test_nothing_of_the_servers_environment_reaches_the_job() -> None:
    found = environment.machine_variables(FOLDERS, "/bin", "http://127.0.0.1:1")
    assert found == {
        "PATH": "/bin",
        "HOME": "/j/work",
        "TMPDIR": "/j/tmp",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "STORAGE_EMULATOR_HOST": "http://127.0.0.1:1",
    }


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("/gcs/data/x", "/j/gcs/data/x"),
        ("--train=/gcs/data/x", "--train=/j/gcs/data/x"),
        ("/gcs", "/j/gcs"),
        ("cat /gcs/a/1 > /gcs/b/2", "cat /j/gcs/a/1 > /j/gcs/b/2"),
        ("/my/gcs/x", "/my/gcs/x"),
        ("/gcsfuse/x", "/gcsfuse/x"),
        ("gs://data/gcs/x", "gs://data/gcs/x"),
        ("./gcs/x", "./gcs/x"),
    ],
)
def test_a_path_below_gcs_becomes_the_folder_that_stands_for_it(text: str, result: str) -> None:
    assert environment.mounted(text, FOLDERS.gcs) == result


def test_buckets_are_mounted_when_command_args_or_env_name_them() -> None:
    task = {
        "command": ["sh", "-c", "ls /gcs/one"],
        "args": ["--x=/gcs/two/f", "/gcs/one/g"],
        "env": [{"name": "A", "value": "/gcs/three"}],
    }
    assert environment.mounted_buckets(task) == ["one", "three", "two"]


def test_a_job_reaches_the_buckets_that_it_names_in_any_form_and_no_other() -> None:
    task = {
        "command": ["sh", "-c", "ls /gcs/one"],
        "args": ["--x=gs://two/f,gs://three"],
        "env": [{"name": "A", "value": "gs://four/g"}, {"name": "B", "value": "/gcs/five"}],
    }
    named = environment.named_buckets(task, "gs://out/run")
    assert named == ["five", "four", "one", "out", "three", "two"]
    assert environment.named_buckets({}, None) == []


@pytest.mark.parametrize(
    ("text", "result"),
    [("$(A)b", "1b"), ("$$(A)", "$(A)"), ("$(NO)", "$(NO)"), ("${A} $A", "${A} $A")],
)
def test_references_to_variables_are_expanded_as_in_a_container(text: str, result: str) -> None:
    assert environment.expand(text, {"A": "1"}) == result


def test_a_variable_without_a_value_is_empty() -> None:
    task = {"env": [{"name": "EMPTY"}, {"name": "A", "value": "[$(EMPTY)]"}]}
    assert environment.user_variables(task, {}, FOLDERS.gcs) == {"EMPTY": "", "A": "[]"}
    assert environment.mounted_buckets({"env": [{"name": "EMPTY"}]}) == []
    assert environment.named_buckets({"env": [{"name": "EMPTY"}]}, None) == []


def test_a_command_alone_names_buckets() -> None:
    task = {"command": ["cat", "gs://one/x"]}
    assert environment.named_buckets(task, None) == ["one"]
    assert environment.mounted_buckets(task) == []


def test_a_trial_reports_its_metrics_where_cloudml_hypertune_writes_them() -> None:
    assert environment.trial_variables("3", Path("/gcs"), "workerpool0-0") == {
        "CLOUD_ML_TRIAL_ID": "3",
        "CLOUD_ML_HP_METRIC_FILE": "/gcs/.hypertune/workerpool0-0.metrics",
    }
    found = environment.metrics_file(FOLDERS.gcs, "workerpool1-2")
    assert found == Path("/j/gcs/.hypertune/workerpool1-2.metrics")


def test_the_apis_of_the_local_cloud_are_at_one_address() -> None:
    assert environment.api_variables("http://127.0.0.1:9/") == {
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": "http://127.0.0.1:9/",
        "BIGQUERY_EMULATOR_HOST": "http://127.0.0.1:9",
        "VERTEX_EMULATOR_HOST": "127.0.0.1:9",
    }
    assert environment.api_variables("") == {}


@pytest.mark.parametrize(
    ("cluster", "alone"),
    [
        ({"workerpool0": ["a:1"]}, True),
        ({"workerpool0": ["a:1"], "workerpool1": ["b:1"]}, False),
        ({"workerpool1": ["a:1", "b:1"]}, False),
    ],
)
def test_a_placement_has_the_name_of_its_replica_and_is_alone_or_not(
    cluster: dict[str, list[str]], alone: bool
) -> None:
    place = Placement(1, 2, cluster)
    assert (place.name, place.alone) == ("workerpool1-2", alone)


def test_a_users_variable_may_use_the_ones_before_it_and_the_services() -> None:
    env = [{"name": "A", "value": "x-$(ID)"}, {"name": "B", "value": "$(A):/gcs/d"}]
    found = environment.user_variables({"env": env}, {"ID": "7"}, FOLDERS.gcs)
    assert found == {"A": "x-7", "B": "x-7:/j/gcs/d"}


def test_a_container_has_no_module_and_no_packages_in_its_cluster_spec() -> None:
    pool = {"containerSpec": {"imageUri": "python:3.11", "command": ["train"], "args": ["-x"]}}
    job = json.loads(json.loads(variables(workerPoolSpecs=[pool])["CLUSTER_SPEC"])["job"])
    assert job == {"python_module": "", "package_uris": [], "job_args": ["-x"]}
