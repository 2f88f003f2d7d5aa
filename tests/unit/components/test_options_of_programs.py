"""What programs expect of any resource: names, providers, keywords, inputs, unknown values."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pytest

from tests.unit.components.recorder import PROJECT, components, registered, unknown
from tests.unit.components.test_components import SPEC, refused
from vertex_training import (
    ArgumentsError,
    GpuReservation,
    TrainingAccount,
    TrainingBuckets,
    TrainingEnvironment,
    TrainingJob,
)

JOB = {**PROJECT, "control_bucket": "acme-control", "spec": SPEC}
JOB_TYPE = "pulumi-python:dynamic/vertex:CustomJob"
ROBOT = "robot@acme-ml.iam.gserviceaccount.com"
Declare = Callable[[], Any]


def inputs_of(declare: Declare, name: str, *, preview: bool = False) -> dict[str, Any]:
    return registered(declare, preview=preview)[name][1]


@pytest.fixture
def config() -> Iterator[Callable[..., None]]:
    """Sets keys of the provider in the stack's config."""

    def give(**values: str) -> None:
        pulumi.runtime.set_all_config({f"gcp:{key}": value for key, value in values.items()})

    yield give
    pulumi.runtime.set_all_config({})


# Names in the state and names in the cloud.


def test_a_loop_over_teams_and_environments_has_accounts_jobs_and_reservations_of_one_name() -> (
    None
):
    def declare() -> None:
        for name in ("blue", "green"):
            place = {**PROJECT, "environment": name}
            account = {"project": "local-training", "environment": name, "base_name": "trainer"}
            TrainingAccount(f"Vision_{name}.trainer", account)
            job = {**JOB, "environment": name, "base_name": "hello"}
            TrainingJob(f"Vision_{name}.job", job)
            TrainingBuckets(f"Vision_{name}.store", {**place, "buckets": {"data": {}}})

    made = registered(declare)
    ids = {each["accountId"] for _, each in made.values() if "accountId" in each}
    assert ids == {"trainer-blue", "trainer-green"}
    jobs = [each["submission"] for type_, each in made.values() if type_ == JOB_TYPE]
    # In which order the loop's tasks come is asyncio's choice, and another one from Python 3.14 on.
    assert sorted((each["job"], each["stack"]) for each in jobs) == [
        ("hello", "blue"),
        ("hello", "green"),
    ]


def test_a_reservation_may_have_another_name_than_in_the_program() -> None:
    gpus = {"zone": "us-central1-a", "machine_type": "a2-highgpu-1g", "count": 1}
    place = {"project": "local-training", "project_number": "971240389164"}
    made = registered(lambda: GpuReservation("My.GPUs", {**place, **gpus, "base_name": "gpus"}))
    assert "gpus-dev" in {each.get("name") for _, each in made.values()}


def test_the_name_of_a_job_follows_the_rule_of_names_at_its_own_path() -> None:
    said = refused(TrainingJob, {**JOB, "base_name": "Hello"})
    assert "base_name: a name here" in said


# Project, region and credentials.


def test_project_and_region_are_those_of_the_provider() -> None:
    def declare() -> None:
        provider = gcp.Provider("explicit", project="local-other", region="europe-west4")
        opts = pulumi.ResourceOptions(provider=provider)
        TrainingBuckets("store", {}, opts)
        parent = pulumi.ComponentResource(
            "acme:index:Team", "team", opts=pulumi.ResourceOptions(providers=[provider])
        )
        TrainingAccount("trainer", {}, pulumi.ResourceOptions(parent=parent))
        given = {key: JOB[key] for key in ("control_bucket", "spec")}
        TrainingJob("hello", given, pulumi.ResourceOptions(providers={"gcp": provider}))

    made = registered(declare)
    assert made["store-control"][1]["name"] == "local-other-control-dev"
    assert made["store-control"][1]["location"] == "EUROPE-WEST4"
    assert made["trainer-account"][1]["project"] == "local-other"
    submission = made["hello-hello"][1]["submission"]
    assert (submission["project"], submission["region"]) == ("local-other", "europe-west4")


def test_project_and_region_are_those_of_the_config(config: Callable[..., None]) -> None:
    config(project="local-config", region="us-east1")
    control = inputs_of(lambda: TrainingBuckets("store", {}), "store-control")
    assert (control["name"], control["location"]) == ("local-config-control-dev", "US-EAST1")


