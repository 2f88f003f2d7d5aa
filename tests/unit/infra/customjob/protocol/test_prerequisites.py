"""Questions that are asked before a request is sent: ``tests/corpus/questions.yaml``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.infra.customjob.fakes import REQUEST
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB
from vertex_training.customjob.protocol import prerequisites
from vertex_training.customjob.protocol.ports import ProcessEnvironment, Timing
from vertex_training.customjob.protocol.prerequisites import PrerequisiteAnswers, Prerequisites
from vertex_training.errors import OperatorError

FILE = Path(__file__).parents[4] / "corpus/questions.yaml"
DATA = yaml.safe_load(FILE.read_text(encoding="utf-8"))
KINDS = {"jobs": CUSTOM_JOB, "tuning": TUNING_JOB, "batch": BATCH_JOB}
IMAGE = f"us-central1-docker.pkg.dev/acme-ml/training-dev/titanic@sha256:{'a' * 64}"
EMAIL = "vision-job-dev@acme-ml.iam.gserviceaccount.com"
MESSAGE = {
    "jobSpec": {
        "serviceAccount": EMAIL,
        "workerPoolSpecs": [
            {
                "machineSpec": {
                    "machineType": "n1-standard-4",
                    "acceleratorType": "NVIDIA_TESLA_T4",
                    "acceleratorCount": 2,
                },
                "containerSpec": {"imageUri": IMAGE},
            }
        ],
    }
}


class Google:
    """Answers yes, except for the permissions or methods in ``no``; records the calls."""

    def __init__(self, *no: str, silent: str = "", limit: int | None = None) -> None:
        self.no, self.silent, self.limit = set(no), silent, limit
        self.calls: list[list[str]] = []

    def __getattr__(self, method: str) -> Any:
        def answer(*arguments: str) -> Any:
            self.calls.append([method, *arguments])
            if method == self.silent:
                raise OperatorError("403 Forbidden")
            if method == "quota":
                return self.limit
            return not {method, *arguments} & self.no

        return answer


def service(google: Google) -> Prerequisites:
    found: Any = google
    return found


def questions(message: Any, kind: str = "jobs") -> list[Any]:
    place = "projects/acme-ml/locations/us-central1"
    request = replace(REQUEST, parent=place, body=json.dumps(message))
    return list(prerequisites.questions([request], KINDS[kind]))


@pytest.mark.parametrize("case", DATA["requests"], ids=range(len(DATA["requests"])))
def test_a_request_has_the_recorded_questions(case: dict[str, Any]) -> None:
    expected = [DATA["questions"][name] for name in case["questions"]]
    asked = questions(case["message"], case.get("kind", "jobs"))
    google = Google()
    assert prerequisites.ask_all(asked, service(google)) == PrerequisiteAnswers()
    assert google.calls == [row["call"] for row in expected]
    assert [
        (each.subject, each.obstacle, each.fix, each.waits, each.lasts)
        for each in asked
    ] == [
        (row["subject"], row["obstacle"], row["fix"], row.get("waits", False),
         row.get("lasts", False))
        for row in expected
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "enough"), [(None, True), (2, True), (3, True), (1, False), (0, False)]
)
def test_a_quota_is_compared_with_all_accelerators_of_a_job(
    limit: int | None, enough: bool
) -> None:
    answers = prerequisites.ask_all(questions(MESSAGE), service(Google(limit=limit)))
    assert ("lower than 2, which the job needs" in str(answers)) is not enough


def test_all_refusals_are_reported_together_and_unknown_answers_beside_them() -> None:
    google = Google("iam.serviceAccounts.actAs", "has_image", silent="quota")
    answers = prerequisites.ask_all(questions(MESSAGE), service(google))
    assert str(answers) == (
        f"{EMAIL} does not exist, or the deploying account lacks iam.serviceAccounts.actAs on "
        "this account. "
        "Hint: add the deploying account to deployers in Pulumi.dev.yaml, or run `gcloud iam "
        f"service-accounts add-iam-policy-binding {EMAIL} --member=MEMBER "
        f"--role=roles/iam.serviceAccountUser`; the image {IMAGE} does not exist. Hint: run `vt "
        "images build titanic --stack dev`, or name another image"
    )
    [unanswered] = answers.unanswered
    assert unanswered.startswith("the quota of")
    assert unanswered.endswith("403 Forbidden")


@pytest.mark.parametrize(
    ("no", "granted", "words", "seconds"),
    [
        ("iam.serviceAccounts.actAs", 20, "", 20),
        ("has_image", 20, "does not exist", 0),
        ("aiplatform.customJobs.create", 9999, "cannot submit jobs in acme-ml", Timing().gate),
    ],
)
def test_only_a_recent_grant_is_waited_for(
    no: str, granted: float, words: str, seconds: float
) -> None:
    google, waited = Google("iam.serviceAccounts.actAs", no), [0.0]

    def sleep(pause: float) -> None:
        waited[0] += pause
        if waited[0] >= 20:
            google.no -= {"iam.serviceAccounts.actAs"}
        if waited[0] >= granted:
            google.no.clear()

    # The clock counts from the start of the machine.
    environment = ProcessEnvironment(sleep, lambda: 86_400 + waited[0])
    answers = prerequisites.ask_until_settled(
        questions(MESSAGE), service(google), Timing(), environment
    )
    assert (words in str(answers)) if words else not str(answers)
    assert waited[0] == seconds
