"""Exceptions of the local cloud.

A person reads a ``LocalCloudError``. The others stand for answers of Google Cloud, or end work
inside the local cloud; each is caught in this package. ::

    LocalCloudError                   the local cloud cannot be started, reached or removed
    StandInError
    ├── PluginError                   the stand-in for the gcp plugin answers with an error
    │   ├── CloudError                the cloud refuses the call, as the official plugin words it
    │   │   └── OperationError        a long-running operation failed
    │   ├── RefusedError              the stand-in itself refuses the call
    │   └── NameTooLongError          no automatic name of legal length exists
    ├── UnsafePathError               a path leads through a link, or out of its folder
    ├── RefusedRequestError           a request over HTTP is refused, or goes to no emulator
    │   ├── InvalidRequestError       it does not fit its message
    │   └── BigQueryError             BigQuery refuses it, or a job of it fails
    ├── NoPrivateNetworkError         this system gives a process no network of its own
    ├── UnlistableBucketError         the storage emulator cannot list a bucket
    ├── PolicyConflictError           an IAM policy changed between read and write
    ├── ApiError                      the job service answers a call with a status that is not OK
    ├── FilterError                   the filter of a list request is not valid
    ├── StartRefusedError             a job cannot start: it ends FAILED with this code and text
    ├── PreparationError              what a job needs cannot be prepared: it ends FAILED
    │   ├── ExecutorError             the environment of its image cannot be built
    │   ├── PackageError              one of its packages cannot be fetched or installed
    │   └── ImageError                its image cannot be had, or runs nothing
    ├── UnsupportedBuildError         the stand-in of Cloud Build cannot run a build
    ├── CommandNotFoundError          a job's program cannot be started on this machine
    ├── JobCancelledError             a job was cancelled while it was prepared
    ├── ContainerDownError            a model's container cannot be reached
    ├── NoAnswerError                 a model's container gave no answer to a request
    ├── ServerStoppingError           an operation is left to the next server
    └── ExchangeEndedError            the fault proxy ends an HTTP exchange without a whole answer
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import grpc
from enum import IntEnum


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


#: Prefix of error texts of Google's front end.
_INVALID = "Invalid JSON payload received. "


class LocalCloudError(Exception):
    """The local cloud cannot be started, reached or removed; the text is one line for users.

    ``message`` has what, where and the value; ``hint`` has what to do.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message} Hint: {hint}" if hint else message)


class StandInError(Exception):
    """An error of one of the local cloud's services."""


class PluginError(StandInError):
    """An error with which the stand-in for the gcp plugin answers a call."""


class CloudError(PluginError):
    """An error of the cloud, in the wording of the official plugin.

    ``code`` is the HTTP status, ``status`` the reason Google puts behind the text.
    """

    def __init__(self, doing: str, code: int, text: str, status: str) -> None:
        self.code = code
        super().__init__(f"{doing}: googleapi: Error {code}: {text}, {status}")


class OperationError(CloudError):
    """A failed long-running operation; ``code`` is that of ``google.rpc.Code``."""

    def __init__(self, doing: str, code: int, text: str) -> None:
        self.code = code
        Exception.__init__(self, f"{doing}: Error code {code}, message: {text}")


class RefusedError(PluginError):
    """A call that the stand-in itself refuses, not the service that it imitates."""


class NameTooLongError(PluginError):
    """A resource's name from which no valid cloud name can be generated."""


class UnsafePathError(StandInError, OSError):
    """A path that leads out of its folder, through a link, or to a special file.

    As an OSError: ``strerror`` says what is wrong, ``filename`` is the part of the path.
    """


class RefusedRequestError(StandInError):
    """A refused HTTP request, with its status."""

    def __init__(self, status: int, message: str, name: str = "") -> None:
        """``name`` is the code (``ALREADY_EXISTS``) if several codes share the status."""
        super().__init__(message)
        self.status, self.name, self.reason = status, name, ""


class InvalidRequestError(RefusedRequestError):
    """A request does not fit its message: path and text of each mistake, in Google's wording."""

    def __init__(self, mistakes: list[tuple[str, str]]) -> None:
        self.violations = [
            {**({"field": place} if place else {}), "description": f"{_INVALID}{text}"}
            for place, text in mistakes
        ]
        super().__init__(400, "\n".join(violation["description"] for violation in self.violations))


class BigQueryError(RefusedRequestError):
    """BigQuery refuses a request or fails a job; ``reason`` is one of BigQuery's error reasons.

    https://docs.cloud.google.com/bigquery/docs/error-messages
    """

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
    """This system cannot give a process a private network; the text has the reason."""


class UnlistableBucketError(StandInError):
    """A bucket whose folder has a file that the emulator did not write.

    It then answers 404 to every listing (measured, fake-gcs-server 1.52).
    """


class PolicyConflictError(StandInError):
    """An IAM policy was changed after it was read: HTTP 409, status ABORTED, as in the cloud."""

    code = 409
    status = "ABORTED"

    def __init__(self, resource: str) -> None:
        self.resource = resource
        super().__init__(
            "There were concurrent policy changes. Please retry the whole read-modify-write with "
            "exponential backoff. The request's ETag did not match the current policy's ETag."
        )


class ApiError(StandInError):
    """An error answer of a service: a gRPC code and the service's message."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"{code.name}: {message}")


class FilterError(StandInError, ValueError):
    """An invalid filter; the text names the position."""


class StartRefusedError(StandInError):
    """The job cannot start: the code (``google.rpc.Code``) and the text of its ``error``."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)


class PreparationError(StandInError):
    """A requirement of a job cannot be prepared; the text has the reason."""


class ExecutorError(PreparationError):
    """The Python environment cannot be installed; the text has the reason."""


class PackageError(PreparationError):
    """A package cannot be fetched or installed; the text has the name and the reason."""


class ImageError(PreparationError):
    """An image cannot be pulled, or has no command; the text has the name and the reason."""


class UnsupportedBuildError(StandInError):
    """A build that the local cloud cannot run; the text names the unsupported part."""


class CommandNotFoundError(StandInError):
    """The program of ``replica`` cannot be started on this machine.

    ``code`` is what a shell exits with: 127 if there is no such file, 126 if it cannot be executed.
    """

    def __init__(self, message: str, replica: str = "", code: int = 127) -> None:
        self.replica, self.code = replica, code
        super().__init__(message)


class JobCancelledError(StandInError):
    """The job was cancelled during its preparation."""


class ExchangeEndedError(StandInError):
    """The HTTP exchange ended without a complete answer."""


class ContainerDownError(StandInError):
    """No process listens at the port of a model's container; the request was not sent."""


class NoAnswerError(StandInError):
    """A model's container received the request but did not answer in time."""


class ServerStoppingError(StandInError):
    """The server is stopping; the next server resumes the operation."""
