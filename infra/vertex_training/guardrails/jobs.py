"""Policies for jobs, models, endpoints and encryption keys."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vertex_training.catalog import costs
from vertex_training.catalog.resource_types import (
    BUCKET,
    ENDPOINT,
    ENDPOINT_TRAFFIC,
    JOB,
    MODEL_VERSION,
    REPOSITORY,
    SCHEDULE,
    SECRET,
    TENSORBOARD,
    TUNING_JOB,
)
from vertex_training.guardrails.policy import (
    REHEARSAL_STACKS,
    Found,
    Resource,
    Settings,
    Unknown,
    is_or_unknown,
    items,
    mapping,
    matches_path,
    nested,
    policy,
    text,
)
from vertex_training.naming import PUBLIC_LABEL
from vertex_training.secret_rules.redaction import is_secret_variable, secret_words

#: Types of resources with a job's request, and the fields of the request with the job's spec.
SPECS: Final = {
    JOB: ("jobSpec",),
    TUNING_JOB: ("trialJobSpec",),
    SCHEDULE: ("jobSpec", "trialJobSpec"),
}
TRAINING: Final = (
    "https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training"
)
HOUR: Final = 3600
#: Google's images that are used by their tag `latest`, without a digest:
#: https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/pre-built-containers
GOOGLE_IMAGES: Final = [
    "*-docker.pkg.dev/vertex-ai/training/*",
    "*-docker.pkg.dev/vertex-ai-restricted/training/*",
]

#: Image name with a digest.
DIGEST: Final = re.compile(r"[^@\s]+@sha256:[0-9a-f]{64}")

#: Default accounts of Google, which have far more permissions than a job needs:
#: https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/general/access-control
SHARED_ACCOUNTS: Final = re.compile(
    r".*-compute@developer\.gserviceaccount\.com|.*@appspot\.gserviceaccount\.com|"
    r".*@cloudservices\.gserviceaccount\.com|service-\d+@.*"
)
PREDICTIONS: Final = (
    "https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/predictions"
)
#: Types of resources with data, and for each the paths of its location and its key.
_KEYS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    BUCKET: (("location",), ("encryption", "defaultKmsKeyName")),
    REPOSITORY: (("location",), ("kmsKeyName",)),
    TENSORBOARD: (("region",), ("encryptionSpec", "kmsKeyName")),
    ENDPOINT: (("location",), ("encryptionSpec", "kmsKeyName")),
    MODEL_VERSION: (("model", "region"), ("options", "key")),
}


def job_spec(resource: Resource) -> Mapping[str, Any]:
    """Return the spec of a job or trial; empty for other resources and unknown requests."""
    request = text(resource.props, "request") if resource.type in SPECS else ""
    message = json.loads(request) if request else {}
    specs = (mapping(message, field) for field in SPECS.get(resource.type, ()))
    return next(filter(None, specs), {})


def pools(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the path and the content of each worker pool that is not empty."""
    for index, pool in enumerate(items(spec, "workerPoolSpecs")):
        if pool:
            yield f"workerPoolSpecs[{index}]", pool


def _has_only_a_tag(image: str, settings: Settings) -> bool:
    by_tag = any(matches_path(image, pattern) for pattern in settings["byTag"])
    return bool(image) and not DIGEST.fullmatch(image) and not by_tag


@policy(
    "job-image-by-digest",
    "high",
    of=SPECS,
    why="A digest ensures that the reviewed image runs, and can run again.",
    url="https://docs.cloud.google.com/artifact-registry/docs/docker/pushing-and-pulling",
    not_in=REHEARSAL_STACKS,
    byTag=GOOGLE_IMAGES,
)
def job_image_by_digest(resource: Resource, settings: Settings) -> Found:
    """Images must have a digest; only Google's prebuilt images may have a tag."""
    for place, pool in pools(job_spec(resource)):
        for section, key in (
            ("containerSpec", "imageUri"),
            ("pythonPackageSpec", "executorImageUri"),
        ):
            image = text(mapping(pool, section), key)
            if _has_only_a_tag(image, settings):
                hint = "Hint: pin the digest in the stack file"
                yield f"{place}: image {image} has no digest. {hint}"


