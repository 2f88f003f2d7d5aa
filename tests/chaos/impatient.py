"""The real provider and resource, with a protocol that waits seconds in place of minutes.

Only a program that names these classes gets them: nothing a user can set shortens the bounds.
"""

from __future__ import annotations

from typing import ClassVar, Final

from vertex_training.customjob.protocol.ports import Timing
from vertex_training.customjob.provider import CustomJobProvider
from vertex_training.customjob.resource import CustomJob, HyperparameterTuningJob

#: The lease is above the time a local call takes; the rest follows as in the real bounds.
TIMING: Final = Timing(lease=6.0, send_within=3.0, settle=1.0, gate=2.0, doubt=4.0, interval=0.2)


class ImpatientProvider(CustomJobProvider):
    """The provider class in the state of the chaos stacks."""

    timing: ClassVar[Timing] = TIMING


class RefusedSoonProvider(CustomJobProvider):
    """The provider with the real time limits, except that it accepts a refusal sooner."""

    timing: ClassVar[Timing] = Timing(gate=3.0, interval=0.5)


class ImpatientJob(CustomJob, module="vertex", name="CustomJob"):
    """A job of the chaos stacks."""

    PROVIDER = ImpatientProvider


class ImpatientTuningJob(HyperparameterTuningJob, module="vertex", name="HyperparameterTuningJob"):
    """A tuning job of the chaos stacks."""

    PROVIDER = ImpatientProvider
