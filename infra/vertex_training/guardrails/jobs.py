"""Policies on training jobs. They check the request as the provider sends it."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vertex_training.catalog import costs
from vertex_training.catalog.resource_types import JOB, SCHEDULE, TUNING_JOB
from vertex_training.guardrails.policy import (
    REHEARSAL_STACKS,
    Resource,
    items,
    mapping,
    matches_path,
    policy,
    text,
)
from vertex_training.secret_rules.redaction import is_secret_variable, secret_words

#: Type of each resource with the request of a job -> the fields of one that say what runs.
SPECS: Final = {
    JOB: ("jobSpec",),
    TUNING_JOB: ("trialJobSpec",),
    SCHEDULE: ("jobSpec", "trialJobSpec"),
}
TRAINING: Final = (
    "https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training"
)
#: Seconds in an hour.
HOUR: Final = 3600

#: Google's images that only the tag latest names: prebuilt images for Python packages, and the
#: reduction server. https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/pre-built-containers
GOOGLE_IMAGES: Final = [
    "*-docker.pkg.dev/vertex-ai/training/*",
    "*-docker.pkg.dev/vertex-ai-restricted/training/*",
]

#: How the name of an image ends that is named by its digest.
DIGEST: Final = re.compile(r"[^@\s]+@sha256:[0-9a-f]{64}")

#: Accounts that Google creates by default, with far more permissions than a job needs.
#: https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/general/access-control
SHARED_ACCOUNTS: Final = re.compile(
    r".*-compute@developer\.gserviceaccount\.com|.*@appspot\.gserviceaccount\.com|"
    r".*@cloudservices\.gserviceaccount\.com|service-\d+@.*"
)


def job_spec(resource: Resource) -> Mapping[str, Any]:
    """What a job, or a trial of a tuning job, runs; empty of other resources, and while unknown."""
    request = text(resource.props, "request") if resource.type in SPECS else ""
    message = json.loads(request) if request else {}
    found = (mapping(message, field) for field in SPECS.get(resource.type, ()))
    return next(filter(None, found), {})


def pools(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(path, worker pool) of each pool that is not empty."""
    for index, pool in enumerate(items(spec, "workerPoolSpecs")):
        if pool:
            yield f"workerPoolSpecs[{index}]", pool


@policy(
    "job-image-by-digest",
    "high",
    why="What was reviewed is what runs, and can be run again.",
    url="https://docs.cloud.google.com/artifact-registry/docs/docker/pushing-and-pulling",
    not_in=REHEARSAL_STACKS,
    byTag=GOOGLE_IMAGES,
)
def job_image_by_digest(resource: Resource, settings: Mapping[str, Any]) -> Iterator[str]:
    """Images are named by digest; only Google's own, which have to be, by tag."""
    for place, pool in pools(job_spec(resource)):
        for section, key in (
            ("containerSpec", "imageUri"),
            ("pythonPackageSpec", "executorImageUri"),
        ):
            image = text(mapping(pool, section), key)
            by_tag = any(matches_path(image, pattern) for pattern in settings["byTag"])
            if image and not DIGEST.fullmatch(image) and not by_tag:
                yield f"{place}: {image}. Hint: name the image by its digest in the stack file"


@policy(
    "job-dedicated-account",
    "high",
    why="Vertex AI's own agent, the default, reads and writes every bucket of the project.",
    url="https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/general/custom-service-account",
    accounts=[],  # addresses of other stacks or projects, in full
)
def job_dedicated_account(resource: Resource, settings: Mapping[str, Any]) -> Iterator[str]:
    """A job runs as an account of its stack, in its project: NAME-STACK@PROJECT."""
    if not (spec := job_spec(resource)):
        return
    account = text(spec, "serviceAccount")
    project = text(mapping(resource.props, "submission"), "project")
    hint = "Hint: serviceAccount: ${serviceAccounts.NAME}"
    if not account:
        yield f"it names no account. {hint}"
    elif SHARED_ACCOUNTS.fullmatch(account):
        yield f"{account} is nobody's own. {hint}"
    elif account not in settings["accounts"] and not _is_own(account, resource.stack, project):
        where = f" in {project}" if project else ""
        yield f"{account} is no account of stack {resource.stack}{where}. {hint}"


