"""Applies each fault of the local cloud to a submission by the real clients: one job must
result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from unittest import mock

from localgcp.faults.model import GRPC_CODES
from tests.chaos.arena import BUCKET, PROJECT, REGION, STACK, Arena
from tests.chaos.impatient import TIMING
from tests.chaos.messages import smallest
from vertex_training.customjob.google import intent_store
from vertex_training.customjob.google import job_service as client
from vertex_training.customjob.kinds import BATCH_JOB, JobKind
from vertex_training.customjob.protocol.ports import (
    DIGEST_LABEL,
    JOB_LABEL,
    REQUEST_ID_LABEL,
    STACK_LABEL,
    SubmissionRequest,
)
from vertex_training.customjob.protocol.submission import submit
from vertex_training.customjob.request.job_file import canonical
from vertex_training.errors import OperatorError

DIGEST: Final = "d" * 64
TRIES: Final = 3
#: Deadline of a create here, where an answer that is dropped is waited for.
_SECONDS: Final = 1.0


@dataclass(frozen=True)
class Met:
    """A fault, whether it happened, and the problem; ``problem`` is empty without one."""

    fault: str
    problem: str
    tries: int


def faults(kind: JobKind) -> Iterator[dict[str, Any]]:
    """Return all faults of calls during a submission of this kind."""
    create = {"service": "jobs", "method": "CreateCustomJob"}
    for when in ("before", "after"):
        for code in sorted(GRPC_CODES):
            yield {**create, "kind": "error", "code": code, "when": when}
        for lost in ("drop", "reset"):
            yield {**create, "kind": lost, "when": when}
    yield {**create, "kind": "truncate"}
    yield {**create, "kind": "delay", "seconds": _SECONDS / 2}
    if kind is not BATCH_JOB:  # nobody lists jobs that have the names of their requests
        lists = {"service": "jobs", "method": "ListCustomJobs"}
        for code in ("UNAVAILABLE", "INTERNAL", "PERMISSION_DENIED"):
            yield {**lists, "kind": "error", "code": code}
        yield {**lists, "kind": "reset"}
        yield {**lists, "kind": "stale", "seconds": 1.0}
        yield {**lists, "kind": "short-pages"}
    writes = {"service": "storage", "method": "objects.insert", "match": "submissions/"}
    for nth in (1, 2, 3):
        for when in ("before", "after"):
            for code in ("403", "412", "503"):
                yield {**writes, "kind": "error", "code": code, "when": when, "nth": nth}
            yield {**writes, "kind": "reset", "when": when, "nth": nth}
        yield {**writes, "kind": "truncate", "nth": nth}
    turns = {"service": "storage", "method": "objects.insert", "match": "turns/"}
    for when in ("before", "after"):
        for code in ("403", "412", "503"):
            yield {**turns, "kind": "error", "code": code, "when": when}
        yield {**turns, "kind": "reset", "when": when}
    reads = {"service": "storage", "method": "objects.[gd]*", "match": "submissions/"}
    for code in ("403", "503"):
        yield {**reads, "kind": "error", "code": code}


def meet(arena: Arena, given: dict[str, Any], job: str) -> Met:
    """Submit until it succeeds, then again to check that the job is adopted."""
    kind = arena.kind
    arena.no_faults()
    fault = arena.fault(**given)
    id_ = kind.id_prefix + job
    labels = {REQUEST_ID_LABEL: id_, DIGEST_LABEL: DIGEST[:20]}
    labels |= {STACK_LABEL: STACK, JOB_LABEL: job}
    parent = f"projects/{PROJECT}/locations/{REGION}"
    body = canonical(smallest(kind, job))
    request = SubmissionRequest(parent, STACK, job, 1, id_, body, DIGEST, labels)
    intents = intent_store.connect(PROJECT, BUCKET, kind.records)

    def attempt() -> str:
        try:
            with mock.patch.object(client, "CREATE_TIMEOUT", _SECONDS):
                return submit(request, arena.service, intents, TIMING)[0].name
        except OperatorError:
            return ""  # a plain error: a person runs the command again

    entry = arena.table.get(fault)
    tries = next((n for n in range(1, TRIES + 1) if attempt()), 0)
    happened = arena.table.get(fault).fired > 0
    arena.no_faults()
    first, submitted = attempt(), [found.name for found in arena.submitted(id_)]
    problem = "" if happened else "it did not happen"
    if [first] != submitted:
        problem = f"submitted {submitted}, adopted {first or 'none'}"
    if cancelled := arena.cancelled_trials():
        problem = f"trials {cancelled} were cancelled"
    return Met(entry.fault.describe(), problem, tries)
