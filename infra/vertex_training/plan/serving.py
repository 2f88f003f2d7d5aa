"""Model versions and endpoints, derived from a stack file without any request. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from vertex_training.customjob.protocol.ports import STACK_LABEL
from vertex_training.customjob.request import references
from vertex_training.naming import PUBLIC_LABEL
from vertex_training.plan.facts import image_uri
from vertex_training.serving.declared import (
    ENDPOINT_LABEL,
    DeclaredDeployment,
    DeclaredEndpoint,
    DeclaredVersion,
    ModelSource,
    container_spec,
)
from vertex_training.settings.model import Settings
from vertex_training.settings.serving import Endpoint, Model


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
    return references.resolve(model.container.image, table)


def _labels(settings: Settings, key: str, endpoint: Endpoint) -> dict[str, str]:
    named = {PUBLIC_LABEL: "named"} if endpoint.public else {}
    own = {STACK_LABEL: settings.stack, ENDPOINT_LABEL: key, **named}
    return {**settings.names.labels(settings.labels_of(endpoint.team)), **own}


def _container(settings: Settings, model: Model) -> str:
    container = model.container
    return container_spec(
        image_of(settings, model),
        container.predict_route,
        container.health_route,
        container.port,
        container.env,
        container.command,
        container.args,
        container.deployment_timeout,
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
