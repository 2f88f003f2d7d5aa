"""Renamed keys (``formerly``): names, state and the identity of a job keep the first key.

Only the stack file and references have the new key, so that a rename recreates nothing
(docs/adr/0029-a-renamed-entry-keeps-its-first-name.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vertex_training.settings.model import BY_OWN_KEY, REFERENCES, SECTIONS, Settings
from vertex_training.settings.section import NamedSection


def first_key(key: str, entry: NamedSection) -> str:
    """Return the key with which an entry was created."""
    return entry.formerly or key


def first_keys(settings: Settings, section: tuple[str, ...]) -> dict[str, str]:
    """Return the first keys of a section's entries by their current keys."""
    return {key: first_key(key, entry) for key, entry in settings.entries(section).items()}


def with_first_keys(settings: Settings) -> Settings:
    """Return the settings with all entries and their references under first keys."""
    keys = {section: first_keys(settings, section) for section in SECTIONS}
    if all(key == first for of_section in keys.values() for key, first in of_section.items()):
        return settings
    changes, of_network = dict[str, Any](), dict[str, Any]()
    for section, fields in SECTIONS.items():
        named = REFERENCES.get(section[0], {}).items()
        references = {field: keys[(other,)] for field, other in named}
        renamed = {
            keys[section][key]: _with_first_references(key, entry, references)
            for key, entry in settings.entries(section).items()
        }
        (of_network if fields[0] == "network" else changes)[fields[-1]] = renamed
    network = settings.network.model_copy(update=of_network)
    return settings.model_copy(update={**changes, "network": network})


def _with_first_references(
    key: str, entry: NamedSection, references: Mapping[str, Mapping[str, str]]
) -> NamedSection:
    """Return an entry with first keys in its fields ``references``."""
    update: dict[str, Any] = {}
    for field, first in references.items():
        match getattr(entry, field):
            case list() as names:
                update[field] = [first.get(name, name) for name in names]
            case str() as name:
                update[field] = first.get(name, name)
            case None if field in BY_OWN_KEY:
                update[field] = first.get(key, key)
    return entry.model_copy(update=update)


def with_new_keys(settings: Settings, references: Mapping[str, Any]) -> dict[str, Any]:
    """Return references with the current keys, which job files use, instead of first keys."""
    new: dict[tuple[str, ...], str] = {
        (*section, first): key
        for section in SECTIONS
        for key, first in first_keys(settings, section).items()
    }
    result: dict[str, Any] = {}
    for name, value in references.items():
        parts = name.split(".")
        for length in (2, 3):
            if (key := new.get(tuple(parts[:length]))) is not None and len(parts) >= length:
                parts[length - 1] = key
                break
        result[".".join(parts)] = value
    return result