@policy(
    "job-dedicated-account",
    "high",
    of=SPECS,
    why="The default account, a Vertex AI agent, can read and write every bucket of the project.",
    url="https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/general/custom-service-account",
    accounts=[],  # addresses of other stacks or projects, in full
)
def job_dedicated_account(resource: Resource, settings: Settings) -> Found:
    """A job must run as an account of its own stack and project: NAME-STACK@PROJECT."""
    if not (spec := job_spec(resource)):
        return
    account = text(spec, "serviceAccount")
    project = text(mapping(resource.props, "submission"), "project")
    hint = "Hint: set serviceAccount: ${serviceAccounts.NAME}"
    if not account:
        yield f"the job has no serviceAccount. {hint}"
    elif SHARED_ACCOUNTS.fullmatch(account):
        yield f"{account} is a default account of Google. {hint}"
    elif account not in settings["accounts"] and not _is_own(account, resource.stack, project):
        where = f" in {project}" if project else ""
        yield f"{account} does not belong to stack {resource.stack}{where}. {hint}"


def _is_own(account: str, stack: str, project: str) -> bool:
    """Return True if the address has the form of an account that the stack creates.

    ``project`` is empty if unknown. CI's accounts, ``ci-…``, belong to no stack.
    """
    host = re.escape(project) if project else "[a-z0-9-]+"
    own = rf"(?!ci-)[a-z][a-z0-9-]*-{re.escape(stack)}@{host}\.iam\.gserviceaccount\.com"
    return re.fullmatch(own, account) is not None


@policy(
    "job-timeout-bounded",
    "medium",
    of=SPECS,
    why="A hanging job costs money until its timeout, by default seven days.",
    url=f"{TRAINING}/create-custom-job",
    maxHours=72,
)
def job_timeout_bounded(resource: Resource, settings: Settings) -> Found:
    """A job must have a timeout within the limit."""
    if not (spec := job_spec(resource)):
        return
    scheduling = mapping(spec, "scheduling")
    seconds, limit = costs.whole_seconds(scheduling), settings["maxHours"]
    hours = (seconds or costs.DEFAULT_TIMEOUT) / HOUR
    timeout = text(scheduling, "timeout")
    if not seconds:
        what = f"timeout {timeout} is not valid" if timeout else "the job has no timeout"
        hint = f"Hint: set scheduling.timeout to at most {limit:g} hours"
        yield f"{what}, so the default of {hours:g} hours applies. {hint}"
    elif hours > limit:
        what = f"timeout {timeout} is {hours:g} hours, the limit is {limit:g}"
        yield f"{what}. Hint: shorten the timeout or split the job"


@policy(
    "job-large-gpus-spot-or-reserved",
    "medium",
    of=SPECS,
    why="Large GPUs are rarely available on demand, so the job waits for machines or fails.",
    url=f"{TRAINING}/use-reservations",
    families=["a2", "a3", "a4", "a4x"],
)
def job_large_gpus(resource: Resource, settings: Settings) -> Found:
    """Jobs on machines with large GPUs must use Spot, Flex-start or a reservation."""
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
                f"{place}: {name} runs on demand. Hint: set scheduling.strategy to SPOT or "
                "FLEX_START, or set machineSpec.reservationAffinity"
            )


@policy(
    "job-no-secret-in-env",
    "critical",
    of=SPECS,
    why="Every user who may view a job can read its environment, also after the job has ended.",
    url="https://docs.cloud.google.com/secret-manager/docs/best-practices",
)
def job_no_secret_in_env(resource: Resource, _settings: Settings) -> Found:
    """A job's environment, command and arguments must not contain secrets."""
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
                yield f"{place}: an element of {key} looks like a secret. {hint}"


@policy(
    "job-in-a-network",
    "high",
    of=SPECS,
    why="A job without a network cannot use private services, and the network's controls do not "
    "apply to the job.",
    url=f"{TRAINING}/using-private-ip",
    not_in=REHEARSAL_STACKS,
    without=[],
)
def job_in_a_network(resource: Resource, settings: Settings) -> Found:
    """A job must use a network, by peering or by a Private Service Connect interface."""
    spec = job_spec(resource)
    attached = text(spec, "network") or text(
        mapping(spec, "pscInterfaceConfig"), "networkAttachment"
    )
    exempt = any(fnmatch.fnmatchcase(resource.name, p) for p in settings["without"])
    if spec and not attached and not exempt:
        yield (
            "the job has no network. Hint: set pscInterfaceConfig to ${network.interface}, or "
            "network to ${network.name}"
        )


