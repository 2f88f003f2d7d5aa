"""A stack: its settings and everything derived from them, computed once and passed on.

The program, ``vt check``, ``vt render`` and ``vt diff`` all work on a :class:`Stack`, so they mean
the same names, plans and requests. Pure: nothing here asks the engine or a cloud.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from vertex_training.plan import packages, stack_grants
from vertex_training.plan.facts import (
    account_limits,
    file_defaults,
    job_limits,
    reference_table,
    stack_facts,
)
from vertex_training.plan.grants import GrantRequest
from vertex_training.plan.network import NetworkPlan, network_grants, plan_network
from vertex_training.plan.packages import Package, kept_objects
from vertex_training.plan.reservations import ReservationPlan, plan_reservations, reservation_grants
from vertex_training.plan.serving import plan_endpoints, plan_versions
from vertex_training.plan.stack_grants import batch_grants, image_grants, job_grants
from vertex_training.secret_rules.files import Scan
from vertex_training.serving.declared import DeclaredEndpoint, DeclaredVersion
from vertex_training.settings import reader, renames, stack_files
from vertex_training.settings.model import Settings
from vertex_training.settings.reader import Schema
from vertex_training.snapshots.request import SnapshotRequest, plan_snapshots
from vertex_training.stack_rules import StackFile, files, findings, limits
from vertex_training.stack_rules import jobs as job_rules

#: How the training project's stack files are read.
SCHEMA: Final = Schema("vertex-training", Settings)


@dataclass(frozen=True)
class Stack:
    """A stack whose file is in order. ``root`` is the checkout."""

    settings: Settings
    """As the stack file has them; jobs and references go by these keys."""
    root: Path
    packages: Mapping[str, Package]
    """The built packages, by key."""
    schema: Schema[Settings] = SCHEMA
    """Schema of the settings' source, which messages follow."""

    @functools.cached_property
    def declared(self) -> Settings:
        """The settings by the keys that names and the state have: all plans are made of these."""
        return renames.with_first_keys(self.settings)

    @functools.cached_property
    def network(self) -> NetworkPlan | None:
        """The network, or None if jobs use none."""
        return plan_network(self.declared)

    @functools.cached_property
    def reservations(self) -> Mapping[str, ReservationPlan]:
        """The reservations, by first key."""
        return plan_reservations(self.declared)

    @functools.cached_property
    def snapshots(self) -> Mapping[str, SnapshotRequest]:
        """The snapshots, by first key."""
        return plan_snapshots(self.declared, self.root)

    @functools.cached_property
    def objects(self) -> Mapping[str, Mapping[str, str]]:
        """Objects that the stack keeps: bucket by first key -> object name -> file."""
        buckets = self.declared.buckets.items()
        return {key: kept_objects(bucket.objects, self.root) for key, bucket in buckets}

    @functools.cached_property
    def versions(self) -> Mapping[tuple[str, int], DeclaredVersion]:
        """Model versions by first key of their model and run."""
        return plan_versions(self.declared)

    @functools.cached_property
    def endpoints(self) -> Mapping[str, DeclaredEndpoint]:
        """The endpoints, by first key."""
        return plan_endpoints(self.declared, self.versions)

    @functools.cached_property
    def references(self) -> Mapping[str, Any]:
        """Return the values of ``${kind.name}`` in a job file."""
        plans = (self.network, self.reservations, self.packages, self.snapshots)
        table = reference_table(self.declared, *plans)
        return renames.with_new_keys(self.settings, table)

    @functools.cached_property
    def context(self) -> Context:
        """Return the surroundings of every job of this stack, other jobs aside."""
        facts = stack_facts(self.declared, self.network, self.reservations)
        modules = {
            self.references[f"packages.{key}"]: package.modules
            for key, package in self.packages.items()
            if isinstance(self.references.get(f"packages.{key}"), str)
        }
        facts = dataclasses.replace(
            facts, packages=modules, plugin_images=frozenset(self._plugin_images())
        )
        return dataclasses.replace(
            Context.of(facts),
            limits=job_limits(self.declared),
            account_limits=account_limits(self.declared),
            encryption_key=self.declared.key_for("jobs") or "",
            defaults=file_defaults(self.settings),
            levels=self.settings.rules,
        )

    def _plugin_images(self) -> Iterator[str]:
        """Yield images of the stack, without digest, whose Dockerfile names a plugin of NCCL."""
        for key, image in self.declared.images.items():
            if image.context:
                text = pins.instructions(self.root / image.context, image.dockerfile)
                if NCCL_PLUGIN.search(text):
                    yield self.declared.names.image(key)

    def by_new_keys(self, section: tuple[str, ...], found: Mapping[str, Any]) -> dict[str, Any]:
        """Return values by the keys of the stack file in place of first keys."""
        new = {first: key for key, first in renames.first_keys(self.settings, section).items()}
        return {new.get(first, first): value for first, value in found.items()}

    def submission(self, job: str, run: int = 1) -> Submission:
        """The submission of a job in this stack."""
        settings = self.settings
        return Submission(settings.project, settings.region, settings.stack, job, run)

    def check_jobs(self, shown: Callable[[str], str] = str) -> dict[str, JobFileResult]:
        """Every job and tuning job, by its key in the stack file, with its file's problems.

        A renamed job keeps its first key as its name and so its identity.

        ``shown`` makes a file's name in messages from its name in the config.

        Raises:
            OSError: a file cannot be read.
        """
        sections = {CUSTOM_JOB: self.declared.jobs, TUNING_JOB: self.declared.tuning}
        found = [
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
        results = job_file.check_job_files(found, self.references, self.context)
        for key, first in self.first_job_keys.items():
            request, told = results[first].request, self.settings.notifications(key)
            if request and told:
                request = dataclasses.replace(request, notifications=told)
                results[first] = dataclasses.replace(results[first], request=request)
        return {key: results[first] for key, first in self.first_job_keys.items()}

    @functools.cached_property
    def first_job_keys(self) -> Mapping[str, str]:
        """Keys of jobs and tuning jobs in the stack file -> keys that they were created under."""
        return {
            key: first
            for kind in KINDS
            for key, first in renames.first_keys(self.settings, (kind.section,)).items()
        }

    def check_other(self, data: bytes, file: str, job: str) -> JobFileResult:
        """A file that no job of the stack names, as if ``job`` did."""
        return job_file.check_job_file(
            data, file, self.submission(job), self.references, self.context
        )

    def jobs_of(self, file: Path) -> list[str]:
        """Names of the jobs that this file is for; a file may serve several."""
        wanted = file.resolve()
        jobs = self.settings.submitted.items()
        return [key for key, job in jobs if (self.root / job.file).resolve() == wanted]

    def exceeded_limits(self, results: Mapping[str, JobFileResult]) -> list[Problem]:
        """Return the exceeded limits of the stack as a whole."""
        return self.located(limits.exceeded(self.declared, results))

    def warnings(self, requests: Mapping[str, JobRequest]) -> list[Problem]:
        """Settings that are valid and probably not meant, and files that were not looked at."""
        first = renames.first_keys(self.settings, ("reservations",))
        plans = {key: self.reservations[first[key]] for key in first}
        file = StackFile(self.settings, self.root, requests, plans)
        result = self.located(findings("warning", file))
        if self.leaving.note:
            here = self.schema.location(self.settings.stack)
            result.append(Problem(self.leaving.note, location=here, level="note"))
        return result

    @functools.cached_property
    def leaving(self) -> Scan:
        """Secrets in the files that ``pulumi up`` sends."""
        return files.scan(self.settings, self.root)

    def deployment_warnings(self) -> list[Problem]:
        """Return the reasons why a deployment would be refused."""
        if self.settings.is_local:
            return []  # it has no CI
        return self.located(findings("deployment", StackFile(self.settings, self.root)))

    @property
    def pinned_digests(self) -> Sequence[str]:
        """Digests in the stack's repository that a stack file pins, this one's or another's."""
        found = [
            record for record in pins.records(self.root) if record.stack != self.settings.stack
        ]
        others = pins.digests_in(self.settings.names.repository(), found)
        return sorted({*others, *pins.digests_of(self.settings)})

    def job_grants(self, requests: Mapping[str, JobRequest]) -> list[GrantRequest]:
        """Grants that these jobs need for their keys and images, and models for theirs.

        None that the stack file asks for: of two resources of one grant, the one that goes first
        takes it from both.
        """
        of_batch = [request.trial for request in requests.values() if request.kind is BATCH_JOB]
        others = [each.trial for each in requests.values() if each.kind is not BATCH_JOB]
        found = job_grants(self.declared, others) + batch_grants(self.declared, of_batch)
        served = [version.image for version in self.versions.values()]
        found += image_grants(self.declared, served, of_models=True)
        asked = {(g.place, g.role, g.member) for g in stack_grants.extra_grants(self.declared)}
        by_key = {grant.key: grant for grant in found}.values()
        return [grant for grant in by_key if (grant.place, grant.role, grant.member) not in asked]

    def grants(self, requests: Mapping[str, JobRequest]) -> list[GrantRequest]:
        """Every grant that the stack and these jobs need, also those that others must make."""
        return [
            *stack_grants.derived_grants(self.declared),
            *stack_grants.extra_grants(self.declared),
            *stack_grants.encryption_grants(self.declared),
            *network_grants(self.declared, self.network),
            *reservation_grants(self.declared, self.reservations),
            *self.job_grants(requests),
        ]

    def located(self, problems: Sequence[Problem]) -> list[Problem]:
        """Problems with paths below the namespace, at their places in the stack file."""
        return _located(problems, self.schema, self.settings.stack, self.root)


def load(root: Path, stack: str) -> Stack:
    """The stack of this name, from its file below ``root``.

    Raises:
        UnknownStackError: it has no file.
        ConfigError: with every mistake in it, or in its packages.
    """
    return from_raw(stack_files.read_raw(SCHEMA, root, stack), root)


def from_raw(raw: Mapping[str, Any], root: Path, schema: Schema[Settings] = SCHEMA) -> Stack:
    """The stack of a config that was read already; see :func:`load`."""
    loaded = with_packages(read_settings(raw, root, schema), root, schema)
    if wrong := list(job_rules.unknown_references(loaded.settings, loaded.references)):
        raise ConfigError(loaded.located(wrong))
    return loaded


def with_packages(settings: Settings, root: Path, schema: Schema[Settings] = SCHEMA) -> Stack:
    """The stack of settings that were checked, with its packages built; nothing is written.

    Raises:
        ConfigError: with every path that cannot be packaged, or every secret in what would leave.
    """
    paths = {key: package.path for key, package in settings.packages.items()}
    made = Stack(settings, root, packages.build_all(paths, root), schema)
    if made.leaving.problems:
        raise ConfigError(made.leaving.problems)
    return made


def settings_of(root: Path, stack: str) -> Settings:
    """Read the settings of a stack of the project in ``root``, and no package or job file.

    Raises:
        ConfigError: with every mistake found.
        UnknownStackError: the stack has no file.
    """
    return read_settings(stack_files.read_raw(SCHEMA, root, stack), root)


def read_settings(
    raw: Mapping[str, Any], root: Path, schema: Schema[Settings] = SCHEMA
) -> Settings:
    """Check a config. Files that it names are looked up below ``root``.

    Raises:
        ConfigError: with every mistake found, at its place in the stack file.
    """
    read = reader.read(schema, raw)
    problems = stack_files.locate(read.problems, root)
    if read.settings:
        broken = findings("error", StackFile(read.settings, root))
        found = [p for p in broken if not read.concerns_removed(p)]
        problems += _located(found, schema, str(raw.get("stack", "")), root)
    if problems or read.settings is None:
        raise ConfigError(problems)
    return read.settings


def _located(
    problems: Sequence[Problem], schema: Schema[Settings], stack: str, root: Path
) -> list[Problem]:
    placed = [
        problem
        if problem.location.file
        else dataclasses.replace(
            problem, path=schema.full_path(problem.path), location=schema.location(stack)
        )
        for problem in problems
    ]
    return stack_files.locate(placed, root)
