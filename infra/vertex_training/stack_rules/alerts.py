"""Rules of the sections ``channels``, ``alerts`` and ``budget``: whom alerts reach. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as Folder
from typing import Any

from vertex_training.errors import Path, Problem
from vertex_training.settings import project_files
from vertex_training.settings.model import Settings
from vertex_training.stack_rules import StackFile, file_rule, rule, unknown_entry
from vertex_training.stack_rules.names import config_of


@rule()
def channels(settings: Settings) -> Iterator[Problem]:
    """Channels are of the project, exist, and reach whoever is notified by them."""
    own = (settings.project, settings.project_number)
    for key, channel in settings.channels.items():
        if channel.existing and channel.existing.split("/")[1] not in own:
            what = f"is a channel of another project: {settings.project} notifies its own alone"
            path: Path = ("channels", key, "existing")
            yield Problem(what, channel.existing, f"a channel of {settings.project}", path)
    for name, job in settings.jobs.items():
        if (key := job.messages and job.messages.channel) is not None:
            path = ("jobs", name, "messages", "channel")
            if key not in settings.channels:
                yield unknown_entry("channel", key, settings.channels, "channels", path)
            elif not settings.channels[key].pubsub:
                yield Problem("Batch writes to topics alone", key, "a channel with pubsub", path)
    for path, keys in _named(settings):
        for index, key in enumerate(keys):
            if key not in settings.channels:
                at = (*path, index)
                yield unknown_entry("channel", key, settings.channels, "channels", at)
            elif key in keys[:index]:
                yield Problem("is named twice", key, "remove one", (*path, index))
            elif path[0] == "budget" and settings.channels[key].pubsub:
                what = "a budget tells addresses alone"
                yield Problem(what, key, "a channel with email", (*path, index))


@file_rule("warning")
def shared_alerts(file: StackFile) -> Iterator[Problem]:
    """Channels are used, and no other stack has alerts about the same jobs."""
    settings, root = file.settings, file.root
    used = {key for _, keys in _named(settings) for key in keys}
    used |= {job.messages.channel for job in settings.jobs.values() if job.messages}
    for key in (channel for channel in settings.channels if channel not in used):
        what, hint = "nothing is told to it", "name it in alerts or budget, or remove it"
        yield Problem(what, key, hint, ("channels", key))
    for section in ("alerts", "budget"):
        if getattr(settings, section) is None:
            continue
        others = [name for name, config in _others(settings, root) if config.get(section)]
        if others:
            what = f"is about all of {settings.project}, and so is that of {', '.join(others)}"
            hint = "keep one of them: each tells of the jobs and costs of both stacks"
            yield Problem(what, hint=hint, path=(section,))


def _named(settings: Settings) -> Iterator[tuple[Path, list[str]]]:
    """Lists of channels: where they stand, and the keys in them."""
    if settings.alerts:
        yield ("alerts", "channels"), settings.alerts.channels
    if settings.budget:
        yield ("budget", "channels"), settings.budget.channels


def _others(settings: Settings, root: Folder) -> Iterator[tuple[str, dict[str, Any]]]:
    """Other stack files of the same project, by their keys without a namespace."""
    for file in sorted(root.glob("Pulumi.*.yaml")):
        config = config_of(file)
        if file.name != project_files.file_name(settings.stack) and (
            config.get("gcp:project") == settings.project
        ):
            yield file.name, {key.rpartition(":")[2]: value for key, value in config.items()}
