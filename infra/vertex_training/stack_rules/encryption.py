"""Rules of the section ``encryption``: the key is where the data is. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from vertex_training.errors import Problem
from vertex_training.settings.model import Settings


def problems(settings: Settings) -> Iterator[Problem]:
    """Everything that does not hold."""
    if settings.encryption is None:
        return
    # general/cmek: the key is in the region of the job; no global and no multi-region.
    location = settings.encryption.key.split("/")[3]
    if location != settings.region:
        what = f"is in {location}: all that it encrypts is in {settings.region}"
        hint = f"a key of a key ring in {settings.region}"
        yield Problem(what, settings.encryption.key, hint, ("encryption", "key"))
