"""Rules about requests: mistakes that the service refuses, and valid input with bad effects.

A rule is a small function over a ``Job``, registered with an id, a one-line summary and its source.
Violations of Google's documentation or client are errors. Observed or inferred limits are warnings.

===============  =====================================================================
``machines``     worker pools, machine types, accelerators, regions, boot disks, TPUs
``capacity``     reservations, persistent resources, strategy, timeout and restarts
``images``       container images: registry, tag, prebuilt images
``storage``      output directory, packages, mounted file systems
``environment``  environment variables, command and arguments
``launch``       command lines and machines: shells, launchers, nodes
``command_lines``  parses command lines: commands inside shells and wrappers; launchers
``secrets``      secrets in a request
``network``      peering, interfaces and DNS, without a stack
``identity``     account, key, region, TensorBoard, experiment, name and labels
``study``        read access to a tuning job's study; its metrics and parameters
``trials``       a tuning job's search, trials and their arguments
``stack``        other jobs, accounts, secrets, limits, network and reservations of the stack
``batch``        fields that Batch lacks or interprets differently; cost on each service
``job``          read access to a request; facts of a job for rules about other jobs
``context``      the stack of a job, as plain data
``registry``     the list of rules, including those of the file reader
===============  =====================================================================
"""

import importlib
from typing import Final

from vertex_training.customjob.rules.registry import FILE_RULES, RULES, Rule

#: Modules with rules, in the order in which their rules are listed.
SUBJECTS: Final = (
    "machines", "capacity", "images", "storage", "environment", "launch", "secrets",
    "network", "identity", "study", "trials", "stack", "batch",
)  # fmt: skip
#: Subjects of rules that apply only to tuning jobs.
OF_TUNING: Final = frozenset(("study", "trials"))
#: Subjects of rules that need the stack of a job.
OF_A_STACK: Final = frozenset(("stack",))

for subject in SUBJECTS:
    importlib.import_module(f"{__name__}.{subject}")

#: All rules. Rules that the reader of job files checks come first.
ALL: Final[tuple[Rule, ...]] = (*FILE_RULES, *RULES)
