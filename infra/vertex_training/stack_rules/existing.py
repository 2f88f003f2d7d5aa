"""Rules of ``existing`` and ``name``: what is not the stack's, and names given twice. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic.alias_generators import to_camel

from vertex_training import naming
from vertex_training.errors import Path, Problem
from vertex_training.settings import renames
from vertex_training.settings.model import Bucket, Registry, Secret, ServiceAccount, Settings

#: What an entry may say beside ``existing``: what the stack grants there, and to whom.
BESIDE: Final = {
    "buckets": {"existing", "project", "team"},
    "serviceAccounts": {
        *("existing", "team", "reads", "writes", "secrets", "calls_vertex", "submitters"),
        "datasets",
    },
    "secrets": {"existing", "team"},
}


def problems(settings: Settings) -> Iterator[Problem]:
    """Everything that does not hold."""
    sections: dict[str, Mapping[str, Bucket | ServiceAccount | Secret]] = {
        "buckets": settings.buckets,
        "serviceAccounts": settings.service_accounts,
        "secrets": settings.secrets,
    }
    for section, entries in sections.items():
        for key, entry in entries.items():
            if entry.existing:
                yield from _of_the_owner(section, key, entry)
        yield from _twice(settings, section, entries)
    yield from _buckets(settings)
    yield from _registry(settings.registry)
    yield from _ranges(settings)


def _of_the_owner(
    section: str, key: str, entry: Bucket | ServiceAccount | Secret
) -> Iterator[Problem]:
    """Keys about what the stack does not make; ``formerly`` has a rule of its own."""
    for field in sorted(entry.model_fields_set - BESIDE[section] - {"formerly"}):
        what = "is its owner's to say: this exists"
        yield Problem(what, "", "remove it", (section, key, to_camel(field)))


def _buckets(settings: Settings) -> Iterator[Problem]:
    for key, bucket in settings.buckets.items():
        if bucket.project and not bucket.existing:
            what = "says nothing without existing: the stack makes its buckets in its own project"
            yield Problem(what, bucket.project, "remove it", ("buckets", key, "project"))
        field, name = ("existing", bucket.existing) if bucket.existing else ("name", bucket.name)
        if name and name.startswith(f"{settings.project}-{naming.CONTROL}-"):
            what = "has the records that make a submission happen once: jobs never reach them"
            yield Problem(what, name, "another bucket", ("buckets", key, field))


def _registry(registry: Registry) -> Iterator[Problem]:
    if registry.existing:
        for field in sorted(registry.model_fields_set - {"existing"}):
            what = "is its owner's to say: this exists"
            yield Problem(what, "", "remove it", ("registry", to_camel(field)))


def _ranges(settings: Settings) -> Iterator[Problem]:
    """Names of ranges of addresses, and of reservations of one zone."""
    for section, entries, place in (
        (("network", "ranges"), settings.network.ranges, lambda _: ""),
        (
            ("reservations",),
            settings.reservations,
            lambda each: f"{each.project or settings.project} {each.zone}",
        ),
    ):
        seen: dict[tuple[str, str], str] = {}
        for key, entry in entries.items():
            if entry.existing and entry.name:
                what = "is its owner's to say: this exists"
                yield Problem(what, entry.name, "remove it", (*section, key, "name"))
            if entry.existing:
                continue
            made = settings.names.reservation(key)
            if section != ("reservations",):
                made = settings.names.ip_range(key)
            name = entry.name or made
            if other := seen.get((place(entry), name)):
                named, shown = (key, other) if entry.name else (other, key)
                path = (*section, named, "name")
                yield Problem(f"is the name of {shown}, too", name, "one of them", path)
            seen[place(entry), name] = key


def _twice(
    settings: Settings,
    section: str,
    entries: Mapping[str, Bucket | ServiceAccount | Secret],
) -> Iterator[Problem]:
    """Two entries with one name in the cloud, of which at least one was given."""
    names = settings.names
    name_of = {
        "buckets": names.bucket,
        "serviceAccounts": names.account_email,
        "secrets": names.secret,
    }[section]
    owned = {
        "buckets": (naming.STAGING, naming.CONTROL),
        "serviceAccounts": (naming.IMAGE_BUILD,) if settings.builds_images else (),
        "secrets": (),
    }[section]
    seen = {name_of(key): "the stack itself" for key in owned}
    first = {key: renames.first_key(key, entry) for key, entry in entries.items()}
    given = {first[key] for key, entry in entries.items() if entry.existing or entry.name}
    # Two with one first key are a mistake of their own: vertex_training.stack_rules.names.
    by_default = {name_of(key): key for key in entries if first[key] not in given}
    for key, entry in entries.items():
        if not (entry.existing or entry.name):
            continue
        name = name_of(key)
        path: Path = (section, key, "existing" if entry.existing else "name")
        if other := seen.get(name) or by_default.get(name):
            yield Problem(f"is the name of {other}, too", name, "one of them", path)
        seen[name] = key
