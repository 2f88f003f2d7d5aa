"""API errors in the wording of Google's job service."""

from __future__ import annotations

import grpc

from localgcp.errors import ApiError


def invalid_argument(message: str) -> ApiError:
    return ApiError(grpc.StatusCode.INVALID_ARGUMENT, message)


def permission_denied(message: str) -> ApiError:
    return ApiError(grpc.StatusCode.PERMISSION_DENIED, message)


def failed_precondition(message: str) -> ApiError:
    return ApiError(grpc.StatusCode.FAILED_PRECONDITION, message)


def not_found(name: str, kind: str = "CustomJob") -> ApiError:
    return ApiError(grpc.StatusCode.NOT_FOUND, f"The {kind} does not exist: {name}")


def invalid_fields(mistakes: list[tuple[str, str]]) -> ApiError:
    """Return one error for several fields, in the service's format (seen in public threads)."""
    listed = "\t ".join(
        f"{number}.Field: {field}; Message: {message}"
        for number, (field, message) in enumerate(mistakes, start=1)
    )
    return invalid_argument(f"List of found errors:\t{listed}\t")
