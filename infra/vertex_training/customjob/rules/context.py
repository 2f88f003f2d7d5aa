"""Context of a job for the rules: its stack and the stack's other jobs, as plain data.

Without a stack (``vt check FILE``) the context is empty, and rules that need it report nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from vertex_training.errors import Level


@dataclass(frozen=True, slots=True)
class BucketFacts:
    """The service accounts, by address, that may use a bucket of the stack."""

    readers: frozenset[str] = frozenset()
    """Accounts that may read its objects. Writers may read as well."""
    writers: frozenset[str] = frozenset()
    """Accounts that may write and delete its objects."""


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """The network of a stack."""

    mode: Literal["peering", "psc"]
    name: str
    """In peering: ``projects/NUMBER/global/networks/NAME``, with the number of its owner."""
    attachment: str = ""
    """With an interface: ``projects/P/regions/R/networkAttachments/NAME``."""
    ranges: Mapping[str, int | None] = field(default_factory=dict)
    """In peering: prefix length of the reserved ranges by name; None if it is not known."""
    subnet_prefix: int | None = None
    """Prefix length of the subnet of the attachment, if known."""
    parallel_jobs: int | None = None
    """Number of the stack's jobs that use it at once; None means all."""
    subnet: str = ""
    """``projects/P/regions/R/subnetworks/NAME`` of the attachment, if known."""


@dataclass(frozen=True, slots=True)
class ReservationFacts:
    """A reservation of a stack."""

    key: str
    machine_type: str
    accelerator_type: str
    """Empty for machines without GPUs."""
    accelerator_count: int
    count: int
    specific: bool
    """True if only jobs that name it use it."""
    local_ssds: int = 0
    """Local SSDs that are attached to each machine."""
    parallel_jobs: int | None = None
    """Number of the stack's jobs that use it at once; None means all."""


@dataclass(frozen=True, slots=True)
class StackFacts:
    """The resources of a stack and the accounts that may use them. All names are physical."""

    project: str
    project_number: str
    region: str
    accounts: frozenset[str] = frozenset()
    """Addresses of the accounts jobs may run as."""
    buckets: Mapping[str, BucketFacts] = field(default_factory=dict)
    """By bucket name, like ``acme-ml-dev-data-dev``. Includes the bucket of code packages, with
    every account as reader: the stack lets each account that runs a package read it."""
    secrets: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By resource name, like ``projects/acme-ml-dev/secrets/x``: accounts that may read it."""
    packages: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By URI in Cloud Storage: the modules of a package of the stack that can be run."""
    network: NetworkFacts | None = None
    reservations: Mapping[str, ReservationFacts] = field(default_factory=dict)
    """By full name, with the project's id: ``projects/P/zones/Z/reservations/NAME``."""


@dataclass(frozen=True, slots=True)
class ReservationRequest:
    """The machines that one pool of a job requests from reservations."""

    reservations: tuple[str, ...]
    """Full names in order of priority; empty for any reservation with such machines."""
    machine_type: str
    accelerator_type: str
    accelerator_count: int
    machines: int


@dataclass(frozen=True, slots=True)
class JobFacts:
    """Facts of a job that rules about the stack's other jobs need."""

    output: str = ""
    """Its output directory, a gs:// URI; empty if it has none. With ``${job.requestId}`` in it, it
    is unique."""
    network: str = ""
    """The network it is peered with, empty if none."""
    attachment: str = ""
    """The network attachment it joins, empty if none."""
    nodes: int = 0
    """Machines of all its pools; of a tuning job, those of one trial."""
    parallel: int = 1
    """Number of runs at once: the trials of a tuning job."""
    reservation_requests: tuple[ReservationRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The stack's limits of a single job; None for no limit."""

    usd: float | None = None
    priced: bool = False
    """True if every machine must have a price."""
    machine_types: tuple[str, ...] | None = None
    """Names, or prefixes with a ``*`` after them."""
    strategies: tuple[str, ...] | None = None
    source: str = "limits"
    """The section of the stack file that has them."""


@dataclass(frozen=True, slots=True)
class FileDefaults:
    """Values that a stack fills in for missing fields of a job file; texts may have references."""

    fields: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """Path in the ``jobSpec`` -> text."""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Context:
    """Context of one job."""

    region: str | None = None
    """Region the job is sent to."""
    stack: StackFacts | None = None
    others: Mapping[str, JobFacts] = field(default_factory=dict)
    """The stack's other jobs, by name."""
    limits: JobLimits | None = None
    account_limits: Mapping[str, JobLimits] = field(default_factory=dict)
    """Further limits of jobs that run as an account, by its address."""
    encryption_key: str = ""
    """The key of jobs that name none."""
    defaults: FileDefaults = field(default_factory=FileDefaults)
    levels: Mapping[str, Level] = field(default_factory=dict)
    """Levels of rules that the stack sets, by id; an error stays one."""
    backend: str = "vertex"
    """The service that runs the job (``customjob.kinds``)."""
    today: datetime.date | None = None
    """The day to compare ends of availability with; None means today."""

    @classmethod
    def of(cls, stack: StackFacts) -> Context:
        """The context of a job of ``stack``, without other jobs."""
        return cls(region=stack.region, stack=stack)

    @property
    def date(self) -> datetime.date:
        """The day to compare ends of availability with."""
        return self.today or datetime.datetime.now(tz=datetime.UTC).date()


#: Context of a job file without a stack.
FILE_ONLY: Final = Context()
