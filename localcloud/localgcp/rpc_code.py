"""Codes of ``google.rpc.Code``, as the ``error`` of a job and a failed operation carry them."""

from __future__ import annotations

from enum import IntEnum


class RpcCode(IntEnum):
    """The codes that the local cloud answers with."""

    CANCELLED = 1
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    INTERNAL = 13
    UNAVAILABLE = 14
