"""The jobs in a stack's project and region, through the official client."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from infra.customjob.google.job_service import client, read
from infra.customjob.protocol.ports import (
    FORMER_REQUEST_ID_LABEL,
    FORMER_STACK_LABEL,
    JOB_LABEL,
    REQUEST_ID_LABEL,
    STACK_LABEL,
    TERMINAL,
    own_labels,
)
from infra.errors import CommandError, OperatorError, did_you_mean
from vt.engine.stacks import StackRef

if TYPE_CHECKING:
    from infra.customjob.google.vertex_api import CustomJob

#: How the API begins the names of states.
PREFIX: Final = "JOB_STATE_"
_NAME: Final = re.compile(r"projects/[^/]+/locations/[^/]+/customJobs/[0-9]+\Z")


class Jobs:
    """Reads and cancels jobs. Every method raises OperatorError if the service refuses."""

    def __init__(self, ref: StackRef) -> None:
        self.ref = ref
        self._client = client(ref.project, ref.region)

    def list(
        self,
        *,
        all_stacks: bool = False,
        live_only: bool = False,
        states: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
    ) -> list[CustomJob]:
        """Jobs, newest first: those this stack submitted, or all of its project and region.

        With ``live_only``, the service leaves out the jobs that have ended: there may be thousands.
        """
        terms = [f"labels.{key}={value}" for key, value in (labels or {}).items()]
        if live_only:
            terms += [f'state!="{state}"' for state in sorted(TERMINAL)]
        if len(states) == 1:
            terms.append(f'state="{PREFIX}{states[0]}"')
        found = self._all(terms) if all_stacks else self._own(terms)
        if states:  # several: the service documents no filter for either of two states
            wanted = {PREFIX + state for state in states}
            found = [job for job in found if job.state.name in wanted]
        return sorted(found, key=_created, reverse=True)

    def find(self, wanted: str) -> CustomJob:
        """A job by its id, its resource name, or its name in the stack (the newest submission).

        Raises:
            CommandError: there is none.
        """
        if wanted.isdecimal() or wanted.startswith("projects/"):
            return self.get(wanted if "/" in wanted else f"{self.ref.parent}/customJobs/{wanted}")
        own, name = self.list(), self.ref.first_key_of_job(wanted)
        for job in own:
            if own_labels(job.labels).get(JOB_LABEL) == name:
                return job
        known = {own_labels(job.labels).get(JOB_LABEL, "") for job in own}
        hint = did_you_mean(wanted, known) or "`vt jobs list --all` shows those of others"
        raise CommandError(f"stack {self.ref.stack} has submitted no job {wanted!r}.", hint)

    def get(self, name: str) -> CustomJob:
        """The job of this resource name.

        Raises:
            CommandError: there is none.
        """
        hint = "`vt jobs list --all` shows those there are."
        if not _NAME.match(name):
            raise CommandError(f"{name!r} is no name of a job.", hint)
        job = self.get_if_exists(name)
        if job is None:
            raise CommandError(f"there is no job {name}.", hint)
        return job

    def get_if_exists(self, name: str) -> CustomJob | None:
        """The job of this resource name, or None if there is no record of it."""
        from google.api_core.exceptions import NotFound

        try:
            return read(self._client.get_custom_job, name=name)
        except NotFound:
            return None

    def cancel(self, job: CustomJob) -> None:
        """Request cancellation. A job that has ended meanwhile is left as it is."""
        from google.api_core.exceptions import FailedPrecondition, NotFound

        try:
            read(self._client.cancel_custom_job, name=job.name)
        except (FailedPrecondition, NotFound):
            return  # it ended, or its record was deleted: nothing runs

    def _own(self, terms: Sequence[str]) -> list[CustomJob]:
        """Jobs that this stack submitted; the first releases labelled them without a prefix."""
        stack = self.ref.stack
        own = self._all([*terms, f"labels.{STACK_LABEL}={stack}", f"labels.{REQUEST_ID_LABEL}:*"])
        former = self._all(
            [*terms, f"labels.{FORMER_STACK_LABEL}={stack}", f"labels.{FORMER_REQUEST_ID_LABEL}:*"]
        )
        return own + [job for job in former if REQUEST_ID_LABEL not in job.labels]

    def _all(self, terms: Sequence[str]) -> list[CustomJob]:
        from google.api_core.exceptions import GoogleAPICallError, NotFound, RetryError

        request = {"parent": self.ref.parent, "filter": " AND ".join(terms)}
        try:
            return list(read(self._client.list_custom_jobs, request=request))
        except NotFound as error:
            raise OperatorError(f"Vertex AI: {error.message}") from None
        except (GoogleAPICallError, RetryError) as error:  # on a page after the first
            raise OperatorError(f"Vertex AI ended in the middle of the list: {error}") from None


def _created(job: CustomJob) -> tuple[int, str]:
    return type(job).pb(job).create_time.ToNanoseconds(), job.name
