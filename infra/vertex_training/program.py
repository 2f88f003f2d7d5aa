"""The architecture on one page: the components of a stack, in order, and what each passes on.

    apis ──► storage ──► packages ──┐
      │         └──────┐            │
      ├────► secrets ──┴► identities┤
      ├────► registry ──────────────┼──► training
      │         └► image builds     │
      ├─(► host project)► network ──┤
      └────► capacity ──────────────┘

Deleted from right to left: a job is cancelled before its network connection is removed, and that
before its addresses and its network.

Everything is checked before the first resource is registered. No component reads the config and
none unwraps an output: all names are explicit, so a job's request is known in full at preview.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pulumi
from pulumi import export

from vertex_training import engine
from vertex_training import stack as stacks
from vertex_training.catalog import costs
from vertex_training.components.apis import Apis
from vertex_training.components.apis import needed as needed_apis
from vertex_training.components.capacity import Capacity
from vertex_training.components.iam import Grants
from vertex_training.components.identities import TrainingAccount
from vertex_training.components.image_builds import ImageBuilds
from vertex_training.components.network import Network
from vertex_training.components.ordering.protection import Protection
from vertex_training.components.packages import Packages
from vertex_training.components.registry import Registry
from vertex_training.components.secrets import Secrets
from vertex_training.components.shared_vpc import HostProject
from vertex_training.components.storage import Storage
from vertex_training.components.training import Training
from vertex_training.customjob.kinds import CUSTOM_JOB
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.customjob.resource import CustomJob
from vertex_training.environment import TOP, Environment, Scope
from vertex_training.errors import ConfigError, Problem
from vertex_training.extra.declaring import declare_extra
from vertex_training.extra.loading import load
from vertex_training.naming import CONTROL, STAGING
from vertex_training.plan import stack_grants
from vertex_training.settings.model import Settings
from vertex_training.stack import Stack


def run(file: str | Path) -> None:
    """The whole program of a repository of stack files; ``file`` is its ``__main__.py``.

    Ends the process with all mistakes, in words, if the stack's files have some.
    """
    root = Path(file).parent
    try:
        deploy(stacks.from_raw(engine.read_config(stacks.SCHEMA, root), root))
    except ConfigError as error:
        engine.abandon_with_message(error.report())


def deploy(stack: Stack) -> Environment:
    """Read the jobs, log what a reviewer must know, declare everything, and export the outputs.

    Raises:
        ConfigError: with every mistake in job files and in the team's own resources (``extra.py``),
            before anything is registered.
    """
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
    """Every component, in order, once all of ``after`` is there.

    ``requests`` are by the keys of the stack file. Resources go by first keys.
    """
    requests = {request.submission.job: request for request in requests.values()}
    settings = stack.declared
    apis = declare_apis(scope, settings, after)
    key = declare_key_access(scope, stack, apis)
    storage = declare_storage(scope, stack, apis, key)
    registry = declare_registry(scope, stack, apis, key)
    builds = declare_image_builds(scope, stack, apis, storage, registry)
    secrets = declare_secrets(scope, stack, apis, key)
    identities = declare_identities(scope, stack, requests, apis, storage, secrets)
    packages = declare_packages(scope, stack, storage)
    network = declare_network(scope, stack, apis)
    capacity = declare_capacity(scope, stack, apis)
    needed: list[pulumi.ComponentResource] = [
        *(apis, storage, registry, packages),
        *network,
        *capacity,
        *declare_job_grants(scope, stack, requests, apis),
        *identities.values(),
        *declare_extra_grants(scope, stack, [storage, registry, secrets, *identities.values()]),
    ]
    training = declare_training(scope, stack, requests, needed)
    everything = [*needed, *builds, secrets, training]
    Protection(scope.name("protection"), settings.protects, after=everything, opts=scope.opts)
    made = (stack, apis, storage, registry, secrets, identities, network, capacity, training)
    return environment_of(*made)


def environment_of(
    stack: Stack,
    apis: Apis,
    storage: Storage,
    registry: Registry,
    secrets: Secrets,
    identities: Mapping[str, TrainingAccount],
    network: Sequence[Network],
    capacity: Sequence[Capacity],
    training: Training,
) -> Environment:
    """What was declared, by the keys of the stack file."""
    addresses = {key: account.address for key, account in identities.items()}
    return Environment(
        stack.declared,
        apis,
        buckets=stack.by_new_keys(("buckets",), storage.bucket_names),
        service_accounts=stack.by_new_keys(("serviceAccounts",), addresses),
        secrets=stack.by_new_keys(("secrets",), secrets.paths),
        registry=registry.url,
        network=network[0].path if network else None,
        reservations=stack.by_new_keys(("reservations",), capacity[0].paths if capacity else {}),
        jobs={key: training.jobs[first] for key, first in stack.first_job_keys.items()},
    )


def outputs(
    stack: Stack, environment: Environment, requests: Mapping[str, JobRequest]
) -> dict[str, Any]:
    """The outputs of a stack: what jobs use, and a summary of each job, by the stack file's keys.

    A review compares the limits and the levels of policies with those of the files.
    """
    found: dict[str, Any] = {
        "buckets": {
            key: pulumi.Output.concat("gs://", name) for key, name in environment.buckets.items()
        },
        "registry": environment.registry,
        "serviceAccounts": environment.service_accounts,
        "limits": limits_by_section(stack.declared),
        "policyLevels": dict(stack.declared.policy_levels),
    }
    sections: dict[str, dict[str, object]] = {CUSTOM_JOB.section: {}}
    for key, request in requests.items():
        section = sections.setdefault(request.kind.section, {})
        section[key] = summary(environment.jobs[key], request)
    return found | sections


def declare_apis(scope: Scope, settings: Settings, after: Sequence[pulumi.Resource]) -> Apis:
    """The APIs of what the stack file has; everything else waits for some of them."""
    apis = needed_apis(sections_with_apis(settings))
    return Apis(scope.name("apis"), settings.project, apis, after=after, opts=scope.opts)


def declare_key_access(scope: Scope, stack: Stack, apis: Apis) -> list[Grants]:
    """Who may encrypt with the stack's own key; nothing where it has none."""
    if stack.declared.encryption is None:
        return []
    return [
        Grants(
            "vertextraining:encryption:KeyAccess",
            scope.name("encryption"),
            stack.encryption_grants,
            project=stack.declared.project,
            services={
                user.service: apis.on(user.service)
                for user in stack_grants.key_users(stack.declared)
            },
            after=apis.on("cloudkms"),
            opts=scope.opts,
        )
    ]


