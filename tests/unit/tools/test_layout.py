"""Where an installation has its files, and what its digest covers."""

from __future__ import annotations

from pathlib import Path

from vertex_training_cli.toolchain.layout import Layout

ROOT, CACHE = Path("/srv/checkout"), Path("/srv/cache")


def paths(made: Layout) -> dict[str, str]:
    names = (
        *("venv", "bin", "python", "stamp", "toolchain", "requirements", "policy_venv"),
        *("policy_requirements", "tools", "package", "plugin_callers", "releases"),
        "offline_engine",
    )
    return {name: str(getattr(made, name)) for name in names}
