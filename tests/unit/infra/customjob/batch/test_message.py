"""CustomJobs as jobs of Batch: messages that Google's client reads, and that stay the same."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from google.cloud import batch_v1, batch_v1alpha
from google.protobuf.json_format import MessageToDict, ParseDict
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.unit.infra.customjob.test_corpus import (
    CORPUS,
    NETWORKS,
    PROJECT,
    REGION,
    STACK,
    TABLE,
)
from vertex_training.customjob.batch.message import BatchParameters, batch_job, buckets
from vertex_training.customjob.batch.naming import (
    EXIT_CODES,
    STATES,
    explain,
    is_job_of,
    job_id,
    reason,
)
from vertex_training.customjob.kinds import BATCH_JOB, TUNING_JOB, kind_of_name, kind_of_request
from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.job_file import JobFileResult, Submission
from vertex_training.customjob.rules import Context
from vertex_training.settings.model import JobOptions

GOLDEN = Path(__file__).with_name("messages.json")
DIGEST = f"us-central1-docker.pkg.dev/{PROJECT}/x/trainer@sha256:{'0' * 64}"
#: What files of jobs/ name, with values of the right form.
REFERENCES = TABLE | {
    **{f"images.{name}": DIGEST for name in ("titanic", "spot-resume", "gemma", "gemma-finetune")},
    "buckets.data.mount": "/gcs/acme-ml-dev-data-dev",
    "network.interface": {"networkAttachment": TABLE["network.attachment"]},
}
PSC = NETWORKS["psc"]
VALUE = f"{TABLE['secrets.wandb-api-key']}/versions/latest#value"


def check(text: str, name: str = "x", **context: Any) -> JobFileResult:
    who = Submission(PROJECT, REGION, "dev", name, 1)
    around = Context(region=REGION, stack=context.pop("stack", STACK), **context)
    return job_file.check_job_file(
        text.encode(), f"{name}.yaml", who, REFERENCES, around, BATCH_JOB
    )


def container(type_: str = "n1-standard-4", **more: Any) -> dict[str, Any]:
    spec = {"imageUri": DIGEST, "command": ["python", "-u"], "args": ["-m", "x", "gs://bucket-a/d"]}
    return {
        "replicaCount": 1,
        "machineSpec": {"machineType": type_, **more.pop("machine", {})},
        "containerSpec": {**spec, **more},
    }


def document(*pools: dict[str, Any], **spec: Any) -> str:
    whole = {
        "serviceAccount": TABLE["serviceAccounts.trainer"],
        "baseOutputDirectory": {
            "outputUriPrefix": "gs://acme-ml-dev-artifacts-dev/x/${job.requestId}"
        },
        "scheduling": {"timeout": "3600s"},
        "workerPoolSpecs": list(pools or [container()]),
        **spec,
    }
    return json.dumps(whole)


GPU = {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2}
L4 = {"acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
H100 = {"acceleratorType": "NVIDIA_H100_MEGA_80GB", "acceleratorCount": 8}
CASES = {
    "one": document(),
    "spot-t4": document(container(machine=GPU), scheduling={"strategy": "SPOT", "timeout": "60s"}),
    "three": document(
        container(), container() | {"replicaCount": 2},
        scheduling={"timeout": "60s", "restartJobOnWorkerRestart": True},
    ),
    "flex-l4": document(
        container("g2-standard-12", machine=L4),
        scheduling={"strategy": "FLEX_START", "timeout": "60s", "disableRetries": True},
    ),
    "reserved": document(
        container(
            "a3-megagpu-8g",
            machine={
                **H100,
                "reservationAffinity": {
                    "reservationAffinityType": "SPECIFIC_RESERVATION",
                    "key": "compute.googleapis.com/reservation-name",
                    "values": [TABLE["reservations.h100.name"]],
                },
            },
        )
        | {"diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 500}},
    ),
    "secret": document(
        container(env=[{"name": "KEY", "value": VALUE}, {"name": "A", "value": "b"}]),
    ),
    "environment": document(
        container(
            env=[{"name": "OUT", "value": "$(AIP_MODEL_DIR)x"}, {"name": "B", "value": "$$(A)"}]
        )
    ),
}  # fmt: skip


def message(text: str, **labels: str) -> dict[str, Any]:
    result = check(text)
    assert result.request is not None, [str(error) for error in result.errors]
    return result.request.sent(labels)


def test_messages_are_those_that_were_looked_at(request: pytest.FixtureRequest) -> None:
    found = {name: message(text, **{"vt-run": "1"}) for name, text in CASES.items()}
    text = json.dumps(found, indent=1, sort_keys=True) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_googles_client_reads_every_field_of_a_message(name: str) -> None:
    read = batch_v1.Job.pb(batch_v1.Job())
    ParseDict(message(CASES[name]), read)
    assert MessageToDict(read) == message(CASES[name])


def test_the_smallest_job_has_a_week_three_retries_and_nothing_that_nobody_asked_for() -> None:
    pool = {
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": 1,
        "containerSpec": {"imageUri": "i"},
    }
    given = {"jobSpec": {"serviceAccount": "a@b.c", "workerPoolSpecs": [pool]}}
    alone = {
        "cluster": {"workerpool0": ["localhost:2222"]},
        "environment": "cloud",
        "task": {"type": "workerpool0", "index": 0},
    }
    machine = {
        "machineType": "n1-standard-4",
        "provisioningModel": "STANDARD",
        "bootDisk": {"sizeGb": "100"},
        "reservation": "NO_RESERVATION",
    }
    condition = {"exitCodes": [50001, 50002, 50003, 50004]}
    found = batch_job(given, BatchParameters("p", "us-central1", "id"))
    [task] = [group.pop("taskSpec") for group in found["taskGroups"]]
    variables = task["environment"]["variables"]
    assert json.loads(variables.pop("CLUSTER_SPEC")) == alone
    assert task == {
        "runnables": [{"container": {"imageUri": "i"}}],
        "computeResource": {"cpuMilli": "4000", "memoryMib": "15360"},
        "maxRunDuration": "604800s",
        "environment": {"variables": {"CLOUD_ML_JOB_ID": "id"}},
        "maxRetryCount": 3,
        "lifecyclePolicies": [{"action": "RETRY_TASK", "actionCondition": condition}],
    }
    assert found == {
        "taskGroups": [{"taskCount": "1", "parallelism": "1", "taskCountPerNode": "1"}],
        "allocationPolicy": {
            "instances": [{"policy": machine}],
            "location": {"allowedLocations": ["regions/us-central1"]},
            "serviceAccount": {"email": "a@b.c"},
        },
        "logsPolicy": {"destination": "CLOUD_LOGGING"},
    }


def test_a_job_gets_what_vertex_ai_gives_it() -> None:
    found = message(CASES["environment"])
    task = found["taskGroups"][0]["taskSpec"]
    variables = task["environment"]["variables"]
    folder = variables["AIP_MODEL_DIR"].removesuffix("model/")
    assert folder.startswith("gs://acme-ml-dev-artifacts-dev/x/batch-")
    assert variables["AIP_CHECKPOINT_DIR"] == f"{folder}checkpoints/"
    assert variables["OUT"] == f"{folder}model/x"
    assert variables["B"] == "$(A)"
    assert variables["CLOUD_ML_JOB_ID"].startswith("dev-x-")
    [ran] = [each["container"] for each in task["runnables"]]
    assert ran["entrypoint"] == "python"
    assert ran["commands"] == ["-u", "-m", "x", "gs://bucket-a/d"]
    assert [each["gcs"]["remotePath"] for each in task["volumes"]] == [
        "acme-ml-dev-artifacts-dev", "bucket-a",
    ]  # fmt: skip
    assert all(":/gcs/" in each for each in ran["volumes"])


def test_machines_are_in_the_subnet_of_the_stack_without_an_external_address() -> None:
    network = dataclasses.replace(PSC, subnet=SUBNET)
    stack = dataclasses.replace(STACK, network=network)
    text = document(pscInterfaceConfig={"networkAttachment": TABLE["network.attachment"]})
    result = check(text, stack=stack)
    assert result.request is not None, [str(error) for error in result.errors]
    policy = result.request.sent({})["allocationPolicy"]
    interface = {"subnetwork": SUBNET, "noExternalIpAddress": True}
    assert policy["network"] == {"networkInterfaces": [interface]}
    other = check(document(), stack=stack).request
    assert other is not None
    assert "network" not in other.sent({})["allocationPolicy"]
    assert other.request_id != result.request.request_id


def test_two_machines_wait_for_each_other_and_are_told_their_peers() -> None:
    [group] = message(document(container(), container()))["taskGroups"]
    assert {key: value for key, value in group.items() if key != "taskSpec"} == {
        **dict.fromkeys(("taskCount", "parallelism"), "2"),
        "taskCountPerNode": "1",
        "requireHostsFile": True,
    }
    [script, run] = group["taskSpec"]["runnables"]
    assert list(script) == ["script"]
    options = "--network=host --env-file=/tmp/vertex-training.env"
    assert run["container"]["options"] == options
    assert "CLUSTER_SPEC" not in group["taskSpec"]["environment"]["variables"]


def test_the_backend_is_part_of_the_identity_and_nothing_else_is() -> None:
    who = Submission(PROJECT, REGION, "dev", "x", 1)
    around = Context(region=REGION, stack=STACK)
    text = CASES["one"].replace("/${job.requestId}", "").encode()
    on = {
        kind: job_file.check_job_file(text, "x", who, REFERENCES, around, kind).request
        for kind in (None, BATCH_JOB)
    }
    vertex, batch = on[None], on[BATCH_JOB]
    assert vertex is not None
    assert batch is not None
    assert batch.request_id == f"batch-{vertex.request_id}"
    assert batch.body == vertex.body
    assert kind_of_request(batch.request_id) is BATCH_JOB
    assert kind_of_request(vertex.request_id) is not BATCH_JOB


SUBNET = "projects/acme-ml-dev/regions/us-central1/subnetworks/training-dev"


REFUSED = {
    "tensorboard": {"tensorboard": f"projects/{PROJECT}/locations/{REGION}/tensorboards/1"},
    "persistentResourceId": {"persistentResourceId": "warm"},
    "enableWebAccess": {"enableWebAccess": True},
    "network": {"network": "projects/210987654321/global/networks/training"},
}


@pytest.mark.parametrize("field", REFUSED)
def test_what_only_vertex_ai_has_is_refused_with_what_to_do(field: str) -> None:
    errors = [each for each in check(document(**REFUSED[field])).errors]
    [error] = [each for each in errors if each.rule == "batch-support"]
    assert field in str(error)
    assert error.hint.endswith("backend: vertex has it")


@pytest.mark.parametrize(
    ("pools", "words"),
    [
        ([container(), container("n1-standard-8")], "machineSpec: Batch runs equal machines"),
        ([container(), container(args=["y"])], "containerSpec: Batch runs equal machines"),
        ([container(), container(), container()], "no parameter servers and no evaluators"),
        ([container(args=["$(CLUSTER_SPEC)"])], "known only on the machine"),
    ],
)
def test_machines_that_are_not_equal_are_refused(pools: list[Any], words: str) -> None:
    assert words in "\n".join(map(str, check(document(*pools)).errors))


def test_a_secret_is_a_reference_and_no_variable_of_the_request() -> None:
    environment = message(CASES["secret"])["taskGroups"][0]["taskSpec"]["environment"]
    assert environment["secretVariables"] == {"KEY": VALUE.removesuffix("#value")}
    assert "KEY" not in environment["variables"]
    assert environment["variables"]["A"] == "b"
    assert "secretVariables" not in json.dumps(message(CASES["one"]))


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"args": [VALUE]}, "secret-value"),
        ({"env": [{"name": "K", "value": f"x:{VALUE}"}]}, "secret-value"),
        ({"env": [{"name": "K", "value": VALUE}], "args": ["--k=$(K)"]}, "batch-support"),
        ({"env": [{"name": "K", "value": VALUE}, {"value": "$(K)"}]}, "batch-support"),
        ({"env": [{"name": "K", "value": VALUE.replace("wandb", "none")}]}, "secret-granted"),
        ({"env": [{"name": "K", "value": f"{TABLE['secrets.hf-token']}/versions/3#value"}]},
         "secret-granted"),
    ],
)  # fmt: skip
def test_a_secret_is_a_whole_variable_that_the_account_may_read(
    more: dict[str, Any], rule: str
) -> None:
    assert rule in [error.rule for error in check(document(container(**more))).errors]


@given(st.text(max_size=80), st.text(max_size=80), st.integers(1, 10**6))
def test_ids_are_ids_whatever_stack_and_job_are_called(stack: str, job: str, turn: int) -> None:
    found = job_id(stack, job, "batch-0123456789abcdef0123", turn)
    assert re.fullmatch(r"[a-z][a-z0-9-]{0,61}[a-z0-9]", found)
    assert is_job_of(found, "batch-0123456789abcdef0123")
    assert not is_job_of(found, "batch-0123456789abcdef0124")


@given(st.lists(st.sampled_from([50001, 50005, 1, 0]), max_size=4))
def test_the_reason_of_a_failure_says_what_its_exit_code_means(codes: list[int]) -> None:
    told = reason([(f"Task failed with exit code {code}.", code) for code in codes])
    own = [code for code in codes if code in EXIT_CODES]
    failing = [code for code in codes if code]
    if own and failing[-1] in EXIT_CODES:
        assert EXIT_CODES[failing[-1]] in told
    assert explain("x", 3) == "x"


def test_every_state_of_batch_has_a_word_of_vertex_ai() -> None:
    names = {state.name for state in batch_v1.JobStatus.State} - {"STATE_UNSPECIFIED"}
    assert set(STATES) == names


def test_names_tell_kinds_apart() -> None:
    assert kind_of_name("projects/p/locations/r/jobs/dev-x-1") is BATCH_JOB
    assert kind_of_name("projects/p/locations/r/hyperparameterTuningJobs/1") is TUNING_JOB
    assert kind_of_name("projects/p/locations/r/other/1") is None


def test_buckets_are_found_wherever_a_request_names_them() -> None:
    assert buckets({"a": ["--x=gs://one-b/x", {"b": "/gcs/two-b/y"}], "c": "x/gcs/three-b"}) == [
        "one-b", "two-b",
    ]  # fmt: skip


def test_labels_of_the_program_win_over_those_of_a_file() -> None:
    found = batch_job(
        {"labels": {"vt-run": "9"}, **json.loads(json.dumps({"jobSpec": json.loads(document())}))},
        BatchParameters(PROJECT, REGION, "dev-x-1"),
        {"vt-run": "1"},
    )
    assert found["labels"]["vt-run"] == "1"


def test_the_corpus_has_files_for_batch() -> None:
    assert len(list((CORPUS / "in-stack").glob("batch-*.yaml"))) >= 2


def test_messages_of_states_are_what_googles_client_reads_and_no_part_of_the_identity() -> None:
    told = ({"pubsubTopic": "projects/p/topics/t", "message": {"type": "JOB_STATE_CHANGED"}},)
    request = check(document()).request
    assert request
    with_messages = dataclasses.replace(request, notifications=told)
    assert with_messages.request_id == request.request_id
    assert "notifications" not in request.sent({})
    sent = batch_v1.Job.pb(batch_v1.Job())
    ParseDict(with_messages.sent({}), sent)
    assert MessageToDict(sent)["notifications"] == [*told]


def test_googles_client_of_v1_has_no_ranked_list_of_machines() -> None:
    """The reason why a ladder is refused on Batch. When this fails, a ladder can be sent there."""
    assert "instance_flexibility_policy" not in batch_v1.AllocationPolicy.meta.fields
    assert "instance_flexibility_policy" in batch_v1alpha.AllocationPolicy.meta.fields
    with pytest.raises(ValidationError, match="has no ranked list of machines yet"):
        JobOptions.model_validate({"backend": "batch", "ladder": [{"strategy": "SPOT"}]})
