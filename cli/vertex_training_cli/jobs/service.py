"""Jobs and tuning jobs in a stack's project and region. Jobs on Batch are read as CustomJobs."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from google.api_core.exceptions import GoogleAPICallError, NotFound, RetryError

from localgcp.inventory.resource_paths import project_number
from vertex_training.customjob.google import backends
from vertex_training.customjob.google.job_service import (
    AnyJob,
    VertexJobs,
    client,
    enum_name,
    read,
    read_or_none,
)
from vertex_training.customjob.kinds import (
    BATCH_JOB,
    CUSTOM_JOB,
    KINDS,
    TUNING_JOB,
    JobKind,
    kind_of_name,
)
from vertex_training.customjob.protocol.ports import (
    JOB_LABEL,
    PROGRAM_LABEL,
    REQUEST_ID_LABEL,
    STACK_LABEL,
    TERMINAL,
    own_labels,
    program_label,
)
from vertex_training.customjob.protocol.submission import is_usable
from vertex_training.errors import CommandError, OperatorError, did_you_mean
from vertex_training_cli.console import print_line
from vertex_training_cli.engine.stacks import StackRef, find_unchecked
from vertex_training_cli.help import completion

PREFIX: Final = "JOB_STATE_"
_COLLECTIONS: Final = "|".join(kind.collection for kind in KINDS)
_NAME: Final = re.compile(
    rf"projects/[^/]+/locations/[^/]+/(?:(?:{_COLLECTIONS})/[0-9]+|jobs/[a-z0-9-]+)\Z"
)


class Jobs:
    """Reads and cancels jobs. Methods raise OperatorError if the service refuses a request."""

    def __init__(self, ref: StackRef, scripts: StackRef | None = None) -> None:
        self.ref = ref
        self._scripts = Jobs(scripts) if scripts else None
        self._client = client(ref.project, ref.region)

    @functools.cached_property
    def _batch(self) -> backends.BatchJobs:
        return backends.BatchJobs(backends.shared_client(self.ref.project, self.ref.region))

    def list(
        self,
        *,
        all_stacks: bool = False,
        live_only: bool = False,
        states: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
    ) -> list[AnyJob]:
        """Return jobs and tuning jobs of the stack, or of project and region, newest first."""
        labels = labels or {}
        terms = [f"labels.{key}={value}" for key, value in labels.items()]
        if live_only:
            terms += [f'state!="{state}"' for state in sorted(TERMINAL)]
        if len(states) == 1:
            terms.append(f'state="{PREFIX}{states[0]}"')
        list_ = self._all if all_stacks else self._own
        jobs: list[AnyJob] = []
        with self._unless_unused():
            jobs += [job for kind in KINDS for job in list_(terms, kind)]
        on_batch = self._on_batch(labels, all_stacks=all_stacks)
        jobs += [job for job in on_batch if not live_only or enum_name(job.state) not in TERMINAL]
        if states:  # The service's filter accepts only one state.
            state_names = {PREFIX + state for state in states}
            jobs = [job for job in jobs if enum_name(job.state) in state_names]
        if self._scripts:
            jobs += self._scripts.list(live_only=live_only, states=states, labels=labels)
        return sorted(
            {job.name: job for job in jobs}.values(),
            key=lambda job: (type(job).pb(job).create_time.ToNanoseconds(), job.name),
            reverse=True,
        )

    def of(self, job: AnyJob) -> Jobs:
        """Return the ``Jobs`` of the job's project: the stack's own, or the one for script runs."""
        project = job.name.split("/")[1]
        scripts = self._scripts
        names = (scripts.ref.project, project_number(scripts.ref.project)) if scripts else ()
        return scripts if scripts and project in names else self

    def find(self, wanted: str) -> AnyJob:
        """Return a job by its id, resource name, or name in the stack (newest submission)."""
        if wanted.startswith("projects/"):
            return self.get(wanted)
        if wanted.isdecimal():
            refs = [self.ref, *([self._scripts.ref] if self._scripts else [])]
            names = [f"{ref.parent}/{kind.collection}/{wanted}" for ref in refs for kind in KINDS]
            for name in names:
                with self._unless_unused():
                    if job := self.get_if_exists(name):
                        return job
            return self.get(names[0])
        own, name = self.list(), self.ref.first_key(wanted, "jobs", "tuning")
        for job in own:
            if wanted == job.name.rpartition("/")[2]:
                return job
        for job in own:
            if labels_of(job).get(JOB_LABEL) == name:
                return self.whole(job)
        for job in self._on_batch({}, all_stacks=True):  # Jobs of other stacks.
            if wanted == job.name.rpartition("/")[2]:
                return job
        known = {labels_of(job).get(JOB_LABEL, "") for job in own}
        hint = did_you_mean(wanted, known) or "list jobs of other stacks with `vt jobs list --all`"
        raise CommandError(f"stack {self.ref.stack} has not submitted a job {wanted!r}.", hint)

    @contextmanager
    def _unless_unused(self) -> Iterator[None]:
        """Ignore a disabled API of a local stack, so that runs of scripts are found."""
        try:
            yield
        except OperatorError as error:
            if self._scripts is None or backends.NEVER_USED not in str(error):
                raise

    def whole(self, job: AnyJob) -> AnyJob:
        """Return a tuning job with its trials, which lists omit, and other jobs unchanged."""
        return (kind_of(job) is TUNING_JOB and self.get_if_exists(job.name)) or job

    def is_adopted(self, request_id: str, kind: JobKind) -> bool:
        """Return True if a submission of the request would adopt an existing job."""
        jobs = self._service(kind).find(self.ref.parent, request_id)
        return any(is_usable(job.state) for job in jobs)

    def _service(self, kind: JobKind) -> backends.BatchJobs | VertexJobs:
        return self._batch if kind is BATCH_JOB else VertexJobs(self._client, kind)

    def get(self, name: str) -> AnyJob:
        """Return the job with this resource name, or raise CommandError."""
        hint = "list all jobs with `vt jobs list --all`"
        if not _NAME.match(name):
            raise CommandError(f"{name!r} is not the resource name of a job.", hint)
        job = self.get_if_exists(name)
        if job is None:
            raise CommandError(f"job {name} does not exist.", hint)
        return job

    def get_if_exists(self, name: str) -> AnyJob | None:
        """Return the job with this resource name, or None if the service has no such job."""
        if kind_of_name(name) is BATCH_JOB:
            job = self._batch.message(name)
            return None if job is None else backends.as_custom_job(job)
        kind = kind_of_name(name) or CUSTOM_JOB
        return read_or_none(getattr(self._client, f"get_{kind.argument}"), name=name)

    def cancel(self, job: AnyJob) -> None:
        """Request the cancellation of a job. An ended job does not change."""
        self._service(kind_of(job)).cancel(job.name)

    def log_id(self, job: AnyJob) -> str:
        """Return the id of the job's log: the job's number, or the id of a Batch job."""
        number = job.name.rpartition("/")[2]
        return "".join(self._batch.log_ids(job.name)) if kind_of(job) is BATCH_JOB else number

    def _on_batch(self, labels: Mapping[str, str], *, all_stacks: bool) -> list[AnyJob]:
        program = program_label(self.ref.pulumi_project, self.ref.stack)
        own = ({STACK_LABEL: self.ref.stack}, {PROGRAM_LABEL: program})
        by_name: dict[str, AnyJob] = {}
        for owner_labels in ({},) if all_stacks else own:
            terms = [f'labels.{key}="{value}"' for key, value in {**labels, **owner_labels}.items()]
            try:
                listed = self._batch.listed(self.ref.parent, terms)
            except OperatorError as error:
                print_line(f"cannot list jobs on Batch: {error}")
                return []
            jobs = [backends.as_custom_job(job) for job in listed]
            by_name |= {job.name: job for job in jobs if all_stacks or labels_of(job)}
        return list(by_name.values())

    def _own(self, terms: Sequence[str], kind: JobKind) -> list[AnyJob]:
        has_request = f"labels.{kind.sent_label(REQUEST_ID_LABEL)}:*"
        program = program_label(self.ref.pulumi_project, self.ref.stack)
        named = {STACK_LABEL: self.ref.stack, PROGRAM_LABEL: program}
        own = (f"labels.{kind.sent_label(label)}={value}" for label, value in named.items())
        jobs = [job for term in own for job in self._all([*terms, term, has_request], kind)]
        return list({job.name: job for job in jobs}.values())  # A job may have both labels.

    def _all(self, terms: Sequence[str], kind: JobKind) -> list[AnyJob]:
        request = {"parent": self.ref.parent, "filter": " AND ".join(terms)}
        try:
            return list(read(getattr(self._client, f"list_{kind.argument}s"), request=request))
        except NotFound as error:
            raise OperatorError(f"Vertex AI: {error.message}") from None
        except (GoogleAPICallError, RetryError) as error:  # The request for a later page failed.
            raise OperatorError(f"Vertex AI returned only a part of the list: {error}") from None


def kind_of(job: AnyJob) -> JobKind:
    """Return the kind of a client's message."""
    if kind_of_name(job.name) is BATCH_JOB:
        return BATCH_JOB
    return next(kind for kind in KINDS if kind.message == type(job).__name__)


def labels_of(job: AnyJob) -> dict[str, str]:
    """Return the labels that the program wrote, with the label names of CustomJobs."""
    return own_labels(kind_of(job).labels_of(job.labels))


def declared_elsewhere(ref: StackRef, section: str, command: str) -> str:
    """Return a hint to another stack with entries in the section; empty without such a stack."""
    for name in completion.stacks(ref.root):
        is_alike = find_unchecked(ref.root, name).is_local == ref.is_local
        if name != ref.stack and is_alike and completion.keys(ref.root, name, section):
            return f". Stack {name} has {section}: `{command} --stack {name}`"
    return ""
