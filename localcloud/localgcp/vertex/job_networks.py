"""Jobs that use a peered network or a network attachment of a project."""

from __future__ import annotations

from typing import Final

from localgcp.inventory import resource_paths
from localgcp.inventory.store import Store
from localgcp.vertex.records import JobRecord, JobState, JobTable

#: States in which a job may have machines; a QUEUED job has none.
HOLDING_STATES: Final = (JobState.PENDING, JobState.RUNNING, JobState.CANCELLING)


def network_of(store: Store, job: JobRecord) -> str | None:
    """Return the path of the job's peered network (``projects/ID/global/networks/NAME``)."""
    network = job.spec.get("network")
    return resource_paths.canonical(store, network) if network and "projects/" in network else None


def attachment_of(store: Store, job: JobRecord) -> str | None:
    """Return the path of the job's network attachment; a bare name belongs to its project and
    region.
    """
    network_attachment = job.spec.get("pscInterfaceConfig", {}).get("networkAttachment")
    if not network_attachment:
        return None
    home = {"project": job.project, "region": job.region}
    return resource_paths.resolve(store, network_attachment, "networkAttachments", **home)


def jobs_on_network(store: Store, path: str) -> list[JobRecord]:
    """Return the jobs with machines in the network, oldest first."""
    return [job for job in _holding(store) if network_of(store, job) == path]


def jobs_on_attachment(store: Store, path: str) -> list[JobRecord]:
    """Return the jobs with an interface of the attachment, oldest first."""
    return [job for job in _holding(store) if attachment_of(store, job) == path]


def _holding(store: Store) -> list[JobRecord]:
    jobs = JobTable(store.path).list()
    return [job for job in reversed(jobs) if job.state in HOLDING_STATES]
