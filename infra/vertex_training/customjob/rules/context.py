"""Context of a job for the rules, as plain data: its stack and the stack's other jobs.

Without a stack (``vt check FILE``) the context is empty, and rules about stacks report nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from vertex_training.errors import Level


@dataclass(frozen=True, slots=True)
class BucketFacts:
    """Addresses of the service accounts with access to a bucket of the stack."""

    readers: frozenset[str] = frozenset()
    """Accounts that can read objects. Writers can read as well."""
    writers: frozenset[str] = frozenset()
    """Accounts that can write and delete objects."""


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """The network of a stack."""

    mode: Literal["peering", "psc"]
    name: str
    """With peering: ``projects/NUMBER/global/networks/NAME``, with the owner's project number."""
    attachment: str = ""
    """With a PSC interface: ``projects/P/regions/R/networkAttachments/NAME``."""
    ranges: Mapping[str, int | None] = field(default_factory=dict)
    """With peering: reserved range -> prefix length; None if unknown."""
    subnet_prefix: int | None = None
    """Prefix length of the attachment's subnet, if known."""
    parallel_jobs: int | None = None
    """Maximum number of the stack's jobs in the network at the same time; None for all jobs."""
    subnet: str = ""
    """Subnet of the attachment, if known: ``projects/P/regions/R/subnetworks/NAME``."""


@dataclass(frozen=True, slots=True)
class ReservationFacts:
    """A reservation of a stack."""

    key: str
    machine_type: str
    accelerator_type: str
    """Type of the machines' GPUs; empty for machines without GPUs."""
    accelerator_count: int
    count: int
    specific: bool
    """True if only jobs that name the reservation use the reservation."""
    local_ssds: int = 0
    """Number of local SSDs attached to each machine."""
    parallel_jobs: int | None = None
    """Maximum number of the stack's jobs that use the reservation at once; None for all jobs."""


@dataclass(frozen=True, slots=True)
class StackFacts:
    """Resources of a stack and the accounts with access, by their names in the cloud."""

    project: str
    project_number: str
    region: str
    accounts: frozenset[str] = frozenset()
    """Addresses of the service accounts for jobs."""
    buckets: Mapping[str, BucketFacts] = field(default_factory=dict)
    """Bucket name, like ``acme-ml-dev-data-dev`` -> accounts. Includes the bucket of code packages,
    which all accounts can read."""
    secrets: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Resource name, like ``projects/acme-ml-dev/secrets/x`` -> accounts with read access."""
    packages: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """URI of a package of the stack in Cloud Storage -> its runnable modules."""
    plugin_images: frozenset[str] = frozenset()
    """Images of the stack, without digest, with the name of an NCCL plugin in their Dockerfile."""
    network: NetworkFacts | None = None
    reservations: Mapping[str, ReservationFacts] = field(default_factory=dict)
    """Full name with the project's id, ``projects/P/zones/Z/reservations/NAME`` -> properties."""


@dataclass(frozen=True, slots=True)
class ReservationRequest:
    """A worker pool's request for machines of a reservation."""

    reservations: tuple[str, ...]
    """Full names in order of priority; empty if any reservation of such machines is suitable."""
    machine_type: str
    accelerator_type: str
    accelerator_count: int
    machines: int


@dataclass(frozen=True, slots=True)
class JobFacts:
    """Properties of a job, for rules that compare the jobs of a stack."""

    output: str = ""
    """Output directory, a gs:// URI; empty if missing. A directory with ``${job.requestId}`` is
    unique."""
    network: str = ""
    """Peered network; empty if missing."""
    attachment: str = ""
    """Network attachment; empty if missing."""
    nodes: int = 0
    """Number of machines in all pools; in a tuning job, of one trial."""
    parallel: int = 1
    """Number of concurrent runs: parallel trials of a tuning job, else 1."""
    reservation_requests: tuple[ReservationRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The stack's limits for a single job; None means no limit."""

    usd: float | None = None
    priced: bool = False
    """True if every machine type must have a known price."""
    machine_types: tuple[str, ...] | None = None
    """Allowed machine types: names, or prefixes followed by ``*``."""
    strategies: tuple[str, ...] | None = None
    source: str = "limits"
    """The section of the stack file with these limits."""


@dataclass(frozen=True, slots=True)
class FileDefaults:
    """A stack's defaults for missing fields of a job file. Values can contain references."""

    fields: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """Path in the ``jobSpec`` -> value."""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Context:
    """Context of a job: region, stack, other jobs, limits and defaults."""

    region: str | None = None
    """Region to which the job is submitted."""
    stack: StackFacts | None = None
    others: Mapping[str, JobFacts] = field(default_factory=dict)
    """Name -> properties of the stack's other jobs."""
    limits: JobLimits | None = None
    account_limits: Mapping[str, JobLimits] = field(default_factory=dict)
    """Address of a service account -> additional limits of the account's jobs."""
    encryption_key: str = ""
    """Key of jobs without an encryptionSpec."""
    defaults: FileDefaults = field(default_factory=FileDefaults)
    levels: Mapping[str, Level] = field(default_factory=dict)
    """Rule id -> level that the stack sets; errors remain errors."""
    backend: str = "vertex"
    """The service that runs the job (``customjob.kinds``)."""
    model: Mapping[str, Any] = field(default_factory=dict)
    """The stack file's ``model`` of the job; empty if missing."""
    today: datetime.date | None = None
    """Date for checks of availability; None for the current date."""

    @classmethod
    def of(cls, stack: StackFacts) -> Context:
        """Return the context of a job of ``stack``, as if the stack had no other jobs."""
        return cls(region=stack.region, stack=stack)

    @property
    def date(self) -> datetime.date:
        """Return the date at which rules check availability."""
        return self.today or datetime.datetime.now(tz=datetime.UTC).date()


#: Context of a job file without a stack.
FILE_ONLY: Final = Context()
