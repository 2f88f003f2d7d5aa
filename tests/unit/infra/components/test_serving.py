"""Two models and two endpoints beside each other: who waits for whom, and what the stack says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pulumi
import pytest
from pulumi.runtime.mocks import MockMonitor

from tests.unit.infra.recorder import Recorder
from tests.unit.infra.stacks import BASE
from vertex_training.components import provider
from vertex_training.components.scope import TOP
from vertex_training.components.serving import Serving, make_serving, serving_outputs
from vertex_training.stack import Stack, from_raw

IMAGE: Final = f"us-central1-docker.pkg.dev/acme/serving/x@sha256:{'0' * 64}"
JOB: Final = """\
serviceAccount: given-1@acme-ml-prod.iam.gserviceaccount.com
scheduling: {timeout: 3600s}
baseOutputDirectory: {outputUriPrefix: "gs://acme-theirs/${job.name}"}
workerPoolSpecs:
- machineSpec: {machineType: n1-standard-8}
  containerSpec: {imageUri: "python:3.11"}
"""
STACK: Final[dict[str, Any]] = {
    "jobs": {name: {"file": "t.yaml", "run": 2} for name in ("iris", "titanic")},
    "models": {
        "iris": {"container": IMAGE, "run": [1, 2], "onDelete": "delete"},
        "titanic": {"container": IMAGE, "run": [1, 2]},
    },
    "endpoints": {
        "iris": {"machine": "n1-standard-2", "split": {"run 1": 90, "run 2": 10}, "public": True},
        "titanic": {"machine": "n1-standard-2", "split": {"run 2": 100}},
    },
}


class Program:
    """What ``make_serving`` registers for a stack, and what comes of it."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root, self.recorder = root, Recorder()
        self.waits: dict[str, set[str]] = {}
        self.parents: dict[str, str] = {}
        self.ignored: dict[str, list[str]] = {}
        self.outputs: dict[str, Any] = {}
        self.made: list[Serving] = []
        register = MockMonitor.RegisterResource

        def record(monitor: MockMonitor, request: Any) -> Any:
            self.waits[request.name] = {urn.rpartition("::")[2] for urn in request.dependencies}
            self.parents[request.name] = request.parent.rpartition("::")[2]
            self.ignored[request.name] = list(request.ignoreChanges)
            return register(monitor, request)

        patch.setattr(MockMonitor, "RegisterResource", record)

    def stack(self, **sections: Any) -> Stack:
        (self.root / "t.yaml").write_text(JOB)
        return from_raw(BASE | sections, self.root)

    def __call__(self, stack: Stack) -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        pulumi.runtime.set_mocks(self.recorder, "training", "prod", preview=False)

        @pulumi.runtime.test
        def run() -> pulumi.Output[Any]:
            first = pulumi.ComponentResource("test:first:First", "first")
            inside = pulumi.ResourceOptions(parent=first)
            pulumi.CustomResource("test:first:Inner", "inner", opts=inside)
            self.made = make_serving(TOP, stack, "acme-control", [first])
            found = serving_outputs(stack, self.made)
            return pulumi.Output.from_input(found).apply(self.outputs.update)

        run()

    def inputs(self, name: str) -> Any:
        return self.recorder.registered[name][1]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    return Program(tmp_path, monkeypatch)


def test_a_version_waits_for_the_one_before_it_of_its_own_model(program: Program) -> None:
    program(program.stack(**STACK))
    versions = {name: waits for name, waits in program.waits.items() if "-run-" in name}
    assert versions == {
        "serving-iris-run-1": {"first"},
        "serving-iris-run-2": {"first", "serving-iris-run-1"},
        "serving-titanic-run-1": {"first"},
        "serving-titanic-run-2": {"first", "serving-titanic-run-1"},
    }


def test_each_endpoint_has_its_clean_up_and_traffic_around_it(program: Program) -> None:
    program(program.stack(**STACK))
    inside = {name for name, parent in program.parents.items() if parent == "serving"}
    assert inside == {
        f"serving-{key}-{what}"
        for key in ("iris", "titanic")
        for what in ("run-1", "run-2", "endpoint", "cleanup", "traffic")
    }
    for key, runs in (("iris", (1, 2)), ("titanic", (2,))):
        endpoint = f"serving-{key}-endpoint"
        models = {f"serving-{key}-run-{run}" for run in runs}
        assert program.waits[endpoint] == {"first"}
        assert program.waits[f"serving-{key}-cleanup"] == {endpoint}
        assert program.waits[f"serving-{key}-traffic"] == {
            endpoint, f"serving-{key}-cleanup", *models,
        }  # fmt: skip


