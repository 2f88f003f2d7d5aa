"""What a stack made, as values for what is declared beside it, and where it was declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pulumi

from vertex_training.customjob.resource import CustomJob
from vertex_training.settings.model import Settings


@dataclass(frozen=True)
class Scope:
    """Where components are declared: at the top of a stack, or inside of one component."""

    prefix: str = ""
    """Begins the names of all components, followed by a hyphen; empty at the top."""
    parent: pulumi.Resource | None = None

    def name(self, component: str) -> str:
        """The name of a component in the state."""
        return f"{self.prefix}-{component}" if self.prefix else component

    @property
    def opts(self) -> pulumi.ResourceOptions | None:
        """Options of every component."""
        return pulumi.ResourceOptions(parent=self.parent) if self.parent else None


#: A stack file's own components, whose names in the state are an interface (docs/state.md).
TOP: Final = Scope()


@dataclass(frozen=True)
class Environment:
    """An environment as it was declared: the names of what there is, by the keys of its file.

    Every output is known in a preview, and a resource that takes one is made after what it names.
    """

    settings: Settings
    """What its file says, by the keys that names and the state have."""
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
    jobs: Mapping[str, CustomJob]
    """Jobs and tuning jobs."""

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