@policy(
    "model-image-by-digest",
    "high",
    of=MODEL_VERSION,
    why="A digest ensures that the reviewed image serves, and can be restored.",
    url=f"{PREDICTIONS}/custom-container-requirements",
    not_in=REHEARSAL_STACKS,
    byTag=[],  # patterns of images; Google's prebuilt images have only tags (until 2027-01-14)
)
def model_image_by_digest(resource: Resource, settings: Settings) -> Found:
    """A model's serving image must have a digest."""
    container = text(resource.props, "container")
    image = text(json.loads(container), "imageUri") if container else ""
    if _has_only_a_tag(image, settings):
        yield f"image {image} has no digest. Hint: use ${{images.NAME}}, which has the digest"


@policy(
    "endpoint-not-public",
    "critical",
    of=ENDPOINT,
    why="Anyone with a token of the project can call a public endpoint from the internet.",
    url=f"{PREDICTIONS}/choose-endpoint-type",
    not_in=REHEARSAL_STACKS,
    public=[],  # names of resources that may be public
)
def endpoint_not_public(resource: Resource, settings: Settings) -> Found:
    """An endpoint must be private, or explicitly public in the stack file."""
    props = resource.props
    connect = nested(props, "privateServiceConnectConfig", "enablePrivateServiceConnect")
    private = connect is True or isinstance(connect, Unknown) or props.get("network")
    named = is_or_unknown(nested(props, "labels"), PUBLIC_LABEL, "named") or any(
        fnmatch.fnmatchcase(resource.name, pattern) for pattern in settings["public"]
    )
    if not private and not named:
        yield (
            "the endpoint is reachable from the internet. Hint: in the stack file, set `mode: psc` "
            "on the network, or `public: true` on this endpoint"
        )


@policy(
    "endpoint-always-served",
    "medium",
    of=ENDPOINT_TRAFFIC,
    why="An endpoint without machines drops the first requests.",
    url=f"{PREDICTIONS}/autoscaling",
)
def endpoint_always_served(resource: Resource, _settings: Settings) -> Found:
    """Every deployed version must have at least one replica."""
    for run, entry in mapping(resource.props, "deployed").items():
        least = entry.get("min") if isinstance(entry, Mapping) else None
        if isinstance(least, int | float) and least < 1:
            yield f"{run} has a minimum of {least:g} replicas. Hint: set `min` of replicas to 1"


def _encryption_keys(resource: Resource) -> Iterator[tuple[str, Any]]:
    props = resource.props
    if resource.type in _KEYS:
        *above, last = _KEYS[resource.type][0]
        yield text(nested(props, *above), last), nested(props, *_KEYS[resource.type][1])
    elif resource.type == SECRET:
        yield from _replicas(props.get("replication"))
    elif job_spec(resource):
        request = json.loads(text(props, "request"))
        location = text(mapping(props, "submission"), "region")
        yield location, nested(request, "encryptionSpec", "kmsKeyName")


def _replicas(replication: Any) -> Iterator[tuple[str, Any]]:
    managed = nested(replication, "userManaged", "replicas")
    if not managed:
        yield "global", nested(replication, "auto", "customerManagedEncryption", "kmsKeyName")
    for replica in managed if isinstance(managed, list) else []:
        yield text(replica, "location"), nested(replica, "customerManagedEncryption", "kmsKeyName")


@policy(
    "own-key-where-required",
    "high",
    why="Only with a key of your own can you make data unreadable by disabling the key.",
    url="https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/general/cmek",
    standards=("CKV_GCP_84",),
    required=False,
)
def own_key_where_required(resource: Resource, settings: Settings) -> Found:
    """A key must be in the location of its data; with ``required``, all data must have a key."""
    for location, key in _encryption_keys(resource):
        if isinstance(key, Unknown):
            continue
        if not key:
            if settings["required"]:
                hint = "Hint: set kmsKeyName to the stack's key"
                yield f"no customer-managed key encrypts the data. {hint}"
        elif location and f"/locations/{location.lower()}/" not in str(key):
            location = location.lower()
            yield f"key {key} is outside of {location}. Hint: use a key in {location}"
