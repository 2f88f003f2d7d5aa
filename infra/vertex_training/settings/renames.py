"""Renamed keys (``formerly``), and the first keys that remain in names and state. Pure.

A renamed entry has its new key only in the stack file and in references. Its name in the cloud, its
place in the state and the identity of a job derive from the first key. So a rename recreates
nothing, even with several renames at once, and a revert needs no trace of the rename
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
    """Return the settings with all entries under their first keys.

    References between entries change too. Two entries never have the same first key
    (``vertex_training.stack_rules.names``).
    """
    keys = {section: first_keys(settings, section) for section in SECTIONS}
    if all(key == first for of_section in keys.values() for key, first in of_section.items()):
        return settings
    network = settings.network.model_copy(
        update={
            fields[-1]: _renamed(settings.entries(section), keys[section])
            for section, fields in SECTIONS.items()
            if fields[0] == "network"
        }
    )
    changes: dict[str, Any] = {
        fields[0]: _renamed(settings.entries(section), keys[section])
        for section, fields in SECTIONS.items()
        if len(fields) == 1
    }
    buckets, secrets = keys[("buckets",)], keys[("secrets",)]
    changes["service_accounts"] = {
        key: account.model_copy(
            update={
                "reads": [buckets.get(name, name) for name in account.reads],
                "writes": [buckets.get(name, name) for name in account.writes],
                "secrets": [secrets.get(name, name) for name in account.secrets],
            }
        )
        for key, account in changes["service_accounts"].items()
    }
    jobs, models, accounts = keys[("jobs",)], keys[("models",)], keys[("serviceAccounts",)]
    changes["models"] = {
        models[key]: model.model_copy(update={"job": jobs.get(model.job or key, model.job or key)})
        for key, model in settings.models.items()
    }
    changes["endpoints"] = {
        keys[("endpoints",)][key]: endpoint.model_copy(
            update={
                "model": models.get(endpoint.model or key, endpoint.model or key),
                "account": endpoint.account and accounts.get(endpoint.account, endpoint.account),
            }
        )
        for key, endpoint in settings.endpoints.items()
    }
    changes["snapshots"] = {
        key: snapshot.model_copy(update={"bucket": buckets.get(snapshot.bucket, snapshot.bucket)})
        for key, snapshot in changes["snapshots"].items()
    }
    return settings.model_copy(update={**changes, "network": network})


def with_new_keys(settings: Settings, references: Mapping[str, Any]) -> dict[str, Any]:
    """Replace first keys in references by the current keys, which job files use.

    ``settings`` are those of the stack file.
    """
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


def _renamed(entries: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    return {keys[key]: entry for key, entry in entries.items()}
