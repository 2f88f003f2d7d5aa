"""Checks a new request before the running job, which the request replaces, is cancelled.

The checks query Google about permissions, images, reservations and quota. A failed check prevents
the submission. A check without an answer is reported, and prevents nothing.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from vertex_training.catalog import costs
from vertex_training.customjob.kinds import BATCH_JOB, JobKind
from vertex_training.customjob.protocol.ports import ProcessEnvironment, SubmissionRequest, Timing
from vertex_training.errors import OperatorError

#: An image in Artifact Registry by tag or digest: host, path, reference.
IMAGE: Final = re.compile(
    r"(?P<host>[a-z0-9-]+-docker\.pkg\.dev)/(?P<path>[a-z0-9-]+/[a-z0-9._/-]+)"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64})|:(?P<tag>[A-Za-z0-9_.-]+))?"
)
RESERVATION: Final = re.compile(r"projects/[^/]+/zones/[^/]+/reservations/[^/]+")
ACT_AS: Final = "iam.serviceAccounts.actAs"
#: Strategies that use the quota of preemptible machines:
#: https://docs.cloud.google.com/vertex-ai/docs/training/schedule-jobs-dws#quota
PREEMPTIBLE: Final = ("SPOT", "FLEX_START")
#: acceleratorType -> part of a quota's name, if this part is not the type in lowercase.
QUOTA_NAMES: Final = {
    "NVIDIA_H100_80GB": "nvidia_h100",
    "NVIDIA_H100_MEGA_80GB": "nvidia_h100_mega",
    "NVIDIA_H200_141GB": "nvidia_h200",
}


class Prerequisites(Protocol):
    """Queries before a submission. All methods raise OperatorError if the service cannot answer."""

    def has_permission(self, resource: str, permission: str) -> bool:
        """Return whether the caller has a permission on the account or project ``resource``."""
        ...

    def has_image(self, host: str, path: str, reference: str) -> bool:
        """Return whether a registry has an image."""
        ...

    def has_reservation(self, name: str) -> bool:
        """Return whether a reservation exists: ``projects/P/zones/Z/reservations/R``."""
        ...

    def quota(self, project: str, region: str, metric: str) -> int | None:
        """Return the limit of a Vertex AI quota; None for no limit."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """A check before a submission. ``ask`` returns whether the check passes."""

    subject: str
    """Subject of the check, for messages."""
    ask: Callable[[Prerequisites], bool]
    obstacle: str
    """Reason why the submission would be refused if the check fails."""
    fix: str
    waits: bool = False
    """True if a negative answer can change by itself: a new grant takes time to have effect."""
    lasts: bool = True
    """True if the answer in a preview is also valid for the deployment: the answer depends neither
    on the caller nor on resources of the stack."""


@dataclass(frozen=True, slots=True)
class PrerequisiteAnswers:
    """The failed checks, and messages about checks without an answer."""

    refused: tuple[Question, ...] = ()
    unanswered: tuple[str, ...] = ()

    @property
    def may_change(self) -> bool:
        """Return whether all failed checks can pass later without a change."""
        return bool(self.refused) and all(question.waits for question in self.refused)

    def __str__(self) -> str:
        """Return the reasons and fixes of all failed checks as text; empty if all passed."""
        return "; ".join(f"{check.obstacle}. Hint: {check.fix}" for check in self.refused)


def ask_all(questions: Iterable[Question], service: Prerequisites) -> PrerequisiteAnswers:
    """Run all checks once."""
    obstacles, unanswered = list[Question](), list[str]()
    for question in questions:
        try:
            if not question.ask(service):
                obstacles.append(question)
        except OperatorError as error:
            unanswered.append(f"{question.subject} was not checked: {error}")
    return PrerequisiteAnswers(tuple(obstacles), tuple(unanswered))


def ask_until_settled(
    questions: Iterable[Question],
    service: Prerequisites,
    timing: Timing,
    environment: ProcessEnvironment,
) -> PrerequisiteAnswers:
    """Run all checks; repeat all checks for up to ``Timing.gate`` while the results can change."""
    checks = list(questions)
    answers, began = ask_all(checks, service), environment.monotonic()
    while answers.may_change and environment.monotonic() - began < timing.gate:
        environment.sleep(timing.interval)
        answers = ask_all(checks, service)
    return answers


def questions(rungs: Sequence[SubmissionRequest], kind: JobKind) -> list[Question]:
    """Return the checks of all rungs of a job, without duplicates."""
    every = [question for request in rungs for question in _of_request(request, kind)]
    return list({question.subject: question for question in every}.values())


def _of_request(request: SubmissionRequest, kind: JobKind) -> Iterator[Question]:
    message = json.loads(request.body)
    project = request.parent.split("/")[1]
    spec = kind.trial_of(message).get("jobSpec") or {}
    yield _submitting(project, kind)
    if account := spec.get("serviceAccount"):
        name = f"projects/-/serviceAccounts/{account}"
        yield Question(
            f"the permission to act as {account}",
            lambda service: service.has_permission(name, ACT_AS),
            f"{account} does not exist, or the deploying account lacks {ACT_AS} on this account",
            f"add the deploying account to deployers in Pulumi.{request.stack}.yaml, or run "
            f"`gcloud iam service-accounts add-iam-policy-binding {account} --member=MEMBER "
            "--role=roles/iam.serviceAccountUser`",
            waits=True,
            lasts=False,
        )
    pools = spec.get("workerPoolSpecs") or []
    yield from _images(pools, request.stack)
    reservations = [name for pool in pools for name in named_reservations(pool)]
    yield from map(_reserved, dict.fromkeys(reservations))
    if kind is not BATCH_JOB:  # Batch waits for Compute Engine's quota
        yield from _quotas(request.parent, message, spec)


def _submitting(project: str, kind: JobKind) -> Question:
    service = "batch" if kind is BATCH_JOB else "aiplatform"
    permission = f"{service}.{kind.collection}.create"
    role = "roles/batch.jobsEditor" if kind is BATCH_JOB else "roles/aiplatform.user"
    grant = f"gcloud projects add-iam-policy-binding {project} --member=MEMBER --role={role}"
    return Question(
        f"the permission to submit jobs in {project}",
        lambda service: service.has_permission(f"projects/{project}", permission),
        f"the deploying account cannot submit jobs in {project} ({permission})",
        f"run `{grant}`",
        waits=True,
        lasts=False,
    )


def _images(pools: list[Mapping[str, Any]], stack: str) -> Iterator[Question]:
    tasks = [pool.get("containerSpec") or pool.get("pythonPackageSpec") or {} for pool in pools]
    names = [task.get("imageUri") or task.get("executorImageUri") or "" for task in tasks]
    for name in dict.fromkeys(names):
        if match := IMAGE.fullmatch(name):
            host, path = match["host"], match["path"]
            reference, image = match["digest"] or match["tag"] or "latest", path.rpartition("/")[2]
            yield Question(
                f"the image {name}",
                lambda service, at=(host, path, reference): service.has_image(*at),
                f"the image {name} does not exist",
                f"run `vt images build {image} --stack {stack}`, or name another image",
            )


def named_reservations(pool: Mapping[str, Any]) -> list[str]:
    """Return the reservations of a worker pool: ``projects/P/zones/Z/reservations/R``."""
    affinity = (pool.get("machineSpec") or {}).get("reservationAffinity") or {}
    matches = (RESERVATION.match(value) for value in affinity.get("values") or [])
    return [match[0] for match in matches if match]


def _reserved(name: str) -> Question:
    _, project, _, zone, _, key = name.split("/")
    return Question(
        f"the reservation {name}",
        lambda service: service.has_reservation(name),
        f"the reservation {name} does not exist",
        f"create {key} in {zone}, or name a reservation from `gcloud compute reservations list "
        f"--project {project}`",
        lasts=False,  # the stack may create the reservation
    )


def _quotas(parent: str, message: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[Question]:
    """Yield a check of each accelerator's quota limit. The checks ignore current usage."""
    _, project, _, region = parent.split("/")
    for metric, count in accelerator_quotas(message, spec, region).items():

        def is_enough(service: Prerequisites, metric: str = metric, count: int = count) -> bool:
            limit = service.quota(project, region, metric)
            return limit is None or limit >= count

        yield Question(
            f"the quota of {metric} in {region}",
            is_enough,
            f"the quota of {metric} in {region} is lower than {count}, which the job needs",
            "request more quota: "
            f"https://console.cloud.google.com/iam-admin/quotas?project={project}",
        )


