"""Paths of the checkout, its virtual environment and the cache outside of it."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolchain.console import SetupError

#: Plugins beside ``pulumi`` that Python programs with dynamic providers need.
PLUGINS: Final = (
    "pulumi-language-python",
    "pulumi-language-python-exec",
    "pulumi-resource-pulumi-python",
)

ENGINE_MODULE: Final = "github.com/pulumi/pulumi/pkg/v3"
SDK_MODULE: Final = "github.com/pulumi/pulumi/sdk/v3"

#: Inputs of an installation, besides the code of this package. A change makes it out of date.
INSTALL_SOURCES: Final = (
    "requirements/policy.txt",
    "pyproject.toml",
    "tools/offline_engine/go.mod",
    "tools/offline_engine/go.sum",
    "tools/offline_engine/pulumi-language-python",
    "tools/toolchain/releases.sha256",
)


@dataclass(frozen=True)
class Layout:
    """The folders of one installation."""

    root: Path
    cache: Path
    deploy: bool = False
    """Only what deployments need, and nothing downloaded that is not pinned by SHA-256."""

    @classmethod
    def of_this_checkout(cls, *, deploy: bool = False) -> Layout:
        """The checkout that contains this file, with the cache that the environment configures."""
        return cls(Path(__file__).resolve().parents[2], cache_home(os.environ), deploy)

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def bin(self) -> Path:
        return self.venv / "bin"

    @property
    def python(self) -> Path:
        return self.bin / "python"

    @property
    def stamp(self) -> Path:
        """Record of a finished installation."""
        return self.venv / "setup.json"

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
        return self.root / "requirements" / "policy.txt"

    @property
    def tools(self) -> Path:
        return self.root / "tools"

    @property
    def releases(self) -> Path:
        """SHA-256 of official archives, as sha256sum prints them."""
        return self.tools / "toolchain" / "releases.sha256"

    @property
    def offline_engine(self) -> Path:
        """The folder that pins the engine's modules and contains the stand-in language host."""
        return self.tools / "offline_engine"

    def engine_version(self) -> str:
        """The pinned version of the engine. Only tools/offline_engine/go.mod states it."""
        return engine_version((self.offline_engine / "go.mod").read_text())

    def inputs_digest(self, pulumi_source: str) -> str:
        """Digest of all inputs of an installation; compared with the one in the stamp."""
        own_code = sorted(Path(__file__).parent.glob("*.py"))
        files = [self.requirements, *(self.root / name for name in INSTALL_SOURCES), *own_code]
        digest = hashlib.sha256(f"{self.root}\0{self.cache}\0{pulumi_source}".encode())
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
            f"tools/offline_engine/go.mod does not require {ENGINE_MODULE}",
            hint="restore the file",
        )
    return found[1]
