"""A job service and a store of records in memory, on a clock that only sleeping moves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from vertex_training.customjob.protocol.ports import (
    REQUEST_ID_LABEL,
    TURN_LABEL,
    IntentRecord,
    JobSnapshot,
    ProcessEnvironment,
    StoredIntent,
    SubmissionRequest,
    TurnRecord,
)
from vertex_training.errors import PreconditionFailedError

DIGEST = "d" * 64
REQUEST = SubmissionRequest("projects/p/locations/r", "dev", "titanic", 3, "id1", "{}", DIGEST, {})
#: The same job with another file.
EDITED = replace(REQUEST, request_id="id2", labels={REQUEST_ID_LABEL: "id2"})


def job(name, state, *, created=1, digest=DIGEST[:20], error="", turn=1):
    return JobSnapshot(name, f"JOB_STATE_{state}", created, digest, error, turn)


class Killed(BaseException):
    """The process dies here. Not an Exception: nothing in the protocol may catch it."""


@dataclass
class World:
    """What outlives a process: the cloud, the bucket, the time."""

    jobs: dict[str, JobSnapshot] = field(default_factory=dict)
    records: dict[str, StoredIntent] = field(default_factory=dict)
    turns: dict[str, TurnRecord] = field(default_factory=dict)
    time: float = 1000.0
    sent: int = 0
    list_lag: float = 0.0
    born: dict[str, float] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    """Request ids of jobs, where they are not ``REQUEST``'s."""

    @property
    def stored(self):
        """The record of ``REQUEST``."""
        return self.records.get(REQUEST.request_id)

    @stored.setter
    def stored(self, stored):
        self.records[REQUEST.request_id] = stored

    def live(self):
        return [j for j in self.jobs.values() if j.state not in ("JOB_STATE_CANCELLED",)]

    def create(self, request_id=REQUEST.request_id, turn=1):
        self.sent += 1
        new = job(f"job-{self.sent}", "PENDING", created=100 + self.sent, turn=turn)
        self.jobs[new.name] = new
        self.born[new.name] = self.time
        self.requests[new.name] = request_id
        return new


class Process:
    """One process's view of the world; ``on_call(name, when)`` may kill, wait or raise."""

    def __init__(self, world, on_call=lambda name, when: None, *, answer=None, lands=True):
        self.world, self.on_call = world, on_call
        self.answer, self.lands = answer, lands
        self.alive = True

    def environment(self):
        return ProcessEnvironment(self.sleep, lambda: self.world.time, lambda: self.alive)

    def sleep(self, seconds):
        self.world.time += seconds

    def _call(self, name, act):
        self.on_call(name, "before")
        result = act()
        self.on_call(name, "after")
        return result

    # --- job service
    def create(self, parent, body, labels):
        def act():
            request_id = labels.get(REQUEST_ID_LABEL, REQUEST.request_id)
            turn = int(labels[TURN_LABEL])
            made = self.world.create(request_id, turn) if self.lands else None
            if self.answer is not None:
                raise self.answer
            return made

        return self._call("create", act)

    def find(self, parent, request_id):
        def act():
            seen = self.world.time - self.world.list_lag
            return [
                found
                for found in self.world.jobs.values()
                if self.world.requests.get(found.name, REQUEST.request_id) == request_id
                and self.world.born.get(found.name, 0) <= seen
            ]

        return self._call("find", act)

    def get(self, name):
        assert name, "the name of the job is not known"
        return self._call("get", lambda: self.world.jobs.get(name))

    def cancel(self, name):
        def act():
            self.world.jobs[name] = job(name, "CANCELLED")

        return self._call("cancel", act)

    def delete(self, name):
        self._call("delete", lambda: self.world.jobs.pop(name, None))

    # --- intent store
    def read(self, request_id):
        return self._call("read", lambda: self.world.records.get(request_id))

    def write(self, record: IntentRecord, generation):
        def act():
            current = self.world.records.get(record.request_id)
            if (current.generation if current else 0) != generation:
                raise PreconditionFailedError
            written = StoredIntent(record, generation + 1, self.world.time)
            self.world.records[record.request_id] = written
            return written

        return self._call(f"write {record.state}", act)

    def read_turn(self, key):
        return self._call("turn read", lambda: self.world.turns.get(key))

    def turn_keys(self):
        return self._call("turn keys", lambda: frozenset(self.world.turns))

    def write_turn(self, key, request_id, number, generation, *, withdrawn=False):
        def act():
            current = self.world.turns.get(key)
            if (current.generation if current else 0) != generation:
                raise PreconditionFailedError
            self.world.turns[key] = TurnRecord(request_id, generation + 1, number, withdrawn)

        self._call("turn write", act)

    def now(self):
        return self._call("now", lambda: self.world.time)
