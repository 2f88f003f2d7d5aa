"""Calls of the official client: the message that each of them would send, whole."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from vertex_training_cli.importing.command_lines import NO_FILES
from vertex_training_cli.importing.imported import ImportedJob, Note
from vertex_training_cli.importing.sdk_calls import jobs_in

INIT = "aiplatform.init(project='acme', location='europe-west4', staging_bucket='gs://acme-s')\n"
DISK = {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}
N1 = {"machineType": "n1-standard-4"}
STAGED = {"outputUriPrefix": "gs://acme-s/${job.name}/${job.requestId}"}
BY_REQUEST = "the client makes a folder in gs://acme-s for each job: it is named by the request id"


def read(code: str) -> list[ImportedJob]:
    found, left_out = jobs_in([("s", ast.parse(INIT + code))], "nameless", NO_FILES)
    assert left_out == []
    return found


def one(code: str) -> ImportedJob:
    [found] = read(code)
    return found


CONTAINER = "aiplatform.CustomContainerTrainingJob('My Job', 'a/b/c:1'{}).run({})\n"


def container(given: str = "", run: str = "") -> ImportedJob:
    return one(CONTAINER.format(f", {given}" if given else "", run))


def pool(count: int | str = 1, machine: Any = None, disk: Any = None, **task: Any) -> Any:
    spec = {"containerSpec": {"imageUri": "a/b/c:1", **task}}
    return {"replicaCount": count, "machineSpec": machine or N1, **spec, "diskSpec": disk or DISK}


def test_a_container_has_the_clients_defaults() -> None:
    assert container() == ImportedJob(
        "my-job", {"workerPoolSpecs": [pool()], "baseOutputDirectory": STAGED},
        region="europe-west4", remarks=[BY_REQUEST],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("run", "pools"),
    [
        ("replica_count=3", [pool(), pool(2)]),
        ("replica_count=1", [pool()]),
        ("replica_count=N", [pool(), pool("<YOUR_N> - 1")]),
        ("machine_type='n1-highmem-8'", [pool(machine={"machineType": "n1-highmem-8"})]),
        ("accelerator_type='NVIDIA_L4', accelerator_count=2",
         [pool(machine={**N1, "acceleratorType": "NVIDIA_L4", "acceleratorCount": 2})]),
        ("accelerator_type='NVIDIA_L4'", [pool()]),
        ("accelerator_type='ACCELERATOR_TYPE_UNSPECIFIED', accelerator_count=1", [pool()]),
        ("boot_disk_type='pd-balanced', boot_disk_size_gb=500",
         [pool(disk={"bootDiskType": "pd-balanced", "bootDiskSizeGb": 500})]),
        ("args=['--a', 1]", [pool(args=["--a", "1"])]),
        ("args='--a'", [pool(args=["--a"])]),
        ("environment_variables={'A': 1}", [pool(env=[{"name": "A", "value": "1"}])]),
        ("environment_variables=more",
         [pool(env=[{"name": "ENVIRONMENT_VARIABLES", "value": "<YOUR_MORE>"}])]),
        ("tpu_topology='2x2', replica_count=2",
         [pool(machine={**N1, "tpuTopology": "2x2"}), pool(1)]),
        ("reservation_affinity_type='SPECIFIC_RESERVATION', reservation_affinity_key='k', "
         "reservation_affinity_values=['v']",
         [pool(machine={**N1, "reservationAffinity": {
             "reservationAffinityType": "SPECIFIC_RESERVATION", "key": "k", "values": ["v"]}})]),
    ],
)  # fmt: skip
def test_the_pools_are_a_chief_and_workers_alike(run: str, pools: Any) -> None:
    assert container(run=run).spec["workerPoolSpecs"] == pools


@pytest.mark.parametrize(
    ("command", "words"),
    [("['python', 't.py']", ["python", "t.py"]), ("'run'", ["run"]), ("[]", None)],
)
def test_a_command_is_a_list_of_words(command: str, words: list[str] | None) -> None:
    task = {"command": words} if words else {}
    assert container(f"command={command}").spec["workerPoolSpecs"] == [pool(**task)]


@pytest.mark.parametrize(
    ("run", "fields"),
    [
        ("service_account='s'", {"serviceAccount": "s"}),
        ("network='n'", {"network": "n"}),
        ("enable_web_access=True", {"enableWebAccess": True}),
        ("enable_dashboard_access=True", {"enableDashboardAccess": True}),
        ("tensorboard='t'", {"tensorboard": "t"}),
        ("persistent_resource_id='p'", {"persistentResourceId": "p"}),
        ("timeout=60", {"scheduling": {"timeout": "60s"}}),
        ("max_wait_duration=5", {"scheduling": {"maxWaitDuration": "5s"}}),
        ("restart_job_on_worker_restart=True, disable_retries=True",
         {"scheduling": {"restartJobOnWorkerRestart": True, "disableRetries": True}}),
        ("scheduling_strategy=Strategy.SPOT", {"scheduling": {"strategy": "SPOT"}}),
        ("base_output_dir='gs://o/x'", {"baseOutputDirectory": {"outputUriPrefix": "gs://o/x"}}),
        ("psc_interface_config={'network_attachment': 'a'}",
         {"pscInterfaceConfig": {"networkAttachment": "a"}}),
        ("service_account=None, network=''", {}),
    ],
)  # fmt: skip
def test_options_of_a_run_are_fields_of_the_job(run: str, fields: Any) -> None:
    found = container(run=run)
    assert found.spec == {
        "workerPoolSpecs": [pool()], "baseOutputDirectory": STAGED, **fields,
    }  # fmt: skip
    assert found.remarks == ([] if "base_output_dir" in run else [BY_REQUEST])


def test_labels_and_keys_are_the_jobs() -> None:
    found = container("labels={'a': 1}, training_encryption_spec_key_name='k'")
    assert (found.labels, found.encryption_key) == ({"a": "1"}, "k")
    assert container("labels=more").labels == {"labels": "<YOUR_MORE>"}


@pytest.mark.parametrize(
    ("given", "remark"),
    [
        ("dataset=d", "dataset is left out: managed data sets belong to training pipelines: read "
         "the bucket instead"),
        ("model_display_name='m'", "model_display_name is left out: a CustomJob uploads no model: "
         "its code writes to AIP_MODEL_DIR"),
        ("tomorrow=1", "the client's option tomorrow is not read (s, line 2)"),
    ],
)  # fmt: skip
def test_what_has_no_place_in_a_job_is_said(given: str, remark: str) -> None:
    assert container(run=given).remarks == [BY_REQUEST, remark]


def test_a_script_is_packaged_with_its_requirements() -> None:
    found = one(
        "aiplatform.CustomTrainingJob('j', 'src/task.py', 'e:1', requirements=['x==1', 'y'])"
        ".run(args=['--a'])\n"
    )
    assert (found.script, found.requirements) == ("src/task.py", ("x==1", "y"))
    [made] = found.spec["workerPoolSpecs"]
    assert made["pythonPackageSpec"] == {"executorImageUri": "e:1", "args": ["--a"]}
    local = one("aiplatform.CustomJob.from_local_script('j', 't.py', 'e:1', ['--b'], 'z').run()\n")
    assert (local.name, local.script, local.requirements) == ("j", "t.py", ("z",))
    assert local.spec["workerPoolSpecs"][0]["pythonPackageSpec"]["args"] == ["--b"]


def test_a_package_names_its_module() -> None:
    found = one(
        "aiplatform.CustomPythonPackageTrainingJob('j', 'gs://b/p.tar.gz', 'm.task', 'e:1').run()\n"
    )
    assert found.spec["workerPoolSpecs"][0]["pythonPackageSpec"] == {
        "executorImageUri": "e:1", "packageUris": ["gs://b/p.tar.gz"], "pythonModule": "m.task",
    }  # fmt: skip


POOL = "{'machine_spec': {'machine_type': 'm'}, 'replica_count': 1}"
READ = {"machineSpec": {"machineType": "m"}, "replicaCount": 1}


def test_pools_of_a_job_are_those_it_was_made_with() -> None:
    code = f"pools = [{POOL}]\njob = aiplatform.CustomJob('j', pools)\npools.append({POOL})\n"
    found = one(f"{code}job.submit(timeout=9)\n")
    assert found.spec == {
        "workerPoolSpecs": [READ], "scheduling": {"timeout": "9s"}, "baseOutputDirectory": STAGED,
    }  # fmt: skip
    assert (found.name, found.region, found.notes) == ("j", "europe-west4", [])


def test_a_job_that_nothing_runs_is_said_beside_one_that_runs() -> None:
    code = "a = aiplatform.CustomJob('a', [])\nb = aiplatform.CustomJob('b', [])\n"
    alone = read(code)
    assert [each.remarks for each in alone] == [[BY_REQUEST]] * 2
    first, second = read(f"{code}b.run()\n")
    assert first.remarks == [BY_REQUEST, "nothing that was read runs this job (s, line 2)"]
    assert second.remarks == [BY_REQUEST]


@pytest.mark.parametrize(
    ("location", "region"),
    [("location='us-east1'", "us-east1"), ("location=None", "europe-west4"), ("", "europe-west4")],
)
def test_where_a_job_is_sent_is_its_own_or_the_clients(location: str, region: str) -> None:
    assert one(f"aiplatform.CustomJob('j', [], {location}).run()\n").region == region


def search(spec: str, more: str = "") -> ImportedJob:
    inner = f"aiplatform.CustomJob('in', [{POOL}])"
    given = f"'hp', {inner}, {{'acc': 'maximize'}}, {{'x': {spec}}}{more}"
    return one(f"aiplatform.HyperparameterTuningJob({given}).run()\n")


@pytest.mark.parametrize(
    ("spec", "parameter"),
    [
        ("hpt.DoubleParameterSpec(min=0.1, max=1, scale='log')",
         {"doubleValueSpec": {"minValue": 0.1, "maxValue": 1}, "scaleType": "UNIT_LOG_SCALE"}),
        ("hpt.IntegerParameterSpec(1, 8, 'linear')",
         {"integerValueSpec": {"minValue": 1, "maxValue": 8}, "scaleType": "UNIT_LINEAR_SCALE"}),
        ("hpt.DoubleParameterSpec(0, 1, 'reverse_log')",
         {"doubleValueSpec": {"minValue": 0, "maxValue": 1},
          "scaleType": "UNIT_REVERSE_LOG_SCALE"}),
        ("hpt.DoubleParameterSpec(0, 1, 'unspecified')",
         {"doubleValueSpec": {"minValue": 0, "maxValue": 1}}),
        ("hpt.DoubleParameterSpec(0, 1, S)",
         {"doubleValueSpec": {"minValue": 0, "maxValue": 1}, "scaleType": "<YOUR_S>"}),
        ("hpt.CategoricalParameterSpec(['a', 'b'])",
         {"categoricalValueSpec": {"values": ["a", "b"]}}),
        ("hpt.DiscreteParameterSpec([1, 2], 'log')",
         {"discreteValueSpec": {"values": [1, 2]}, "scaleType": "UNIT_LOG_SCALE"}),
        ("hpt.DiscreteParameterSpec([1, 2], scale=None)",
         {"discreteValueSpec": {"values": [1, 2]}}),
        ("given", {"categoricalValueSpec": {"values": "<YOUR_GIVEN>"}}),
    ],
)  # fmt: skip
def test_a_parameter_of_a_search_has_its_range(spec: str, parameter: Any) -> None:
    found = search(spec)
    assert found.study["studySpec"]["parameters"] == [{"parameterId": "x", **parameter}]
    assert found.spec["workerPoolSpecs"] == [READ]


@pytest.mark.parametrize(
    ("more", "labels", "key", "region"),
    [
        ("", {}, "", "europe-west4"),
        (", labels={'b': 2}, encryption_spec_key_name='l', location='us-east1'",
         {"b": "2"}, "l", "us-east1"),
    ],
)  # fmt: skip
def test_a_search_has_labels_a_key_and_a_region_of_its_own(
    more: str, labels: dict[str, str], key: str, region: str
) -> None:
    inner = (
        f"aiplatform.CustomJob('in', [{POOL}], labels={{'a': 1}}, encryption_spec_key_name='k', "
        "location='us-west1', base_output_dir='gs://b/o')"
    )
    found = one(f"aiplatform.HyperparameterTuningJob('hp', {inner}, {{}}, {{}}{more}).run()\n")
    assert (found.labels, found.encryption_key, found.region) == (labels, key, region)
    assert found.spec == {
        "workerPoolSpecs": [READ], "baseOutputDirectory": {"outputUriPrefix": "gs://b/o"},
    }  # fmt: skip


def test_a_search_has_its_counts_and_its_algorithm() -> None:
    spec = "hpt.DiscreteParameterSpec([1], None)"
    more = (
        ", 12, 3, max_failed_trial_count=2, search_algorithm='grid', measurement_selection='last'"
    )
    parameters = [{"parameterId": "x", "discreteValueSpec": {"values": [1]}}]
    assert search(spec, more).study == {
        "maxTrialCount": 12, "parallelTrialCount": 3, "maxFailedTrialCount": 2,
        "displayName": "hp",
        "studySpec": {
            "metrics": [{"metricId": "acc", "goal": "MAXIMIZE"}], "parameters": parameters,
            "algorithm": "GRID_SEARCH", "measurementSelectionType": "LAST_MEASUREMENT",
        },
    }  # fmt: skip
    bare = search(spec)
    assert bare.study == {
        "maxTrialCount": "<MAX_TRIAL_COUNT>", "parallelTrialCount": "<PARALLEL_TRIAL_COUNT>",
        "displayName": "hp",
        "studySpec": {
            "metrics": [{"metricId": "acc", "goal": "MAXIMIZE"}], "parameters": parameters,
            "measurementSelectionType": "BEST_MEASUREMENT",
        },
    }  # fmt: skip


@pytest.mark.parametrize("code", ["pool_0 = {}", "aiplatform.CustomJob('j', [{}]).run()"])
def test_what_is_said_of_a_job_is_in_order(code: str) -> None:
    args = ", ".join(f"os.getenv('{name}', 'd')" for name in "EBDAFC")
    found = one(code.format(f"{{'container_spec': {{'args': [{args}]}}}}"))
    assert [str(each) for each in found.notes] == [
        f"'d' is the default of the environment's {name} (s, line 2)" for name in "ABCDEF"
    ]


def test_pools_with_a_number_in_their_names_are_a_job_where_nothing_makes_one() -> None:
    found = one(f"worker_pool_1 = {POOL}\nworker_pool_0 = {POOL}\n")
    assert (found.spec, found.remarks) == ({"workerPoolSpecs": [READ, READ]}, [])
    part = one(f"pool2 = {POOL}\n")
    assert part.remarks == ["this is a part of a job: pool 0, 1 is not in the source"]
    assert read("pool = 3\n") == []


JOB = "job = aiplatform.CustomContainerTrainingJob('j', 'a/b/c:1')\n"
UNREAD = Note("calls of `job.run` by another name are not read", "s, line 3")


@pytest.mark.parametrize(
    "code",
    [
        "run = job.run\nrun(service_account='me')",
        "submit = job.submit\nsubmit(service_account='me')",
        "(go := job.run)\ngo(service_account='me')",
        "go = {'a': job.run}\ngo['a'](service_account='me')",
        "class C:\n def __init__(self): self.go = job.run\nC().go(service_account='me')",
        "def f(go): go(service_account='me')\nf(job.run)",
        "go = job.run\nif X: go(service_account='me')\nelse: go(service_account='me')",
    ],
)
def test_a_method_of_a_job_is_read_by_its_other_name(code: str) -> None:
    found = one(JOB + code)
    assert found.spec["serviceAccount"] == "me"
    assert UNREAD not in found.notes


@pytest.mark.parametrize(
    "code",
    [
        "Thread(target=job.run, kwargs={'service_account': 'me'}).start()",
        "go = functools.partial(job.run, service_account='me')\ngo()",
        "pool.submit(job.run, service_account='me')",
        "go = job.run",
    ],
)
def test_a_method_that_something_else_calls_is_told(code: str) -> None:
    assert UNREAD in one(JOB + code).notes
