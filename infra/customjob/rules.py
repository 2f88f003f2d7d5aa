"""Does the request make sense? What the service would refuse, or its owner regret.

Each rule is a small function over the request, registered with an id, one line that says what it
holds, and the source. Only what Google documents or the client refuses makes an error; what was
merely observed makes a warning.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from infra import catalog, naming
from infra.customjob.document import Path

Request = dict[str, Any]
GUIDES = "docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/"
TYPES = "google-cloud-aiplatform 2.7.0 aiplatform_v1/types/"

#: Labels the stack sets itself; see ``submission``.
RESERVED_LABELS = ("request-id", "request-digest", "managed-by", "stack", "job", "run")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found at ``path`` of the request (REST form)."""

    path: Path
    what: str
    got: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, its documentation and its check."""

    id: str
    summary: str
    source: str
    level: Literal["error", "warning"]
    check: Callable[[Request], Iterator[Finding]]


RULES: list[Rule] = []


def rule(id_: str, source: str, level: Literal["error", "warning"] = "error"):
    """Register a rule; the first line of its docstring is its documentation."""

    def register(check: Callable[[Request], Iterator[Finding]]):
        summary = (check.__doc__ or "").strip().splitlines()[0]
        RULES.append(Rule(id_, summary, source, level, check))
        return check

    return register


def pools(request: Request) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Worker pools that are not skipped, each with its path."""
    for index, pool in enumerate(request.get("jobSpec", {}).get("workerPoolSpecs", [])):
        if pool:
            yield ("jobSpec", "workerPoolSpecs", index), pool


