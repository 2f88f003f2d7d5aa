"""Rules across the keys of a stack file. Pure.

A rule is a function in one of these modules, registered with ``registry.rule``: it needs no other
line. They report in this order:

===================  =================================================================
``names``            names, numbers and labels that Google Cloud would refuse; unknown keys;
                     ``existing`` and ``name``
``access``           ``teams``, ``members``, ``roles``, ``datasets``; what CI may not grant
``files``            files that the stack file names, secrets in what it sends, code that
                     names no project
``launchers``        configuration files of accelerate and DeepSpeed against the pools of jobs
``storage``          encryption, retention and classes of buckets; ``snapshots``
``network``          ``network``, ``sharedVpc`` and ``reservations``
``limits``           ``limits``, for the stack as a whole
``jobs``             ``jobDefaults``, ``rules`` and ladders
``serving``          ``models`` and ``endpoints``; endpoints on TPUs
``alerts``           ``channels``, ``alerts`` and ``budget``
``registry``         the list of rules
===================  =================================================================
"""

import importlib
from typing import Final

from vertex_training.stack_rules.registry import StackFile, findings

#: Modules with rules, in the order in which these report.
SUBJECTS: Final = (
    "names",
    "access",
    "files",
    "launchers",
    "storage",
    "network",
    "limits",
    "jobs",
    "serving",
    "alerts",
)
for subject in SUBJECTS:
    importlib.import_module(f"{__name__}.{subject}")

__all__ = ["StackFile", "findings"]
