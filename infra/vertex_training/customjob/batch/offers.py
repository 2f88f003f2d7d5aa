"""Cost of a job on each service, or the reason why a service refuses it: for reviews.

Both are priced by ``catalog.costs``. What a service cannot do is said by the rule that refuses it
there, in the words before the first comma. Vertex AI takes whatever the rules for jobs on Batch let
pass, but values of secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog import costs
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB
from vertex_training.customjob.rules.batch import batch_support
from vertex_training.customjob.rules.context import Context, NetworkFacts, StackFacts
from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.secrets import secret_value

#: The services as people read them.
NAMES: Final = {CUSTOM_JOB.backend: "Vertex", BATCH_JOB.backend: "Batch"}
#: Where the words of a finding that a table has room for end.
_END: Final = re.compile(r"[,:;]")
#: The words stand after the service's name.
_SERVICE: Final = re.compile(r"\A(Batch|Vertex AI) ")


@dataclass(frozen=True, slots=True)
class Offer:
    """A service, and the most that a job can cost on it."""

    backend: str
    cost: costs.JobCost | None
    """None where the service refuses the job."""
    refusal: str = ""
    """Reason for a refusal, in a few words; empty if the service takes the job."""

    def __str__(self) -> str:
        """``Batch $0.76 (4 attempts of 1 h)``; of a service that refuses, its reason."""
        return self.text()

    def text(self, more: str = "") -> str:
        """The same, with more to say of the time or the price."""
        name, cost = NAMES[self.backend], self.cost
        if cost is None:
            return f"not {name}: {self.refusal}"
        return f"{name} {costs.usd(cost.worst_case)} ({cost.span}{more})"


def offers(
    messages: Sequence[Mapping[str, Any]],
    region: str,
    backend: str,
    *,
    subnet: bool = False,
    lacks: str = "",
) -> tuple[Offer, Offer]:
    """Return the cost of the job on its service, and on the other one.

    ``messages`` are its request and those of its further rungs; ``subnet`` says whether the stack
    knows the subnet of its network attachment; ``lacks`` is what is asked of the job beside its
    request and the other service has not.
    """
    other = next(name for name in NAMES if name != backend)
    reason = f"it has no {lacks}" if lacks else refusal(messages, region, other, subnet=subnet)
    taken = None if reason else costs.of_dearest(messages, region, other)
    own = costs.of_dearest(messages, region, backend)
    return Offer(backend, own), Offer(other, taken, reason)


def refusal(
    messages: Sequence[Mapping[str, Any]], region: str, backend: str, *, subnet: bool
) -> str:
    """Return the reason why a service refuses a job, in a few words; empty without one."""
    message, on_batch = messages[0], backend == BATCH_JOB.backend
    if on_batch and TUNING_JOB.spec in message:
        return "it has no tuning"
    if on_batch and len(messages) > 1:
        return "it has no ladder"
    if CUSTOM_JOB.spec not in message:
        return ""
    interface = message[CUSTOM_JOB.spec].get("pscInterfaceConfig", {})
    network = NetworkFacts("psc", "", interface.get("networkAttachment", ""), subnet="known")
    stack = StackFacts("", "", region, network=network if subnet else None)
    job = Job(dict(message), Context(region=region, stack=stack, backend=backend))
    rule = batch_support if on_batch else secret_value
    found = list(dict.fromkeys(each.what for each in rule(job)))
    if not found:
        return ""
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return _SERVICE.sub("it ", _END.split(found[0])[0]) + more