def accelerator_quotas(
    message: Mapping[str, Any], spec: Mapping[str, Any], region: str
) -> Counter[str]:
    """Return quota metric -> number of GPUs that a job uses; empty with a reservation."""
    usage = Counter[str]()
    if any(named_reservations(pool) for pool in spec.get("workerPoolSpecs") or []):
        return usage
    cost = costs.of_job(message, region)
    for pool in cost.pools:
        if pool.accelerator.startswith("NVIDIA_"):
            metric = quota_metric(pool.accelerator, preemptible=is_preemptible(spec))
            usage[metric] += pool.count * pool.machines * cost.parallel
    return usage


def is_preemptible(spec: Mapping[str, Any]) -> bool:
    """Return whether the machines of a jobSpec count as preemptible in quotas."""
    return (spec.get("scheduling") or {}).get("strategy") in PREEMPTIBLE


def quota_metric(
    accelerator: str, *, preemptible: bool, use: Literal["training", "serving"] = "training"
) -> str:
    """Return the quota metric of an acceleratorType, by its name in Vertex AI's errors.

    >>> quota_metric("NVIDIA_TESLA_T4", preemptible=True)
    'aiplatform.googleapis.com/custom_model_training_preemptible_nvidia_t4_gpus'
    """
    name = family_of(accelerator).lower()
    kind = "preemptible_" if preemptible else ""
    return f"aiplatform.googleapis.com/custom_model_{use}_{kind}{name}_gpus"


def family_of(accelerator: str) -> str:
    """Return the name of a GPU as in names of quotas.

    >>> family_of("NVIDIA_H100_MEGA_80GB")
    'NVIDIA_H100_MEGA'
    """
    name = QUOTA_NAMES.get(accelerator, accelerator.lower().replace("nvidia_tesla_", "nvidia_"))
    return name.upper()
