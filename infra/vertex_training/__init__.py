"""Pulumi program for training on Vertex AI, and components for other programs.

========================  ==========================================================
``program``               architecture of the program on one page; start here
``training_environment``  the program as a component for other Pulumi programs
``extra``                 resources in ``extra.py`` of a team, and the outputs they can use
``stack``                 settings, plans, references and packages of a stack
``engine``                interface to the Pulumi engine: config, and errors without traceback
``plugin_callers``        protection of plugins against other users of the machine
``pulumi_internals``      internals of the Pulumi SDK without a public interface
``naming``                names and labels of resources, with their limits
``errors``                problems as values, and the tree of exceptions
``host``                  provider of the public components for other languages
``foundation``            second program, for the first deployment (``bootstrap/``)
``guardrails``            policies on resources, which ``policy/`` serves to the engine
``components``            one logical entity per module, with its IAM; public components
``stack_rules``           rules across the keys of a stack file
``plan``                  plans from settings: networks, reservations, grants
``serving``               dynamic providers of model versions and endpoint traffic
``schedules``             dynamic provider of scheduled jobs
``snapshots``             dynamic provider of query results as files
``images``                build contexts, and the identity of a build
``customjob``             dynamic provider that submits CustomJobs
``settings``              models and reader of stack files
``catalog``               facts about Google Cloud as data, each with its source
``located_yaml``          YAML documents with the line and column of every value
``secret_rules``          detection of secrets: redaction, and scans of uploaded files
========================  ==========================================================

Each folder imports only folders below it in this list. ``components``, ``engine``, ``extra``,
``host``, ``program``, ``training_environment`` and the adapters of ``customjob``, ``schedules``,
``serving`` and ``snapshots`` load Pulumi or Google's clients; all other modules are pure. Programs
write ``from vertex_training import TrainingJob``, which loads only the modules of this component.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from vertex_training.components.arguments import ArgumentsError as ArgumentsError
    from vertex_training.components.capacity import GpuReservation as GpuReservation
    from vertex_training.components.capacity import GpuReservationArgs as GpuReservationArgs
    from vertex_training.components.identities import TrainingAccount as TrainingAccount
    from vertex_training.components.identities import TrainingAccountArgs as TrainingAccountArgs
    from vertex_training.components.network import TrainingNetwork as TrainingNetwork
    from vertex_training.components.network import TrainingNetworkArgs as TrainingNetworkArgs
    from vertex_training.components.sections import *  # noqa: F403
    from vertex_training.components.storage import TrainingBuckets as TrainingBuckets
    from vertex_training.components.storage import TrainingBucketsArgs as TrainingBucketsArgs
    from vertex_training.components.training import TrainingJob as TrainingJob
    from vertex_training.components.training import TrainingJobArgs as TrainingJobArgs
    from vertex_training.extra import Environment as Environment
    from vertex_training.program import run as run
    from vertex_training.training_environment import TrainingEnvironment as TrainingEnvironment
    from vertex_training.training_environment import (
        TrainingEnvironmentArgs as TrainingEnvironmentArgs,
    )

#: Public name -> module below this package; ``NAMEArgs`` of a component is in the same module.
_MODULES: Final = {
    "ArgumentsError": "components.arguments",
    "Environment": "extra",
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
    # Other names with Args are sections of a stack file.
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
