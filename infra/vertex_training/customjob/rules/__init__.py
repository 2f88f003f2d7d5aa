"""Rules for requests: what the service would refuse, or the owner of the job regret.

One module for each subject, in ``compute``, ``task``, ``tuning`` and ``stack``. A rule is a small
function over a ``Job``, registered with an id, a one-line summary and its source. What Google
documents or the client refuses is an error. What was observed or inferred is a warning.
"""

import importlib
from typing import Final

from vertex_training.customjob.rules import documented
from vertex_training.customjob.rules.context import (
    FILE_ONLY,
    BucketFacts,
    Context,
    JobFacts,
    NetworkFacts,
    ReservationFacts,
    StackFacts,
)
from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import RULES, Finding, Rule

#: Modules with rules, in the order in which their rules are listed.
SUBJECTS: Final = (
    "compute.pools",
    "compute.machines",
    "compute.tpu",
    "compute.capacity",
    "compute.scheduling",
    "task.images",
    "task.storage",
    "task.environment",
    "task.secrets",
    "network",
    "identity",
    "task.tracking",
    "naming",
    "tuning.metrics",
    "tuning.parameters",
    "tuning.trials",
    "stack.stack",
    "stack.fit_network",
    "stack.fit_reservations",
    "stack.batch",
)

#: Subjects of rules about tuning jobs alone, as the rules have them.
OF_TUNING: Final = frozenset(("metrics", "parameters", "trials"))

for subject in SUBJECTS:
    importlib.import_module(f"{__name__}.{subject}")

#: Every rule. Those that reading the file checks come first.
ALL: Final[tuple[Rule, ...]] = (*documented.RULES, *RULES)

__all__ = [
    "ALL",
    "FILE_ONLY",
    "OF_TUNING",
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