def declare_storage(
    scope: Scope, stack: Stack, apis: Apis, key: Sequence[pulumi.Resource]
) -> Storage:
    """The buckets, encrypted with the stack's own key if ``key`` is there to wait for."""
    settings = stack.declared
    return Storage(
        scope.name("storage"),
        names=settings.names,
        labels=settings.labels_by_team,
        buckets=settings.buckets,
        objects=stack.objects,
        key=settings.key_for("buckets"),
        after=[*apis.on("storage"), *key],
        opts=scope.opts,
    )


def declare_secrets(
    scope: Scope, stack: Stack, apis: Apis, key: Sequence[pulumi.Resource]
) -> Secrets:
    """The secrets, encrypted with the stack's own key if ``key`` is there to wait for."""
    settings = stack.declared
    return Secrets(
        scope.name("secrets"),
        names=settings.names,
        labels=settings.labels_by_team,
        secrets=settings.secrets,
        key=settings.key_for("secrets"),
        after=[*(apis.on("secretmanager") if settings.secrets else []), *key],
        opts=scope.opts,
    )


def declare_identities(
    scope: Scope,
    stack: Stack,
    requests: Mapping[str, JobRequest],
    apis: Apis,
    storage: Storage,
    secrets: Secrets,
) -> dict[str, TrainingAccount]:
    """The accounts that jobs run as, by key."""
    settings = stack.declared
    fetching = accounts_fetching_packages(settings, requests)
    return {
        key: TrainingAccount(
            scope.name(key),
            key=key,
            names=settings.names,
            account=account,
            grants=stack_grants.account_grants(
                settings, key, fetches_packages=settings.names.account_email(key) in fetching
            ),
            buckets=storage.bucket_names,
            secrets=secrets.paths,
            after=apis.on("iam", "cloudresourcemanager"),
            opts=scope.opts,
        )
        for key, account in settings.service_accounts.items()
    }


