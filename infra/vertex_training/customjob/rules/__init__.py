"""Rules for requests: what the service would refuse, or the owner of the job regret.

A rule is a small function over a ``Job``, registered with an id, a one-line summary and its source.
What Google documents or the client refuses is an error. What was observed or inferred is a warning.

===============  =====================================================================
``pools``        order, replicas and required fields of the pools; reduction servers
``machines``     machine types, accelerators, regions, boot disks, TPUs
``capacity``     reservations, persistent resources, strategy, timeout and restarts
``images``       container images: registry, tag, prebuilt images
``storage``      output directory, packages, mounted file systems
``environment``  environment variables, command and arguments
``launch``       the command line against the machines: shells, launchers, nodes
``command_lines``  commands of a line, through shells and wrappers; launchers
``secrets``      secrets in a request
``network``      peering, interfaces and DNS, without a stack
``identity``     account, key, region, TensorBoard, experiment, name and labels
``study``        a tuning job's study as the rules read it, and its metrics
``parameters``   a tuning job's parameters
``trials``       a tuning job's search, trials and their arguments
``stack``        the job with the stack's other jobs, accounts, secrets and limits
``fit``          the job in the stack's network and reservations
``batch``        what Batch refuses of a CustomJob, and what differs there
``job``          a request as the rules read it, and what rules about other jobs need
``context``      the stack of a job, as plain data
``registry``     the list of rules, with those that reading the file checks
===============  =====================================================================
"""

import importlib
from typing import Final

from vertex_training.customjob.rules import registry
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
    "pools",
    "machines",
    "capacity",
    "images",
    "storage",
    "environment",
    "launch",
    "secrets",
    "network",
    "identity",
    "study",
    "parameters",
    "trials",
    "stack",
    "fit",
    "batch",
)
#: Subjects of rules about tuning jobs alone.
OF_TUNING: Final = frozenset(("study", "parameters", "trials"))
#: Subjects of rules about the stack of a job.
OF_A_STACK: Final = frozenset(("stack", "fit"))

for subject in SUBJECTS:
    importlib.import_module(f"{__name__}.{subject}")

#: Every rule. Those that reading the file checks come first.
ALL: Final[tuple[Rule, ...]] = (*registry.FILE_RULES, *RULES)

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
