"""The request of a job file: its identity, its labels, and the rungs of its ladder."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
from typing import Any

import pydantic
import pytest
import yaml

from tests.unit.infra.customjob import test_corpus
from tests.unit.infra.customjob.rules.tuning_cases import RIGHT
from tests.unit.infra.customjob.test_job_cases import DATA
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB
from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.job_file import (
    JobFile,
    JobRequest,
    RungOverrides,
    Submission,
)
from vertex_training.customjob.request.message import UnknownValue
from vertex_training.customjob.rules.context import (
    FILE_ONLY,
    Context,
    JobLimits,
    NetworkFacts,
    ReservationRequest,
    StackFacts,
)
from vertex_training.errors import Location, Problem
from vertex_training.settings.limits import Rung

WHO = Submission("acme-ml-dev", "us-central1", "dev", "titanic", 1)
TABLE = {
    "serviceAccounts.trainer": "trainer@acme.iam.gserviceaccount.com",
    "buckets.data": "gs://data",
    "images.later": UnknownValue("build it"),
}
IMAGE = f"us-docker.pkg.dev/acme/images/x@sha256:{'0' * 64}"
FILE = f"""\
serviceAccount: ${{serviceAccounts.trainer}}
workerPoolSpecs:
  - replicaCount: 1
    machineSpec: {{machineType: n1-standard-4}}
    containerSpec:
      imageUri: {IMAGE}
      args: ["--data=${{buckets.data}}/x", "${{HOME}}"]
