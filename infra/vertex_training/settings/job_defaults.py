"""The section ``jobDefaults`` of a stack file: what job files may leave out."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from vertex_training.settings.section import Section, form


class JobDefaults(Section):
    """Values for fields that a job file does not have. What a file says always wins."""

    service_account: Annotated[str, Field(min_length=1)] | None = None
    """``serviceAccount``, like ``${serviceAccounts.trainer}``."""
    timeout: Annotated[str, form(r"[1-9][0-9]{0,8}s", "86400s")] | None = None
    """``scheduling.timeout``."""
    output_directory: Annotated[str, Field(min_length=1)] | None = None
    """``baseOutputDirectory.outputUriPrefix``, like ``${buckets.out}/${job.requestId}``."""
    labels: dict[str, str] = {}
    """Labels of the request; a label of the file wins over one of the same key."""
