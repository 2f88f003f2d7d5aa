"""What ``${kind.name}`` in a job file stands for in one stack. Pure: every name is explicit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vertex_training import naming
from vertex_training.customjob.request.references import UnknownValue
from vertex_training.plan.network import NetworkPlan
from vertex_training.plan.packages import Package
from vertex_training.plan.reservations import ReservationPlan
from vertex_training.settings.model import Image, Settings
from vertex_training.snapshots.request import SnapshotRequest


def reference_table(
    settings: Settings,
    network: NetworkPlan | None,
    reservations: Mapping[str, ReservationPlan],
    packages: Mapping[str, Package],
    snapshots: Mapping[str, SnapshotRequest],
) -> dict[str, Any]:
    """All references of the stack: text, or a mapping where a whole message is meant.

    ``packages`` are the built ones, by their key.
    """
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
    """The image by digest; unknown while nothing was built of its context."""
    if image.uri or image.digest:
        return image.uri or f"{settings.names.image(key)}@{image.digest}"
    command = f"vt images build {key} --stack {settings.stack}"
    return UnknownValue(f"no image was built of {image.context} yet: {command}")


def package_object(package: Package) -> str:
    """Name of a package's object in the staging bucket."""
    return f"packages/{package.file}"


def package_uri(settings: Settings, package: Package) -> str:
    """Where a job finds the package."""
    return f"gs://{settings.names.bucket(naming.STAGING)}/{package_object(package)}"