def test_a_version_has_the_stacks_labels_and_what_its_model_says_of_its_end(
    program: Program,
) -> None:
    program(program.stack(**STACK))
    options = {
        "controlBucket": "acme-control",
        "labels": {"managed-by": "pulumi", "stack": "prod", "vt-program": "training_prod"},
    }
    assert program.inputs("serving-iris-run-1")["options"] == options | {"onDelete": "delete"}
    assert program.inputs("serving-titanic-run-1")["options"] == options | {"onDelete": "keep"}


def test_outputs_name_versions_and_endpoints_by_the_keys_of_the_file(program: Program) -> None:
    program(stack := program.stack(**STACK))
    iris, titanic = stack.endpoints["iris"].id, stack.endpoints["titanic"].id
    place = "projects/acme-ml-prod/locations/us-central1/endpoints"
    assert program.outputs == {
        "models": {
            key: {f"run {run}": f"serving-{key}-run-{run}-id" for run in (1, 2)}
            for key in ("iris", "titanic")
        },
        "endpoints": {
            "iris": {
                "id": iris, "name": f"{place}/{iris}", "dns": None,
                "split": {"run 1": 90, "run 2": 10}, "serves": True,
            },
            "titanic": {
                "id": titanic, "name": f"{place}/{titanic}", "dns": None,
                "split": {"run 2": 100}, "serves": True,
            },
        },
    }  # fmt: skip


def test_a_stack_with_models_alone_has_no_output_of_endpoints(program: Program) -> None:
    program(program.stack(**{**STACK, "endpoints": {}}))
    assert list(program.outputs) == ["models"]
    assert len(program.made) == 1


def test_a_stack_without_models_and_endpoints_has_no_component(program: Program) -> None:
    program(program.stack(jobs=STACK["jobs"]))
    assert (program.made, program.outputs, set(program.waits)) == ([], {}, {"first", "inner"})


def test_what_uploads_and_traffic_find_are_outputs(program: Program) -> None:
    program(program.stack(**STACK))
    [serving] = program.made
    found = [each.resolved for each in serving.versions.values()]
    found += [each.others for each in serving.traffic.values()]
    assert [type(each) for each in found] == [pulumi.Output] * 6


def test_all_of_it_waits_for_what_it_is_given(program: Program) -> None:
    program(program.stack(**STACK))
    assert program.waits["serving"] == {"inner"}
    assert program.recorder.registered["serving"][0] == "vertextraining:serving:Serving"


def test_whoever_submits_jobs_uploads_deploys_and_empties_as_well(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = "deployer@acme-ml-prod.iam.gserviceaccount.com"
    asked: list[pulumi.Resource] = []
    monkeypatch.setattr(provider, "submitter_of", lambda of: asked.append(of) or account)
    program(program.stack(**STACK))
    assert asked == program.made
    for key in ("iris", "titanic"):
        assert program.inputs(f"serving-{key}-run-2")["options"]["impersonate"] == account
        for what in ("cleanup", "traffic"):
            options = program.inputs(f"serving-{key}-{what}")["options"]
            assert options == {"impersonate": account}


def test_an_endpoint_is_declared_without_the_split_that_its_traffic_writes(
    program: Program,
) -> None:
    key = "projects/acme-ml-prod/locations/us-central1/keyRings/ml/cryptoKeys/k"
    endpoints = STACK["endpoints"]
    private = {**endpoints["titanic"], "public": False}
    program(
        stack := program.stack(
            **{**STACK, "endpoints": {**endpoints, "titanic": private}}, encryption={"key": key}
        )
    )
    common = {
        "project": "acme-ml-prod",
        "location": "us-central1",
        "region": "us-central1",
        "encryptionSpec": {"kmsKeyName": key},
    }
    for name, more in (
        ("iris", {"dedicatedEndpointEnabled": True}),
        (
            "titanic",
            {
                "privateServiceConnectConfig": {
                    "enablePrivateServiceConnect": True,
                    "projectAllowlists": ["acme-ml-prod"],
                }
            },
        ),
    ):
        declared = stack.endpoints[name]
        type_, inputs = program.recorder.registered[f"serving-{name}-endpoint"]
        assert type_ == "gcp:vertex/aiEndpoint:AiEndpoint"
        assert inputs == {
            **{
                "name": declared.id,
                "displayName": declared.display_name,
                "labels": declared.labels,
            },
            **common,
            **more,
        }
        assert program.ignored[f"serving-{name}-endpoint"] == ["trafficSplit"]
