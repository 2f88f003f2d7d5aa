"""The section ``limits`` of a stack file: what the stack's jobs may use and cost."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vertex_training.settings.section import Section

Usd = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Limits(Section):
    """Bounds that hold for every job of the stack. What is absent is not limited."""

    max_usd_per_job: Usd | None = None
    """The most a job may cost until its timeout (see ``vertex_training.catalog.costs``)."""
    max_usd_per_environment: Usd | None = None
    """The most all jobs of the stack may cost together, each once and until its timeout."""
    allow_unpriced: bool = False
    """Whether a job without a known price may run. Its cost cannot be compared with a limit in
    USD, so such a job is refused where there is one."""
    regions: Annotated[list[str], Field(min_length=1)] | None = None
    """Regions the stack may be in."""
    machine_types: Annotated[list[str], Field(min_length=1)] | None = None
    """Machine types jobs may run on; ``n1-*`` stands for all that begin with ``n1-``."""
    strategies: (
        Annotated[list[Literal["STANDARD", "SPOT", "FLEX_START"]], Field(min_length=1)] | None
    ) = None
    """Strategies jobs may be scheduled with."""

    @property
    def in_usd(self) -> bool:
        """Whether something is limited in USD."""
        return self.max_usd_per_job is not None or self.max_usd_per_environment is not None
