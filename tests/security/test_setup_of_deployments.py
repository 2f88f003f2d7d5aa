"""Tests that a job that can sign in installs few packages, by hash, and downloads nothing
unpinned.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import re
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from vertex_training_cli.toolchain import pulumi_cli, python_env
from vertex_training_cli.toolchain.layout import PLUGINS, Layout, SetupError, SubprocessError

ROOT: Final = Path(__file__).resolve().parents[2]
#: Refuses imports of these modules, then loads all that the workflows' commands and programs load.
IMPORTS: Final = """
import importlib, importlib.abc, sys

class Refusing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in refused:
            raise ImportError(f"{name} is installed for development only")

refused = set(sys.argv[1].split())
sys.meta_path.insert(0, Refusing())
for name in (
    "vertex_training_cli.cli",
    "vertex_training_cli.engine.events",
    "vertex_training_cli.review.formats",
    "vertex_training.program",
    "vertex_training.customjob.provider",
    "vertex_training.customjob.google.intent_store",
    "vertex_training.customjob.google.job_service",
):
    importlib.import_module(name)
"""

GO_MOD = "\tgithub.com/pulumi/pulumi/pkg/v3 v3.259.0 // indirect\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Layout:
    """Return a checkout for deployments, with an empty cache and no pinned release."""
    root = tmp_path / "checkout"
    for name, text in {
        "requirements/runtime.txt": "pulumi-gcp==9.1.0 \\\n    --hash=sha256:aa\n",
        "tools/offline_engine/go.mod": GO_MOD,
        "cli/vertex_training_cli/toolchain/releases.sha256": "# none\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / ".venv" / "bin").mkdir(parents=True)
    place = Layout(root, tmp_path / "cache", deploy=True)
    place.toolchain.mkdir(parents=True)
    return place


def jobs_that_sign_in() -> list[Any]:
    return [
        pytest.param(job, id=f"{file.stem}-{key}")
        for file in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
        for key, job in yaml.safe_load(file.read_text())["jobs"].items()
        if "id-token" in job["permissions"]
    ]


@pytest.mark.parametrize("job", jobs_that_sign_in())
def test_job_that_signs_in_uses_deployment_setup_without_downloads(job: dict[str, Any]) -> None:
    assert job["env"]["DEPLOY"] == "1"
    assert job["env"]["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] == "true"


@pytest.mark.parametrize("verb", ["setup", "preview", "deploy", "drift", "comment", "approval"])
def test_every_verb_of_a_signing_job_uses_deployment_setup(verb: str) -> None:
    command = ["make", "-n", verb, "STACK=dev", "DEPLOY=1"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "tools/setup.py --deploy" in shown


def test_deployment_installs_no_development_packages(checkout: Layout) -> None:
    assert checkout.requirements.name == "runtime.txt"
    assert Layout(checkout.root, checkout.cache).requirements.name == "dev.txt"


def test_deployment_code_imports_no_development_package() -> None:
    def names(file: str) -> set[str]:
        text = (ROOT / "requirements" / file).read_text()
        return set(re.findall(r"^([a-z0-9.-]+)==", text, re.MULTILINE))

    only = names("dev.txt") - names("runtime.txt")
    modules = {
        module
        for module, owners in importlib.metadata.packages_distributions().items()
        if {re.sub(r"[-_.]+", "-", owner).lower() for owner in owners} <= only
    }
    assert {"pytest", "playwright", "cel"} <= modules
    subprocess.run([sys.executable, "-c", IMPORTS, " ".join(modules)], cwd=ROOT, check=True)


def test_deployment_setup_tools_are_pinned() -> None:
    text = (ROOT / "requirements" / "runtime.txt").read_text()
    for package in ("uv", "hatchling", "pip", "pulumi-gcp"):
        assert python_env.pinned_requirement(package, text)


def test_engine_without_pin_is_not_downloaded(
    checkout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(*_: Any, **__: Any) -> None:
        raise AssertionError("a program was downloaded")

    monkeypatch.setattr(urllib.request, "urlopen", download)
    with pytest.raises(SubprocessError, match=r"releases\.sha256 has no SHA-256 for pulumi-v3"):
        pulumi_cli.install_official(checkout)


def test_engine_on_path_is_not_used(checkout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(_: Layout) -> pulumi_cli.Pulumi:
        raise AssertionError("an engine of unknown origin was taken")

    def build(_: Layout) -> pulumi_cli.Pulumi:
        return pulumi_cli.Pulumi("build", "3.259.0", "", "")

    monkeypatch.setitem(pulumi_cli.SOURCES, "path", link)
    monkeypatch.setitem(pulumi_cli.SOURCES, "build", build)
    assert pulumi_cli.ensure_pulumi(checkout, "auto").source == "build"


def archive(folder: Path, *, outside: bool = False) -> Path:
    file = folder / pulumi_cli.engine_archive()
    with tarfile.open(file, "w:gz") as opened:
        for name in ("pulumi", *PLUGINS):
            data = b"\x7fELF"
            member = tarfile.TarInfo(f"pulumi/../../{name}" if outside else f"pulumi/{name}")
            member.size, member.mode = len(data), 0o755
            opened.addfile(member, io.BytesIO(data))
    return file


def pin(checkout: Layout, file: Path, content: bytes | None = None) -> None:
    digest = hashlib.sha256(file.read_bytes() if content is None else content).hexdigest()
    checkout.releases.write_text(f"{digest}  {file.name}\n")


def test_pinned_release_is_installed(
    checkout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = archive(tmp_path)
    pin(checkout, file)
    monkeypatch.setattr(pulumi_cli, "ENGINE_URL", tmp_path.as_uri())
    assert pulumi_cli.install_official(checkout).source == "official"
    for name in ("pulumi", *PLUGINS):
        assert (checkout.bin / name).read_bytes() == b"\x7fELF"


def test_release_with_another_checksum_is_refused_and_deleted(
    checkout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(checkout, archive(tmp_path), b"what was reviewed")
    monkeypatch.setattr(pulumi_cli, "ENGINE_URL", tmp_path.as_uri())
    with pytest.raises(SubprocessError, match=r"has SHA-256 [0-9a-f]{64}, but \w+ is pinned"):
        pulumi_cli.install_official(checkout)
    assert not list(checkout.toolchain.iterdir())
    assert not (checkout.bin / "pulumi").exists()


def test_release_with_a_path_out_of_its_folder_is_refused(
    checkout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(checkout, archive(tmp_path, outside=True))
    monkeypatch.setattr(pulumi_cli, "ENGINE_URL", tmp_path.as_uri())
    with pytest.raises(SubprocessError):
        pulumi_cli.install_official(checkout)
    assert not list(checkout.toolchain.iterdir())


def test_gcp_plugin_has_pinned_checksum(checkout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(
        pulumi_cli, "run", lambda command, **_: commands.append([str(part) for part in command])
    )
    with pytest.raises(SetupError, match=r"releases\.sha256 has no SHA-256 for pulumi-resource"):
        pulumi_cli.install_gcp_plugin(checkout)
    assert not commands
    name = pulumi_cli.plugin_archive("9.1.0")
    checkout.releases.write_text(f"{'a' * 64}  {name}\n")
    pulumi_cli.install_gcp_plugin(checkout)
    assert commands[0][1:] == [
        *("plugin", "install", "resource", "gcp", "9.1.0", "--exact", "--checksum", "a" * 64)
    ]


def offer_source(folder: Path, marker: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Offer installers one package without a wheel, whose build writes ``marker``; return
    its pin.
    """
    source = folder / "built-1.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        for name, text in {
            "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "builder"\n'
            'backend-path = ["."]\n',
            "builder.py": f"open({str(marker)!r}, 'w')",
            "PKG-INFO": "Metadata-Version: 2.1\nName: built\nVersion: 1\n",
        }.items():
            member = tarfile.TarInfo(f"built-1/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    for program in ("PIP", "UV"):
        monkeypatch.setenv(f"{program}_NO_INDEX", "1")
        monkeypatch.setenv(f"{program}_FIND_LINKS", str(folder))
    return f"built==1 --hash=sha256:{hashlib.sha256(source.read_bytes()).hexdigest()}\n"


@pytest.mark.parametrize("with_uv", [True, False])
def test_policy_packages_are_not_built(
    checkout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_uv: bool
) -> None:
    """The pins have no hashes for packages that a build would download."""
    pins = tmp_path / "pins.txt"
    pins.write_text(offer_source(tmp_path, tmp_path / "ran", monkeypatch))
    layout = Layout(checkout.root, checkout.cache, deploy=True, environment=Path(sys.prefix))
    layout.toolchain.mkdir(parents=True, exist_ok=True)
    uv = python_env.find_uv(layout.bin / "uv") if with_uv else None
    assert bool(uv) is with_uv
    with pytest.raises(SetupError, match="installing x's packages failed"):
        python_env.create_environment(tmp_path / "made", pins, "x", layout, uv)
    assert not (tmp_path / "ran").exists()
