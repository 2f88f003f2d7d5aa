"""The architecture on one page: what a stack is made of, in order, and what each part hands on.

    apis ──► storage ──► packages ──┐
      │         └──────┐            │
      ├────► secrets ──┴► identities┤
      ├────► registry ──────────────┼──► training
      ├─(► host project)► network ──┤
      └────► capacity ──────────────┘

Taken down from right to left: a job is cancelled before the connection it runs over is removed,
and that before its addresses and its network are.

Everything is checked before the first resource is registered. No component reads the config and
none unwraps an output: all names are explicit, so a job's request is known in full at preview.
"""

from __future__ import annotations

import datetime
from pathlib import Path

import pulumi

from infra.catalog import costs
from infra.components.apis import Apis
from infra.components.capacity import Capacity
from infra.components.identities import TrainingAccount
from infra.components.network import Network
from infra.components.packages import Packages
from infra.components.registry import Registry
from infra.components.secrets import Secrets
from infra.components.shared_vpc import HostProject
from infra.components.storage import Storage
from infra.components.training import Training
from infra.customjob.request.job_file import JobRequest
from infra.customjob.resource import CustomJob
from infra.errors import ConfigError
from infra.naming import CONTROL, STAGING
from infra.plan import (
    external_grants as host_duties,
)
from infra.plan import (
    jobs as job_files,
)
from infra.plan import (
    network as network_plan,
)
from infra.plan import (
    packages as packaging,
)
from infra.plan import (
    reservations as reservation_plan,
)
from infra.plan.packages import Package
from infra.settings.model import Settings
from infra.stack_rules import advice, limits


def deploy(settings: Settings, root: Path) -> None:
    """Declare everything. ``root`` is the checkout.

    Raises:
        ConfigError: with every mistake in job files and packages, before anything is declared.
    """
    packages = build_packages(settings, root)
    requests = read_jobs(settings, packages, root)
    tell(settings, requests, root)
    names, labels = settings.names, settings.labels

    apis = Apis("apis", project=settings.project, sections=uses(settings))
    storage = Storage(
        "storage",
        names=names,
        labels=labels,
        buckets=settings.buckets,
        after=apis.on("storage"),
    )
    registry = Registry(
        "registry",
        names=names,
        labels=labels,
        settings=settings.registry,
        after=apis.on("artifactregistry"),
    )
    secrets = Secrets(
        "secrets",
        names=names,
        labels=labels,
        secrets=settings.secrets,
        after=apis.on("secretmanager") if settings.secrets else [],
    )
    fetching = accounts_fetching_packages(settings, requests)
    identities = {
        key: TrainingAccount(
            key,
            key=key,
            names=names,
            account=account,
            uses_packages=names.account_email(key) in fetching,
            submitters=settings.submitters,
            storage=storage,
            secrets=secrets,
            after=apis.on("iam", "cloudresourcemanager"),
        )
        for key, account in settings.service_accounts.items()
    }
    uploaded = Packages(
        "packages",
        packages=packages,
        root=root,
        folder=".build/packages",
        bucket=storage.buckets[STAGING],
    )
    network = declare_network(settings, apis)
    capacity = declare_capacity(settings, apis)
    training = Training(
        "training",
        requests=requests,
        jobs=settings.jobs,
        labels=names.labels(labels),
        control_bucket=names.bucket(CONTROL),
        after=[apis, storage, registry, uploaded, *network, *capacity, *identities.values()],
    )

    pulumi.export("buckets", {key: bucket.url for key, bucket in storage.buckets.items()})
    pulumi.export("registry", registry.url)
    pulumi.export("serviceAccounts", {key: account.email for key, account in identities.items()})
    pulumi.export("jobs", {key: summary(job, requests[key]) for key, job in training.jobs.items()})


def uses(settings: Settings) -> list[str]:
    """What of a stack calls for APIs of its own, by the words of ``catalog/apis.yaml``."""
    network = settings.network
    wanted = {
        "secrets": bool(settings.secrets),
        "peering": network.mode == "peering",
        "dnsPeering": bool(network.dns_peering),
    }
    return [section for section, used in wanted.items() if used]


def declare_network(settings: Settings, apis: Apis) -> list[Network]:
    """The network, in the project of its owner; nothing where jobs use none."""
    plan, host = network_plan.plan(settings), settings.shared_vpc
    if plan is None:
        return []
    peering = plan.mode == "peering"
    after = [*apis.on("compute", *(["servicenetworking"] if peering else [])), apis.agent]
    if host and host.manage_host:
        after.append(
            HostProject(
                "host", project=settings.project, host=host, peering=peering, after=after[:-1]
            )
        )
    return [
        Network(
            "network",
            names=settings.names,
            plan=plan,
            settings=settings.network,
            needed=network_plan.rights(settings),
            after=after,
        )
    ]


def declare_capacity(settings: Settings, apis: Apis) -> list[Capacity]:
    """The reservations; nothing where the stack has none."""
    if not settings.reservations:
        return []
    return [
        Capacity(
            "capacity",
            plans=reservation_plan.plans(settings),
            needed=reservation_plan.rights(settings),
            after=[*apis.on("compute"), apis.agent],
        )
    ]


def tell(settings: Settings, requests: dict[str, JobRequest], root: Path) -> None:
    """What a reviewer must know and no resource says: surprises, prices, and what others do."""
    now = datetime.datetime.now(tz=datetime.UTC)
    for warning in advice.warnings(settings, requests, root, now):
        pulumi.log.warn(str(warning))
    for line in reservation_plan.cost(settings, now):
        pulumi.log.info(line)
    if duties := host_duties.report(settings):
        pulumi.log.info(duties)


def build_packages(settings: Settings, root: Path) -> dict[str, Package]:
    """The stack's packages, built; nothing is written yet. Raises ConfigError."""
    return packaging.build_all({key: p.path for key, p in settings.packages.items()}, root)


def read_jobs(
    settings: Settings, packages: dict[str, Package], root: Path
) -> dict[str, JobRequest]:
    """Requests of all jobs. Warnings are shown; mistakes of all files are raised together."""
    verdicts = job_files.judge(settings, packages, root)
    problems = [problem for verdict in verdicts.values() for problem in verdict.errors]
    if problems := [*problems, *limits.problems(settings, verdicts, root)]:
        raise ConfigError(problems)
    for verdict in verdicts.values():
        for warning in verdict.warnings:
            pulumi.log.warn(str(warning))
    return {key: verdict.request for key, verdict in verdicts.items() if verdict.request}


def accounts_fetching_packages(settings: Settings, requests: dict[str, JobRequest]) -> set[str]:
    """Addresses of the accounts whose jobs fetch code from the staging bucket."""
    staging = f"gs://{settings.names.bucket(STAGING)}/"
    return {
        request.message["jobSpec"]["serviceAccount"]
        for request in requests.values()
        if staging in request.body
    }


def summary(job: CustomJob, request: JobRequest) -> dict[str, pulumi.Input[str]]:
    """What people look for after ``pulumi up``; what is known before is known at preview."""
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
