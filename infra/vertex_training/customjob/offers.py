"""Cost of a job on each service, or the reason why the service cannot run the job. For reviews.

The reason is the message of a rule up to the first comma, colon or semicolon.
"""

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

#: Display names of the services.
NAMES: Final = {CUSTOM_JOB.backend: "Vertex", BATCH_JOB.backend: "Batch"}
#: End of the part of a message that fits into a table.
_END: Final = re.compile(r"[,:;]")
#: Name of a service at the beginning of a message, which ``refusal`` replaces by "it".
_SERVICE: Final = re.compile(r"\A(Batch|Vertex AI) ")


@dataclass(frozen=True, slots=True)
class Offer:
    """Maximum cost of a job on a service, or the reason why the service cannot run the job."""

    backend: str
    cost: costs.JobCost | None
    """None if the service cannot run the job."""
    refusal: str = ""
    """Short reason why the service cannot run the job; empty if the service can run the job."""

    def __str__(self) -> str:
        """Return ``Batch $0.76 (4 attempts of 1 h)``, or why the service cannot run the job."""
        return self.text()

    def text(self, more: str = "") -> str:
        """Return the text of ``__str__``, with ``more`` after the duration."""
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
    """Return the cost of the job on its own service and on the other service.

    ``messages`` are the requests of all rungs. ``subnet``: whether the subnet of the network
    attachment is known. ``lacks``: an option of the job that the other service does not support.
    """
    other = next(name for name in NAMES if name != backend)
    reason = (
        f"it does not support {lacks}" if lacks else refusal(messages, region, other, subnet=subnet)
    )
    taken = None if reason else costs.of_dearest(messages, region, other)
    own = costs.of_dearest(messages, region, backend)
    return Offer(backend, own), Offer(other, taken, reason)


def refusal(
    messages: Sequence[Mapping[str, Any]], region: str, backend: str, *, subnet: bool
) -> str:
    """Return a short reason why the service cannot run the job; empty if it can run the job."""
    message, on_batch = messages[0], backend == BATCH_JOB.backend
    if on_batch and TUNING_JOB.spec in message:
        return "it does not support tuning"
    if on_batch and len(messages) > 1:
        return "it does not support ladders"
    if CUSTOM_JOB.spec not in message:
        return ""
    interface = message[CUSTOM_JOB.spec].get("pscInterfaceConfig", {})
    network = NetworkFacts("psc", "", interface.get("networkAttachment", ""), subnet="known")
    stack = StackFacts("", "", region, network=network if subnet else None)
    job = Job(dict(message), Context(region=region, stack=stack, backend=backend))
    rule = batch_support if on_batch else secret_value
    reasons = list(dict.fromkeys(finding.what for finding in rule(job)))
    if not reasons:
        return ""
    more = f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return _SERVICE.sub("it ", _END.split(reasons[0])[0]) + more
