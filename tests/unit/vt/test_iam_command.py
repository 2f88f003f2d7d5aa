"""``vt iam`` as it is called: which environments it shows, and what it says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from vertex_training_cli import iam
from vertex_training_cli.iam import EnvironmentIam


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with three stacks, of which bootstrap has two; and a stack of bootstrap alone."""
    (tmp_path / "bootstrap").mkdir()
    for folder, names in ((tmp_path, ("dev", "local", "own")),
                          (tmp_path / "bootstrap", ("dev", "local", "other"))):  # fmt: skip
        (folder / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
        for name in names:
            project = "local-x" if name == "local" else f"acme-{name}"
            (folder / f"Pulumi.{name}.yaml").write_text(f"config: {{gcp:project: {project}}}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(iam, "record", lambda _, name: EnvironmentIam(name, (), {}, ()))
    return tmp_path


def test_a_stack_that_bootstrap_does_not_have_is_told(root: Path, vt) -> None:
    done = vt("iam", "own", "dev", "--format", "json")
    assert done.stderr == (
        "vt iam: environment own has no file in bootstrap/: "
        "only the grants of the stack are listed\n"
    )
    assert done.stdout.startswith('[\n  {\n    "stack": "own"')
    assert vt("iam", "dev", "-f", "markdown").stdout.startswith("# IAM grants\n")


def test_it_works_from_a_folder_below(root: Path, vt, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "jobs").mkdir()
    monkeypatch.chdir(root / "jobs")
    assert vt("iam").stdout.startswith("dev:")


def test_without_an_environment_it_is_wrong_usage(
    tmp_path: Path, vt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = vt("iam")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == ("vt iam: no stack has a file in bootstrap/. Hint: run vt iam STACK\n")