"""
#: What is sent of ``FILE``: keys in alphabetical order.
BODY = (
    '{"displayName":"dev-titanic","jobSpec":{"serviceAccount":"trainer@acme.iam.gserviceaccount'
    '.com","workerPoolSpecs":[{"containerSpec":{"args":["--data=gs://data/x","${HOME}"],'
    '"imageUri":"' + IMAGE + '"},"machineSpec":{"machineType":"n1-standard-4"},"replicaCount":1}]}}'
)
PARTS = ("acme-ml-dev", "us-central1", "dev", "titanic", "1")


def load(text: str = FILE, context: Context = FILE_ONLY, kind: Any = CUSTOM_JOB) -> JobRequest:
    result = job_file.check_job_file(text.encode(), "jobs/x.yaml", WHO, TABLE, context, kind=kind)
    assert result.request is not None, result.errors
    return result.request


def sha256(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def test_a_request_keeps_its_id_across_releases() -> None:
    request = load()
    assert (request.body, request.request_id) == (BODY, sha256(*PARTS, BODY)[:20])
    assert request.digest == sha256(BODY) == job_file.digest_of(BODY)
    umlaut = load(FILE.replace("${HOME}", "größe"))
    assert umlaut.request_id == sha256(*PARTS, BODY.replace("${HOME}", "größe"))[:20]
    # The id is made of the request before the id replaces its placeholder.
    named = load(
        f"{FILE}baseOutputDirectory: {{outputUriPrefix: 'gs://artifacts/${{job.requestId}}'}}\n"
    )
    draft = named.body.replace(named.request_id, "${job.requestId}")
    assert named.request_id == sha256(*PARTS, draft)[:20]
    assert named.output_directory == f"gs://artifacts/{named.request_id}"


def test_the_id_of_a_job_on_batch_has_its_prefix_and_its_subnet() -> None:
    plain = load(kind=BATCH_JOB)
    assert plain.request_id == f"batch-{sha256(*PARTS, BODY)[:20]}"
    assert (plain.kind, plain.subnet, plain.body) == (BATCH_JOB, "", BODY)
    subnet = "projects/p/regions/us-central1/subnetworks/s"
    attachment = "projects/p/regions/us-central1/networkAttachments/a"
    network = NetworkFacts("psc", "", attachment, subnet=subnet)
    stack = StackFacts("acme-ml-dev", "210987654321", "us-central1", network=network)
    context = Context(region="us-central1", stack=stack)
    inside = f"{FILE}pscInterfaceConfig: {{networkAttachment: {attachment}}}\n"
    result = job_file.check_job_file(inside.encode(), "x.yaml", WHO, TABLE, context, kind=BATCH_JOB)
    assert result.request is not None
    assert result.request.subnet == subnet
    expected = sha256(*PARTS, result.request.body, subnet)[:20]
    assert result.request.request_id == f"batch-{expected}"
    assert load(FILE, context, BATCH_JOB).subnet == ""


def test_known_fields_are_those_of_the_official_client() -> None:
    from tools.generate import job_schema

    for file, generate in (
        (job_schema.TARGET, job_schema.generate),
        (job_schema.TUNING_TARGET, job_schema.generate_tuning),
    ):
        known, official = json.loads(file.read_text()), json.loads(generate())
        assert known.pop("source").startswith("google-cloud-aiplatform 2.")
        assert official.pop("source")
        assert known == official


T4 = {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2}


@pytest.mark.parametrize(
    ("machine", "what"),
    [
        ({"machineType": "n1-standard-4"}, "no machine of the job has acceleratorCount"),
        (T4 | {"acceleratorCount": 1}, ""),
    ],
)
def test_idle_stop_is_refused_for_a_job_without_accelerators(machine: Any, what: str) -> None:
    spec = yaml.safe_load(FILE)
    spec["workerPoolSpecs"][0]["machineSpec"] = machine
    one = JobFile(yaml.safe_dump(spec).encode(), "x.yaml", WHO, options={"idleStop": "5% for 30m"})
    result = job_file.check_ladder(one, TABLE)
    assert [what in problem.what for problem in result.errors] == [True] * bool(what)
    assert (result.request is None) == bool(what)
    assert job_file.check_ladder(dataclasses.replace(one, options={}), TABLE).request


def test_idle_stop_is_refused_for_a_tuning_job() -> None:
    one = JobFile(RIGHT.encode(), "x.yaml", WHO, kind=None, options={"idleStop": "5% for 30m"})
    [error] = job_file.check_ladder(one, test_corpus.TABLE).errors
    assert error.what == "idleStop does not support tuning jobs"


A100 = "{machineType: a2-highgpu-1g, acceleratorType: NVIDIA_TESLA_A100, acceleratorCount: 1}"
LADDER_FILE = f"""
scheduling: {{strategy: FLEX_START, maxWaitDuration: 3600s, timeout: 3600s}}
baseOutputDirectory: {{outputUriPrefix: "gs://acme-out/fell/${{job.requestId}}"}}
serviceAccount: trainer-dev@p.iam.gserviceaccount.com
workerPoolSpecs:
  - machineSpec: {A100}
    replicaCount: 1
    containerSpec: &task {{imageUri: "{IMAGE}"}}
  - machineSpec: {A100}
    replicaCount: 2
    containerSpec: *task
