"""``vt setup``: ``pulumi``, its plugins and the policy pack's packages beside this package."""

from __future__ import annotations

import json
import os

from vertex_training_cli.toolchain.cache import lock
from vertex_training_cli.toolchain.console import step
from vertex_training_cli.toolchain.layout import PLUGINS, Layout
from vertex_training_cli.toolchain.policy_env import find_uv, install_policy_packages, is_whole
from vertex_training_cli.toolchain.pulumi_cli import (
    Pulumi,
    check_source,
    ensure_pulumi,
    install_gcp_plugin,
)


def installed_pulumi(layout: Layout, source: str) -> Pulumi | None:
    """The ``pulumi`` of the environment, if all of it is whole and as this version installs it."""
    try:
        record = json.loads(layout.stamp.read_text())
        digest = record.pop("digest")
        found = Pulumi(**record)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None  # none, or one that another version recorded
    commands = [layout.bin / name for name in ("pulumi", *PLUGINS)]
    whole = is_whole(layout) and all(os.access(command, os.X_OK) for command in commands)
    return found if whole and digest == layout.inputs_digest(source) else None


def install_pulumi(layout: Layout, source: str) -> Pulumi:
    """Put ``pulumi``, its plugins and the policy pack's packages into the environment.

    Does nothing where they are.

    ``source`` is what VT_PULUMI_SOURCE says: auto, path, official or build.

    Raises:
        SetupError: no source works, or the packages cannot be had; with the reasons.
    """
    check_source(source)
    with lock(layout.toolchain):
        if found := installed_pulumi(layout, source):
            return found
        layout.stamp.unlink(missing_ok=True)
        with step("pulumi") as current:
            found = ensure_pulumi(layout, source)
            current.note = f"{found.version}, {found.engine}"
        if layout.deploy:
            with step("gcp plugin") as current:
                current.note = install_gcp_plugin(layout)
        with step("policy pack") as current:
            current.note = install_policy_packages(layout, find_uv(layout))
        record = {"digest": layout.inputs_digest(source), **found.as_record()}
        layout.stamp.write_text(json.dumps(record, indent=2) + "\n")
    return found
