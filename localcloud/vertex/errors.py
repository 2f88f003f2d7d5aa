"""Errors of the job service, as the service words them."""

from __future__ import annotations

import grpc


class ApiError(Exception):
    """An answer that is not OK: a canonical code and the service's message."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"{code.name}: {message}")


def invalid(message: str) -> ApiError:
    return ApiError(grpc.StatusCode.INVALID_ARGUMENT, message)


def denied(message: str) -> ApiError:
    return ApiError(grpc.StatusCode.PERMISSION_DENIED, message)


def precondition(message: str) -> ApiError:
    return ApiError(grpc.StatusCode.FAILED_PRECONDITION, message)


def not_found(name: str) -> ApiError:
    return ApiError(grpc.StatusCode.NOT_FOUND, f"The CustomJob does not exist: {name}")


def field_errors(found: list[tuple[str, str]]) -> ApiError:
    """Several bad fields at once, in the form the service prints them (seen in public threads)."""
    listed = "\t ".join(
        f"{number}.Field: {field}; Message: {message}"
        for number, (field, message) in enumerate(found, start=1)
    )
    return invalid(f"List of found errors:\t{listed}\t")
