"""Errors that the service detects when a job starts; the job is then FAILED with a message.

A custom account needs grants on the buckets or the project. Other jobs run as the Custom Code
Service Agent, which can use all buckets of its project (doc:general/access-control).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from localgcp.errors import RpcCode, StartRefusedError
from localgcp.inventory.store import Store
from localgcp.vertex import capacity, networks
from localgcp.vertex.checks import no_act_as
from localgcp.vertex.records import JobRecord

READERS: Final = frozenset({"roles/storage.objectViewer"})
CREATORS: Final = frozenset({"roles/storage.objectCreator"})
WRITERS: Final = frozenset(
    {"roles/storage.objectUser", "roles/storage.objectAdmin", "roles/storage.admin"}
)

_OBJECT: Final = re.compile(r"gs://[a-z0-9][a-z0-9._-]*(?:/[^\s'\",;]*)?")


class Access:
    """Bucket permissions of one job's account."""

    def __init__(self, store: Store, project: str, account: str | None) -> None:
        self.store = store
        self.project = project
        self.account = account

    def may_read(self, bucket: str) -> bool:
        return self._holds(bucket, READERS | WRITERS)

    def may_create(self, bucket: str) -> bool:
        """Return whether the account may create objects."""
        return self._holds(bucket, CREATORS | WRITERS)

    def may_change(self, bucket: str) -> bool:
        """Return whether the account may overwrite and delete objects."""
        return self._holds(bucket, WRITERS)

    def _holds(self, bucket: str, roles: frozenset[str]) -> bool:
        resource = self.store.bucket(bucket)
        if resource is None:
            return False
        if self.account is None:
            return resource.get("project") in (self.project, None)
        member = f"serviceAccount:{self.account}"
        held = self.store.roles(f"b/{bucket}", member)
        held |= self.store.roles(f"projects/{resource.get('project') or self.project}", member)
        return not roles.isdisjoint(held)


def access_of(store: Store, job: JobRecord) -> Access:
    """Return the permissions of the account of this job."""
    return Access(store, job.project, job.spec.get("serviceAccount"))


def admit(store: Store, job: JobRecord) -> None:
    """Raise StartRefusedError if the job cannot start."""
    _check_account(store, access_of(store, job), job)
    networks.admit(store, job)
    capacity.admit(store, job)


def _check_account(store: Store, access: Access, job: JobRecord) -> None:
    if access.account and store.account(access.account) is None:
        raise StartRefusedError(RpcCode.PERMISSION_DENIED, no_act_as(access.account).message)
    for pool in job.spec.get("workerPoolSpecs", []):
        for uri in pool.get("pythonPackageSpec", {}).get("packageUris", []):
            _check_bucket(store, uri)
            if not access.may_read(_bucket(uri)):
                raise _denied(access, "storage.objects.get", uri, "Viewer")
    if uri := job.output_prefix:
        _check_bucket(store, uri)
        if not access.may_create(_bucket(uri)):
            raise _denied(access, "storage.objects.create", uri, "User")
    # The storage emulator does not check permissions, so this check is earlier than the cloud's.
    for uri in (uri for text in _words(job.spec) for uri in _OBJECT.findall(text)):
        bucket = _bucket(uri)
        known = store.bucket(bucket) is not None
        if known and not access.may_read(bucket) and not access.may_create(bucket):
            where = "403 for a bucket in the job's arguments or variables: "
            raise _denied(access, "storage.objects.get", uri, "Viewer", where)


def _check_bucket(store: Store, uri: str) -> None:
    if store.bucket(_bucket(uri)) is None:
        text = f"The specified bucket does not exist: gs://{_bucket(uri)} (in {uri})."
        raise StartRefusedError(RpcCode.NOT_FOUND, text)


def _words(spec: dict[str, Any]) -> Iterator[str]:
    for pool in spec.get("workerPoolSpecs", []):
        task = pool.get("containerSpec") or pool.get("pythonPackageSpec") or {}
        yield from task.get("command", [])
        yield from task.get("args", [])
        yield from (variable.get("value", "") for variable in task.get("env", []))


def _bucket(uri: str) -> str:
    return uri.removeprefix("gs://").partition("/")[0]


def _denied(
    access: Access, permission: str, uri: str, role: str, where: str = ""
) -> StartRefusedError:
    who = access.account or f"the Custom Code Service Agent of project {access.project}"
    text = (
        f"{where}{who} does not have {permission} access to {uri}. Permission '{permission}' "
        "denied on resource (or it may not exist). "
        f"Grant roles/storage.object{role} on bucket {_bucket(uri)}."
    )
    return StartRefusedError(RpcCode.PERMISSION_DENIED, text)
