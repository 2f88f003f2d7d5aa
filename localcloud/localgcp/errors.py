"""Exceptions of the local cloud; commands show only a ``LocalCloudError`` to the user."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import grpc


class RpcCode(IntEnum):
    """gRPC status codes of the local cloud's answers."""

    CANCELLED = 1
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    INTERNAL = 13
    UNAVAILABLE = 14


class LocalCloudError(Exception):
    """The local cloud cannot be started, reached or removed; ``hint`` has what users can do."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message} Hint: {hint}" if hint else message)


class StandInError(Exception):
    """An error of one of the local cloud's services."""


class PluginError(StandInError):
    """An error of the stand-in for the gcp plugin."""


class CloudError(PluginError):
    """An error of Google Cloud with an HTTP status, in the wording of the official plugin.

    ``doing`` is the failed action; ``ResourceType`` completes the errors of its hooks.
    """

    form = "googleapi: Error {code}: {text}, {status}"

    def __init__(self, code: int, text: str, status: str = "badRequest", doing: str = "") -> None:
        self.code, self.doing = code, doing
        super().__init__(self.form.format(code=code, text=text, status=status))

    def __str__(self) -> str:
        return f"{self.doing}: {super().__str__()}"


class OperationError(CloudError):
    """A failed long-running operation with a code of ``google.rpc.Code``."""

    form = "Error code {code}, message: {text}"


class RefusedError(PluginError):
    """A call that the stand-in itself refuses; the text imitates no error of Google Cloud."""


class UnsafePathError(StandInError, OSError):
    """A path that leads out of its folder, through a link, or to a special file."""


class RefusedRequestError(StandInError):
    """A refused HTTP request; ``name`` is the code if several codes share the status."""

    def __init__(self, status: int, message: str, name: str = "") -> None:
        super().__init__(message)
        self.status, self.name, self.reason = status, name, ""


class InvalidRequestError(RefusedRequestError):
    """A request with a field or a parameter that does not fit the message."""

    def __init__(self, mistakes: list[tuple[str, str]]) -> None:
        self.violations: list[dict[str, str]] = []
        for place, text in mistakes:
            description = {"description": f"Invalid JSON payload received. {text}"}
            self.violations.append({"field": place, **description} if place else description)
        super().__init__(400, "\n".join(violation["description"] for violation in self.violations))


class BigQueryError(RefusedRequestError):
    """An error of BigQuery (https://docs.cloud.google.com/bigquery/docs/error-messages)."""

    STATUSES: Final = {
        "duplicate": 409,
        "notFound": 404,
        "accessDenied": 403,
        "notImplemented": 501,
        "backendError": 503,
        "internalError": 500,
    }

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(self.STATUSES.get(reason, 400), message)
        self.reason = reason


class NoPrivateNetworkError(StandInError):
    """This system cannot create a private network for a process; the text has the reason."""


class UnlistableBucketError(StandInError):
    """A bucket that the emulator cannot list, because another program wrote a file into it.

    The emulator then answers each list request with 404 (measured, fake-gcs-server 1.52).
    """


class PolicyConflictError(StandInError):
    """The IAM policy of the named resource changed between a read and a write."""


class ApiError(StandInError):
    """An error of a service with a gRPC code."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"{code.name}: {message}")


class FilterError(StandInError, ValueError):
    """An invalid filter; the text has the position."""


class StartRefusedError(StandInError):
    """A job cannot start; the job ends as FAILED with this code (``google.rpc.Code``) and text."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)


class PreparationError(StandInError):
    """A requirement of a job cannot be prepared; the job ends as FAILED."""


class ExecutorError(PreparationError):
    """The Python environment of a job's image cannot be installed."""


class PackageError(PreparationError):
    """A package of a job cannot be fetched or installed."""


class ImageError(PreparationError):
    """An image of a job cannot be pulled, or has no command."""


class UnsupportedBuildError(StandInError):
    """A build that the local cloud cannot run; the text has the unsupported part."""


class CommandNotFoundError(StandInError):
    """The program of ``replica`` cannot be started; ``code`` is the exit code of a shell."""

    def __init__(self, message: str, replica: str = "", code: int = 127) -> None:
        self.replica, self.code = replica, code
        super().__init__(message)


class JobCancelledError(StandInError):
    """The job was cancelled during the job's preparation."""


class ExchangeEndedError(StandInError):
    """The HTTP exchange ended without a complete answer."""


class ContainerDownError(StandInError):
    """A model's container does not accept connections."""


class NoAnswerError(StandInError):
    """A model's container received the request but did not answer in time."""


class ServerStoppingError(StandInError):
    """The server is stopping; the next server resumes the operation."""
