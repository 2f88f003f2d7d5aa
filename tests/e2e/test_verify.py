"""`vt verify` on the local cloud: as rehearsed, and with four faults.

``RECORD=1`` (``make rehearsal``) makes the first run the rehearsal that ships.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from localgcp.inventory.projects import local_project_number
from tests.conftest import ROOT, Checkout, running_checkout

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

EXAMPLE = ROOT / "docs" / "examples" / "first-run" / "Pulumi.first.yaml"
REHEARSAL = ROOT / "cli" / "vertex_training_cli" / "verify" / "rehearsal.txt"
FAULTS = (
    'cloudresourcemanager patch --method projects.get --patch \'{"displayName": "x"}\'',
    "iam error --code 403 --method GetIamPolicy --match artifacts",
    "jobs error --code UNAVAILABLE --when after --method GetCustomJob --match replaced --times 6",
    "jobs stockout --match replacing",
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    with running_checkout(tmp_path_factory.mktemp("verify") / "checkout") as made:
        yield made


def verify(checkout: Checkout, stack: str) -> tuple[Path, list[str]]:
    """Run the example's stack in a project of its own: the folder of the page, and its lines."""
    content = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    project = f"local-{stack}"
    content["config"] |= {
        "gcp:project": project,
        "vertex-training:projectNumber": local_project_number(project),
    }
    (checkout.path / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump(content))
    folder = checkout.path / f"report-{stack}"
    line = ["vt", "verify", "--stack", stack, "--max-usd", "1", "--yes", "-o", str(folder)]
    done = checkout.run(*line, expect=None)
    found = (folder / "differences.txt").read_text().splitlines()
    assert done.returncode == (7 if found else 0), done.stderr
    assert checkout.left(project) == {}
    return folder, found


def test_without_a_fault_nothing_differs_and_the_lines_have_neither_project_nor_people(
    checkout: Checkout,
) -> None:
    folder, found = verify(checkout, "calm")
    if os.environ.get("RECORD"):
        shutil.copy(folder / "observations.txt", REHEARSAL)
        found = []
    text = (folder / "observations.txt").read_text()
    own = ("local-calm", local_project_number("local-calm"), str(checkout.path))
    assert [word for word in own if word in text] == []
    lines = set(text.splitlines())
    assert "job | job first | state SUCCEEDED" in lines
    assert "up-again | changed | nothing" in lines
    assert "edit | job replaced | state CANCELLED" in lines
    assert "edit | new jobs | 2" in lines
    assert {"destroy | left | nothing", "destroy | live jobs | 0"} <= lines
    assert [line for line in lines if "failed" in line] == []
    assert found == []


def test_the_page_names_four_faults_and_nothing_else(checkout: Checkout) -> None:
    for fault in FAULTS:
        checkout.run("sh", "-c", f"vt local fault add {fault}")

    _, found = verify(checkout, "stormy")

    project = "call GET cloudresourcemanager.googleapis.com/v3/projects/PROJECT"
    subjects = {tuple(line[2:].split(" | ")[:2]) for line in found}
    assert {each for each in subjects if each[0] != "drift"} == {
        ("preflight", project),
        ("edit", "job replacing"),
        ("edit", "lost answers"),
    }
    page = "\n".join(found)
    for words in ("displayName", "drift | result | failed: 403", "STOCKOUT", "get_custom_job"):
        assert words in page
