"""What the rules may know of a stack: who runs jobs, and who reads and writes what."""

from __future__ import annotations

from infra import naming
from infra.customjob.rules.context import BucketFacts, StackFacts
from infra.settings import Settings


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
    )
