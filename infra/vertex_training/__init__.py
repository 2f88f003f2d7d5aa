"""Training on Vertex AI as one Pulumi program, and its parts as components for other programs.

========================  ==========================================================
``program``               the architecture on one page; start reading here
``training_environment``  the same as a component, for other Pulumi programs
``extra``                 a team's own resources, ``extra.py`` of its repository
``stack``                 a stack: settings, plans, references and packages, built once
``engine``                what a program asks of the Pulumi engine: its config, a plain end
``plugin_callers``        guards plugins of the engine from other users of the machine
``pulumi_internals``      internals of the Pulumi SDK, where it has no public way
``naming``                names and labels of everything, with their limits
``errors``                problems as values, and the tree of exceptions
``host``                  serves the public components to programs in other languages
``foundation``            a second program: what precedes a first deployment (``bootstrap/``)
``guardrails``            policies on resources, which ``policy/`` serves to the engine
``components``            one logical entity a module, its IAM inside; those for other programs
``stack_rules``           rules across the keys of a stack file
``plan``                  what follows from settings: networks, reservations, grants
``serving``               the dynamic providers of model versions, and of what endpoints serve
``schedules``             the dynamic provider of jobs that are submitted at set times
``snapshots``             the dynamic provider that keeps results of queries as files
``images``                build contexts, and the identity of a build
``customjob``             the dynamic provider that submits CustomJobs
``settings``              what a stack file may say, and what reads it
``catalog``               facts about Google Cloud as data, each row with its source
``located_yaml``          YAML documents with the line and column of every value
``secret_rules``          what looks like a secret: redaction, and scans of files that leave
========================  ==========================================================

Each folder imports only those below it. ``components``, ``engine``, ``extra``, ``host``,
``program``, ``training_environment`` and the adapters of ``customjob``, ``schedules``,
``serving`` and ``snapshots`` load Pulumi or Google's clients; everything else is pure.

A program imports from here what it declares: ``from vertex_training import TrainingJob``. Nothing
is loaded before it is named.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from vertex_training.components.arguments import ArgumentsError as ArgumentsError
    from vertex_training.components.capacity import GpuReservation as GpuReservation
    from vertex_training.components.capacity import GpuReservationArgs as GpuReservationArgs
    from vertex_training.components.environment import Environment as Environment
    from vertex_training.components.identities import TrainingAccount as TrainingAccount
    from vertex_training.components.identities import TrainingAccountArgs as TrainingAccountArgs
    from vertex_training.components.network import TrainingNetwork as TrainingNetwork
    from vertex_training.components.network import TrainingNetworkArgs as TrainingNetworkArgs
    from vertex_training.components.sections import *  # noqa: F403
    from vertex_training.components.storage import TrainingBuckets as TrainingBuckets
    from vertex_training.components.storage import TrainingBucketsArgs as TrainingBucketsArgs
    from vertex_training.components.training import TrainingJob as TrainingJob
    from vertex_training.components.training import TrainingJobArgs as TrainingJobArgs
    from vertex_training.program import run as run
    from vertex_training.training_environment import TrainingEnvironment as TrainingEnvironment
    from vertex_training.training_environment import (
        TrainingEnvironmentArgs as TrainingEnvironmentArgs,
    )

#: Public name -> module that has it, below this package; components have ``NAMEArgs`` beside them.
_MODULES: Final = {
    "ArgumentsError": "components.arguments",
    "Environment": "components.environment",
    "GpuReservation": "components.capacity",
    "TrainingAccount": "components.identities",
    "TrainingBuckets": "components.storage",
    "TrainingEnvironment": "training_environment",
    "TrainingJob": "components.training",
    "TrainingNetwork": "components.network",
    "run": "program",
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return _public_names()
    # Other arguments are sections of a stack file, which arguments of components have.
    sections = "components.sections" if name.endswith("Args") else None
    module = _MODULES.get(name.removesuffix("Args"), sections)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


def _public_names() -> list[str]:
    from vertex_training.components.sections import MODELS

    components = (name for name in _MODULES if name.startswith(("Training", "Gpu")))
    of_sections = (name for name in MODELS if name.endswith("Args"))
    return sorted({*_MODULES, *(f"{name}Args" for name in components), *of_sections})


def __dir__() -> list[str]:
    return sorted({*globals(), *_public_names()})
