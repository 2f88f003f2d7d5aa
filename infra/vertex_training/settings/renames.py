"""Renamed keys (``formerly``): names, state and the identity of a job keep the first key.

Only the stack file and references have the new key, so that a rename recreates nothing
(docs/adr/0029-a-renamed-entry-keeps-its-first-name.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vertex_training.settings.model import SECTIONS, Settings
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
        entries = settings.entries(section)
        renamed = {keys[section][key]: entry for key, entry in entries.items()}
        (of_network if fields[0] == "network" else changes)[fields[-1]] = renamed

    def first(section: str, key: str) -> str:
        return keys[(section,)].get(key, key)

    changes["service_accounts"] = {
        key: account.model_copy(
            update={
                "reads": [first("buckets", name) for name in account.reads],
                "writes": [first("buckets", name) for name in account.writes],
                "secrets": [first("secrets", name) for name in account.secrets],
            }
        )
        for key, account in changes["service_accounts"].items()
    }
    changes["models"] = {
        first("models", key): model.model_copy(update={"job": first("jobs", model.job or key)})
        for key, model in settings.models.items()
    }
    changes["endpoints"] = {
        first("endpoints", key): endpoint.model_copy(
            update={
                "model": first("models", endpoint.model or key),
                "account": endpoint.account and first("serviceAccounts", endpoint.account),
            }
        )
        for key, endpoint in settings.endpoints.items()
    }
    changes["snapshots"] = {
        key: snapshot.model_copy(update={"bucket": first("buckets", snapshot.bucket)})
        for key, snapshot in changes["snapshots"].items()
    }
    network = settings.network.model_copy(update=of_network)
    return settings.model_copy(update={**changes, "network": network})


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