def test_arguments_come_before_the_provider_and_the_provider_before_the_config(
    config: Callable[..., None],
) -> None:
    config(project="local-config", region="us-east1")

    def declare() -> None:
        provider = gcp.Provider("explicit", project="local-provider")
        opts = pulumi.ResourceOptions(provider=provider)
        TrainingBuckets("store", {"region": "us-west1"}, opts)
        TrainingBuckets("rest", {"environment": "rest"}, opts)

    made = registered(declare)
    control = made["store-control"][1]
    assert (control["name"], control["location"]) == ("local-provider-control-dev", "US-WEST1")
    assert made["rest-control"][1]["location"] == "US-EAST1"


def test_a_job_is_submitted_as_the_account_that_the_provider_impersonates() -> None:
    def declare() -> None:
        provider = gcp.Provider(
            "explicit", project="local-training", impersonate_service_account=ROBOT
        )
        TrainingJob("hello", JOB, pulumi.ResourceOptions(provider=provider))

    assert inputs_of(declare, "hello-hello")["options"]["impersonate"] == ROBOT


def test_a_job_is_submitted_as_the_account_that_the_config_impersonates(
    config: Callable[..., None],
) -> None:
    config(impersonateServiceAccount=ROBOT)
    made = inputs_of(lambda: TrainingJob("hello", JOB), "hello-hello")
    assert made["options"]["impersonate"] == ROBOT


@pytest.mark.parametrize("key", ["access_token", "credentials"])
def test_credentials_that_jobs_cannot_have_are_refused_without_their_value(key: str) -> None:
    def declare() -> None:
        provider = gcp.Provider("explicit", **{key: "ya29.a-token"})
        opts = pulumi.ResourceOptions(provider=provider)
        TrainingBuckets("store", PROJECT, opts)  # holds no job
        with pytest.raises(ArgumentsError) as caught:
            TrainingJob("hello", JOB, opts)
        said.append(str(caught.value))

    said: list[str] = []
    registered(declare)
    assert f"the gcp provider has {key}" in said[0]
    assert "impersonate_service_account" in said[0]
    assert "ya29" not in said[0]


def test_credentials_of_the_config_are_refused_likewise(config: Callable[..., None]) -> None:
    config(accessToken="ya29.a-token")
    assert "the gcp provider has accessToken" in refused(TrainingJob, JOB)


# Arguments.


def test_arguments_may_be_keywords_as_of_the_resources_of_an_sdk() -> None:
    made = registered(
        lambda: TrainingBuckets(
            "store",
            project="local-training",
            region="us-central1",
            buckets={"data": {}},
            opts=pulumi.ResourceOptions(protect=True),
        )
    )
    assert made["store-data"][1]["name"] == "local-training-data-dev"


def test_a_wrong_keyword_is_told_like_a_wrong_key() -> None:
    def declare() -> None:
        with pytest.raises(ArgumentsError, match=r"buckts: unknown argument.*'buckets'"):
            TrainingBuckets("store", **PROJECT, buckts={})

    assert registered(declare) == {}


def test_inputs_of_a_component_are_registered_as_the_schema_spells_them() -> None:
    def declare() -> None:
        TrainingBuckets("store", {**PROJECT, "buckets": {"data": {"delete_after_days": 30}}})
        reads = {"data": "acme-data", "new": unknown()}
        TrainingAccount("trainer", {"project": "local-training", "reads": reads})
        TrainingJob("hello", {**JOB, "limits": {"max_usd_per_job": 5}})
        buckets = {"data": {"delete_after_days": 7}}
        TrainingEnvironment(
            "all",
            {
                **PROJECT,
                "environment": "e",
                "project_number": "971240389164",
                "buckets": buckets,
                "registry": {"scanning": False},
            },
        )

    made = components(declare)
    assert made["store"] == {**PROJECT, "buckets": {"data": {"deleteAfterDays": 30}}}
    assert made["trainer"]["reads"]["data"] == "acme-data"
    assert "new" in made["trainer"]["reads"]
    assert made["hello"]["limits"] == {"maxUsdPerJob": 5}
    assert made["hello"]["spec"] == SPEC
    assert made["hello"]["controlBucket"] == "acme-control"
    assert made["all"]["buckets"] == {"data": {"deleteAfterDays": 7}}
    assert made["all"]["registry"] == {"scanning": False}


