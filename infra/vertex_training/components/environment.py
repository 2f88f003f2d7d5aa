"""The outputs of a stack, as values for resources declared beside it."""

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
    """An environment as it was declared: the names of what there is, by the keys of its file.

    Every output is known in a preview, and a resource that takes one is made after what it names.
    """

    settings: Settings
    """The settings of its file, by the keys that names and the state have."""
    apis: pulumi.Resource
    """The project's APIs. What needs one waits for it: ``depends_on=[environment.apis]``."""
    buckets: Mapping[str, pulumi.Output[str]]
    """Names of buckets, without ``gs://``. Two are its own: ``control`` and ``staging``."""
    service_accounts: Mapping[str, pulumi.Output[str]]
    """Addresses of the accounts that jobs run as."""
    secrets: Mapping[str, pulumi.Output[str]]
    """Resource names: ``projects/P/secrets/S``."""
    registry: pulumi.Output[str]
    """Prefix of images: ``REGION-docker.pkg.dev/PROJECT/REPOSITORY``."""
    network: pulumi.Output[str] | None
    """``projects/P/global/networks/N``; None where jobs reach no network."""
    reservations: Mapping[str, pulumi.Output[str]]
    """Resource names: ``projects/P/zones/Z/reservations/R``."""
    snapshots: Mapping[str, Snapshot]
    """Results of queries that are kept as files."""
    jobs: Mapping[str, CustomJob]
    """Jobs and tuning jobs, but for those with a schedule."""
    schedules: Mapping[str, JobSchedule]
    """Of jobs and tuning jobs, by the keys of these."""
    serving: Sequence[Serving]
    """The models and endpoints, as one component; empty where there are none."""

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
        """``network``, ``capacity``, ``snapshots`` and ``serving``: empty where there is none."""
        self.settings, self.apis, self.registry = stack.declared, apis, registry.url
        self.serving = serving
        addresses = {key: account.address for key, account in identities.items()}
        paths = {key: path for part in capacity for key, path in part.paths.items()}
        self.buckets = stack.by_new_keys(("buckets",), storage.bucket_names)
        self.service_accounts = stack.by_new_keys(("serviceAccounts",), addresses)
        self.secrets = stack.by_new_keys(("secrets",), secrets.paths)
        self.network = network[0].path if network else None
        self.reservations = stack.by_new_keys(("reservations",), paths)
        made = {key: each for part in snapshots for key, each in part.snapshots.items()}
        self.snapshots = stack.by_new_keys(("snapshots",), made)
        first_keys = stack.first_job_keys.items()
        self.jobs = {k: training.jobs[first] for k, first in first_keys if first in training.jobs}
        schedules = training.schedules
        self.schedules = {k: schedules[first] for k, first in first_keys if first in schedules}

    @property
    def stack(self) -> str:
        """Its name, part of the names of everything in it."""
        return self.settings.stack

    @property
    def project(self) -> str:
        """The id of its project."""
        return self.settings.project

    @property
    def project_number(self) -> str:
        return self.settings.project_number

    @property
    def region(self) -> str:
        return self.settings.region

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of everything in it that can carry some and that no team owns."""
        return self.settings.names.labels(self.settings.labels)
