"""The section ``snapshots`` of a stack file: results of queries that are kept as files."""

from __future__ import annotations

import datetime
import math
from typing import Annotated, Any, Final, Literal

import pydantic
from pydantic import Field

from vertex_training.settings.section import Key, NamedSection, form

#: Parameter of a query that ``asOf`` gives.
AS_OF: Final = "as_of"
#: A value of a parameter of a query; YAML's type is BigQuery's.
Scalar = bool | int | float | str
ParameterName = Annotated[str, form(r"[A-Za-z_][A-Za-z0-9_]{0,127}", "day: @day in the query")]


class Snapshot(NamedSection):
    """The result of one query in BigQuery, kept as files that never change.

    ``${snapshots.KEY}`` is their folder. The query runs once for each ``run``.
    """

    query: str
    """File of the checkout with one query of GoogleSQL."""
    parameters: dict[ParameterName, Any] = {}
    """Values of the query's parameters: ``@day``. Text is STRING; numbers are INT64 or FLOAT64;
    true and false are BOOL."""
    as_of: str | None = None
    """Time of the tables' state, such as ``2026-11-20T00:00:00Z``: the query reads ``FROM table FOR
    SYSTEM_TIME AS OF @as_of``. BigQuery goes back seven days. Without it, the first ``pulumi up``
    reads the tables as they are then."""
    max_bytes_billed: int = Field(ge=1, le=2**63 - 1)
    """The most bytes that the query may be billed for; the service refuses more, without a
    charge."""
    format: Literal["parquet", "csv"] = "parquet"
    """Of the files."""
    bucket: Key = "data"
    """Key of the bucket that keeps them."""
    location: Annotated[str, form(r"[A-Za-z][A-Za-z0-9-]{1,62}", "US or europe-west4")] | None = (
        None
    )
    """Location of the tables; the stack's region without it."""
    run: int = Field(default=1, ge=1)
    """Raise it to run an unchanged query once more. Files of earlier runs stay."""

    @pydantic.field_validator("as_of")
    @classmethod
    def _check_as_of(cls, text: str | None) -> str | None:
        if text is None:
            return None
        try:
            time = datetime.datetime.fromisoformat(text)
            in_utc = time.astimezone(datetime.UTC)
        except (ValueError, OverflowError):
            raise ValueError("must be a time, such as 2026-11-20T00:00:00Z") from None
        if time.tzinfo is None:
            raise ValueError("has no time zone: add Z")
        return in_utc.isoformat().replace("+00:00", "Z")

    @pydantic.field_validator("parameters")
    @classmethod
    def _check_parameters(cls, given: dict[str, Any]) -> dict[str, Scalar]:
        if AS_OF in {name.lower() for name in given}:
            raise ValueError(f"{AS_OF} is what asOf gives: use asOf")
        if len({name.lower() for name in given}) < len(given):
            raise ValueError("two of them differ by case alone, which BigQuery does not tell apart")
        for name, value in given.items():
            if not isinstance(value, Scalar):
                raise ValueError(f"{name} must be text, a number, true or false: quote a date")
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{name} must be finite")
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise ValueError(f"{name} is no INT64")
        return given
