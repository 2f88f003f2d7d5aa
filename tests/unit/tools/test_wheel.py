"""The wheel holds the package and its data, and says what it needs; nothing else of a checkout."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.unit.structure.tree import ROOT, files

SOURCES = ("infra/", "cli/", "pyproject.toml", "README.md", "LICENSE")


def build(folder: Path, project: str = "") -> Path:
    """The wheel of what git tracks of a ``project``, built in ``folder`` without a network."""
    sources = (f"{project}/",) if project else SOURCES
    for name in files():
        if name.startswith(sources):
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / "source" / name)
    command = [sys.executable, "-m", "uv", "build", "--wheel", "--no-build-isolation", "--offline"]
    done = subprocess.run(
        [*command, "--python", sys.executable, "--out-dir", folder],
        cwd=folder / "source" / project,
        env={"SOURCE_DATE_EPOCH": "1700000000", "HOME": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [wheel] = folder.glob(f"{'localgcp' if project else 'vertex_training'}-*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_has_every_file_of_both_packages_and_no_other(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    packages = [name for name in files() if name.startswith(("infra/", "cli/"))]
    assert inside == {name.partition("/")[2] for name in packages}


def test_a_program_needs_no_terminal_and_no_local_cloud(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    [metadata] = [name for name in archive.namelist() if name.endswith("/METADATA")]
    needs = re.findall(r"^Requires-Dist: (.*)$", archive.read(metadata).decode(), re.MULTILINE)
    plain = {re.split(r"[<>=; ]", need)[0] for need in needs if "extra ==" not in need}
    assert {"pulumi", "pulumi-gcp", "google-cloud-aiplatform", "pyyaml"} <= plain
    assert not {"typer", "rich", "jinja2", "localgcp", "optuna", "google-cloud-build"} & plain
    extra = {re.split(r"[<>=; ]", need)[0] for need in needs if re.search(r"extra == .cli.", need)}
    assert {"typer", "rich", "google-cloud-build"} <= extra
    assert not {need for need in needs if need.startswith("google-cloud-secret-manager")}
    local = [need for need in needs if need.startswith("localgcp")]
    assert local == ["localgcp; extra == 'cli'", "localgcp; extra == 'local'"]


def test_the_wheel_has_the_policies_and_the_pins_of_what_serves_them(
    wheel: Path, tmp_path: Path
) -> None:
    """They need the standard library alone: the pack's environment has none of our packages."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    load = "from vertex_training.guardrails.policy import load; print(len(load()))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", load],
        cwd="/", env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
    pins = (tmp_path / "vertex_training_cli" / "toolchain" / "policy.txt").read_text()
    assert re.search(r"^pulumi-policy==\S+ \\$", pins, re.MULTILINE)


def test_the_same_files_make_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    assert build(tmp_path).read_bytes() == wheel.read_bytes()
