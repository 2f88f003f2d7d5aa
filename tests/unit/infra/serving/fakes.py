"""A model registry and endpoints in memory, with operations that outlive who began them.

Only the ports are faked: the protocols over them are the real ones. A call may die, lose its
answer, or let another process run in between, as ``on_call`` decides. Time moves by sleeping.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.unit.infra.customjob.fakes import Process as RecordsProcess
from tests.unit.infra.customjob.fakes import World as Records
from vertex_training.customjob.protocol.ports import (
    DIGEST_LABEL,
    DIGEST_LABEL_LENGTH,
    REQUEST_ID_LABEL,
    STACK_LABEL,
)
from vertex_training.errors import InDoubtError, NotSubmittedError, PreconditionFailedError
from vertex_training.serving.declared import MODEL_LABEL
from vertex_training.serving.ports import (
    Deployment,
    EndpointSnapshot,
    OperationSnapshot,
    OperationWait,
    VersionRequest,
    VersionSnapshot,
)
from vertex_training.serving.reconciliation import Goal, display_name

PARENT = "projects/p/locations/r"
MODEL = f"{PARENT}/models/titanic-dev"
ENDPOINT = f"{PARENT}/endpoints/123456789"
DIGEST = "d" * 64
OWNER = "vt dev/titanic "


def request(request_id="id1", run=3):
    labels = {
        STACK_LABEL: "dev",
        MODEL_LABEL: "titanic",
        REQUEST_ID_LABEL: request_id,
        DIGEST_LABEL: DIGEST[:DIGEST_LABEL_LENGTH],
    }
    return VersionRequest(
        *(PARENT, "dev", "titanic", run, request_id, "{}", DIGEST, labels),
        model_id="titanic-dev",
        alias=f"r-{request_id}",
    )


def deployment(run, *, minimum=1, maximum=1):
    id_ = str(1000000000 + run)
    return Deployment(
        id_, f"{MODEL}@{run}", display_name(OWNER, run, id_), minimum, maximum, {"machineType": "n"}
    )


def goal(shares, **bounds):
    deployments = {run: deployment(run, **bounds) for run in shares}
    return Goal("titanic", OWNER, deployments, shares)


@dataclass
class Operation:
    name: str
    resource: str
    ends: float
    act: Callable[[], str]
    done: bool = False
    error: str = ""


@dataclass
class World(Records):
    """What outlives a process."""

    versions: dict[str, VersionSnapshot] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    deployed: dict[str, Deployment] = field(default_factory=dict)
    split: dict[str, int] = field(default_factory=dict)
    etag: int = 1
    uploads: int = 0
    duration: float = 30.0
    unhealthy: set[str] = field(default_factory=set)
    """Ids of deployed models that never get healthy."""
    splits: list[dict[str, int]] = field(default_factory=list)
    """Every split that a watcher would have seen."""
    is_gone: bool = False

    def begin(self, resource, act):
        name = f"{resource}/operations/{len(self.operations) + 1}"
        operation = Operation(name, resource, self.time + self.duration, act)
        self.operations.append(operation)
        return name

    def carry_out(self):
        """What has ended by now; every change of a split is kept."""
        for operation in self.operations:
            if not operation.done and operation.ends <= self.time:
                operation.done, operation.error = True, operation.act()

    def write_split(self, split):
        assert sum(split.values()) in (0, 100), split
        assert split.keys() <= self.deployed.keys(), (split, self.deployed)
        if sum(split.values()) == 0:
            assert not self.deployed, "callers are turned away"
        self.split = dict(split)
        self.etag += 1
        self.splits.append(self.split)


class Process(RecordsProcess):
    """One process's ports. ``lose``: called after a call on the service; raises to lose it."""

    def __init__(self, world, on_call=lambda name, when: None, lose=lambda name: None):
        super().__init__(world, on_call)
        self.lose, self.said = lose, []

    def wait(self):
        return OperationWait(self.environment(), report=self.said.append)

    def sleep(self, seconds):
        super().sleep(seconds)
        self.world.carry_out()

    def _send(self, name, act):
        result = self._call(name, act)
        self.lose(name)
        return result

    # --- operations
    def operation(self, name):
        def act():
            self.world.carry_out()
            found = next(each for each in self.world.operations if each.name == name)
            return OperationSnapshot(name, found.done, found.error)

        return self._call("operation", act)

    def running(self, resource):
        def act():
            self.world.carry_out()
            found = self.world.operations
            return [each.name for each in found if each.resource == resource and not each.done]

        return self._call("running", act)

    # --- model registry
    def upload(self, request, body, labels):
        def carry_out():
            number = len(self.world.versions) + 1
            name = f"{request.model}@{number}"
            self.world.versions[name] = VersionSnapshot(name, number, dict(labels))
            self.world.aliases[f"{request.model}@{request.alias}"] = name
            return ""

        def act():
            self.world.uploads += 1
            return self.world.begin(request.model, carry_out)

        return self._send("upload", act)

    def version(self, name):
        def act():
            self.world.carry_out()
            return self.world.versions.get(self.world.aliases.get(name, name))

        return self._call("version", act)

    def versions(self, model):
        def act():
            self.world.carry_out()
            return [each for name, each in self.world.versions.items() if name.startswith(model)]

        return self._call("versions", act)

    def delete_version(self, name):
        return self._call("delete version", lambda: self.world.versions.pop(name, None) and "")

    # --- endpoints
    def get(self, name):
        if name != ENDPOINT:
            return super().get(name)

        def act():
            world = self.world
            world.carry_out()
            if world.is_gone:
                return None
            shares = {id_: share for id_, share in world.split.items() if share}
            return EndpointSnapshot(name, dict(world.deployed), shares, str(world.etag))

        return self._call("get", act)

    def _begin(self, name, check, carry_out):
        def act():
            self.world.carry_out()
            if self.running_now():
                raise NotSubmittedError("There are other operations running on the Endpoint")
            check()
            return self.world.begin(ENDPOINT, carry_out)

        return self._send(name, act)

    def running_now(self):
        return [each for each in self.world.operations if not each.done]

    def deploy(self, name, deployment):
        def check():
            if deployment.id in self.world.deployed:
                raise NotSubmittedError("the id is in use")

        def carry_out():
            if deployment.id in self.world.unhealthy:
                return "Model server exited unexpectedly: exit code 1"
            assert deployment.id not in self.world.deployed
            self.world.deployed[deployment.id] = deployment
            return ""

        return self._begin("deploy", check, carry_out)

    def resize(self, name, deployment):
        def carry_out():
            self.world.deployed[deployment.id] = deployment
            return ""

        return self._begin("resize", lambda: None, carry_out)

    def undeploy(self, name, id_):
        def check():
            if id_ not in self.world.deployed:
                raise NotSubmittedError("no such deployed model")
            if self.world.split.get(id_) and len(self.world.deployed) > 1:
                raise NotSubmittedError("it has traffic")

        def carry_out():
            if self.world.split.get(id_) and len(self.world.deployed) > 1:
                return "it has traffic"
            self.world.deployed.pop(id_, None)
            if not self.world.deployed:
                self.world.write_split({})
            return ""

        return self._begin("undeploy", check, carry_out)

    def set_split(self, name, split, etag):
        def act():
            if etag != str(self.world.etag):
                raise PreconditionFailedError
            if not split.keys() <= self.world.deployed.keys():
                raise NotSubmittedError("no such deployed model")
            self.world.write_split(split)

        self._send("split", act)


def lost(name, *, once=True):
    """Loses the answer to calls of this name."""
    left = [1] if once else [10**9]

    def lose(called):
        if called == name and left[0]:
            left[0] -= 1
            raise InDoubtError("UNAVAILABLE")

    return lose


def with_others(world, *ids, owner=""):
    """Somebody deploys these by hand."""
    for id_ in ids:
        by_hand = replace(deployment(9), id=id_, display_name=f"{owner}by hand")
        world.deployed[id_] = by_hand
