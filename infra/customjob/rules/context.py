"""What rules may know beside the request: the stack around a job, as plain data.

Without a stack (``vt check FILE``) nothing of this is known, and rules that need it stay silent.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BucketFacts:
    """Who may use a bucket of the stack: addresses of service accounts."""

    readers: frozenset[str] = frozenset()
    """Accounts that may read its objects; whoever may write may also read."""
    writers: frozenset[str] = frozenset()
    """Accounts that may write and delete its objects."""


@dataclass(frozen=True, slots=True)
class StackFacts:
    """What a stack has and who may use it. All names are the physical ones."""

    project: str
    project_number: str
    region: str
    accounts: frozenset[str] = frozenset()
    """Addresses of the accounts jobs may run as."""
    buckets: Mapping[str, BucketFacts] = field(default_factory=dict)
    """By bucket name, like ``acme-ml-dev-data-dev``. The bucket of code packages belongs here with
    every account as reader: the stack grants reading it to whoever runs a package."""
    secrets: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By resource name, like ``projects/acme-ml-dev/secrets/x``: accounts that may read it."""


@dataclass(frozen=True, slots=True)
class JobLimits:
    """What the stack's limits say of a single job; None for what is not limited."""

    usd: float | None = None
    priced: bool = False
    """Whether every machine must have a price."""
    machine_types: tuple[str, ...] | None = None
    """Names, or beginnings of names with a ``*`` after them."""
    strategies: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """Everything around one job."""

    region: str | None = None
    """Region the job is sent to."""
    stack: StackFacts | None = None
    others: Mapping[str, str] = field(default_factory=dict)
    """Output directories of the stack's other jobs, by the job's name: gs:// URIs that may still
    hold ``${job.requestId}``, which makes a directory unique."""
    limits: JobLimits | None = None
    today: datetime.date | None = None
    """The day to judge ends of availability by; None means today."""

    @classmethod
    def of(cls, stack: StackFacts) -> Context:
        """The context of a job of ``stack``, without other jobs."""
        return cls(region=stack.region, stack=stack)

    @property
    def date(self) -> datetime.date:
        """The day to judge by."""
        return self.today or datetime.datetime.now(tz=datetime.UTC).date()


#: Nothing is known but the file.
ALONE = Context()
