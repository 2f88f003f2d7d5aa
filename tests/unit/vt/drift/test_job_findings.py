"""Jobs that run as accounts of the stack: whose they are, and which are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.cloud.aiplatform_v1 import CustomJob, HyperparameterTuningJob, JobState, Trial

from tests.unit.localcloud.conftest import (
    PROJECT,
    TRAINER,
    cloud,
    home,
    make_cloud,
)
from vertex_training_cli.drift import undeclared
from vertex_training_cli.drift.findings import PropertyDifference, ResourceDifference
from vertex_training_cli.drift.undeclared import submitted_by_hand
from vertex_training_cli.engine.stacks import StackRef

__all__ = ["cloud", "home", "make_cloud"]

OWN = f"serviceAccount:{TRAINER}"
REF = StackRef(Path("/srv"), "demo", "local", PROJECT, "us-central1")
PARENT = "projects/123/locations/us-central1"


def job(number: int, state: str = "RUNNING", account: str = TRAINER, **labels: str) -> CustomJob:
    return CustomJob(
        name=f"{PARENT}/customJobs/{number}",
        display_name=f"job {number}",
        state=JobState[f"JOB_STATE_{state}"],
        job_spec={"service_account": account},
        labels={key.replace("_", "-"): value for key, value in labels.items()},
    )


def tuning(number: int, account: str = TRAINER, *trials: CustomJob) -> HyperparameterTuningJob:
    return HyperparameterTuningJob(
        name=f"{PARENT}/hyperparameterTuningJobs/{number}",
        display_name=f"study {number}",
        state=JobState.JOB_STATE_RUNNING,
        trial_job_spec={"service_account": account},
        trials=[Trial(custom_job=each.name) for each in trials],
    )


class Service:
    """The jobs that there are; what is asked, in its order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.live: list[Any] = []
        self.whole: dict[str, Any] = {}
        self.asked: list[Any] = []
        monkeypatch.setenv("VERTEX_EMULATOR_HOST", "127.0.0.1:1")  # never reached
        monkeypatch.setattr(StackRef, "connect_clients", lambda _: self.asked.append("connect"))
        monkeypatch.setattr(undeclared.Jobs, "list", lambda _, **how: self._list(how))
        monkeypatch.setattr(undeclared.Jobs, "get_if_exists", lambda _, name: self._get(name))

    def _list(self, how: dict[str, bool]) -> list[Any]:
        self.asked.append(how)
        return self.live

    def _get(self, name: str) -> Any:
        self.asked.append(name)
        return self.whole.get(name)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    return Service(monkeypatch)


def told(kind: str, message: str, number: int, name: str) -> ResourceDifference:
    return ResourceDifference(
        "submitted", name, message, f"{PARENT}/{kind}/{number}",
        (PropertyDifference("account", TRAINER, ""),),
        f"To end it: `vt jobs cancel {number} --stack local`; to keep it: list `{kind}/{name}` "
        "with its reason under `drift.allowedResources`. Who submitted it is in the project's "
        "audit log.",
        resource=f"{kind}/{name}",
    )  # fmt: skip


OF_A_REQUEST = {"vt_request_id": "0" * 20, "vt_job": "t", "vt_run": "1"}
OF_EU = f"{PARENT}/customJobs/1 runs as {TRAINER}, but has the label of stack eu"


@pytest.mark.parametrize(
    ("given", "is_told", "not_judged"),
    [
        (job(1, "PENDING"), True, []),
        (job(1, account="other@x.iam.gserviceaccount.com"), False, []),
        (job(7), False, []),  # the state has it
        (job(1, "SUCCEEDED"), False, []),
        # one of the stack itself is an orphaned job, and told as that
        (job(1, vt_stack="local", **OF_A_REQUEST), False, []),
        (job(1, vt_stack="eu", **OF_A_REQUEST), False, [OF_EU]),
        # a label without a request is no submission of a stack
    ],
)
def test_a_job_is_told_unless_a_stack_has_it_or_it_ends(
    service: Service, given: CustomJob, is_told: bool, not_judged: list[str]
) -> None:
    service.live = [given, job(2)]  # what follows is judged all the same
    found = submitted_by_hand(REF, {job(7).name}, {OWN}, {"eu"})
    names = ["job 1", "job 2"] if is_told else ["job 2"]
    assert ([each.name for each in found[0]], found[1]) == (names, not_judged)


def test_trials_of_a_tuning_job_that_runs_are_its_own(service: Service) -> None:
    study = tuning(7, "b", job(1), job(2))
    service.live = [tuning(7, "b"), *map(job, (1, 2, 3))]
    service.whole = {study.name: study}
    found, not_judged = submitted_by_hand(REF, (), {OWN}, ())
    assert ([each.name for each in found], not_judged) == (["job 3"], [])
    assert service.asked[2:] == [study.name]
    service.whole.clear()  # it went meanwhile
    assert len(submitted_by_hand(REF, (), {OWN}, ())[0]) == 3