def declare_registry(
    scope: Scope, stack: Stack, apis: Apis, key: Sequence[pulumi.Resource]
) -> Registry:
    """The repository of images."""
    settings = stack.declared
    return Registry(
        scope.name("registry"),
        names=settings.names,
        labels=settings.labels,
        settings=settings.registry,
        pinned=stack.pinned_digests,
        key=settings.key_for("registry"),
        after=[*apis.on("artifactregistry"), *key],
        opts=scope.opts,
    )


def declare_image_builds(
    scope: Scope, stack: Stack, apis: Apis, storage: Storage, registry: Registry
) -> list[ImageBuilds]:
    """The account that builds images, if the stack builds some. No job waits for it."""
    settings = stack.declared
    if not settings.builds_images:
        return []
    return [
        ImageBuilds(
            scope.name("images"),
            names=settings.names,
            grants=stack_grants.build_grants(settings),
            storage=storage,
            registry=registry,
            after=apis.on("iam", "cloudresourcemanager", "cloudbuild"),
            opts=scope.opts,
        )
    ]


def declare_packages(scope: Scope, stack: Stack, storage: Storage) -> Packages:
    """The code of jobs. What a job may still fetch, because it may go on, is kept."""
    settings = stack.declared
    return Packages(
        scope.name("packages"),
        packages=stack.packages,
        root=stack.root,
        bucket=storage.buckets[STAGING],
        keep_old=any(settings.finishes(job) for job in settings.submitted),
        opts=scope.opts,
    )


def declare_training(
    scope: Scope, stack: Stack, requests: Mapping[str, JobRequest], after: Sequence[pulumi.Resource]
) -> Training:
    """The jobs, which need all of ``after``."""
    settings, names = stack.declared, stack.declared.names
    return Training(
        scope.name("training"),
        requests=requests,
        jobs=settings.submitted,
        labels=settings.labels,
        team_labels={
            key: settings.labels_of(team)
            for key, request in requests.items()
            if (team := settings.team_at(request.account))
        },
        control_bucket=names.bucket(CONTROL),
        finishes=settings.finishes,
        after=after,
        opts=scope.opts,
    )


def sections_with_apis(settings: Settings) -> list[str]:
    """Sections in use that need APIs of their own, by their names in ``catalog/apis.yaml``."""
    network = settings.network
    wanted = {
        "secrets": bool(settings.secrets),
        "imageBuilds": settings.builds_images,
        "scanning": bool(settings.registry.scanning),
        "peering": network.mode == "peering",
        "dnsPeering": bool(network.dns_peering),
        "encryption": settings.encryption is not None,
    }
    return [section for section, used in wanted.items() if used]


def declare_network(scope: Scope, stack: Stack, apis: Apis) -> list[Network]:
    """The network, in the project of its owner; nothing where jobs use none."""
    settings, plan, host = stack.declared, stack.network, stack.declared.shared_vpc
    if plan is None:
        return []
    peering = plan.mode == "peering"
    needed = ("compute", "cloudresourcemanager", *(["servicenetworking"] if peering else []))
    after = [*apis.on(*needed), apis.agent]
    if host and host.manage_host:
        after.append(
            HostProject(
                scope.name("host"),
                project=settings.project,
                host=host,
                peering=peering,
                after=after[:-1],
                opts=scope.opts,
            )
        )
    return [
        Network(
            scope.name("network"),
            names=settings.names,
            plan=plan,
            settings=settings.network,
            grants=stack.network_grants,
            after=after,
            opts=scope.opts,
        )
    ]


