"""Architecture of the program on one page: the components of a stack, and their dependencies.

    apis ──► storage ──► packages ──┐
      │         └──────┐            │
      ├────► secrets ──┴► identities┤
      ├────► snapshots ─────────────┤
      ├────► monitoring ────────────┤
      ├────► registry ──────────────┼──► training ──► serving
      │         └► image builds     │
      ├─(► host project)► network ──┤
      └────► capacity ──────────────┘

Deletions go from right to left: a job is cancelled before its network is removed. All checks run
before the first registration. Components do not read the config and do not await outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pulumi
from pulumi import export

from vertex_training import engine
from vertex_training import stack as stacks
from vertex_training.components.capacity import log_reservation_costs, make_capacity
from vertex_training.components.iam import (
    JOB_GRANTS,
    KEY_ACCESS,
    Apis,
    Grants,
    grants_beside,
    log_external_grants,
    needed,
    reads_tables,
)
from vertex_training.components.identities import JobIdentity
from vertex_training.components.monitoring import log_publishers, make_monitoring, make_tensorboard
from vertex_training.components.network import make_network
from vertex_training.components.ordering import TOP, Protection, Scope
from vertex_training.components.serving import make_serving, serving_outputs
from vertex_training.components.storage import (
    ImageBuilds,
    Packages,
    Registry,
    Secrets,
    Storage,
    make_snapshots,
    snapshot_outputs,
)
from vertex_training.components.training import (
    Training,
    job_outputs,
    log_tuning_costs,
    schedule_outputs,
)
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.errors import ConfigError, Problem
from vertex_training.extra import Environment, declare_extra, load
from vertex_training.naming import CONTROL, STAGING
from vertex_training.plan.grants import EXTRA_GRANTS, encryption_grants, extra_grants, key_users
from vertex_training.settings.model import Settings
from vertex_training.stack import Stack


def run(file: str | Path) -> None:
    """Run the program for a repository of stack files; ``file`` is its ``__main__.py``.

    If the stack's files have mistakes, log them all and end the process.
    """
    root = Path(file).parent
    try:
        deploy(stacks.from_raw(engine.read_config(stacks.SCHEMA, root), root))
    except ConfigError as error:
        engine.abandon_with_message(error.report())


def deploy(stack: Stack) -> Environment:
    """Check jobs and ``extra.py``, log advice, declare all resources, and export the outputs."""
    extra = load(stack.root)
    requests = read_jobs(stack, extra.problems)
    log_advice(stack, requests)
    environment = declare(stack, requests)
    for name, value in outputs(stack, environment, requests).items():
        export(name, value)
    declare_extra(extra, environment)
    return environment


def declare(
    stack: Stack,
    requests: Mapping[str, JobRequest],
    scope: Scope = TOP,
    after: Sequence[pulumi.Resource] = (),
) -> Environment:
    """Declare all components in order. All components depend on ``after``.

    ``requests`` are by current keys, resources by first keys.
    """
    requests = {request.submission.job: request for request in requests.values()}
    settings, child = stack.declared, scope.child
    apis = Apis(child("apis"), settings.project, needed(settings), after=after)
    key = declare_key_access(scope, settings, apis)
    storage = Storage(child("storage"), stack, after=[*apis.on("storage"), *key])
    registry = Registry(child("registry"), stack, after=[*apis.on("artifactregistry"), *key])
    needs = apis.on("iam", "cloudresourcemanager", "cloudbuild") if settings.builds_images else []
    builds = (
        [ImageBuilds(child("images"), settings, storage, registry, after=needs)] if needs else []
    )
    manager = apis.on("secretmanager") if settings.secrets else []
    secrets = Secrets(child("secrets"), settings, after=[*manager, *key])
    identities = declare_identities(scope, settings, requests, apis, storage, secrets)
    packages = Packages(child("packages"), stack, storage)
    network = make_network(scope, stack, apis)
    capacity = make_capacity(scope, stack, apis)
    snapshots = make_snapshots(scope, stack, apis, storage)
    watching = make_monitoring(scope, settings, apis)
    of_job = make_job_grants(scope, stack, requests, apis, [registry, *identities.values()])
    granted = [storage, registry, secrets, *identities.values()]
    granted += apis.on("bigquery") if reads_tables(settings) else []
    of_jobs: list[pulumi.ComponentResource] = [
        *(apis, storage, registry, packages, *snapshots, *watching),
        *network,
        *capacity,
        *of_job,
        *make_tensorboard(scope, settings, [*apis.on("aiplatform"), *of_job]),
        *identities.values(),
        *grants_beside(EXTRA_GRANTS, child("extra"), extra_grants(settings), granted),
    ]
    control = settings.names.bucket(CONTROL)
    training = Training(
        child("training"), settings, requests, control_bucket=control, after=of_jobs
    )
    serving = make_serving(scope, stack, control, [*of_jobs, *builds, training])
    everything = [*of_jobs, *builds, secrets, training, *serving]
    Protection(child("protection"), settings.protects, after=everything)
    return Environment(
        stack,
        apis=apis,
        storage=storage,
        registry=registry,
        secrets=secrets,
        identities=identities,
        network=network,
        capacity=capacity,
        snapshots=snapshots,
        training=training,
        serving=serving,
    )


def make_job_grants(
    scope: Scope,
    stack: Stack,
    requests: Mapping[str, JobRequest],
    apis: Apis,
    made: Sequence[pulumi.Resource],
) -> list[Grants]:
    """Declare the grants for jobs. For Batch jobs they depend on registry and accounts too."""
    on_batch = any(request.kind is BATCH_JOB for request in requests.values())
    needs = [apis.agent, *(made if on_batch else ())]
    return grants_beside(JOB_GRANTS, scope.child("job"), stack.job_grants(requests), needs)


def declare_key_access(scope: Scope, settings: Settings, apis: Apis) -> list[Grants]:
    """Declare the grants on the stack's key; return an empty list without a key."""
    if settings.encryption is None:
        return []
    return [
        Grants(
            KEY_ACCESS,
            scope.child("encryption"),
            encryption_grants(settings),
            project=settings.project,
            services={user.service: apis.on(user.service) for user in key_users(settings)},
            after=apis.on("cloudkms"),
        )
    ]


