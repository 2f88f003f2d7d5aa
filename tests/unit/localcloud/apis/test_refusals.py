"""Errors of the job service, as the service words them."""

from __future__ import annotations

import grpc
import pytest

from localgcp.apis import refusals
from localgcp.errors import ApiError

CODE = grpc.StatusCode


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (refusals.invalid_argument("a"), CODE.INVALID_ARGUMENT, "a"),
        (refusals.permission_denied("a"), CODE.PERMISSION_DENIED, "a"),
        (refusals.failed_precondition("a"), CODE.FAILED_PRECONDITION, "a"),
        (refusals.not_found("n"), CODE.NOT_FOUND, "The CustomJob does not exist: n"),
        (refusals.not_found("n", "Model"), CODE.NOT_FOUND, "The Model does not exist: n"),
        (refusals.invalid_fields([("a", "b")]), CODE.INVALID_ARGUMENT,
         "List of found errors:\t1.Field: a; Message: b\t"),
        (refusals.invalid_fields([("a", "b"), ("c.d", "e")]), CODE.INVALID_ARGUMENT,
         "List of found errors:\t1.Field: a; Message: b\t 2.Field: c.d; Message: e\t"),
    ],
)  # fmt: skip
def test_a_refusal_has_a_code_and_the_words_of_the_service(
    error: ApiError, code: grpc.StatusCode, message: str
) -> None:
    assert (error.code, error.message) == (code, message)
