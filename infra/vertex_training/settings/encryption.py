"""The section ``encryption`` of a stack file: a key of one's own, and what it encrypts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vertex_training.settings.section import Section, form

KeyPath = Annotated[
    str,
    form(
        r"projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/locations/[a-z0-9-]+/"
        r"keyRings/[A-Za-z0-9_-]{1,63}/cryptoKeys/[A-Za-z0-9_-]{1,63}",
        "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY",
    ),
]
Covered = Literal["buckets", "registry", "secrets", "jobs"]


class Encryption(Section):
    """A key in Cloud KMS that exists; the stack makes none, for a key can never be deleted."""

    key: KeyPath
    covers: Annotated[list[Covered], Field(min_length=1)] = [
        *("buckets", "registry", "secrets", "jobs")
    ]
    """What is encrypted with it. On a repository or a secret that is there, it means a new one."""
