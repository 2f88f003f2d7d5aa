"""A checkout with the files that setup reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from vertex_training_cli.toolchain.layout import Layout

GO_MOD = "module tools\n\nrequire (\n\tgithub.com/pulumi/pulumi/pkg/v3 v3.259.0 // indirect\n)\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Layout:
    """A checkout with the files that setup reads, and an empty cache."""
    root = tmp_path / "checkout"
    for name, text in {
        "requirements/dev.txt": "uv==1.2.3 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n",
        "cli/vertex_training_cli/toolchain/policy.txt": "",
        "pyproject.toml": "",
        "localcloud/pyproject.toml": "",
        "tools/offline_engine/go.mod": GO_MOD,
        "tools/offline_engine/go.sum": "",
        "tools/offline_engine/pulumi-language-python": "#!/bin/sh\n",
        "cli/vertex_training_cli/toolchain/releases.sha256": "",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / ".venv" / "bin").mkdir(parents=True)
    place = Layout(root, tmp_path / "cache")
    place.toolchain.mkdir(parents=True)
    return place
