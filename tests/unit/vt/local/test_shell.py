"""Project and region of gcloud in the local shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp.home import Home
from vertex_training_cli.local.commands import _stack_defaults  # pyright: ignore[reportPrivateUsage]

STACK = "config: {gcp:project: local-x, gcp:region: europe-west4}\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.delenv("CLOUDSDK_CORE_PROJECT", raising=False)
    (tmp_path / "Pulumi.yaml").write_text("name: training\n")
    (tmp_path / "Pulumi.local.yaml").write_text(STACK)
    return Home(tmp_path / "home", tmp_path)


def test_a_local_project_that_was_chosen_stays(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDSDK_CORE_PROJECT", "local-mine")
    assert _stack_defaults(home)["CLOUDSDK_CORE_PROJECT"] == "local-mine"
