"""Simulates `pulumi` around the provider, as measured with the real engine: state, kills,
replacement.

The provider is the real one, on a virtual clock and the ports of the process it runs in. The rules
of the state file: a failed or killed provider leaves no trace, not even a pending operation; a
killed engine leaves a pending ``creating``, which the next run only warns of; every save writes the
whole file, so the last of two writers wins.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from unittest.mock import patch

from tests.chaos.process import CURRENT, Killed, Process, ProviderKilled
from vertex_training.customjob import provider as module
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB, JobKind
from vertex_training.customjob.protocol import waiting
from vertex_training.customjob.protocol.ports import JobSnapshot
from vertex_training.customjob.request import job_file as spec
from vertex_training.errors import OperatorError

JOB: Final = "titanic"


@dataclass(frozen=True)
class Resource:
    """A job as stored in the state."""

    id: str
    outs: Mapping[str, Any]


@dataclass
class StateFile:
    """One stack's state. A job of the program is a resource of this name."""

    resources: dict[str, Resource] = field(default_factory=dict)
    pending: set[str] = field(default_factory=set)
    checkpoints: list[dict[str, Resource]] = field(default_factory=list)

    def save(self, resources: Mapping[str, Resource]) -> None:
        """Write the whole file, like the engine after every step."""
        self.checkpoints.append(self.resources)
        self.resources = dict(resources)


def inputs(run: int, command: str, on_delete: str, kind: JobKind = CUSTOM_JOB) -> dict[str, Any]:
    """Return the program's inputs of the job: its request with its real identity."""
    body = spec.canonical({"displayName": JOB, kind.spec: {"command": command}})
    more = {BATCH_JOB: {"backend": kind.backend}, TUNING_JOB: {"section": kind.section}}
    who = ("acme-ml-dev", "r", "dev", JOB)
    submission = spec.Submission(*who, run)
    return {
        # The engine hands numbers over as floats.
        "submission": asdict(submission) | {"run": float(run)} | more.get(kind, {}),
        "requestId": kind.id_prefix + spec.request_id_of(submission, body),
        "request": body,
        "options": {"labels": {}, "controlBucket": "control", "onDelete": on_delete},
    }


class PortOfKind:
    """The job service for one kind of job, with the labels of the real port."""

    def __init__(self, process: Process, kind: JobKind) -> None:
        self._process, self._kind = process, kind

    def create(self, parent: str, body: str, labels: Mapping[str, str]) -> JobSnapshot:
        """Send one create request with the labels of this kind."""
        return self._process.create(parent, body, self._kind.sent_labels(labels))

    def find(self, parent: str, request_id: str) -> list[JobSnapshot]:
        """Return jobs of this kind by its label."""
        assert self._kind is self._process.cloud.kind, "jobs of another kind were listed"
        return self._process.find(parent, request_id)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._process, name)


@contextmanager
def virtual_provider() -> Iterator[None]:
    """Load the provider module with ports and clock of the process whose thread calls it."""

    def withdraw(*args: Any, **kwargs: Any) -> JobSnapshot | None:
        return waiting.withdraw(*args, **kwargs, sleep=CURRENT.process.sleep)

    with ExitStack() as stack:
        replaced = {
            "_service": lambda props: PortOfKind(CURRENT.process, module._kind(props)),
            "_intents": lambda props: CURRENT.process,
            # Reads ahead in a thread of its own, which is no process here and has no turn.
            "_refusal": lambda news, replaced: "",
            "ProcessEnvironment": lambda **kwargs: CURRENT.process.environment(**kwargs),
            "is_engine_alive": lambda: not CURRENT.process.engine_gone,
            "withdraw": withdraw,
            "_cancelled": {},
        }
        for name, value in replaced.items():
            stack.enter_context(patch.object(module, name, value))
        yield


class ClosedConnection(Exception):
    """The engine's error for a killed provider: error reading from server: EOF."""


class Run:
    """One `pulumi up`, `refresh` or `destroy` on a state file, as the work of a process."""

    def __init__(self, file: StateFile, program: Mapping[str, Any], *, replace: bool = False):
        self.file, self.program, self.replace = file, program, replace
        self.error: Exception | None = None
        self.submitted = False
        """Whether a create came back with a job."""
        self._view = dict(file.resources)
        self._provider = module.CustomJobProvider()

    def up(self, process: Process) -> None:
        """Create, replace (delete first), update or keep; delete resources that left the
        program.
        """
        with self._failing():
            for name, news in self.program.items():
                old = self._view.get(name)
                diff = self._ask(process, "diff", old, news) if old else None
                if old is None or self.replace or (diff is not None and diff.replaces):
                    if old is not None:
                        self._delete(process, name, old)
                    self._create(process, name, news)
                elif diff is not None and diff.changes:
                    outs = self._ask(process, "update", old, news).outs or {}
                    self._save(process, name, Resource(old.id, outs))
            for name in [name for name in self._view if name not in self.program]:
                self._delete(process, name, self._view[name])

    def destroy(self, process: Process) -> None:
        """Delete all resources."""
        with self._failing():
            for name, old in list(self._view.items()):
                self._delete(process, name, old)

    def refresh(self, process: Process) -> None:
        """Read all resources; an unreadable resource keeps its state."""
        with self._failing():
            for name, old in list(self._view.items()):
                read = functools.partial(self._provider.read, old.id, dict(old.outs))
                result = self._call(process, read)
                if not result.id:
                    del self._view[name]
                    self._save(process, name, None)
                else:
                    self._save(process, name, Resource(result.id, result.outs or {}))

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """End the run with an error after a failed operation."""
        try:
            yield
        except (OperatorError, ClosedConnection) as error:
            self.error = error

    def _create(self, process: Process, name: str, news: Mapping[str, Any]) -> None:
        self.file.pending.add(name)
        try:
            result = self._call(process, functools.partial(self._provider.create, dict(news)))
        except (OperatorError, ClosedConnection):
            self.file.pending.discard(name)  # dropped with any error: its absence proves nothing
            raise
        self.submitted = True
        self._save(process, name, Resource(result.id or "", result.outs or {}))
        self.file.pending.discard(name)

    def _delete(self, process: Process, name: str, old: Resource) -> None:
        self._call(process, functools.partial(self._provider.delete, old.id, dict(old.outs)))
        self._save(process, name, None)

    def _ask(self, process: Process, what: str, old: Resource, news: Mapping[str, Any]) -> Any:
        method = getattr(self._provider, what)
        return self._call(process, functools.partial(method, old.id, dict(old.outs), news))

    def _call(self, process: Process, operation: functools.partial) -> Any:
        """Make one call of the provider; a killed engine does not notice its end."""
        try:
            result = operation()
            process.pause("answered")
            return result
        except ProviderKilled:
            raise ClosedConnection from None
        finally:
            self._still_there(process)

    def _save(self, process: Process, name: str, resource: Resource | None) -> None:
        self._still_there(process)
        if resource is None:
            self._view.pop(name, None)
        else:
            self._view[name] = resource
        self.file.save(self._view)

    def _still_there(self, process: Process) -> None:
        if process.engine_gone:
            raise Killed