def declare_identities(
    scope: Scope,
    settings: Settings,
    requests: Mapping[str, JobRequest],
    apis: Apis,
    storage: Storage,
    secrets: Secrets,
) -> dict[str, JobIdentity]:
    """Declare the service accounts of jobs, by key. Some of them may read packages."""
    staging = f"gs://{settings.names.bucket(STAGING)}/"
    fetching = {request.account for request in requests.values() if staging in request.body}
    return {
        key: JobIdentity(
            scope.child(key),
            settings,
            key,
            fetches_packages=settings.names.account_email(key) in fetching,
            buckets=storage.bucket_names,
            secrets=secrets.paths,
            after=apis.on("iam", "cloudresourcemanager"),
        )
        for key in settings.service_accounts
    }


def read_jobs(stack: Stack, also: Sequence[Problem] = ()) -> dict[str, JobRequest]:
    """Check all job files, log warnings, and return the requests; raise ConfigError if invalid."""
    results = stack.check_jobs()
    problems = [problem for result in results.values() for problem in result.errors]
    problems += also
    if problems := [*problems, *stack.exceeded_limits(results)]:
        raise ConfigError(problems)
    for result in results.values():
        for warning in (*result.warnings, *result.ignored):
            pulumi.log.warn(str(warning))
    return {key: result.request for key, result in results.items() if result.request}


def log_advice(stack: Stack, requests: Mapping[str, JobRequest]) -> None:
    """Log warnings, prices and external grants, which no resource of a preview shows."""
    for warning in stack.warnings(requests):
        log = pulumi.log.info if warning.level == "note" else pulumi.log.warn
        log(str(warning))
    log_reservation_costs(stack)
    log_tuning_costs(requests)
    log_publishers(stack.settings, requests)
    log_external_grants(stack, requests)


def outputs(
    stack: Stack, environment: Environment, requests: Mapping[str, JobRequest]
) -> dict[str, Any]:
    """Return the outputs of a stack by current keys. Reviews compare them with the files."""
    result: dict[str, Any] = {
        "buckets": {
            key: pulumi.Output.concat("gs://", name) for key, name in environment.buckets.items()
        },
        "secrets": environment.secrets,
        "registry": environment.registry,
        "serviceAccounts": environment.service_accounts,
        "limits": limits_by_section(stack.declared),
        "policyLevels": dict(stack.declared.policy_levels),
        "rules": dict(stack.declared.rules),
        "drift": stack.declared.drift.model_dump(by_alias=True, exclude_defaults=True),
    }
    if stack.declared.overrides:
        result["overrides"] = dict(stack.declared.overrides)
    if stack.declared.allowed_secrets:
        result["allowedSecrets"] = dict(stack.declared.allowed_secrets)
    result |= serving_outputs(stack, environment.serving)
    if stack.snapshots:
        result["snapshots"] = snapshot_outputs(stack, environment.snapshots)
    sections: dict[str, dict[str, object]] = {CUSTOM_JOB.section: {}}
    if environment.schedules:
        result["schedules"] = {
            key: schedule_outputs(environment.schedules[key], requests[key])
            for key in stack.settings.schedules
        }
    for key, request in requests.items():
        if key in environment.schedules:
            continue
        section = sections.setdefault(request.kind.section, {})
        section[key] = job_outputs(environment.jobs[key], request)
    return result | sections


def limits_by_section(settings: Settings) -> dict[str, dict[str, object]]:
    """Return the limits that the stack file sets, by section and by key."""
    sections = {f"teams.{key}.limits": team.limits for key, team in settings.teams.items()}
    dumped = {
        name: limits.model_dump(by_alias=True, exclude_defaults=True)
        for name, limits in ({"limits": settings.limits} | sections).items()
    }
    return {name: limits for name, limits in dumped.items() if limits}
