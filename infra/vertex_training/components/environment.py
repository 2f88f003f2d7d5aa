"""Outputs of a stack, for resources that ``extra.py`` declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from vertex_training.components.capacity import Capacity
from vertex_training.components.identities import JobIdentity
from vertex_training.components.network import Network
from vertex_training.components.registry import Registry
from vertex_training.components.secrets import Secrets
from vertex_training.components.serving import Serving
from vertex_training.components.storage import Snapshots, Storage
from vertex_training.components.training import Training
from vertex_training.customjob.resource import CustomJob
from vertex_training.schedules.provider import JobSchedule
from vertex_training.settings.model import Settings
from vertex_training.snapshots.provider import Snapshot
from vertex_training.stack import Stack


class Environment:
    """The resources of a stack, by the keys of its stack file.

    Every output is known in a preview. A resource that uses an output depends on its resource.
    """

    settings: Settings
    """Settings of the stack file, by first keys (see ``formerly``)."""
    apis: pulumi.Resource
    """Enabled APIs. Resources that need an API set ``depends_on=[environment.apis]``."""
    buckets: Mapping[str, pulumi.Output[str]]
    """Names of buckets, without ``gs://``, including ``control`` and ``staging``."""
    service_accounts: Mapping[str, pulumi.Output[str]]
    """Addresses of the service accounts that jobs run as."""
    secrets: Mapping[str, pulumi.Output[str]]
    """Full names of secrets: ``projects/P/secrets/S``."""
    registry: pulumi.Output[str]
    """Prefix of images: ``REGION-docker.pkg.dev/PROJECT/REPOSITORY``."""
    network: pulumi.Output[str] | None
    """Full name of the network (``projects/P/global/networks/N``); None if jobs use none."""
    reservations: Mapping[str, pulumi.Output[str]]
    """Full names of reservations: ``projects/P/zones/Z/reservations/R``."""
    snapshots: Mapping[str, Snapshot]
    """Snapshots of query results."""
    jobs: Mapping[str, CustomJob]
    """Jobs and tuning jobs without a schedule."""
    schedules: Mapping[str, JobSchedule]
    """Schedules, by the key of their job or tuning job."""
    serving: Sequence[Serving]
    """Component of models and endpoints; empty without models and endpoints."""

    def __init__(
        self,
        stack: Stack,
        *,
        apis: pulumi.Resource,
        storage: Storage,
        registry: Registry,
        secrets: Secrets,
        identities: Mapping[str, JobIdentity],
        network: Sequence[Network],
        capacity: Sequence[Capacity],
        snapshots: Sequence[Snapshots],
        training: Training,
        serving: Sequence[Serving] = (),
    ) -> None:
        """Collect the outputs of a stack's components. Sequences of unused components are empty."""
        self.settings, self.apis, self.registry = stack.declared, apis, registry.url
        self.serving = serving
        addresses = {key: account.address for key, account in identities.items()}
        paths = {key: path for part in capacity for key, path in part.paths.items()}
        self.buckets = stack.by_new_keys(("buckets",), storage.bucket_names)
        self.service_accounts = stack.by_new_keys(("serviceAccounts",), addresses)
        self.secrets = stack.by_new_keys(("secrets",), secrets.paths)
        self.network = network[0].path if network else None
        self.reservations = stack.by_new_keys(("reservations",), paths)
        by_first_key = {
            key: snapshot for part in snapshots for key, snapshot in part.snapshots.items()
        }
        self.snapshots = stack.by_new_keys(("snapshots",), by_first_key)
        first_keys = stack.first_job_keys.items()
        self.jobs = {k: training.jobs[first] for k, first in first_keys if first in training.jobs}
        schedules = training.schedules
        self.schedules = {k: schedules[first] for k, first in first_keys if first in schedules}

    @property
    def stack(self) -> str:
        """Return the stack's name, which is part of the names of its resources."""
        return self.settings.stack

    @property
    def project(self) -> str:
        """Return the id of the stack's project."""
        return self.settings.project

    @property
    def project_number(self) -> str:
        return self.settings.project_number

    @property
    def region(self) -> str:
        return self.settings.region

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels of resources that belong to no team."""
        return self.settings.names.labels(self.settings.labels)
