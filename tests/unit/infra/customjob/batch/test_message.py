"""CustomJobs as jobs of Batch: messages that Google's client reads, and that stay the same."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from google.cloud import batch_v1
from google.protobuf.json_format import MessageToDict, ParseDict
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.infra.customjob.test_corpus import (
    CORPUS,
    NETWORKS,
    PROJECT,
    REGION,
    STACK,
    TABLE,
)
from vertex_training.customjob.batch.naming import (
    EXIT_CODES,
    STATES,
    explain,
    is_job_of,
    job_id,
    reason,
)
from vertex_training.customjob.kinds import BATCH_JOB
from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.job_file import JobFileResult, Submission
from vertex_training.customjob.rules import Context

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


@pytest.mark.parametrize("name", CASES)
def test_googles_client_reads_every_field_of_a_message(name: str) -> None:
    read = batch_v1.Job.pb(batch_v1.Job())
    ParseDict(message(CASES[name]), read)
    assert MessageToDict(read) == message(CASES[name])


SUBNET = "projects/acme-ml-dev/regions/us-central1/subnetworks/training-dev"


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


def test_the_corpus_has_files_for_batch() -> None:
    assert len(list((CORPUS / "in-stack").glob("batch-*.yaml"))) >= 2