def task(pool: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """``containerSpec`` or ``pythonPackageSpec`` of a pool, with its name."""
    for name in ("containerSpec", "pythonPackageSpec"):
        if name in pool:
            return name, pool[name]
    return None


@rule("first-pool", TYPES + "custom_job.py")
def first_pool(request: Request) -> Iterator[Finding]:
    """The first worker pool is there and not empty."""
    specs = request.get("jobSpec", {}).get("workerPoolSpecs")
    if not specs:
        yield Finding(("jobSpec",), "workerPoolSpecs is missing", "", "a job has at least one pool")
    elif not specs[0]:
        path: Path = ("jobSpec", "workerPoolSpecs", 0)
        yield Finding(path, "the first worker pool is empty", "", "only later pools may be skipped")


@rule("pool-needs", TYPES + "custom_job.py")
def pool_needs(request: Request) -> Iterator[Finding]:
    """Each worker pool has a machine type and exactly one task."""
    for path, pool in pools(request):
        if not pool.get("machineSpec", {}).get("machineType"):
            yield Finding(
                path, "machineSpec.machineType is missing", "", "for example n1-standard-4"
            )
        if task(pool) is None:
            hint = "an image of your own, or a package in a prebuilt image"
            yield Finding(path, "containerSpec or pythonPackageSpec is missing", "", hint)


@rule("task-needs", TYPES + "custom_job.py")
def task_needs(request: Request) -> Iterator[Finding]:
    """A container has an image; a package has an image, URIs and a module."""
    needs = {
        "containerSpec": ("imageUri",),
        "pythonPackageSpec": ("executorImageUri", "packageUris", "pythonModule"),
    }
    for path, pool in pools(request):
        name, spec = task(pool) or ("", {})
        for field in needs.get(name, ()):
            if not spec.get(field):
                yield Finding((*path, name), f"{field} is missing")


@rule("replica-count", TYPES + "custom_job.py")
def replica_count(request: Request) -> Iterator[Finding]:
    """A worker pool has at least one replica."""
    for path, pool in pools(request):
        if pool.get("replicaCount", 1) < 1:
            got = str(pool["replicaCount"])
            yield Finding((*path, "replicaCount"), "must be at least 1", got, "skip a pool with {}")


@rule("chief-replicas", GUIDES + "training/distributed-training")
def chief_replicas(request: Request) -> Iterator[Finding]:
    """The first worker pool is the primary replica alone."""
    for path, pool in pools(request):
        count = pool.get("replicaCount", 1)
        if path[-1] == 0 and count > 1:
            hint = f"replicaCount 1 here, and {count - 1} in a second pool"
            yield Finding(
                (*path, "replicaCount"), "the first pool has one replica", str(count), hint
            )


@rule("accelerator-both", "github.com/prefect-archive/prefect-gcp issue 175", "warning")
def accelerator_both(request: Request) -> Iterator[Finding]:
    """acceleratorType and acceleratorCount are given together."""
    for path, pool in pools(request):
        machine = pool.get("machineSpec", {})
        if bool(machine.get("acceleratorType")) != bool(machine.get("acceleratorCount")):
            what = "acceleratorType and acceleratorCount belong together"
            yield Finding((*path, "machineSpec"), what, "", "give both, or neither")


@rule("env", TYPES + "env_var.py")
def env(request: Request) -> Iterator[Finding]:
    """Environment variables have a C identifier as name and a value; at most 100 of them."""
    for path, pool in pools(request):
        name, spec = task(pool) or ("", {})
        variables = spec.get("env", [])
        if len(variables) > 100:
            yield Finding((*path, name, "env"), "has more than 100 variables", str(len(variables)))
        for index, variable in enumerate(variables):
            place = (*path, name, "env", index)
            if not ENV_NAME.match(variable.get("name", "")):
                hint = "letters, digits and '_', not starting with a digit"
                yield Finding(place, "name is no C identifier", variable.get("name", ""), hint)
            if "value" not in variable:
                yield Finding(place, "value is missing", "", 'write value: ""')


@rule("service-account", GUIDES + "general/access-control")
def service_account(request: Request) -> Iterator[Finding]:
    """A job runs as an account of its own: the default one may read and write all buckets."""
    if not request.get("jobSpec", {}).get("serviceAccount"):
        hint = "serviceAccount: ${serviceAccounts.NAME}"
        yield Finding(("jobSpec",), "serviceAccount is missing", "", hint)


@rule("output-directory", TYPES + "io.py")
def output_directory(request: Request) -> Iterator[Finding]:
    """baseOutputDirectory is a folder in Cloud Storage."""
    prefix = request.get("jobSpec", {}).get("baseOutputDirectory", {}).get("outputUriPrefix")
    if prefix is not None and not re.match(r"gs://[a-z0-9]", prefix):
        path: Path = ("jobSpec", "baseOutputDirectory", "outputUriPrefix")
        yield Finding(path, "must begin with gs://", prefix, "${buckets.NAME}/folder")


@rule("package-uris", TYPES + "custom_job.py")
def package_uris(request: Request) -> Iterator[Finding]:
    """Packages lie in Cloud Storage; at most 100 of them."""
    for path, pool in pools(request):
        name, spec = task(pool) or ("", {})
        uris = spec.get("packageUris", [])
        for index, uri in enumerate(uris):
            if not uri.startswith("gs://"):
                place = (*path, name, "packageUris", index)
                yield Finding(place, "must begin with gs://", uri, "${packages.NAME}")
        if len(uris) > 100:
            yield Finding((*path, name, "packageUris"), "has more than 100 items", str(len(uris)))


@rule("display-name", TYPES + "custom_job.py")
def display_name(request: Request) -> Iterator[Finding]:
    """displayName has at most 128 characters."""
    name = request.get("displayName", "")
    if len(name) > 128:
        yield Finding(("displayName",), "has more than 128 characters", name)


@rule("labels", TYPES + "custom_job.py")
def labels(request: Request) -> Iterator[Finding]:
    """Labels are short, lowercase, and not those the stack sets."""
    for key, value in request.get("labels", {}).items():
        if problem := naming.label_problem(key, value):
            yield Finding(("labels", key), problem)
        elif key in RESERVED_LABELS:
            yield Finding(("labels", key), "the stack sets this label itself", key, "rename it")


@rule("image-age", GUIDES + "training/pre-built-containers", "warning")
def image_age(request: Request) -> Iterator[Finding]:
    """A prebuilt image is still inside its availability."""
    today = datetime.datetime.now(tz=datetime.UTC).date()
    for path, pool in pools(request):
        name, spec = task(pool) or ("", {})
        field = "executorImageUri" if "executorImageUri" in spec else "imageUri"
        image = str(spec.get(field, ""))
        short = image.rsplit("/", 1)[-1].split(":")[0]
        for row in catalog.load("training_images.yaml"):
            if re.fullmatch(row["pattern"], short) and row["available_until"] < today:
                what = f"this prebuilt image was to be served until {row['available_until']}"
                yield Finding((*path, name, field), what, short, "prefer an image of your own")