def test_any_text_of_a_spec_reaches_the_job_as_it_is() -> None:
    text = '--name=\u00e9 \U0001f600\\ud83d\\ude00 \x7f \x85 \u2028 \ufeff "\\'
    spec = copy.deepcopy(SPEC)
    spec["workerPoolSpecs"][0]["containerSpec"]["args"] = [text]
    made = inputs_of(lambda: TrainingJob("hello", {**JOB, "spec": spec}), "hello-hello")
    [pool] = json.loads(made["request"])["jobSpec"]["workerPoolSpecs"]
    assert pool["containerSpec"]["args"] == [text]


def test_a_spec_that_holds_itself_is_one_mistake() -> None:
    spec = copy.deepcopy(SPEC)
    spec["labels"] = {"first": spec, "second": [spec]}
    said = refused(TrainingJob, lambda: {**JOB, "spec": spec})
    assert said == (
        "TrainingJob 'it': 1 mistake; nothing of it was declared.\nspec: is nested more than 80 "
        "levels deep, or holds itself. Hint: give fewer levels"
    )


def job_of_unknown_image(machine_type: str = "n1-standard-4") -> Any:
    """Arguments of a job whose image another resource of the program has yet to build."""
    spec = copy.deepcopy(SPEC)
    spec["workerPoolSpecs"][0]["containerSpec"]["imageUri"] = unknown()
    spec["workerPoolSpecs"][0]["machineSpec"]["machineType"] = machine_type
    return {**JOB, "spec": spec}


def test_an_image_may_be_unknown_in_a_preview(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", said.append)

    def declare() -> None:
        job = TrainingJob("hello", job_of_unknown_image())
        job.cost_usd_at_most.apply(costs.append)
        job.request_id.apply(ids.append)

    costs: list[float] = []
    ids: list[str] = []
    made = inputs_of(declare, "hello-hello", preview=True)
    assert not isinstance(made.get("requestId"), str)
    pool = json.loads(made["request"])["jobSpec"]["workerPoolSpecs"][0]
    assert pool["containerSpec"]["imageUri"].startswith("image.invalid/not-known-yet@")
    assert costs[0] > 0
    assert ids == []
    assert "spec.workerPoolSpecs[0].containerSpec.imageUri: not known yet" in said[0]


def test_mistakes_beside_an_unknown_image_are_found_in_the_preview() -> None:
    said = refused(TrainingJob, lambda: job_of_unknown_image("n1-standart-4"))
    assert said.count("spec.") == 1
    assert "n1-standart-4" in said


def test_the_cost_of_a_job_is_a_number_too() -> None:
    def declare() -> None:
        job = TrainingJob("hello", JOB)
        pulumi.Output.all(job.costs_at_most, job.cost_usd_at_most).apply(seen.extend)

    seen: list[Any] = []
    registered(declare, preview=True)
    words, number = seen
    assert words.startswith(f"${number:.2f}")


# Two components for buckets.


def test_two_components_for_buckets_stand_in_one_environment() -> None:
    def declare() -> None:
        store = TrainingBuckets("store", {**PROJECT, "buckets": {"data": {}}})
        more = TrainingBuckets("more", {**PROJECT, "buckets": {"models": {}}, "own_buckets": False})
        pulumi.Output.all(store.control, more.control, more.names).apply(seen.extend)

    seen: list[Any] = []
    made = registered(declare)
    names = sorted(each["name"] for type_, each in made.values() if "bucket:Bucket" in type_)
    assert names == [
        f"local-training-{key}-dev" for key in ("control", "data", "models", "staging")
    ]
    assert seen[0] == seen[1]
    assert seen[2]["models"] == "local-training-models-dev"


def test_an_account_reads_code_of_the_staging_bucket() -> None:
    def declare() -> None:
        store = TrainingBuckets("store", PROJECT)
        TrainingAccount(
            "trainer",
            {"project": "local-training", "reads": {"code": store.names["staging"]}},
        )

    made = registered(declare)
    assert made["trainer-reads-code"][1]["bucket"] == "local-training-staging-dev"
