"""Components declare what a stack file declares, and refuse what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

import vertex_training
from tests.unit.components.recorder import NUMBERED, PROJECT, registered, unknown
from vertex_training import (
    ArgumentsError,
    GpuReservation,
    TrainingAccount,
    TrainingBuckets,
    TrainingEnvironment,
    TrainingJob,
    TrainingNetwork,
)

SPEC: dict[str, Any] = {
    "workerPoolSpecs": [
        {
            "machineSpec": {"machineType": "n1-standard-4"},
            "replicaCount": 1,
            "containerSpec": {"imageUri": "python:3.11", "command": ["true"]},
        }
    ],
    "serviceAccount": "trainer-dev@local-training.iam.gserviceaccount.com",
    "scheduling": {"timeout": "600s"},
}


def refused(component: Any, args: Any, name: str = "it") -> str:
    """The message about wrong arguments; nothing was registered."""

    def declare() -> None:
        with pytest.raises(ArgumentsError) as caught:
            component(name, args() if callable(args) else args)
        found.append(str(caught.value))

    found: list[str] = []
    assert registered(declare, preview=True) == {}
    return found[0]


def test_buckets_have_the_names_and_settings_of_a_stack_file() -> None:
    made = registered(lambda: TrainingBuckets("store", {**PROJECT, "buckets": {"data": {}}}))
    buckets = {name: inputs for name, (type_, inputs) in made.items() if "bucket:Bucket" in type_}
    assert {inputs["name"] for inputs in buckets.values()} == {
        "local-training-data-dev",
        "local-training-staging-dev",
        "local-training-control-dev",
    }
    assert buckets["store-data"]["publicAccessPrevention"] == "enforced"
    assert buckets["store-data"]["labels"] == {"managed-by": "pulumi", "stack": "dev"}


def test_outputs_are_known_in_a_preview() -> None:
    def declare() -> None:
        buckets = TrainingBuckets("store", {**PROJECT, "buckets": {"data": {}}})
        account = TrainingAccount("trainer", {"project": "local-training"})

        def check(values: list[Any]) -> None:
            seen.extend(values)

        pulumi.Output.all(buckets.urls["data"], account.email, account.member).apply(check)

    seen: list[Any] = []
    registered(declare, preview=True)
    email = "trainer-dev@local-training.iam.gserviceaccount.com"
    assert seen == ["gs://local-training-data-dev", email, f"serviceAccount:{email}"]


def test_an_account_takes_names_that_are_not_known_yet() -> None:
    def declare() -> None:
        TrainingAccount(
            "trainer",
            {
                "project": "local-training",
                "reads": {"data": unknown(), "more": "acme-more"},
                "secrets": {"key": "projects/local-training/secrets/key"},
            },
        )

    made = registered(declare, preview=True)
    assert made["trainer-reads-more"][1]["bucket"] == "acme-more"
    assert "trainer-reads-data" in made
    assert made["trainer-reads-secret-key"][1]["secretId"].endswith("/secrets/key")


def test_a_job_is_checked_by_the_rules_of_job_files_at_the_paths_of_its_properties() -> None:
    wrong = json.loads(json.dumps(SPEC))
    wrong["workerPoolSpecs"][0]["machineSpec"]["machineType"] = "n1-standart-4"
    wrong["workerPoolSpecs"][0]["replicaCounts"] = 1
    text = refused(TrainingJob, {**PROJECT, "control_bucket": "acme-control", "spec": wrong})
    assert "spec.workerPoolSpecs[0].machineSpec.machineType: " in text
    assert "did you mean 'replicaCount'?" in text
    assert "got n1-standart-4" in text


@pytest.mark.parametrize(
    ("component", "args", "said"),
    [
        (TrainingBuckets, {}, ["project: missing. Hint: give project", "region: missing"]),
        (
            TrainingBuckets,
            {**PROJECT, "buckets": {"data": {"soft_delete_days": 3, "versionin": True}}},
            ["buckets.data.soft_delete_days: must be 0 (off) or 7 to 90 days (got 3)"],
        ),
        (TrainingBuckets, {**PROJECT, "bucket": {}}, ["bucket: unknown argument", "'buckets'"]),
        (TrainingBuckets, {**PROJECT, "buckets": {"Data": {}}}, ["buckets.Data: a name here"]),
        (
            TrainingBuckets,
            {**PROJECT, "buckets": {"data": "x"}},
            ["buckets.data: must be a mapping"],
        ),
        (TrainingAccount, {"project": "local-training", "submitters": ["me"]}, ["submitters[0]"]),
        (TrainingAccount, {"project": "P"}, ["project: must look like"]),
        (
            TrainingAccount,
            {"project": "local-training", "reads": {"data": "Not A Bucket"}},
            ["reads.data: must look like acme-datasets"],
        ),
        (TrainingNetwork, NUMBERED, ["mode: says how jobs reach it"]),
        (
            TrainingNetwork,
            {**NUMBERED, "mode": "psc", "subnet": {"range": "10.0.0.1/24"}},
            ["subnet.range: must be a block of IPv4 addresses"],
        ),
        (
            GpuReservation,
            {
                "project": "local-training",
                "project_number": "971240389164",
                "zone": "us-central1-a",
                "machine_type": "a3-highgpu-8x",
                "count": 0,
            },
            ["count: ", "got 0"],
        ),
        (TrainingJob, {**PROJECT, "spec": SPEC}, ["control_bucket: missing"]),
        (TrainingJob, {**PROJECT, "control_bucket": "c"}, ["spec: give either spec or file"]),
        (
            TrainingJob,
            {**PROJECT, "control_bucket": "c", "file": "../x.yaml"},
            ["file: lies outside of the checkout (got ../x.yaml)"],
        ),
        (
            TrainingJob,
            {**PROJECT, "control_bucket": "c", "spec": SPEC, "run": 0, "limits": {"max_usd": 1}},
            ["run: input should be greater", "limits.max_usd: unknown key"],
        ),
        (
            TrainingJob,
            {**PROJECT, "control_bucket": "c", "spec": SPEC, "deadline": "1h"},
            ["deadline is how long to wait, and wait is not set: add wait"],
        ),
        (
            TrainingEnvironment,
            {
                **NUMBERED,
                "service_accounts": {"trainer": {"reads": ["dat"]}},
                "buckets": {"data": {}},
            },
            ["service_accounts.trainer.reads[0]: ", "'data'"],
        ),
    ],
)
def test_a_wrong_argument_is_told_with_its_path_its_value_and_a_hint(
    component: Any, args: Any, said: list[str]
) -> None:
    text = refused(component, args)
    for part in said:
        assert part in text


def test_all_mistakes_are_told_at_once() -> None:
    text = refused(
        TrainingBuckets,
        {"project": "P", "buckets": {"data": {"soft_delete_days": 3}}, "lables": {}},
    )
    assert text.splitlines()[0] == "TrainingBuckets 'it': 4 mistakes; nothing of it was declared."
    assert len(text.splitlines()) == 5


def test_a_request_must_be_known_in_a_preview() -> None:
    def args() -> Any:
        spec = {**SPEC, "serviceAccount": unknown()}
        return {**PROJECT, "control_bucket": "c", "spec": spec}

    text = refused(TrainingJob, args)
    assert "spec.serviceAccount: is not known before another resource was made" in text
    assert len(text.splitlines()) == 2


def test_a_secret_is_refused_and_not_shown() -> None:
    def args() -> Any:
        spec = {**SPEC, "serviceAccount": pulumi.Output.secret("hunter2")}
        return {**PROJECT, "control_bucket": "c", "spec": spec}

    text = refused(TrainingJob, args)
    assert "spec.serviceAccount: is secret" in text
    assert "hunter2" not in text


def test_an_environment_is_what_a_stack_file_makes_under_one_component() -> None:
    made = registered(
        lambda: TrainingEnvironment(
            "training",
            {
                **NUMBERED,
                "buckets": {"data": {}},
                "service_accounts": {"trainer": {"reads": ["data"]}},
            },
        )
    )
    assert made["training-storage-data"][1]["name"] == "local-training-data-dev"
    assert made["training-trainer-account"][1]["accountId"] == "trainer-dev"
    assert made["training-trainer-reads-data"][0].endswith("BucketIAMMember")


def test_two_environments_stand_in_one_stack() -> None:
    def declare() -> None:
        for name in ("one", "two"):
            TrainingEnvironment(name, {**NUMBERED, "environment": name, "buckets": {"data": {}}})

    made = registered(declare)
    assert made["one-storage-data"][1]["name"] == "local-training-data-one"
    assert made["two-storage-data"][1]["name"] == "local-training-data-two"


def test_every_public_name_is_there() -> None:
    for name in vertex_training.__all__:
        assert getattr(vertex_training, name)
    with pytest.raises(AttributeError, match="no attribute 'TrainingBucket'"):
        vertex_training.TrainingBucket  # noqa: B018