def declare_capacity(scope: Scope, stack: Stack, apis: Apis) -> list[Capacity]:
    """The reservations; nothing where the stack has none."""
    if not stack.reservations:
        return []
    return [
        Capacity(
            scope.name("capacity"),
            project=stack.declared.project,
            plans=stack.reservations,
            grants=stack.reservation_grants,
            after=[*apis.on("compute", "cloudresourcemanager"), apis.agent],
            opts=scope.opts,
        )
    ]


def declare_extra_grants(
    scope: Scope, stack: Stack, after: Sequence[pulumi.Resource]
) -> list[Grants]:
    """Grants that the stack file asks for by name; nothing where it asks for none."""
    ours = [grant for grant in stack.extra_grants if grant.ours]
    token = "vertextraining:iam:ExtraGrants"
    return [Grants(token, scope.name("extra"), ours, after=after, opts=scope.opts)] if ours else []


def declare_job_grants(
    scope: Scope, stack: Stack, requests: Mapping[str, JobRequest], apis: Apis
) -> list[Grants]:
    """Grants on keys of this project that jobs name; nothing where none does."""
    grants = [grant for grant in stack.job_grants(requests) if grant.ours]
    if not grants:
        return []
    token = "vertextraining:training:JobGrants"
    return [Grants(token, scope.name("job"), grants, after=[apis.agent], opts=scope.opts)]


def log_advice(stack: Stack, requests: Mapping[str, JobRequest]) -> None:
    """Log what a reviewer must know and no resource shows: advice, prices, external grants."""
    for warning in stack.warnings(requests):
        pulumi.log.warn(str(warning))
    now = datetime.datetime.now(tz=datetime.UTC)
    for line in (*stack.reservation_costs(now), *stack.tuning_costs(requests)):
        pulumi.log.info(line)
    if report := stack.external_grants(requests):
        pulumi.log.info(report)


def read_jobs(stack: Stack, also: Sequence[Problem] = ()) -> dict[str, JobRequest]:
    """Requests of all jobs. Warnings are logged; mistakes of all files are raised together.

    ``also``: mistakes elsewhere, raised with them.
    """
    results = stack.check_jobs()
    problems = [problem for result in results.values() for problem in result.errors]
    problems += also
    if problems := [*problems, *stack.exceeded_limits(results)]:
        raise ConfigError(problems)
    for result in results.values():
        for warning in (*result.warnings, *result.ignored):
            pulumi.log.warn(str(warning))
    return {key: result.request for key, result in results.items() if result.request}


def accounts_fetching_packages(settings: Settings, requests: Mapping[str, JobRequest]) -> set[str]:
    """Addresses of the accounts whose jobs fetch code from the staging bucket."""
    staging = f"gs://{settings.names.bucket(STAGING)}/"
    return {request.account for request in requests.values() if staging in request.body}


def limits_by_section(settings: Settings) -> dict[str, dict[str, object]]:
    """The limits that are set, as the stack file has them, by their section."""
    sections = {"limits": settings.limits} | {
        f"teams.{key}.limits": team.limits for key, team in settings.teams.items()
    }
    found = {
        name: limits.model_dump(by_alias=True, exclude_defaults=True)
        for name, limits in sections.items()
    }
    return {name: limits for name, limits in found.items() if limits}


def summary(job: CustomJob, request: JobRequest) -> dict[str, pulumi.Input[str]]:
    """The outputs of a job. Values that do not depend on its creation are known at preview."""
    return {
        "name": job.name,
        "state": job.state,
        "requestId": request.request_id,
        "requestDigest": request.digest,
        "artifacts": request.output_directory,
        "costsAtMost": str(costs.of_job(request.message, request.submission.region)),
        "console": job.console_url,
        "logs": job.log_url,
    }
