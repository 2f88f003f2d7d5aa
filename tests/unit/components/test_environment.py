"""An environment of a program: its jobs, what it says of them, and its names in the program."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest

from tests.unit.components.recorder import NUMBERED, registered
from tests.unit.components.test_components import SPEC, refused
from tests.unit.infra.stacks import FILE
from vertex_training import TrainingEnvironment

ACCOUNT = "trainer-prod@acme-ml-prod.iam.gserviceaccount.com"
IMAGE = f"us-central1-docker.pkg.dev/acme/serving/x@sha256:{'0' * 64}"
SPOT = {**SPEC, "scheduling": {"timeout": "600s", "strategy": "SPOT"}}
ARGS: dict[str, Any] = {
    **NUMBERED,
    "service_accounts": {"trainer": {}},
    "jobs": {"titanic": {"file": "spot.json"}},
}
#: What reviewers are told of a job that may be preempted.
ADVICE = (
    "spot.json:1:1: baseOutputDirectory is missing: a preempted job would lose its progress. "
    "Hint: set baseOutputDirectory, and resume from AIP_CHECKPOINT_DIR"
)


def made_by(
    component: Callable[..., Any], args: Any, *outputs: str, preview: bool = False
) -> tuple[dict[str, Any], dict[str, tuple[str, dict[str, Any]]]]:
    """Its outputs, and what it registers."""
    found: dict[str, Any] = {}

    def declare() -> None:
        made = component("it", args() if callable(args) else args)
        values = {name: getattr(made, name) for name in outputs}
        pulumi.Output.from_input(values).apply(found.update)

    return found, registered(declare, preview=preview)


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    (folder / "spot.json").write_text(json.dumps(SPOT))
    (folder / "wrong.json").write_text(
        json.dumps({"workerPoolSpecs": SPEC["workerPoolSpecs"], "serviceAcount": "x@y.z"})
    )
    (folder / "tune.yaml").write_text(FILE.replace(ACCOUNT, SPEC["serviceAccount"]))


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    for level in ("info", "warn"):
        monkeypatch.setattr(pulumi.log, level, lambda text, *_, **__: found.append(text))
    return found


def test_outputs_have_the_keys_of_the_arguments(said: list[str]) -> None:
    args = {
        **ARGS,
        "jobs": {"titanic": {"file": "spot.json", "run": 2}},
        "tuning": {"tune": {"file": "tune.yaml"}},
        "models": {"titanic": {"container": IMAGE, "run": 2}},
        "endpoints": {"titanic": {"machine": "n1-standard-2", "split": {"run 2": 100}}},
    }
    found, _ = made_by(TrainingEnvironment, args, "jobs", "models", "endpoints")
    jobs, endpoint = found.pop("jobs"), found["endpoints"]["titanic"]
    place = "projects/local-training/locations/us-central1/endpoints"
    assert found == {
        "models": {"titanic": {"run 2": "it-serving-titanic-run-2-id"}},
        "endpoints": {
            "titanic": {
                "id": endpoint["id"], "name": f"{place}/{endpoint['id']}", "dns": "",
            }
        },
    }  # fmt: skip
    assert {key: job["name"] for key, job in jobs.items()} == {
        "titanic": "it-training-titanic-id",
        "tune": "it-training-tune-id",
    }
    # Ten minutes of a Spot VM, and sixty hours of one that is not.
    assert jobs["titanic"]["costsAtMost"] == "$0.02 in 0.167 h"
    assert jobs["tune"]["costsAtMost"] == "$13.11 in 60 trials of 1 h"
    told = (
        "Tuning job tune costs at most $13.11 in 60 trials of 1 h: $0.66 an hour with 3 parallel "
        "trials, which require 3 times the quota of one trial."
    )
    assert said[:2] == [ADVICE, told]
    assert said[2].startswith("Before jobs of this stack can run, the owners of acme must grant:")


def test_mistakes_in_a_job_file_have_the_fields_of_the_file() -> None:
    args = {**ARGS, "jobs": {"titanic": {"file": "wrong.json"}}}
    assert refused(TrainingEnvironment, args).splitlines() == [
        "TrainingEnvironment 'it': 1 mistake; the component declared no resource.",
        "wrong.json:1:160: serviceAcount: CustomJobSpec has no field of this name. Hint: did you "
        "mean "
        "'serviceAccount'?",
    ]
