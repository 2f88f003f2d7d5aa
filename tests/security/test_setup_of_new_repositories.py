"""Tests that a repository of ``vt init`` installs own packages from files, and deployments by hash.

The names of the packages are on no index: whoever registered them there would run code.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import yaml
from typer.testing import CliRunner

from tests.security.test_setup_of_deployments import offer_source
from vertex_training_cli.cli import app
from vertex_training_cli.deploy import sources

GIVEN: Final = ("--no-wheels", "--project", "acme-ml-dev", "--number", "210987654321")
ROOT: Final = Path(__file__).resolve().parents[2]
OURS: Final = re.compile(r"vertex[-_]training|localgcp")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "acme"
    done = CliRunner().invoke(app, ["init", str(root), *GIVEN])
    assert done.exit_code == 0, done.output
    return root


def put_wheels(root: Path) -> list[str]:
    """Write empty files for the wheels that the requirements name."""
    lines = (root / "requirements.txt").read_text().splitlines()
    names = [line.partition("[")[0] for line in lines if line.startswith("./wheels/")]
    for name in names:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()
    return names


def make(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", *words], cwd=root, capture_output=True, text=True, check=False, timeout=60
    )


def test_own_packages_are_files_in_every_requirement(repository: Path) -> None:
    names = put_wheels(repository)
    assert len(names) == 2
    for file in repository.glob("requirements*"):
        lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
        assert [line for line in lines if OURS.search(line) and "./wheels/" not in line] == []


def test_own_packages_have_one_version() -> None:
    versions = {importlib.metadata.version(name) for name in ("vertex-training", "localgcp")}
    assert len(versions) == 1


def test_missing_wheel_is_one_line_with_the_build_command(repository: Path) -> None:
    done = make(repository, "setup")
    assert done.returncode != 0
    assert "wheels/vertex_training-" in done.stderr
    assert "pip wheel --no-deps" in done.stderr
    assert not (repository / ".venv").exists()


@pytest.mark.parametrize("name", ["x.whl ; touch ran ; y", "$(shell touch ran)", "x.whl\ty"])
def test_package_name_is_not_executed_by_make(repository: Path, name: str) -> None:
    put_wheels(repository)
    (repository / "requirements.lock").write_text("not-there==1\n")
    with (repository / "requirements.txt").open("a") as file:
        file.write(f"./wheels/{name}.whl\n")
    (repository / "wheels" / "x.whl").touch()
    make(repository, "setup", "DEPLOY=1", "PYTHON=/bin/false")
    assert not (repository / "ran").exists()


def test_deployment_setup_requires_a_lock_file(repository: Path) -> None:
    put_wheels(repository)
    done = make(repository, "setup", "DEPLOY=1")
    assert done.returncode != 0
    [said, *rest] = done.stderr.splitlines()
    assert said == (
        "make: requirements.lock is missing: deployments only install packages that it pins by "
        "hash. Hint: run make lock, and commit the file"
    )
    assert all(line.startswith("make: ***") for line in rest)
    assert not (repository / ".venv").exists()


def test_deployment_setup_refuses_an_empty_lock_file(repository: Path) -> None:
    put_wheels(repository)
    (repository / "requirements.lock").touch()
    done = make(repository, "setup", "DEPLOY=1")
    assert done.returncode != 0
    assert "requirements.lock pins no packages. Hint: run make lock" in done.stderr
    assert not (repository / ".venv").exists()


def test_deployment_setup_requires_a_pin_of_the_plugin(repository: Path) -> None:
    put_wheels(repository)
    (repository / "requirements.lock").write_text("pulumi-gcp==9.35.0 \\\n    --hash=sha256:aa\n")
    done = make(repository, "setup", "DEPLOY=1")
    assert done.returncode != 0
    assert "tools/releases.sha256 has no line for pulumi-resource-gcp-v9.35.0-" in done.stderr
    assert not (repository / ".venv").exists()


@pytest.mark.parametrize("verb", ["setup", "preview", "approval", "deploy", "drift", "comment"])
def test_deployment_installs_only_packages_of_the_lock_file(repository: Path, verb: str) -> None:
    put_wheels(repository)
    (repository / "requirements.lock").touch()
    said = make(repository, "-n", verb, "DEPLOY=1", "STACK=dev").stdout
    installs = [line for line in said.splitlines() if " install " in line]
    assert len(installs) == 2  # by uv, or by pip
    for line in installs:
        assert re.findall(r"-r [^\s;]+", line) == ["-r requirements.lock"]
        assert "--require-hashes" in line


def test_deployment_builds_no_package(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock file has no hashes for packages that a build would download."""
    put_wheels(repository)
    pin = offer_source(tmp_path, repository / "ran", monkeypatch)
    (repository / "requirements.lock").write_text(pin)
    assert make(repository, "setup", "DEPLOY=1", f"PYTHON={sys.executable}").returncode != 0
    assert not (repository / "ran").exists()


def test_jobs_that_can_sign_in_use_the_deployment_setup(repository: Path) -> None:
    found = 0
    for file in (repository / ".github/workflows").glob("*.yml"):
        for job in yaml.safe_load(file.read_text())["jobs"].values():
            if "id-token" in job["permissions"]:
                found += 1
                assert job["env"]["DEPLOY"] == "1"
    assert found >= 3


@pytest.mark.parametrize("ignored", [False, True])
def test_uncommitted_lock_file_approves_nothing(repository: Path, ignored: bool) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", *identity, *words], cwd=repository, check=True, capture_output=True)

    if ignored:
        with (repository / ".gitignore").open("a") as file:
            file.write("*.lock\n")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "first")
    assert not sources.checkout(repository, "dev").problems()
    (repository / "requirements.lock").write_text("evil==1 --hash=sha256:00\n")
    assert sources.checkout(repository, "dev").added == ("requirements.lock",)


def test_no_instruction_installs_own_packages_by_name() -> None:
    """Covers pages, generated files, help and hints: packages come from a file or a commit."""
    install = re.compile(
        r"""install [^\n|`]*?["' ](vertex-training|localgcp)(\[[a-z,]+\])?"""
        r"""["'`]?(?:$| )(?!@|from)""",
        re.MULTILINE,
    )
    texts = [*ROOT.glob("docs/*.md"), *ROOT.glob("*.md"), *ROOT.glob("docs/examples/**/*")]
    texts += [*(ROOT / "cli").rglob("*.j2"), *(ROOT / "cli").rglob("*.py")]
    texts += [*(ROOT / "infra").rglob("*.py"), *(ROOT / "localcloud").rglob("*.py")]
    found = [
        f"{file.name}: {match[0]}"
        for file in texts
        if file.is_file() and file.name != "CHANGELOG.md"
        for match in install.finditer(file.read_text(errors="replace"))
    ]
    assert found == []
    assert install.search("pip install 'vertex-training[cli]'")
    assert install.search("python -m pip install --upgrade vertex-training\n")
