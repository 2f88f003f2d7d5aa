"""Refusals of the local cloud's job service, by the machine catalogue and the rules for images.

The local cloud calls ``refusals`` through the entry point ``localgcp.job_limits`` (decision 72).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from vertex_training.customjob import rules
from vertex_training.customjob.kinds import KINDS
from vertex_training.customjob.protocol.ports import REQUEST_ID_LABEL
from vertex_training.customjob.rules.context import Context
from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import Finding
from vertex_training.errors import Path, dotted

#: Ids of rules whose findings the service refuses, like unknown machine types.
REFUSED: Final = frozenset(
    {
        *("machine-type", "accelerator-required", "accelerator-machine", "accelerator-count"),
        *("accelerator-region", "accelerator-retired", "gpu-partition", "disk-type", "disk-size"),
        *("tpu-topology", "tpu-topology-unused", "tpu-accelerator", "tpu-count", "tpu-pod-region"),
        *("image-name", "executor-image", "prebuilt-tag", "prebuilt-name"),
    }
)
#: Messages of the service (https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/213).
#: Other refusals have the rule's text.
WORDS: Final = {
    "machine-type": 'Machine type "{value}" is not supported.',
    "accelerator-machine": 'Accelerator "{value}" is not supported for machine type "{machine}".',
}


def refusals(job: dict[str, Any], region: str) -> Iterator[tuple[str, str]]:
    """Yield field and message of each mistake in a CustomJob that ``vt`` did not submit."""
    if any(kind.sent_label(REQUEST_ID_LABEL) in job.get("labels", {}) for kind in KINDS):
        return
    checked = Job({"jobSpec": job.get("jobSpec", {})}, Context(region=region))
    for rule in rules.RULES:
        if rule.id in REFUSED and rule.check is not None:
            for finding in rule.check(checked):
                yield _field(finding), _message(rule.id, finding, checked)


def _message(rule: str, finding: Finding, job: Job) -> str:
    own = f"{finding.what}: {finding.value}." if finding.value else f"{finding.what}."
    machine = job.spec["workerPoolSpecs"][finding.path[2]].get("machineSpec", {})
    text = WORDS.get(rule, own.replace("{", "{{").replace("}", "}}"))
    # The format of the service's messages has two fields.
    detail = text.format(value=finding.value, machine=machine.get("machineType", ""))
    return f"{detail} ({finding.hint})" if finding.hint else detail


def _field(finding: Finding) -> str:
    """Return the path in the service's form: ``job_spec.worker_pool_specs[0].machine_spec``."""
    path: Path = (*finding.path, finding.missing) if finding.missing else finding.path
    return re.sub(r"(?<!\.)([A-Z])", r"_\1", dotted(path)).lower()
