"""What the rules may know of a stack: who runs jobs, who reads and writes what, what is there."""

from __future__ import annotations

import ipaddress

from infra import naming
from infra.customjob.rules.context import (
    BucketFacts,
    NetworkFacts,
    ReservationFacts,
    StackFacts,
)
from infra.plan import network as network_plan
from infra.plan import reservations as reservation_plan
from infra.settings.model import Settings


def facts(settings: Settings) -> StackFacts:
    """The stack as rules see it. It follows from the config alone: every grant does."""
    names = settings.names
    email = {key: names.account_email(key) for key in settings.service_accounts}
    accounts = settings.service_accounts.items()
    buckets = {
        # Grants on these two are the stack's own: jobs fetch packages, and never see the records.
        names.bucket(naming.STAGING): BucketFacts(readers=frozenset(email.values())),
        names.bucket(naming.CONTROL): BucketFacts(),
    }
    for key in settings.buckets:
        writers = frozenset(email[name] for name, account in accounts if key in account.writes)
        readers = frozenset(email[name] for name, account in accounts if key in account.reads)
        buckets[names.bucket(key)] = BucketFacts(readers=readers | writers, writers=writers)
    return StackFacts(
        project=settings.project,
        project_number=settings.project_number,
        region=settings.region,
        accounts=frozenset(email.values()),
        buckets=buckets,
        secrets={
            names.secret(key): frozenset(
                email[name] for name, account in accounts if key in account.secrets
            )
            for key in settings.secrets
        },
        network=_network(settings),
        reservations=_reservations(settings),
    )


def _network(settings: Settings) -> NetworkFacts | None:
    found, given = network_plan.plan(settings), settings.network
    if found is None:
        return None
    block = given.subnet.range if given.subnet else None
    return NetworkFacts(
        mode=found.mode,
        name=found.path,
        attachment=found.attachment,
        ranges={name: given.ranges[key].prefix_length for key, name in found.ranges.items()},
        subnet_prefix=ipaddress.IPv4Network(block).prefixlen if block else None,
        parallel_jobs=given.parallel_jobs,
    )


def _reservations(settings: Settings) -> dict[str, ReservationFacts]:
    return {
        plan.path: ReservationFacts(
            key=plan.key,
            machine_type=plan.machine_type,
            accelerator_type=plan.accelerator_type,
            accelerator_count=plan.accelerator_count,
            count=plan.settings.count,
            specific=plan.settings.specific_reservation_required,
            local_ssds=plan.settings.local_ssds.count if plan.settings.local_ssds else 0,
            parallel_jobs=plan.settings.parallel_jobs,
        )
        for plan in reservation_plan.plans(settings).values()
    }
