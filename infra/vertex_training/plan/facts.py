"""Values of ``${kind.name}`` in job files, facts for rules, and planned models and endpoints."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from vertex_training import naming
from vertex_training.customjob.protocol.ports import STACK_LABEL
from vertex_training.customjob.request.message import UnknownValue, resolve_references
from vertex_training.customjob.rules.context import (
    BucketFacts,
    FileDefaults,
    JobLimits,
    NetworkFacts,
    ReservationFacts,
    StackFacts,
)
from vertex_training.plan.network import NetworkPlan, ReservationPlan
from vertex_training.plan.packages import Package
from vertex_training.serving.declared import (
    ENDPOINT_LABEL,
    DeclaredDeployment,
    DeclaredEndpoint,
    DeclaredVersion,
    ModelSource,
    container_spec,
)
from vertex_training.settings.limits import Limits, TeamLimits
from vertex_training.settings.model import Image, Settings
from vertex_training.settings.serving import Endpoint, Model
from vertex_training.snapshots.request import SnapshotRequest


def stack_facts(
    settings: Settings, network: NetworkPlan | None, reservations: Mapping[str, ReservationPlan]
) -> StackFacts:
    """Return the stack's properties for rules of job files, derived from the config only."""
    names = settings.names
    accounts = {
        names.account_email(key): account for key, account in settings.service_accounts.items()
    }

    def users(field: str, key: str) -> frozenset[str]:
        """Return the accounts that list a key in a field."""
        return frozenset(e for e, account in accounts.items() if key in getattr(account, field))

    buckets = {
        # Jobs may read packages, but no records of submissions.
        names.bucket(naming.STAGING): BucketFacts(readers=frozenset(accounts)),
        names.bucket(naming.CONTROL): BucketFacts(),
    }
    for key in settings.buckets:
        readers, writers = users("reads", key), users("writes", key)
        buckets[names.bucket(key)] = BucketFacts(readers=readers | writers, writers=writers)
    return StackFacts(
        project=settings.project,
        project_number=settings.project_number,
        region=settings.region,
        accounts=frozenset(accounts),
        buckets=buckets,
        secrets={names.secret(key): users("secrets", key) for key in settings.secrets},
        network=network and _network(settings, network),
        reservations={plan.path: _reservation(plan) for plan in reservations.values()},
    )


def file_defaults(settings: Settings) -> FileDefaults:
    """Return the stack's default values for job files."""
    job_defaults = settings.job_defaults
    fields = {
        ("serviceAccount",): job_defaults.service_account,
        ("scheduling", "timeout"): job_defaults.timeout,
        ("baseOutputDirectory", "outputUriPrefix"): job_defaults.output_directory,
    }
    return FileDefaults({path: text for path, text in fields.items() if text}, job_defaults.labels)


def _network(settings: Settings, plan: NetworkPlan) -> NetworkFacts:
    network = settings.network
    block = network.subnet.range if network.subnet else None
    return NetworkFacts(
        mode=plan.mode,
        name=plan.path,
        attachment=plan.attachment,
        ranges={name: network.ranges[key].prefix_length for key, name in plan.ranges.items()},
        subnet_prefix=ipaddress.IPv4Network(block).prefixlen if block else None,
        parallel_jobs=network.parallel_jobs,
        subnet=plan.subnet,
    )


def _reservation(plan: ReservationPlan) -> ReservationFacts:
    return ReservationFacts(
        key=plan.key,
        machine_type=plan.machine_type,
        accelerator_type=plan.accelerator_type,
        accelerator_count=plan.accelerator_count,
        count=plan.settings.count,
        specific=plan.settings.specific_reservation_required,
        local_ssds=plan.settings.local_ssds.count if plan.settings.local_ssds else 0,
        parallel_jobs=plan.settings.parallel_jobs,
    )


def job_limits(settings: Settings) -> JobLimits:
    """Return the stack's limits for single jobs, as rules of job files use them."""
    limits = settings.limits
    return _job_limits(limits, limits.in_usd and not limits.allow_unpriced, "limits")


def account_limits(settings: Settings) -> dict[str, JobLimits]:
    """Return the limits of the team that owns an account, by the account's address."""
    result: dict[str, JobLimits] = {}
    for key, account in settings.service_accounts.items():
        if team := settings.teams.get(account.team or ""):
            priced = team.limits.in_usd and not settings.limits.allow_unpriced
            address = settings.names.account_email(key)
            result[address] = _job_limits(team.limits, priced, f"teams.{account.team}.limits")
    return result


def _job_limits(limits: Limits | TeamLimits, priced: bool, source: str) -> JobLimits:
    return JobLimits(
        usd=limits.max_usd_per_job,
        priced=priced,
        machine_types=None if limits.machine_types is None else tuple(limits.machine_types),
        strategies=None if limits.strategies is None else tuple(limits.strategies),
        source=source,
    )


