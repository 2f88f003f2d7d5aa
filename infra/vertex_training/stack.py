"""The settings of a stack, and values that derive from the settings: plans, references, packages.

The program, ``vt check``, ``vt render`` and ``vt diff`` share :class:`Stack`, so that they agree on
names, plans and requests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, KINDS, TUNING_JOB
from vertex_training.customjob.request import job_file
from vertex_training.customjob.request.job_file import (
    JobFile,
    JobFileResult,
    JobRequest,
    Submission,
)
from vertex_training.customjob.rules.context import Context
from vertex_training.customjob.rules.environment import NCCL_PLUGIN
from vertex_training.errors import ConfigError, Problem
from vertex_training.images import pins
from vertex_training.plan import facts as plans
from vertex_training.plan import grants, packages
from vertex_training.plan.grants import GrantRequest
from vertex_training.plan.network import (
    NetworkPlan,
    ReservationPlan,
    network_grants,
    plan_network,
    plan_reservations,
    reservation_grants,
)
from vertex_training.plan.packages import Package, kept_objects
from vertex_training.secret_rules.files import Scan
from vertex_training.serving.declared import DeclaredEndpoint, DeclaredVersion
from vertex_training.settings import reader, stack_files
from vertex_training.settings.model import Settings
from vertex_training.settings.reader import Schema
from vertex_training.snapshots.request import SnapshotRequest, plan_snapshots
from vertex_training.stack_rules import StackFile, files, findings
from vertex_training.stack_rules import jobs as job_rules

#: Schema of the training project's stack files.
SCHEMA: Final = Schema("vertex-training", Settings)


@dataclass(frozen=True)
class Stack:
    """A stack whose file is valid. ``root`` is the checkout."""

    settings: Settings
    """Settings by the current keys of the stack file, which jobs and references use."""
    root: Path
    packages: Mapping[str, Package]
    """Built packages by key."""
    schema: Schema[Settings] = SCHEMA
    """Schema of the stack file or of arguments, for messages."""

    @functools.cached_property
    def declared(self) -> Settings:
        """Return the settings by first keys (before renames), which determine names and state."""
        return reader.with_first_keys(self.settings)

    @functools.cached_property
    def network(self) -> NetworkPlan | None:
        """Return the plan of the network; None if jobs use no network."""
        return plan_network(self.declared)

    @functools.cached_property
    def reservations(self) -> Mapping[str, ReservationPlan]:
        """Return the plans of reservations by first key."""
        return plan_reservations(self.declared)

    @functools.cached_property
    def snapshots(self) -> Mapping[str, SnapshotRequest]:
        """Return the plans of snapshots by first key."""
        return plan_snapshots(self.declared, self.root)

    @functools.cached_property
    def objects(self) -> Mapping[str, Mapping[str, str]]:
        """Return the files to upload by object name, for each bucket's first key."""
        buckets = self.declared.buckets.items()
        return {key: kept_objects(bucket.objects, self.root) for key, bucket in buckets}

    @functools.cached_property
    def versions(self) -> Mapping[tuple[str, int], DeclaredVersion]:
        """Return the plans of model versions by first key of the model and run."""
        return plans.plan_versions(self.declared)

    @functools.cached_property
    def endpoints(self) -> Mapping[str, DeclaredEndpoint]:
        """Return the plans of endpoints by first key."""
        return plans.plan_endpoints(self.declared, self.versions)

    @functools.cached_property
    def references(self) -> Mapping[str, Any]:
        """Return the values of ``${kind.name}`` in a job file."""
        parts = (self.network, self.reservations, self.packages, self.snapshots)
        table = plans.reference_table(self.declared, *parts)
        return reader.with_new_keys(self.settings, table)

    @functools.cached_property
    def context(self) -> Context:
        """Return this stack's properties and limits for rules of job files."""
        facts = plans.stack_facts(self.declared, self.network, self.reservations)
        modules = {
            self.references[f"packages.{key}"]: package.modules
            for key, package in self.packages.items()
            if isinstance(self.references.get(f"packages.{key}"), str)
        }
        facts = replace(facts, packages=modules, plugin_images=frozenset(self._plugin_images()))
        return replace(
            Context.of(facts),
            limits=plans.job_limits(self.declared),
            account_limits=plans.account_limits(self.declared),
            encryption_key=self.declared.key_for("jobs") or "",
            defaults=plans.file_defaults(self.settings),
            levels=self.settings.rules,
        )

    def _plugin_images(self) -> Iterator[str]:
        for key, image in self.declared.images.items():
            if image.context:
                text = pins.instructions(self.root / image.context, image.dockerfile)
                if NCCL_PLUGIN.search(text):
                    yield self.declared.names.image(key)

    def by_new_keys(self, section: tuple[str, ...], found: Mapping[str, Any]) -> dict[str, Any]:
        """Return a mapping with keys of the stack file instead of first keys (before renames)."""
        new = {first: key for key, first in reader.first_keys(self.settings, section).items()}
        return {new.get(first, first): value for first, value in found.items()}

    def submission(self, job: str, run: int = 1) -> Submission:
        """Return the identity of the job's submission in this stack."""
        settings = self.settings
        return Submission(settings.project, settings.region, settings.stack, job, run)

    def check_jobs(self, shown: Callable[[str], str] = str) -> dict[str, JobFileResult]:
        """Check the files of all jobs; return results by key. ``shown`` formats paths."""
        sections = {CUSTOM_JOB: self.declared.jobs, TUNING_JOB: self.declared.tuning}
        job_files = [
            JobFile(
                (self.root / job.file).read_bytes(),
                shown(job.file),
                self.submission(key, job.run),
                BATCH_JOB if job.backend == BATCH_JOB.backend else kind,
                job_rules.rungs(job.ladder, self.settings.reservations, self.references),
                scheduled=job.schedule is not None,
                options=job.passed,
            )
            for kind, jobs in sections.items()
            for key, job in jobs.items()
        ]
        results = job_file.check_job_files(job_files, self.references, self.context)
        for key, first in self.first_job_keys.items():
            request, notifications = results[first].request, self.settings.notifications(key)
            if request and notifications:
                request = replace(request, notifications=notifications)
                results[first] = replace(results[first], request=request)
        return {key: results[first] for key, first in self.first_job_keys.items()}

    @functools.cached_property
    def first_job_keys(self) -> Mapping[str, str]:
        """Return the first key of each job and tuning job by its current key."""
        return {
            key: first
            for kind in KINDS
            for key, first in reader.first_keys(self.settings, (kind.section,)).items()
        }

    def check_other(self, data: bytes, file: str, job: str) -> JobFileResult:
        """Check a job file outside of the stack, as if it were the file of ``job``."""
        return job_file.check_job_file(
            data, file, self.submission(job), self.references, self.context
        )

    def jobs_of(self, file: Path) -> list[str]:
        """Return the keys of the jobs that use a job file."""
        target = file.resolve()
        jobs = self.settings.submitted.items()
        return [key for key, job in jobs if (self.root / job.file).resolve() == target]

    def exceeded_limits(self, results: Mapping[str, JobFileResult]) -> list[Problem]:
        """Return a problem for each limit that the stack as a whole exceeds."""
        return self.located(job_rules.exceeded(self.declared, results))

    def warnings(self, requests: Mapping[str, JobRequest]) -> list[Problem]:
        """Return warnings (valid input with surprising effects) and a note on skipped files."""
        first = reader.first_keys(self.settings, ("reservations",))
        plans = {key: self.reservations[first[key]] for key in first}
        file = StackFile(self.settings, self.root, requests, plans)
        result = self.located(findings("warning", file))
        if self.leaving.note:
            here = self.schema.location(self.settings.stack)
            result.append(Problem(self.leaving.note, location=here, level="note"))
        return result

    @functools.cached_property
    def leaving(self) -> Scan:
        """Scan the files that ``pulumi up`` uploads for secrets."""
        return files.scan(self.settings, self.root)

    def deployment_warnings(self) -> list[Problem]:
        """Return warnings about settings with which a deployment by CI would fail."""
        if self.settings.is_local:
            return []  # CI does not deploy to the local cloud
        return self.located(findings("deployment", StackFile(self.settings, self.root)))

    @property
    def pinned_digests(self) -> Sequence[str]:
        """Return all digests in the stack's repository that stack files of ``root`` pin."""
        foreign = [pin for pin in pins.pins_below(self.root) if pin.stack != self.settings.stack]
        others = pins.digests_in(self.settings.names.repository(), foreign)
        return sorted({*others, *pins.digests_of(self.settings)})

    def job_grants(self, requests: Mapping[str, JobRequest]) -> list[GrantRequest]:
        """Return the grants on keys and images that the jobs and models need."""
        of_batch = [r.trial for r in requests.values() if r.kind is BATCH_JOB]
        others = [r.trial for r in requests.values() if r.kind is not BATCH_JOB]
        served = [version.image for version in self.versions.values()]
        needed = [
            *grants.job_grants(self.declared, others),
            *grants.batch_grants(self.declared, of_batch),
            *grants.image_grants(self.declared, served, of_models=True),
        ]
        # Two resources of the same grant: deleting either resource would revoke both.
        requested = {(g.place, g.role, g.member) for g in grants.extra_grants(self.declared)}
        by_key = {grant.key: grant for grant in needed}.values()
        return [g for g in by_key if (g.place, g.role, g.member) not in requested]

    def grants(self, requests: Mapping[str, JobRequest]) -> list[GrantRequest]:
        """Return all grants that the stack and these jobs need, including external grants."""
        return [
            *grants.derived_grants(self.declared),
            *grants.extra_grants(self.declared),
            *grants.encryption_grants(self.declared),
            *network_grants(self.declared, self.network),
            *reservation_grants(self.declared, self.reservations),
            *self.job_grants(requests),
        ]

    def located(self, problems: Sequence[Problem]) -> list[Problem]:
        """Add file and line to problems whose paths begin below the namespace."""
        return _located(problems, self.schema, self.settings.stack, self.root)


