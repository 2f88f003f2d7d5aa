"""Rules about sections ``channels``, ``alerts`` and ``budget``. Pure."""

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
    """Check that channels exist, belong to the project and suit the alerts that use them."""
    own = (settings.project, settings.project_number)
    for key, channel in settings.channels.items():
        if channel.existing and channel.existing.split("/")[1] not in own:
            what = f"alerts of {settings.project} cannot use channels of other projects"
            path: Path = ("channels", key, "existing")
            yield Problem(what, channel.existing, f"name a channel of {settings.project}", path)
    for name, job in settings.jobs.items():
        if (key := job.messages and job.messages.channel) is not None:
            path = ("jobs", name, "messages", "channel")
            if key not in settings.channels:
                yield unknown_entry("channel", key, settings.channels, "channels", path)
            elif not settings.channels[key].pubsub:
                yield Problem(
                    "Batch notifies only Pub/Sub topics", key, "name a channel with pubsub", path
                )
    for path, keys in _named(settings):
        for index, key in enumerate(keys):
            if key not in settings.channels:
                at = (*path, index)
                yield unknown_entry("channel", key, settings.channels, "channels", at)
            elif key in keys[:index]:
                yield Problem(
                    "this channel is listed twice", key, "remove one entry", (*path, index)
                )
            elif path[0] == "budget" and settings.channels[key].pubsub:
                what = "budgets notify only channels with email"
                yield Problem(what, key, "name a channel with email", (*path, index))


@file_rule("warning")
def shared_alerts(file: StackFile) -> Iterator[Problem]:
    """Warn about unused channels, and about alerts of another stack on the same jobs."""
    settings, root = file.settings, file.root
    used = {key for _, keys in _named(settings) for key in keys}
    used |= {job.messages.channel for job in settings.jobs.values() if job.messages}
    for key in (channel for channel in settings.channels if channel not in used):
        what, hint = (
            "no alert or budget uses this channel",
            "name the channel in alerts or budget, or remove the channel",
        )
        yield Problem(what, key, hint, ("channels", key))
    for section in ("alerts", "budget"):
        if getattr(settings, section) is None:
            continue
        others = [name for name, config in _others(settings, root) if config.get(section)]
        if others:
            what = (
                f"{section} covers all of {settings.project}, and so does {section} in "
                f"{', '.join(others)}"
            )
            hint = f"keep {section} in one stack: each reports jobs and costs of all these stacks"
            yield Problem(what, hint=hint, path=(section,))


def _named(settings: Settings) -> Iterator[tuple[Path, list[str]]]:
    """Yield each list of channels: its path and the keys in it."""
    if settings.alerts:
        yield ("alerts", "channels"), settings.alerts.channels
    if settings.budget:
        yield ("budget", "channels"), settings.budget.channels


def _others(settings: Settings, root: Folder) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and content of the project's other stack files; keys are without namespace."""
    for file in sorted(root.glob("Pulumi.*.yaml")):
        config = config_of(file)
        if file.name != project_files.file_name(settings.stack) and (
            config.get("gcp:project") == settings.project
        ):
            yield file.name, {key.rpartition(":")[2]: value for key, value in config.items()}