def reference_table(
    settings: Settings,
    network: NetworkPlan | None,
    reservations: Mapping[str, ReservationPlan],
    packages: Mapping[str, Package],
    snapshots: Mapping[str, SnapshotRequest],
) -> dict[str, Any]:
    """Return the values of all references: texts, or mappings for whole messages."""
    names = settings.names
    known: dict[str, Any] = {
        "stack.name": settings.stack,
        "stack.project": settings.project,
        "stack.projectNumber": settings.project_number,
        "stack.region": settings.region,
    }
    for key in settings.buckets:
        name = names.bucket(key)
        known[f"buckets.{key}"] = f"gs://{name}"
        known[f"buckets.{key}.name"] = name
        known[f"buckets.{key}.mount"] = f"/gcs/{name}"
    for key in settings.service_accounts:
        known[f"serviceAccounts.{key}"] = names.account_email(key)
    for key in settings.secrets:
        known[f"secrets.{key}"] = name = names.secret(key)
        known[f"secrets.{key}.value"] = f"{name}{naming.NEWEST_VALUE}"
    for key, package in packages.items():
        known[f"packages.{key}"] = package_uri(settings, package)
    for key, snapshot in snapshots.items():
        known[f"snapshots.{key}"] = snapshot.uri
        known[f"snapshots.{key}.mount"] = snapshot.uri.replace("gs://", "/gcs/", 1)
    for key, image in settings.images.items():
        known[f"images.{key}"] = image_uri(settings, key, image)
    for key, reservation in reservations.items():
        known[f"reservations.{key}"] = reservation.affinity
        known[f"reservations.{key}.name"] = reservation.path
    if settings.tensorboard:
        known["tensorboard.name"] = names.tensorboard()
    if network:
        known |= network.references
    return known


def image_uri(settings: Settings, key: str, image: Image) -> str | UnknownValue:
    """Return the URI of an image with its digest; an unknown value before the first build."""
    if image.uri or image.digest:
        return image.uri or f"{settings.names.image(key)}@{image.digest}"
    command = f"vt images build {key} --stack {settings.stack}"
    return UnknownValue(f"the image of {image.context} is not built yet: run {command}")


def package_object(package: Package) -> str:
    """Return the name of a package's object in the staging bucket."""
    return f"packages/{package.file}"


def package_uri(settings: Settings, package: Package) -> str:
    return f"gs://{settings.names.bucket(naming.STAGING)}/{package_object(package)}"


def plan_versions(settings: Settings) -> dict[tuple[str, int], DeclaredVersion]:
    """Return the planned versions by model key and run. Keys are first keys."""
    key_name = settings.key_for("jobs") or ""
    return {
        (key, run): DeclaredVersion(
            ModelSource(
                settings.project, settings.region, settings.stack, key, model.job or key, run
            ),
            settings.names.model_id(key),
            _container(settings, model),
            model.artifacts,
            tuple(model.files),
            key_name,
        )
        for key, model in settings.models.items()
        for run in model.run
    }


def plan_endpoints(
    settings: Settings, versions: Mapping[tuple[str, int], DeclaredVersion]
) -> dict[str, DeclaredEndpoint]:
    """Return the planned endpoints by key. Keys are first keys."""
    return {
        key: DeclaredEndpoint(
            key=key,
            project=settings.project,
            region=settings.region,
            stack=settings.stack,
            id=settings.names.endpoint_id(key),
            display_name=f"{key}-{settings.stack}",
            deployments={
                run: _deployment(settings, endpoint, versions[endpoint.model or key, run])
                for run in endpoint.shares
            },
            split=endpoint.shares,
            is_private=is_private(settings, endpoint),
            is_named_public=bool(endpoint.public),
            labels=_labels(settings, key, endpoint),
            key_name=settings.key_for("jobs") or "",
            model=endpoint.model or key,
            team=endpoint.team,
            account=settings.names.account_email(endpoint.account) if endpoint.account else "",
        )
        for key, endpoint in settings.endpoints.items()
    }


def is_private(settings: Settings, endpoint: Endpoint) -> bool:
    """Return True if clients reach an endpoint only by Private Service Connect."""
    return not endpoint.public and (settings.network.mode == "psc" or endpoint.public is False)


def image_of(settings: Settings, model: Model) -> str:
    """Return a model's image URI. Raises UnknownReferenceError for an undeclared image."""
    images = settings.images.items()
    table = {f"images.{key}": image_uri(settings, key, image) for key, image in images}
    return resolve_references(model.container.image, table)


def _labels(settings: Settings, key: str, endpoint: Endpoint) -> dict[str, str]:
    named = {naming.PUBLIC_LABEL: "named"} if endpoint.public else {}
    own = {STACK_LABEL: settings.stack, ENDPOINT_LABEL: key, **named}
    return {**settings.names.labels(settings.labels_of(endpoint.team)), **own}


def _container(settings: Settings, model: Model) -> str:
    spec, image = model.container, image_of(settings, model)
    routes = spec.predict_route, spec.health_route, spec.port
    return container_spec(
        image, *routes, spec.env, spec.command, spec.args, spec.deployment_timeout
    )


def _deployment(
    settings: Settings, endpoint: Endpoint, version: DeclaredVersion
) -> DeclaredDeployment:
    machine: dict[str, object] = {"machineType": endpoint.machine}
    if accelerator := endpoint.accelerator:
        machine["acceleratorType"] = accelerator.type
        machine["acceleratorCount"] = accelerator.count
    account = settings.names.account_email(endpoint.account) if endpoint.account else ""
    replicas = endpoint.replicas
    return DeclaredDeployment(version, machine, replicas.min, replicas.most, account)
