"""A job service and a store of records in memory, on a clock that only sleeping moves."""

from __future__ import annotations

from dataclasses import dataclass, field

from infra.customjob.ports import Conflict, JobRecord, Record, Request, Stored
from infra.customjob.submission import Surroundings

DIGEST = "d" * 64
REQUEST = Request("projects/p/locations/r", "titanic", 3, "id1", "{}", DIGEST, {})


def job(name, state, *, created=1, digest=DIGEST[:20], error=""):
    return JobRecord(name, f"JOB_STATE_{state}", created, digest, error)


class Killed(BaseException):
    """The process dies here. Not an Exception: nothing in the protocol may catch it."""


@dataclass
class World:
    """What outlives a process: the cloud, the bucket, the time."""

    jobs: dict[str, JobRecord] = field(default_factory=dict)
    stored: Stored | None = None
    time: float = 1000.0
    sent: int = 0
    list_lag: float = 0.0
    born: dict[str, float] = field(default_factory=dict)

    def live(self):
        return [j for j in self.jobs.values() if j.state not in ("JOB_STATE_CANCELLED",)]

    def create(self):
        self.sent += 1
        new = job(f"job-{self.sent}", "PENDING", created=100 + self.sent)
        self.jobs[new.name] = new
        self.born[new.name] = self.time
        return new


class Process:
    """One process's view of the world; ``on_call(name, when)`` may kill, wait or raise."""

    def __init__(self, world, on_call=lambda name, when: None, *, answer=None, lands=True):
        self.world, self.on_call = world, on_call
        self.answer, self.lands = answer, lands
        self.alive = True

    def around(self):
        return Surroundings(self.sleep, lambda: self.world.time, lambda: self.alive)

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
            made = self.world.create() if self.lands else None
            if self.answer is not None:
                raise self.answer
            return made

        return self._call("create", act)

    def find(self, parent, request_id):
        def act():
            seen = self.world.time - self.world.list_lag
            return [j for j in self.world.jobs.values() if self.world.born.get(j.name, 0) <= seen]

        return self._call("find", act)

    def get(self, name):
        return self._call("get", lambda: self.world.jobs.get(name))

    def cancel(self, name):
        def act():
            self.world.jobs[name] = job(name, "CANCELLED")

        return self._call("cancel", act)

    def delete(self, name):
        self._call("delete", lambda: self.world.jobs.pop(name, None))

    # --- intent store
    def read(self, request_id):
        return self._call("read", lambda: self.world.stored)

    def write(self, record: Record, generation):
        def act():
            current = self.world.stored.generation if self.world.stored else 0
            if current != generation:
                raise Conflict
            self.world.stored = Stored(record, current + 1, self.world.time)
            return self.world.stored

        return self._call(f"write {record.state}", act)

    def now(self):
        return self._call("now", lambda: self.world.time)