def load(root: Path, stack: str) -> Stack:
    """Load a stack from its file in ``root``. Raises UnknownStackError or ConfigError."""
    return from_raw(stack_files.read_raw(SCHEMA, root, stack), root)


def from_raw(raw: Mapping[str, Any], root: Path, schema: Schema[Settings] = SCHEMA) -> Stack:
    """Build a stack from a config that was read before; see :func:`load`."""
    loaded = with_packages(read_settings(raw, root, schema), root, schema)
    if wrong := list(job_rules.unknown_references(loaded.settings, loaded.references)):
        raise ConfigError(loaded.located(wrong))
    return loaded


def with_packages(settings: Settings, root: Path, schema: Schema[Settings] = SCHEMA) -> Stack:
    """Build a stack with its packages from valid settings; raise ConfigError for mistakes."""
    paths = {key: package.path for key, package in settings.packages.items()}
    stack = Stack(settings, root, packages.build_all(paths, root), schema)
    if stack.leaving.problems:
        raise ConfigError(stack.leaving.problems)
    return stack


def settings_of(root: Path, stack: str) -> Settings:
    """Return the settings of a stack in ``root``. Reads no packages and no job files."""
    return read_settings(stack_files.read_raw(SCHEMA, root, stack), root)


def read_settings(
    raw: Mapping[str, Any], root: Path, schema: Schema[Settings] = SCHEMA
) -> Settings:
    """Validate a config and the files in it. Raises ConfigError with all mistakes."""
    read = reader.read(schema, raw)
    problems = stack_files.locate(read.problems, root)
    if read.settings:
        broken = findings("error", StackFile(read.settings, root))
        relevant = [p for p in broken if not read.concerns_removed(p)]
        problems += _located(relevant, schema, str(raw.get("stack", "")), root)
    if problems or read.settings is None:
        raise ConfigError(problems)
    return read.settings


def _located(
    problems: Sequence[Problem], schema: Schema[Settings], stack: str, root: Path
) -> list[Problem]:
    here = schema.location(stack)
    placed = [
        p if p.location.file else replace(p, path=schema.full_path(p.path), location=here)
        for p in problems
    ]
    return stack_files.locate(placed, root)
