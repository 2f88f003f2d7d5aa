"""The stacks that this repository shows: they check, they preview, and one can read the review.

They are examples: a company edits them, or puts others in their place. Nothing here knows what is
in them, and one that is gone is skipped.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.conftest import Checkout, copy_checkout
from tests.fixture_project import ROOT, reading_samples, sample
from vertex_training_cli.review.parts import Topic

#: Stack -> its file; that of a page is copied to the top, as the page says.
SAMPLES: Final = {
    **{name: f"Pulumi.{name}.yaml" for name in ("local", "dev", "prod")},
    "peering": "docs/examples/peering/Pulumi.peering.yaml",
    "workstation": "docs/examples/workstation/Pulumi.workstation.yaml",
}
#: Stack of a page -> the team's own resources that the page copies, too.
EXTRA: Final = {"workstation": "docs/examples/workstation/extra.py"}
#: Stack of a page -> what it takes from the samples in ``jobs/``.
NEEDED: Final = {"peering": ("data/titanic", "titanic")}
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """A copy with the repository's own stacks and jobs."""
    copy = copy_checkout(tmp_path_factory.mktemp("samples"), samples=True)
    yield copy
    copy.run("vt", "local", "down", "--clean")


def jobs(file: Path) -> set[str]:
    """Names of the jobs that a stack file has; a company's may have none."""
    return set(yaml.safe_load(file.read_text())["config"].get("vertex-training:jobs") or {})


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "local" else pytest.mark.nightly) for name in SAMPLES],
)
def test_a_sample_checks_and_its_review_is_readable(checkout: Checkout, name: str) -> None:
    if not (ROOT / SAMPLES[name]).exists():
        pytest.skip(f"{SAMPLES[name]} was removed")
    for needed in NEEDED.get(name, ()):
        sample(needed)
    with reading_samples():
        shutil.copy(ROOT / SAMPLES[name], checkout.path)
        if name in EXTRA:
            shutil.copy(ROOT / EXTRA[name], checkout.path)
    checkout.run("vt", "check", "--stack", name)
    written = checkout.path / "review.json", checkout.path / "review.md"
    files = [word for file in written for word in ("-o", file.name)]
    done = checkout.run("vt", "review", "--stack", name, "--offline", *files, expect=None)
    assert done.returncode == 0, f"{done.stderr}{written[1].read_text()}"
    report, page = json.loads(written[0].read_text()), written[1].read_text()
    headline = page.partition("\n###")[0]
    assert [topic for topic in Topic if topic.head not in headline] == []
    assert {job["name"] for job in report["jobs"]} >= jobs(checkout.path / f"Pulumi.{name}.yaml")
    assert [job["name"] for job in report["jobs"] if f"`{job['name']}`" not in page] == []
    if name in EXTRA:
        (checkout.path / "extra.py").unlink()


@pytest.mark.nightly
def test_a_machine_to_log_into_stops_and_is_never_deleted(checkout: Checkout) -> None:
    """What keeps a machine from being made again, or lost with its disk, is in its preview."""
    shutil.copy(ROOT / SAMPLES["workstation"], checkout.path)
    shutil.copy(ROOT / EXTRA["workstation"], checkout.path)
    up = checkout.shell("pulumi up -y -s workstation")
    assert "error" not in up.stdout
    (machine,) = [
        each
        for each in json.loads(checkout.shell("pulumi stack export -s workstation").stdout)[
            "deployment"
        ]["resources"]
        if each["type"] == "gcp:compute/instance:Instance"
    ]
    scheduling = machine["outputs"]["scheduling"]
    assert scheduling["instanceTerminationAction"] == "STOP"
    assert scheduling["maxRunDuration"]["seconds"] == 8 * 3600
    assert machine["protect"]
    assert not any(each.get("accessConfigs") for each in machine["outputs"]["networkInterfaces"])
    # Somebody drops the limit: the engine would replace a machine with its disk, and may not.
    extra = checkout.path / "extra.py"
    extra.write_text(extra.read_text().replace("seconds=HOURS * 3600", "seconds=60"))
    refused = checkout.shell("pulumi up -y -s workstation", expect=None)
    assert "protect" in refused.stdout + refused.stderr
    assert refused.returncode != 0
    extra.unlink()
