"""What a job can cost on each service, or why a service does not take it: for reviews.

Both are priced by ``catalog.costs``. What Batch cannot do is said by the rule that refuses it
there, in the words before the first comma. Vertex AI takes whatever the rules for jobs on Batch let
pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog import costs
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB
from vertex_training.customjob.rules.context import Context, NetworkFacts, StackFacts
from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.stack.batch import batch_support

#: The services as people read them.
NAMES: Final = {CUSTOM_JOB.backend: "Vertex", BATCH_JOB.backend: "Batch"}
#: Where the words of a finding that a table has room for end.
_END: Final = re.compile(r"[,:;]")
#: The words stand after the service's name.
_BATCH: Final = re.compile(r"\ABatch ")


@dataclass(frozen=True, slots=True)
class Offer:
    """A service, and the most that a job can cost on it."""

    backend: str
    cost: costs.JobCost | None
    """None where the service refuses the job."""
    refusal: str = ""
    """Why, in few words; empty where it takes the job."""

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
    messages: Sequence[Mapping[str, Any]], region: str, backend: str, *, subnet: bool = False
) -> tuple[Offer, Offer]:
    """What the job costs where it runs, and what it would on the other service.

    ``messages`` are its request and those of its further rungs; ``subnet`` says whether the stack
    knows the subnet of its network attachment.
    """
    other = next(name for name in NAMES if name != backend)
    refusal = batch_refusal(messages, region, subnet=subnet) if other == BATCH_JOB.backend else ""
    taken = None if refusal else costs.of_dearest(messages, region, other)
    own = costs.of_dearest(messages, region, backend)
    return Offer(backend, own), Offer(other, taken, refusal)


def batch_refusal(messages: Sequence[Mapping[str, Any]], region: str, *, subnet: bool) -> str:
    """Why Batch does not take a job, in few words; empty if it does, or nothing is known of it."""
    message = messages[0]
    if TUNING_JOB.spec in message:
        return "it has no tuning"
    if len(messages) > 1:
        return "it has no ladder"
    if CUSTOM_JOB.spec not in message:
        return ""
    interface = message[CUSTOM_JOB.spec].get("pscInterfaceConfig", {})
    network = NetworkFacts("psc", "", interface.get("networkAttachment", ""), subnet="known")
    stack = StackFacts("", "", region, network=network) if subnet else None
    context = Context(region=region, stack=stack, backend=BATCH_JOB.backend)
    found = list(dict.fromkeys(each.what for each in batch_support(Job(dict(message), context))))
    if not found:
        return ""
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return _BATCH.sub("it ", _END.split(found[0])[0]) + more
