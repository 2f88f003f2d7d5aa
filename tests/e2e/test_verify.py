"""`vt verify` on the local cloud: as rehearsed, and with five faults.

``RECORD=1`` (``make rehearsal``) makes the first run the rehearsal that ships.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from localgcp.projects import local_project_number
from tests.conftest import ROOT, Checkout, running_checkout
from vertex_training_cli.verify import comparison

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PAGE = ROOT / "docs" / "bootstrap.md"
REHEARSAL = ROOT / "cli" / "vertex_training_cli" / "verify" / "rehearsal.json"
FAULTS = (
    'cloudresourcemanager patch --method projects.get --patch \'{"displayName": "x"}\'',
    "jobs stockout --seconds 60",
    "iam error --code 403 --method GetIamPolicy --match artifacts",
    "jobs error --code UNAVAILABLE --when after --method GetCustomJob --match replaced --times 6",
    "jobs stockout --match replacing",
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    with running_checkout(tmp_path_factory.mktemp("verify") / "checkout") as made:
        yield made


def verify(checkout: Checkout, stack: str) -> tuple[Path, dict[str, Any]]:
    """Run the page's stack in a project of its own: the report's folder, and its JSON."""
    text = PAGE.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    content = yaml.safe_load(text)
    project = f"local-{stack}"
    content["config"] |= {
        "gcp:project": project,
        "vertex-training:projectNumber": local_project_number(project),
    }
    (checkout.path / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump(content))
    folder = checkout.path / f"report-{stack}"
    line = ["vt", "verify", "--stack", stack, "--max-usd", "1", "--yes", "-o", str(folder)]
    done = checkout.run(*line, expect=None)
    found = json.loads((folder / "differences.json").read_text())
    assert done.returncode == (7 if found["differences"] else 0), done.stderr
    assert checkout.left(project) == {}
    return folder, found


def is_slow(difference: dict[str, Any]) -> bool:
    """Whether it is about time alone, which a machine that is busy with other tests takes."""
    return all(detail.startswith("seconds") for detail in difference["details"])


def test_without_a_fault_nothing_differs_and_the_archive_has_neither_project_nor_people(
    checkout: Checkout,
) -> None:
    folder, found = verify(checkout, "calm")
    if os.environ.get("RECORD"):
        shutil.copy(folder / "observations.json", REHEARSAL)
        return
    assert [each for each in found["differences"] if not is_slow(each)] == []
    if not found["differences"]:
        assert "no differences" in (folder / "differences.md").read_text()
    with tarfile.open(folder.with_name(f"{folder.name}.tar.gz")) as archive:
        files = [entry for entry in archive.getmembers() if entry.isfile()]
        texts = {each.name: archive.extractfile(each).read().decode() for each in files}  # type: ignore[union-attr]
    assert {"records/up-events.json", "records/drift-calls.json", "records/job-replaced.json"} <= {
        name.removeprefix("report-calm/") for name in texts
    }
    own = ("local-calm", local_project_number("local-calm"), str(checkout.path))
    assert [name for name, text in texts.items() if any(word in text for word in own)] == []
    observed = comparison.read(json.loads((folder / "observations.json").read_text()))
    assert observed["edit"]["job replaced"]["states"][-1] == "CANCELLED"
    assert observed["edit"]["result"]["new jobs"] == 2
    assert observed["destroy"]["result"]["left"] == []


def test_the_page_names_five_faults_and_nothing_else(checkout: Checkout) -> None:
    for fault in FAULTS:
        checkout.run("sh", "-c", f"vt local fault add {fault}")

    folder, found = verify(checkout, "stormy")

    project = "call GET cloudresourcemanager.googleapis.com/v3/projects/PROJECT"
    differences = [
        (each["step"], each["subject"])
        for each in found["differences"]
        if each["subject"] == "job first" or not is_slow(each)
    ]
    assert differences == [
        ("preflight", project),
        ("job", "job first"),
        ("drift", "failed"),
        ("edit", "job replacing"),
        ("edit", "lost answers"),
    ]
    page = (folder / "differences.md").read_text()
    for words in ("displayName", "seconds until it ran", "403", "STOCKOUT", "get_custom_job"):
        assert words in page