"""
NAME = "projects/acme-ml-dev/zones/us-central1-a/reservations/big"
AFFINITY = {
    "reservationAffinityType": "SPECIFIC_RESERVATION",
    "key": "compute.googleapis.com/reservation-name",
    "values": [NAME],
}
SPOT = {"strategy": "SPOT"}


def overrides(fields: dict[str, Any]) -> RungOverrides:
    return RungOverrides(fields, AFFINITY if "reservation" in fields else None)


def check(*fields: dict[str, Any], **context: Any) -> job_file.JobFileResult:
    ladder = tuple(overrides(each) for each in fields)
    one = JobFile(LADDER_FILE.encode(), "jobs/x.yaml", WHO, ladder=ladder)
    return job_file.check_ladder(one, {}, Context(region="us-central1", **context))


def test_a_job_file_is_the_first_rung_and_keeps_its_identity() -> None:
    plain, with_ladder = check().request, check(SPOT).request
    assert plain is not None
    assert with_ladder is not None
    assert (plain.request_id, plain.body) == (with_ladder.request_id, with_ladder.body)
    assert [each.words for each in with_ladder.rungs] == ["", "strategy SPOT"]
    assert len({each.request_id for each in with_ladder.rungs}) == 2
    for each in with_ladder.rungs:
        assert each.output_directory == f"gs://acme-out/fell/{each.request_id}"


def test_a_rung_is_checked_as_a_job_file_and_named_in_its_problems() -> None:
    result = check({"strategy": "STANDARD"}, {"machineType": "n1-standard-4"})
    assert result.request is None
    assert {problem.rule for problem in result.errors} == {"flex-start-gpu"}
    assert all(p.what.startswith("rung 3 (n1-standard-4): ") for p in result.errors)
    assert all(p.location.file == "jobs/x.yaml" for p in result.errors)
    limits = JobLimits(strategies=("FLEX_START",))
    assert [p.rule for p in check(SPOT, limits=limits).errors] == ["limit-strategy"]


def test_a_warning_about_a_rung_names_it_and_is_kept_with_the_request() -> None:
    title = "rung 2 (strategy STANDARD, a3-megagpu-8g, 8 x NVIDIA_H100_MEGA_80GB)"
    mega = {"machineType": "a3-megagpu-8g", "acceleratorType": "NVIDIA_H100_MEGA_80GB"}
    scarce = {"strategy": "STANDARD", **mega, "acceleratorCount": 8}
    result = check(scarce, SPOT)
    assert result.errors == ()
    assert result.request
    assert result.warnings == result.request.warnings
    assert [each for each in result.warnings if each.rule != "nccl-plugin"] == [
        Problem(
            f"{title}: Google recommends a shared reservation or SPOT for this accelerator",
            "NVIDIA_H100_MEGA_80GB",
            "add reservationAffinity or strategy: SPOT; otherwise the job may wait long",
            ("workerPoolSpecs", pool, "machineSpec"),
            Location("jobs/x.yaml", line, 18),
            "scarce-accelerator",
            "warning",
        )
        for pool, line in ((0, 6), (1, 9))
    ]  # fmt: skip
    refused = check(scarce, levels={"scarce-accelerator": "error"})
    assert refused.request is None
    assert [each.what.partition(": ")[0] for each in refused.errors] == [title] * 2


def test_facts_and_cost_of_a_job_include_every_rung() -> None:
    requests = check(SPOT, {"reservation": NAME}).facts.reservation_requests
    assert requests == tuple(
        ReservationRequest((NAME,), "a2-highgpu-1g", "NVIDIA_TESLA_A100", 1, machines)
        for machines in (1, 2)
    )
    dear = check(SPOT, {"strategy": "STANDARD"}).request
    assert dear is not None
    assert dear.cost.worst_case == max(each.own_cost.worst_case or 0 for each in dear.rungs)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        (
            [{"strategy": "FLEX_START", "maxWaitDuration": "3600s"}],
            "rung 2 (strategy FLEX_START, waits 3600s) is equal to the job file",
        ),
        ([SPOT, SPOT], "rung 3 (strategy SPOT) is equal to rung 2 (strategy SPOT)"),
    ],
)
def test_a_rung_equal_to_an_earlier_one_is_refused(fields: Any, what: str) -> None:
    at = Location("jobs/x.yaml")
    expected = Problem(what, hint="change or remove this ladder rung", location=at, rule="ladder")
    assert check(*fields).errors == (expected,)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"region": "europe-west4"}, "buckets, network, key and images are in the stack's region"),
        ({}, "changes nothing"),
        ({"strategy": "ON_DEMAND"}, "STANDARD"),
        ({"maxWaitDuration": "1h"}, "3600s"),
        ({"acceleratorCount": 0}, "greater than or equal to 1"),
        ({"timeout": "3600s"}, "Extra inputs"),
    ],
)
def test_invalid_settings_of_a_rung_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=message):
        Rung.model_validate(given)


@pytest.mark.parametrize("row", DATA["rungs"], ids=lambda row: row["words"])
def test_a_rung_changes_only_its_own_fields(row: dict[str, Any]) -> None:
    untouched = copy.deepcopy(row["job"])
    assert str(overrides(row["rung"])) == row["words"]
    assert overrides(row["rung"]).of(row["job"]) == row["expected"]
    assert row["job"] == untouched