def _is_own(account: str, stack: str, project: str) -> bool:
    """Whether the stack makes an account of this address, as infra.naming names it.

    ``project`` is empty while it is not known. CI's accounts, ``ci-…``, are of no stack.
    """
    host = re.escape(project) if project else "[a-z0-9-]+"
    own = rf"(?!ci-)[a-z][a-z0-9-]*-{re.escape(stack)}@{host}\.iam\.gserviceaccount\.com"
    return re.fullmatch(own, account) is not None


@policy(
    "job-timeout-bounded",
    "medium",
    why="A job that hangs is paid for until its timeout, by default seven days.",
    url=f"{TRAINING}/create-custom-job",
    maxHours=72,
)
def job_timeout_bounded(resource: Resource, settings: Mapping[str, Any]) -> Iterator[str]:
    """A job says when it is to be stopped, and that is soon enough."""
    if not (spec := job_spec(resource)):
        return
    scheduling = mapping(spec, "scheduling")
    seconds, limit = costs.whole_seconds(scheduling), settings["maxHours"]
    hours = (seconds or costs.DEFAULT_TIMEOUT) / HOUR
    given = text(scheduling, "timeout")
    if not seconds:
        what = f"timeout {given} is none" if given else "it has no timeout"
        yield f"{what}, so {hours:g} hours. Hint: scheduling.timeout of at most {limit}"
    elif hours > limit:
        yield f"timeout {given} is {hours:g} hours, more than {limit:g}. Hint: shorten or split it"


@policy(
    "job-large-gpus-spot-or-reserved",
    "medium",
    why="Such machines are rarely free on demand: the job waits, or fails for lack of stock.",
    url=f"{TRAINING}/use-reservations",
    families=["a2", "a3", "a4", "a4x"],
)
def job_large_gpus(resource: Resource, settings: Mapping[str, Any]) -> Iterator[str]:
    """Jobs on machines with large GPUs use Spot, Flex-start or a reservation."""
    spec = job_spec(resource)
    strategy = text(mapping(spec, "scheduling"), "strategy")
    for place, pool in pools(spec):
        machine = mapping(pool, "machineSpec")
        name = text(machine, "machineType")
        affinity = text(mapping(machine, "reservationAffinity"), "reservationAffinityType")
        reserved = affinity in ("SPECIFIC_RESERVATION", "ANY_RESERVATION")
        large = name.partition("-")[0] in settings["families"]
        if large and not reserved and strategy not in ("SPOT", "FLEX_START"):
            yield (
                f"{place}: {name} on demand. Hint: scheduling.strategy SPOT or FLEX_START, or "
                "machineSpec.reservationAffinity"
            )


@policy(
    "job-no-secret-in-env",
    "critical",
    why="Everybody who may look at a job reads its environment, and it is kept with the record.",
    url="https://docs.cloud.google.com/secret-manager/docs/best-practices",
)
def job_no_secret_in_env(resource: Resource, _settings: Mapping[str, Any]) -> Iterator[str]:
    """No secret stands in a job's environment, command or arguments."""
    hint = "Hint: pass ${secrets.NAME} and read the value in the code"
    for place, pool in pools(job_spec(resource)):
        for section in ("containerSpec", "pythonPackageSpec"):
            task = mapping(pool, section)
            for variable in items(task, "env"):
                name, value = text(variable, "name"), text(variable, "value")
                if is_secret_variable(name, value):
                    yield f"{place}: the value of {name} looks like a secret. {hint}"
            words = [(key, str(word)) for key in ("command", "args") for word in items(task, key)]
            keys = (words[index][0] for index in secret_words([word for _, word in words]))
            for key in dict.fromkeys(keys):
                yield f"{place}: {key} holds what looks like a secret. {hint}"


@policy(
    "job-in-a-network",
    "high",
    why="Otherwise a job reaches private services over the internet or not at all, past the "
    "network's own controls.",
    url=f"{TRAINING}/using-private-ip",
    not_in=REHEARSAL_STACKS,
    without=[],
)
def job_in_a_network(resource: Resource, settings: Mapping[str, Any]) -> Iterator[str]:
    """A job is attached to a network: by peering or by a Private Service Connect interface."""
    spec = job_spec(resource)
    attached = text(spec, "network") or text(
        mapping(spec, "pscInterfaceConfig"), "networkAttachment"
    )
    exempt = any(fnmatch.fnmatchcase(resource.name, p) for p in settings["without"])
    if spec and not attached and not exempt:
        yield "it is in no network. Hint: pscInterfaceConfig or network, from ${network...}"
