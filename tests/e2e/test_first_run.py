"""The commands of the page about a first run, on the local cloud."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from localgcp.inventory.resource_paths import project_number
from tests.conftest import ROOT, running_checkout

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

EXAMPLE = ROOT / "docs/examples/first-run"
PROJECT = "local-first"


def test_each_command_of_a_first_run_succeeds_and_nothing_is_left(tmp_path: Path) -> None:
    [commands] = re.findall(r"( *vt preflight.*?)```", (EXAMPLE / "README.md").read_text(), re.S)
    content = yaml.safe_load((EXAMPLE / "Pulumi.first.yaml").read_text())
    number = project_number(PROJECT)
    content["config"] |= {"gcp:project": PROJECT, "vertex-training:projectNumber": number}
    with running_checkout(tmp_path / "checkout") as checkout:
        (checkout.path / "Pulumi.first.yaml").write_text(yaml.safe_dump(content))
        checkout.shell("pulumi stack init first")
        for command in commands.split("\n"):
            checkout.run(*command.split()) if command.strip() else None
        assert checkout.left(PROJECT) == {}
