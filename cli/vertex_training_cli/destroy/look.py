"""What running jobs and buckets hold now, read within bounds: what cannot be read is said."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from vertex_training.catalog import resource_types
from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.destroy.losses import Loss
from vertex_training_cli.engine.plan import JOBS, Observations
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import deployed, view
from vertex_training_cli.jobs.objects import ObjectListing, Objects
from vertex_training_cli.jobs.observe import observe_by_name

#: Words for a bucket that nobody could list.
UNKNOWN = "its objects could not be counted"
#: Kinds of losses that are jobs.
JOB_WORDS = frozenset(resource_types.find(type_).word for type_ in JOBS)


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in jobs, buckets and beside the state."""

    jobs: Observations
    buckets: Mapping[str, ObjectListing]
    """By name; without those that could not be listed."""
    orphaned: tuple[str, ...]
    """Jobs that run and that the state does not have, with what to do about each."""
    not_looked: str = ""
    """Why orphaned jobs could not be searched for."""

    def full(self, losses: Iterable[Loss]) -> list[str]:
        """Names of buckets that have objects and that Pulumi does not empty.

        The stack's own two are not among them: they always have some.
        """
        return [loss.name for loss in losses if self.keeps(loss) and not loss.own]

    def keeps(self, loss: Loss) -> bool:
        """Whether a deletion of this bucket is refused by the service."""
        listing = self.buckets.get(loss.name)
        return bool(listing and listing.count) and not loss.empties


def look(ref: StackRef, losses: Iterable[Loss], known: Collection[str]) -> Contents:
    """Look at jobs and buckets. ``known`` are the ids that the state has, as of ``known_ids``.

    Raises:
        CommandError: the local cloud does not run.
    """
    ref.connect_clients()
    named = list(losses)
    running: list[str] = []
    reason = ""
    try:
        found = deployed.find_orphaned_jobs(ref, known, with_runs=True)
        cancel = f"`vt jobs cancel {{}} --stack {ref.stack}` ends it"
        running = [
            f"{deployed.orphan_title(job)}, {cancel.format(view.job_id(job))}" for job in found
        ]
    except (CommandError, OperatorError) as error:
        reason = str(error)
    jobs = observe_by_name(ref, [loss.id for loss in named if loss.kind in JOB_WORDS])
    return Contents(jobs, _listings(ref, named), tuple(running), reason)


def _listings(ref: StackRef, losses: Iterable[Loss]) -> dict[str, ObjectListing]:
    bucket = resource_types.find(resource_types.BUCKET).word
    names = [loss.name for loss in losses if loss.kind == bucket]
    found: dict[str, ObjectListing] = {}
    try:
        objects = Objects(ref.project)
        for name in names:
            found[name] = objects.listing(f"gs://{name}", versions=True)
    except OperatorError:
        return found
    return found
