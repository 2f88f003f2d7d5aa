"""What is asked about a request, and what becomes of the answers."""

import json
from dataclasses import replace

import pytest

from tests.unit.infra.customjob.fakes import REQUEST
from vertex_training.customjob.kinds import CUSTOM_JOB, TUNING_JOB
from vertex_training.customjob.protocol import prerequisites
from vertex_training.customjob.protocol.ports import ProcessEnvironment
from vertex_training.customjob.protocol.timing import Timing
from vertex_training.errors import OperatorError

PARENT = "projects/acme-ml/locations/us-central1"
DIGEST = f"sha256:{'a' * 64}"
IMAGE = f"us-central1-docker.pkg.dev/acme-ml/training-dev/titanic@{DIGEST}"
EMAIL = "vision-job-dev@acme-ml.iam.gserviceaccount.com"
RESERVATION = "projects/acme-ml/zones/us-central1-a/reservations/h100"
T4 = {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2}


class Google:
    """Answers yes, but for what ``no`` names; remembers what was asked."""

    def __init__(self, no=(), silent=()):
        self.no, self.silent, self.asked = set(no), set(silent), []

    def _answer(self, *asked):
        self.asked.append(asked)
        if asked[0] in self.silent:
            raise OperatorError("403 Forbidden")
        return asked[0] not in self.no

    def has_permission(self, resource, permission):
        return self._answer(permission, resource)

    def has_image(self, host, path, reference):
        return self._answer("image", host, path, reference)

    def has_reservation(self, name):
        return self._answer("reservation", name)

    def quota(self, project, region, metric):
        return None if self._answer("quota", project, region, metric) else 3


def request(message, kind=CUSTOM_JOB):
    made = replace(REQUEST, parent=PARENT, body=json.dumps(message))
    return list(prerequisites.questions(made, kind))


def pool(machine=(), image=IMAGE, replicas=1):
    machine = {"machineType": "n1-standard-4", **dict(machine)}
    task = {"imageUri": image}
    return {"machineSpec": machine, "replicaCount": replicas, "containerSpec": task}


def custom(*pools, **spec):
    return {"jobSpec": {"workerPoolSpecs": list(pools), **spec}}


def asked(*pools, **spec):
    google = Google()
    answers = prerequisites.ask_all(request(custom(*pools, **spec)), google)
    assert answers == prerequisites.PrerequisiteAnswers()
    return google.asked


def test_the_right_to_submit_the_account_and_each_image_once_are_asked_for():
    assert asked(pool(), pool(), serviceAccount=EMAIL) == [
        ("aiplatform.customJobs.create", "projects/acme-ml"),
        ("iam.serviceAccounts.actAs", f"projects/-/serviceAccounts/{EMAIL}"),
        ("image", "us-central1-docker.pkg.dev", "acme-ml/training-dev/titanic", DIGEST),
    ]


@pytest.mark.parametrize(
    ("image", "reference"),
    [("us-docker.pkg.dev/p/r/i", "latest"), ("us-docker.pkg.dev/p/r/i:v1", "v1")],
)
def test_an_image_is_asked_for_by_its_tag_too(image, reference):
    assert ("image", "us-docker.pkg.dev", "p/r/i", reference) in asked(pool(image=image))


@pytest.mark.parametrize("image", ["python:3.12", "gcr.io/p/i", "", "us-docker.pkg.dev/p"])
def test_an_image_that_no_artifact_registry_has_is_not_asked_for(image):
    assert [each for each in asked(pool(image=image)) if each[0] == "image"] == []


def test_quota_is_asked_for_by_accelerator_and_strategy_and_not_where_machines_are_reserved():
    metric = "aiplatform.googleapis.com/custom_model_training_nvidia_t4_gpus"
    place = ("quota", "acme-ml", "us-central1")
    assert (*place, metric) in asked(pool(T4))
    spot = asked(pool(T4), scheduling={"strategy": "SPOT"})
    assert (*place, metric.replace("nvidia", "preemptible_nvidia")) in spot
    affinity = {"reservationAffinity": {"values": [f"{RESERVATION}/reservationBlocks/b"]}}
    reserved = asked(pool({**T4, **affinity}))
    assert ("reservation", RESERVATION) in reserved
    assert [each for each in reserved if each[0] == "quota"] == []


@pytest.mark.parametrize(("replicas", "enough"), [(1, True), (2, False)])
def test_the_quota_must_hold_all_that_the_job_uses_at_once(replicas, enough):
    answers = prerequisites.ask_all(
        request(custom(pool(T4, replicas=replicas))), Google(no=["quota"])
    )
    assert ("below the 4 that the job needs" in str(answers)) is not enough


def test_a_tuning_job_needs_its_own_right_and_quota_for_all_trials_at_once():
    message = {
        "parallelTrialCount": 4,
        "maxTrialCount": 8,
        "trialJobSpec": custom(pool(T4), serviceAccount=EMAIL)["jobSpec"],
    }
    google = Google(no=["quota"])
    answers = prerequisites.ask_all(request(message, TUNING_JOB), google)
    assert google.asked[0] == ("aiplatform.hyperparameterTuningJobs.create", "projects/acme-ml")
    assert "below the 8 that the job needs" in str(answers)


def test_all_that_is_refused_is_said_at_once_and_what_cannot_be_asked_beside_it():
    google = Google(no=["iam.serviceAccounts.actAs", "image"], silent=["quota"])
    answers = prerequisites.ask_all(request(custom(pool(T4), serviceAccount=EMAIL)), google)
    assert str(answers) == (
        f"who deploys may not act as {EMAIL} (iam.serviceAccounts.actAs), or it does not exist. "
        "Hint: list who deploys among the deployers of Pulumi.dev.yaml, or gcloud iam "
        f"service-accounts add-iam-policy-binding {EMAIL} --member=MEMBER "
        f"--role=roles/iam.serviceAccountUser; there is no image {IMAGE}. Hint: vt images build "
        "titanic --stack dev, or name another"
    )
    [unanswered] = answers.unanswered
    assert unanswered.startswith("it is not known how much quota there is of")
    assert unanswered.endswith("403 Forbidden")


def test_only_answers_that_hold_for_everybody_are_asked_for_in_a_preview():
    message = custom(pool(T4), serviceAccount=EMAIL)
    lasting = [each for each in request(message) if each.lasts]
    prerequisites.ask_all(lasting, google := Google())
    assert {each[0] for each in google.asked} == {"image", "quota"}


def settled(google):
    waited = [0.0]

    def sleep(seconds):
        waited[0] += seconds
        if waited[0] >= 20:
            google.no.clear()

    environment = ProcessEnvironment(sleep, lambda: 86_400 + waited[0])  # since the machine started
    asked = request(custom(pool(), serviceAccount=EMAIL))
    return prerequisites.ask_until_settled(asked, google, Timing(), environment), waited[0]


def test_a_grant_of_a_moment_ago_is_waited_for():
    answers, waited = settled(Google(no=["iam.serviceAccounts.actAs"]))
    assert (str(answers), waited) == ("", 20)


def test_nothing_is_waited_for_where_something_else_is_refused_too():
    answers, waited = settled(Google(no=["iam.serviceAccounts.actAs", "image"]))
    assert ("there is no image" in str(answers), waited) == (True, 0)


def test_a_right_that_is_not_granted_is_waited_for_as_long_as_a_submission_would():
    class Never(Google):
        def _answer(self, *asked):
            super()._answer(*asked)
            return asked[0] != "aiplatform.customJobs.create"

    answers, waited = settled(Never())
    assert "may not submit jobs in acme-ml" in str(answers)
    assert waited == Timing().gate
