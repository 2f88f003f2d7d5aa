"""Rules of ``formerly``: every name that something was created under belongs to one entry. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from vertex_training import naming
from vertex_training.errors import Problem
from vertex_training.settings import renames
from vertex_training.settings.model import Settings

#: Section -> keys of what the stack makes there by itself.
OWN: Final = {
    ("buckets",): (naming.STAGING, naming.CONTROL),
    ("serviceAccounts",): (naming.IMAGE_BUILD,),
    ("network", "allow"): ("workers",),
}


def problems(settings: Settings) -> Iterator[Problem]:
    """Everything that does not hold."""
    for section in renames.SECTIONS:
        keys = renames.first_keys(settings, section)
        counted = Counter(keys.values())
        for key, entry in renames.entries(settings, section).items():
            former, path = entry.formerly, (*section, key, "formerly")
            if former is None:
                continue
            if former in OWN.get(section, ()):
                yield Problem("is what the stack makes itself", former, "remove it", path)
            elif former == key:
                yield Problem("is its name still", former, "remove it", path)
            elif getattr(entry, "existing", None):
                what = "the stack does not make what exists: its name is its owner's to change"
                yield Problem(what, former, "remove it", path)
            elif counted[former] > 1:
                other = next(k for k, first in keys.items() if first == former and k != key)
                what = f"is the name that {other} has in the cloud"
                hint = f"give {other} another key; or, if it had another name, its own formerly"
                yield Problem(what, former, hint, path)
