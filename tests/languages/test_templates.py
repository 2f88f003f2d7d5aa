"""``pulumi new`` with the templates of a release, in an empty folder, against the local cloud."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.languages import story
from tools import release

pytestmark = pytest.mark.timeout(900)

#: Language -> what it needs beside pulumi, the file with its program, and its environment.
LANGUAGES = {
    "python": (("pulumi-language-python",), "__main__.py", "venv"),
    "typescript": (("pulumi-language-nodejs", "node", "npm"), "index.ts", "vertex-training/venv"),
    "yaml": (("pulumi-language-yaml",), "Pulumi.yaml", "vertex-training/venv"),
}


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("templates")
    story.unpack_release(release.TEMPLATES, target, target)
    return target / "templates"


@pytest.fixture(params=LANGUAGES)
def program(
    request: pytest.FixtureRequest, templates: Path, tmp_path: Path
) -> Iterator[tuple[story.Program, Path]]:
    needed, file, environment = LANGUAGES[request.param]
    story.skip_without(*needed)
    folder = tmp_path / "mine"
    with story.installed(folder / file, folder / environment, tmp_path / "packages") as found:
        yield found, templates / request.param


def test_a_new_project_previews(program: tuple[story.Program, Path]) -> None:
    found, template = program
    found.install(f"new {template} --offline --force --yes --name mine --stack dev")
    said = found.pulumi("preview --stack dev")
    assert "TrainingJob hello create" in said
    assert "+ 20 to create" in said
    config = (found.checkout.path / "Pulumi.dev.yaml").read_text()
    assert "gcp:project: local-training" in config
    assert (found.checkout.path / "Pulumi.yaml").read_text().startswith("name: mine\n")
