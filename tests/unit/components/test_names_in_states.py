"""The names that states have of all that is in a component, what it waits for, and is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from pulumi.runtime.mocks import MockMonitor

from tests.unit.components.recorder import PROJECT, registered
from tests.unit.components.test_components import refused
from tests.unit.components.test_outputs_of_components import H100, JOB, PSC
from vertex_training import (
    GpuReservation,
    TrainingAccount,
    TrainingBuckets,
    TrainingJob,
    TrainingNetwork,
)

#: What components enable that declare anything for Vertex AI itself.
VERTEX = {"apis", *(f"apis-{api}" for api in ("aiplatform", "cloudresourcemanager", "compute"))}
ACCOUNT = {"project": "local-training", "roles": {"local-training": ["roles/bigquery.user"]}}
ROLE_OF_OTHERS = {"acme-data": ["roles/bigquery.user"]}


@pytest.mark.parametrize(
    ("component", "args", "names"),
    [
        (
            TrainingBuckets,
            {**PROJECT, "buckets": {"data": {}, "theirs": {"existing": "acme-theirs"}}},
            {"apis", "apis-storage", "control", "data", "staging"},
        ),
        (
            TrainingAccount,
            ACCOUNT,
            {
                *("apis", "apis-iam", "apis-cloudresourcemanager"),
                *(
                    "account",
                    "logs",
                    "extra",
                    "extra-serviceAccounts-it-roles/bigquery.user-local-training",
                ),
            },
        ),
        (
            TrainingNetwork,
            PSC,
            VERTEX
            | {"apis-vertex-agent"}
            | {
                f"network{end}"
                for end in (
                    *("", "-vpc", "-subnet", "-attaches", "-allow-workers"),
                    *("-psc", "-psc-attachment"),
                )
            },
        ),
        (
            GpuReservation,
            H100,
            VERTEX
            | {"apis-vertex-agent", "capacity", "capacity-it", "capacity-finds-local-training"},
        ),
        (TrainingJob, JOB, {"it"}),
    ],
)
def test_what_is_in_a_component_has_names_below_its_own(
    component: Callable[..., Any], args: dict[str, Any], names: set[str]
) -> None:
    made = set(registered(lambda: component("it", args)))
    assert made == {"it", *(f"it-{name}" for name in names)}


def test_all_of_a_component_waits_for_what_its_arguments_come_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: dict[str, set[str]] = {}
    register = MockMonitor.RegisterResource

    def record(monitor: MockMonitor, request: Any) -> Any:
        waits[request.name] = {urn.rpartition("::")[2] for urn in request.dependencies}
        return register(monitor, request)

    monkeypatch.setattr(MockMonitor, "RegisterResource", record)

    def declare() -> None:
        store = TrainingBuckets("store", {**PROJECT, "environment": "one"})
        project = store.control.apply(lambda _: "local-training")
        TrainingBuckets("later", {**PROJECT, "project": project})

    registered(declare)
    assert {name: of for name, of in waits.items() if name.startswith("later")} == {
        "later": set(),
        "later-apis": set(),
        "later-apis-storage": {"store-staging", "store-control", "store-apis-storage"},
        "later-control": {"later-apis-storage"},
        "later-staging": {"later-apis-storage"},
    }


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(pulumi.log, "info", lambda text, *_, **__: found.append(text))
    return found


def test_what_others_must_grant_an_account_is_told(said: list[str]) -> None:
    registered(lambda: TrainingAccount("it", {**ACCOUNT, "roles": ROLE_OF_OTHERS}))
    assert [text.splitlines()[0] for text in said] == [
        "The owners of acme-data must do this before jobs of this stack can run:"
    ]


def test_what_a_reservation_costs_is_told(said: list[str]) -> None:
    registered(lambda: GpuReservation("it", H100))
    [text] = said
    assert text.startswith("reservation it: 2 x a3-highgpu-8g in us-central1-a: $")


def test_a_job_without_accelerators_cannot_be_stopped_for_being_idle() -> None:
    assert refused(TrainingJob, {**JOB, "idle_stop": "5% for 30m"}).splitlines()[1:] == [
        "spec: idleStop has nothing to look at: no machine of the job has acceleratorCount, and "
        "TPUs are not looked at. Hint: remove idleStop"
    ]
