"""Training on Vertex AI as one Pulumi program, the command line for it, and a rehearsal of both.

==============  ===========================================================================
``components``  parts of an environment, for other Pulumi programs
``foundation``  a second program: what precedes a first deployment (``bootstrap/``)
``guardrails``  policies on resources, which ``policy/`` serves to the engine
``infra``       the program: what a stack file says, checked and declared; the job provider
``localcloud``  stand-ins for Google Cloud on this machine
``toolchain``   installs ``pulumi``; standard library only
``vt``          the command line
==============  ===========================================================================

A program imports from here what it declares: ``from vertex_training import TrainingJob``. Nothing
is loaded before it is named.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from vertex_training.components.account import TrainingAccount, TrainingAccountArgs
    from vertex_training.components.buckets import TrainingBuckets, TrainingBucketsArgs
    from vertex_training.components.environment import (
        TrainingEnvironment,
        TrainingEnvironmentArgs,
    )
    from vertex_training.components.job import TrainingJob, TrainingJobArgs
    from vertex_training.components.network import TrainingNetwork, TrainingNetworkArgs
    from vertex_training.components.reading import ArgumentsError
    from vertex_training.components.reservation import GpuReservation, GpuReservationArgs
    from vertex_training.infra.environment import Environment
    from vertex_training.infra.program import run

__all__ = (
    "ArgumentsError",
    "Environment",
    "GpuReservation",
    "GpuReservationArgs",
    "TrainingAccount",
    "TrainingAccountArgs",
    "TrainingBuckets",
    "TrainingBucketsArgs",
    "TrainingEnvironment",
    "TrainingEnvironmentArgs",
    "TrainingJob",
    "TrainingJobArgs",
    "TrainingNetwork",
    "TrainingNetworkArgs",
    "run",
)

#: Public name -> module that has it, below this package.
_MODULES: Final = {
    "ArgumentsError": "components.reading",
    "Environment": "infra.environment",
    "GpuReservation": "components.reservation",
    "TrainingAccount": "components.account",
    "TrainingBuckets": "components.buckets",
    "TrainingEnvironment": "components.environment",
    "TrainingJob": "components.job",
    "TrainingNetwork": "components.network",
    "run": "infra.program",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name.removesuffix("Args"))
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
