"""Components declare what a stack file declares, and refuse what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
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
)
from vertex_training.components import arguments as declaring
from vertex_training.components import sections

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
        (TrainingJob, {**PROJECT, "control_bucket": "control"}, ["spec: give either spec or file"]),
        (
            TrainingJob,
            {**PROJECT, "control_bucket": "control", "file": "../x.yaml"},
            ["file: lies outside of the checkout (got ../x.yaml)"],
        ),
        (
            TrainingJob,
            {
                **PROJECT,
                "control_bucket": "control",
                "spec": SPEC,
                "run": 0,
                "limits": {"max_usd": 1},
            },
            ["run: input should be greater", "limits.max_usd: unknown key"],
        ),
        (
            TrainingJob,
            {**PROJECT, "control_bucket": "control", "spec": SPEC, "deadline": "1h"},
            ["deadline is how long to wait, and wait is not set: add wait"],
        ),
        (
            TrainingBuckets,
            {**PROJECT, "buckets": {"data": {"delete_after": 3}}},
            ["buckets.data.delete_after: unknown key. Hint: did you mean 'delete_after_days'?"],
        ),
        (
            TrainingJob,
            {
                **PROJECT,
                "control_bucket": "control",
                "spec": SPEC,
                "ladder": [{"machine_type": "n1-standard-8"}, {"machine_typ": "x"}, "SPOT"],
            },
            [
                "ladder[1].machine_typ: unknown key. Hint: did you mean 'machine_type'?",
                'ladder[2]: must be a mapping, like {name: value} (got "SPOT")',
            ],
        ),
        (
            TrainingEnvironment,
            {**NUMBERED, "secrets": {"key": {"buckets": {}}}},
            ["secrets.key.buckets: unknown key. Hint: did you mean 'buckets'?"],
        ),
    ],
)
def test_a_wrong_argument_is_told_with_its_path_its_value_and_a_hint(
    component: Any, args: Any, said: list[str]
) -> None:
    text = refused(component, args)
    for part in said:
        assert part in text


@pytest.mark.parametrize("name", ["Acc_Name", "a-name-of-an-account-that-is-longer-than-30"])
def test_a_wrong_name_of_a_component_is_told_as_its_name(name: str) -> None:
    for component, args in (
        (TrainingAccount, {"project": "local-training"}),
        (TrainingJob, {**PROJECT, "control_bucket": "control", "spec": SPEC}),
    ):
        text = refused(component, args, name)
        assert "\nname: " in text
        assert f'(got "{name}")' in text


@pytest.mark.parametrize("component", [TrainingBuckets, TrainingAccount])
def test_a_stacks_name_is_judged_like_an_environment(
    component: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulumi, "get_stack", lambda: "Feature_X.1")
    place = {"project": "local-training"} if component is TrainingAccount else PROJECT
    text = refused(component, place)
    assert text.splitlines()[1:] == [
        "environment: is the stack's name, and must be one like staging (got Feature_X.1). Hint: "
        "1 to 40 lowercase letters, digits and hyphens, the first a letter: rename the stack, or "
        "give environment"
    ]
    assert "must be a name like staging (got Feature_X.1)" in refused(
        component, {**place, "environment": "Feature_X.1"}
    )


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
        return {**PROJECT, "control_bucket": "control", "spec": spec}

    text = refused(TrainingJob, args)
    assert "spec.serviceAccount: is not known before another resource was made" in text
    assert len(text.splitlines()) == 2


def test_a_secret_is_refused_and_not_shown() -> None:
    def args() -> Any:
        spec = {**SPEC, "serviceAccount": pulumi.Output.secret("hunter2")}
        return {**PROJECT, "control_bucket": "control", "spec": spec}

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


def test_an_environment_serves_models_and_tells_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "iris.yaml").write_text(
        json.dumps({"displayName": "iris", "jobSpec": SPEC})
    )
    digest = f"us-central1-docker.pkg.dev/acme/serving/iris@sha256:{'0' * 64}"

    def declare() -> None:
        environment = TrainingEnvironment(
            "training",
            {
                **NUMBERED,
                "buckets": {"artifacts": {}},
                "service_accounts": {"trainer": {"writes": ["artifacts"]}},
                "jobs": {"iris": {"file": "jobs/iris.yaml", "run": 2}},
                "models": {"iris": {"run": [1, 2], "container": digest}},
                "endpoints": {
                    "iris": {"machine": "n1-standard-2", "split": {"run 1": 90, "run 2": 10}}
                },
            },
        )
        pulumi.Output.all(environment.models, environment.endpoints).apply(seen.extend)

    seen: list[Any] = []
    made = registered(declare)
    [traffic] = [each for name, (_, each) in made.items() if name.endswith("-iris-traffic")]
    assert traffic["split"] == {"run 1": 90, "run 2": 10}
    versions = [each for name, (_, each) in made.items() if "-iris-run-" in name]
    program = f"{pulumi.get_project()}_{pulumi.get_stack()}"
    assert [each["options"]["labels"]["vt-program"] for each in versions] == [program] * 2
    models, endpoints = seen
    assert models["iris"].keys() == {"run 1", "run 2"}
    assert endpoints["iris"].keys() == {"id", "name", "dns"}
    assert endpoints["iris"]["name"].endswith(f"/endpoints/{endpoints['iris']['id']}")


def test_two_environments_stand_in_one_stack() -> None:
    def declare() -> None:
        for name in ("one", "two"):
            TrainingEnvironment(name, {**NUMBERED, "environment": name, "buckets": {"data": {}}})

    made = registered(declare)
    assert made["one-storage-data"][1]["name"] == "local-training-data-one"
    assert made["two-storage-data"][1]["name"] == "local-training-data-two"


def test_every_public_name_is_there() -> None:
    written = {name for name in vars(sections) if name.endswith("Args")}
    assert written <= set(vertex_training.__all__)
    for name in vertex_training.__all__:
        assert getattr(vertex_training, name)
    with pytest.raises(AttributeError, match="no attribute 'TrainingBucket'"):
        vertex_training.TrainingBucket  # noqa: B018


@pytest.mark.parametrize(
    ("component", "args", "said"),
    [
        (TrainingJob, {"control_bucket": "gs://x"}, "control_bucket: must be the name of a bucket"),
        (TrainingJob, {"control_bucket": ""}, "control_bucket: must be the name of a bucket"),
        (TrainingJob, {"control_bucket": object()}, "control_bucket: cannot be a object"),
        (TrainingBuckets, {"encryption_key": 5}, "encryption_key: "),
        (TrainingBuckets, {"environment": "größe"}, "environment: must be a name like staging"),
        (TrainingBuckets, {"environment": ["x"]}, "environment: must be a name like staging"),
        (TrainingBuckets, {"labels": {"a": "b"}, "Labels": {}}, "Labels: unknown argument"),
        (TrainingAccount, {"reads": ["data"]}, "reads: is a list and no map of names"),
        (TrainingAccount, {"writes": 5}, "writes: is a int and no map of names"),
        (TrainingBuckets, None, "the arguments are a NoneType"),
    ],
)
def test_a_wrong_kind_of_argument_is_told_at_its_path(
    component: Any, args: dict[str, Any] | None, said: str
) -> None:
    place = {"project": "local-training"} if component is TrainingAccount else PROJECT
    assert said in refused(component, None if args is None else {**place, **args})


def test_a_key_in_two_spellings_is_one_too_many() -> None:
    twice = {"data": {"deleteAfterDays": 30, "delete_after_days": 3}}
    assert "is given twice" in refused(TrainingBuckets, {**PROJECT, "buckets": twice})


@pytest.mark.parametrize(
    ("component", "argument"),
    [
        (TrainingBuckets, "encryption_key"),
        (TrainingJob, "control_bucket"),
        (TrainingAccount, "reads"),
    ],
)
def test_what_may_be_unknown_may_not_be_secret(component: Any, argument: str) -> None:
    def args() -> dict[str, Any]:
        secret = pulumi.Output.secret("hunter2")
        place = {"project": "local-training"} if component is TrainingAccount else PROJECT
        return {**place, argument: {"data": secret} if argument == "reads" else secret}

    said = refused(component, args)
    assert f"{argument}: is secret" in said or "reads.data: is secret" in said
    assert "hunter2" not in said


def test_dependencies_may_be_an_output() -> None:
    def declare() -> None:
        first = TrainingBuckets("store", {**PROJECT, "environment": "one"})
        later = pulumi.ResourceOptions(depends_on=pulumi.Output.from_input([first]))
        TrainingBuckets("later", {**PROJECT, "environment": "two"}, later)

    assert "later-control" in registered(declare)


def test_two_components_cannot_have_one_job_or_one_bucket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(declaring, "is_mocked", lambda: False)
    job = {**PROJECT, "control_bucket": "control", "spec": SPEC}

    def declare() -> None:
        TrainingJob("train", job)
        TrainingJob("train", {**job, "environment": "other"})
        with pytest.raises(ArgumentsError) as caught:
            TrainingJob("train", job, pulumi.ResourceOptions(aliases=["x"]))
        said.append(str(caught.value))
        TrainingBuckets("store", PROJECT)
        with pytest.raises(ArgumentsError) as caught:
            TrainingBuckets("again", PROJECT)
        said.append(str(caught.value))

    said: list[str] = []
    registered(declare)
    assert "TrainingJob 'train' declares job train of dev in local-training, us-central1" in said[0]
    assert "TrainingBuckets 'store' declares bucket local-training-control-dev" in said[1]


def test_another_stack_files_number_is_no_concern_of_a_component(folder: Path) -> None:
    config = "config: {gcp:project: acme-ml, vertex-training:projectNumber: '123456789012'}\n"
    (folder / "Pulumi.dev.yaml").write_text(config)
    place = {"project": "acme-ml", "region": "us-central1", "environment": "x"}
    assert "store-control" in registered(lambda: TrainingBuckets("store", place))


def test_own_buckets_are_made_by_one_component_of_an_environment() -> None:
    given = {**PROJECT, "buckets": {"data": {}}}
    outputs: list[Any] = []

    def declare() -> None:
        made = TrainingBuckets("store", {**given, "own_buckets": False})
        pulumi.Output.all(made.names, made.urls, made.control).apply(outputs.extend)

    found = registered(declare, preview=True)
    names = {n for n, (type_, _) in found.items() if type_ == "gcp:storage/bucket:Bucket"}
    assert names == {"store-data"}
    names = {
        "data": "local-training-data-dev",
        "staging": "local-training-staging-dev",
        "control": "local-training-control-dev",
    }
    urls = {key: f"gs://{name}" for key, name in names.items()}
    assert outputs == [names, urls, "local-training-control-dev"]
