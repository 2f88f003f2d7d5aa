"""Tests that all mistakes of a stack file are reported with locations
(``tests/corpus/stacks/wrong``).

The comments at the end of a file are what must be reported. ``UPDATE_CORPUS=1`` writes them anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vertex_training import stack
from vertex_training.errors import ConfigError

CORPUS = Path(__file__).parents[1] / "corpus" / "stacks" / "wrong"
FILES = sorted(CORPUS.glob("*.yaml"))
#: Another stack of the checkout, whose numbers are compared.
OTHER = """\
config:
  gcp:project: acme-ml-dev
  gcp:region: us-central1
  vertex-training:projectNumber: "210987654321"
  vertex-training:sharedVpc: {hostProject: acme-net, hostProjectNumber: "345678901234"}
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("checkout")
    (root / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (root / "Pulumi.other.yaml").write_text(OTHER)
    (root / "job.yaml").touch()
    return root


def reported(checkout: Path, text: str) -> list[str]:
    (checkout / "Pulumi.dev.yaml").write_text(text)
    with pytest.raises(ConfigError) as failed:
        stack.load(checkout, "dev")
    found = sorted(failed.value.problems, key=lambda p: (p.location.line, p.location.column))
    return [str(problem).removeprefix("Pulumi.dev.yaml:").strip() for problem in found]


def test_there_are_at_least_forty_wrong_stack_files() -> None:
    assert len(FILES) >= 40


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_mistake_is_reported_with_its_location(checkout: Path, file: Path) -> None:
    lines = file.read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#> ")) + "\n"
    expected = [line.removeprefix("#> ") for line in lines if line.startswith("#> ")]
    found = reported(checkout, text)
    if os.environ.get("UPDATE_CORPUS"):
        file.write_text(text + "".join(f"#> {line}\n" for line in found))
        expected = found
    assert found == expected
