"""Does the request make sense? What the service would refuse, or its owner regret.

One module a subject; each rule is a small function over a ``Job``, registered with an id, one
line that says what it holds, and its source. What Google documents or the client refuses makes
an error; what was merely observed or concluded makes a warning.
"""

import importlib

from infra.customjob.rules import documented
from infra.customjob.rules.context import (
    ALONE,
    BucketFacts,
    Context,
    JobFacts,
    NetworkFacts,
    ReservationFacts,
    StackFacts,
)
from infra.customjob.rules.job import Job
from infra.customjob.rules.registry import RULES, Finding, Rule

#: Modules with rules, in the order in which their rules are listed.
SUBJECTS = (
    "compute.pools",
    "compute.machines",
    "compute.tpu",
    "compute.capacity",
    "compute.scheduling",
    "compute.reduction",
    "task.images",
    "task.storage",
    "task.mounts",
    "task.environment",
    "task.secrets",
    "network",
    "identity",
    "task.tracking",
    "naming",
    "stack.stack",
    "stack.limits",
    "stack.fit_network",
    "stack.fit_reservations",
)

for subject in SUBJECTS:
    importlib.import_module(f"{__name__}.{subject}")

#: Every rule there is, those that reading the file itself checks first.
ALL: tuple[Rule, ...] = (*documented.RULES, *RULES)

__all__ = [
    "ALL",
    "ALONE",
    "RULES",
    "BucketFacts",
    "Context",
    "Finding",
    "Job",
    "JobFacts",
    "NetworkFacts",
    "ReservationFacts",
    "Rule",
    "StackFacts",
]
