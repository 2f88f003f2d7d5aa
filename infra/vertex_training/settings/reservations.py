"""The model of the section ``reservations`` of a stack file.

A preview looks nothing up, so the file also describes an existing reservation; jobs are checked
against that.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import pydantic
from pydantic import Field

from vertex_training.settings.section import NamedSection, ProjectId, Section, form

ReservationPath = Annotated[
    str,
    form(
        r"projects/[a-z0-9-]+/zones/[a-z]+-[a-z]+[0-9]+-[a-z]/reservations/"
        r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?",
        "projects/PROJECT/zones/ZONE/reservations/NAME",
    ),
]
ReservationName = Annotated[
    str, form(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", "h100-pool: lowercase letters, digits and '-'")
]
Zone = Annotated[str, form(r"[a-z]+-[a-z]+[0-9]+-[a-z]", "us-central1-a")]
Seconds = Annotated[str, form(r"[1-9][0-9]{0,8}s", "604800s")]
#: 24 disks are the most that Compute Engine attaches:
#: https://docs.cloud.google.com/compute/docs/disks/local-ssd
MOST_SSDS: Final = 24


class LocalSsds(Section):
    """Local SSDs that are attached to every machine."""

    count: int = Field(ge=1, le=MOST_SSDS)
    """Number of them."""
    interface: Literal["NVME", "SCSI"] = "NVME"
    """Interface of the disks."""
    disk_size_gb: Literal[375, 3000] = 375
    """Size of each, in GB."""


class Reservation(NamedSection):
    """Machines that are kept for jobs, and paid for from creation to deletion, used or not."""

    zone: Zone
    """Zone of the machines, in the stack's region."""
    machine_type: str
    """Machine type, as job files name it."""
    count: int = Field(ge=1, le=100_000)
    """Number of machines."""
    accelerator_type: str | None = None
    """For N1 machines. Other machine types have their GPUs in their name."""
    accelerator_count: int | None = Field(default=None, ge=1)
    """Accelerators of each N1 machine; 1 if absent."""
    local_ssds: LocalSsds | None = None
    """Local SSDs of each machine; none if absent."""
    specific_reservation_required: bool = True
    """Only jobs that name it use it; if not, any job that fits does."""
    share_with: list[ProjectId] = []
    """Other projects that may use it."""
    project: ProjectId | None = None
    """Project that owns and pays for it; the stack's own without it."""
    delete_at_time: pydantic.AwareDatetime | None = None
    """Time at which Google deletes it."""
    delete_after_duration: Seconds | None = None
    """Seconds after its creation when Google deletes it by itself; not with ``deleteAtTime``."""
    name: ReservationName | None = None
    """Its name in the cloud; ``KEY-STACK`` without it."""
    existing: ReservationPath | None = None
    """A reservation that is there. Its ``serviceShareType`` must be ``ALLOW_ALL``."""
    parallel_jobs: int | None = Field(default=None, ge=1)
    """Number of the stack's jobs that use it at once; all of them without it."""
    protect: bool = False
    """Refuse to delete or replace it, and to destroy the stack."""

    @pydantic.model_validator(mode="after")
    def _one_end(self) -> Reservation:
        if self.delete_at_time and self.delete_after_duration:
            raise ValueError("give either deleteAtTime or deleteAfterDuration")
        return self
