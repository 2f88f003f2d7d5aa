"""Paths of the checkout, its virtual environment and the cache outside of it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vertex_training.toolchain.console import SetupError

#: Plugins beside ``pulumi`` that Python programs with dynamic providers need.
PLUGINS: Final = (
    "pulumi-language-python",
    "pulumi-language-python-exec",
    "pulumi-resource-pulumi-python",
)

ENGINE_MODULE: Final = "github.com/pulumi/pulumi/pkg/v3"
SDK_MODULE: Final = "github.com/pulumi/pulumi/sdk/v3"

#: Inputs of what ``vt setup`` installs, besides this package's code. A change makes it out of date.
SETUP_SOURCES: Final = (
    "vertex_training/toolchain/offline_engine/go.mod",
    "vertex_training/toolchain/offline_engine/go.sum",
    "vertex_training/toolchain/offline_engine/pulumi-language-python",
    "vertex_training/toolchain/policy.txt",
    "vertex_training/toolchain/releases.sha256",
)
#: Inputs of ``make setup`` in a checkout, likewise.
INSTALL_SOURCES: Final = ("pyproject.toml", *SETUP_SOURCES)


@dataclass(frozen=True)
class Layout:
    """The folders of one installation."""

    root: Path
    cache: Path
    deploy: bool = False
    """Only what deployments need, and nothing downloaded that is not pinned by SHA-256."""
    environment: Path | None = None
    """The virtual environment that has the installed package; a checkout has its own."""
    own_releases: Path | None = None
    """A repository's file with more SHA-256 of official archives, beside those of the package."""

    @classmethod
    def of_this_checkout(cls, *, deploy: bool = False) -> Layout:
        """The checkout that contains this file, with the cache that the environment configures."""
        return cls(Path(__file__).resolve().parents[2], cache_home(os.environ), deploy)

    @classmethod
    def of_this_environment(
        cls, *, deploy: bool = False, own_releases: Path | None = None
    ) -> Layout:
        """The virtual environment of the Python that runs, with the installed package.

        Raises:
            SetupError: it is no virtual environment, or cannot be written; or ``own_releases``
                cannot be read.
        """
        if own_releases and not os.access(own_releases, os.R_OK):
            raise SetupError(f"cannot read {own_releases}", hint="name a file, or leave it out")
        if sys.prefix == sys.base_prefix:
            raise SetupError(
                f"{sys.executable} is in no virtual environment",
                hint="python3 -m venv .venv, install this package there, and run its vt",
            )
        found = dataclasses.replace(
            cls.of_this_checkout(deploy=deploy),
            environment=Path(sys.prefix),
            own_releases=own_releases,
        )
        if not os.access(found.bin, os.W_OK):
            raise SetupError(f"cannot write {found.bin}", hint="use an environment of your own")
        return found

    @property
    def venv(self) -> Path:
        return self.environment or self.root / ".venv"

    @property
    def bin(self) -> Path:
        return self.venv / "bin"

    @property
    def python(self) -> Path:
        return self.bin / "python"

    @property
    def stamp(self) -> Path:
        """Record of a finished installation."""
        return self.venv / ("pulumi.json" if self.environment else "setup.json")

    @property
    def toolchain(self) -> Path:
        return self.cache / "toolchain"

    @property
    def requirements(self) -> Path:
        return self.root / "requirements" / ("runtime.txt" if self.deploy else "dev.txt")

    @property
    def policy_venv(self) -> Path:
        """Virtual environment of the policy pack, inside of .venv: both are removed together."""
        return self.venv / "policy"

    @property
    def policy_requirements(self) -> Path:
        return self.package / "policy.txt"

    @property
    def tools(self) -> Path:
        return self.root / "tools"

    @property
    def package(self) -> Path:
        """This package, also where a test has a checkout of its own."""
        return self.root / "vertex_training" / "toolchain"

    @property
    def releases(self) -> Path:
        """SHA-256 of official archives, as sha256sum prints them."""
        return self.package / "releases.sha256"

    @property
    def offline_engine(self) -> Path:
        """The folder that pins the engine's modules and contains the stand-in language host."""
        return self.package / "offline_engine"

    def engine_version(self) -> str:
        """The pinned version of the engine. Only offline_engine/go.mod states it."""
        return engine_version((self.offline_engine / "go.mod").read_text())

    def inputs_digest(self, pulumi_source: str) -> str:
        """Digest of all inputs of an installation; compared with the one in the stamp."""
        own_code = sorted(Path(__file__).parent.glob("*.py"))
        names = SETUP_SOURCES if self.environment else INSTALL_SOURCES
        files = [*(self.root / name for name in names), *own_code]
        if not self.environment:
            files.insert(0, self.requirements)
        if self.own_releases:
            files.append(self.own_releases)
        kind = f"\0{self.deploy}" if self.environment else ""
        digest = hashlib.sha256(f"{self.root}\0{self.cache}\0{pulumi_source}{kind}".encode())
        for file in files:
            digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
        return digest.hexdigest()


def cache_home(environment: os._Environ[str] | dict[str, str]) -> Path:
    """VT_CACHE_DIR, else vertex-training in XDG_CACHE_HOME or ~/.cache.

    A relative XDG_CACHE_HOME counts as none: specifications.freedesktop.org/basedir-spec.

    Raises:
        SetupError: neither is set, and this user has no home.
    """
    try:
        if chosen := environment.get("VT_CACHE_DIR"):
            return Path(chosen).expanduser().resolve()
        base = Path(environment.get("XDG_CACHE_HOME") or "")
        return (base if base.is_absolute() else Path.home() / ".cache") / "vertex-training"
    except RuntimeError as error:
        raise SetupError(
            f"no place for the cache: {error}",
            hint="set VT_CACHE_DIR to a folder that can be written",
        ) from error


def engine_version(go_mod: str) -> str:
    """The engine version that a go.mod requires, without the leading v.

    Raises:
        SetupError: the module is not required there.
    """
    found = re.search(rf"^\s*{re.escape(ENGINE_MODULE)} v(\S+)", go_mod, re.MULTILINE)
    if not found:
        raise SetupError(
            f"offline_engine/go.mod does not require {ENGINE_MODULE}",
            hint="restore the file",
        )
    return found[1]
