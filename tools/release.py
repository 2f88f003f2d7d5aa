"""Build a release into dist/: ``make release``, with TAG=vX from a tag.

- the wheels of `vertex-training` and `localgcp`
- ``pulumi-resource-vertex-training-vX-OS-ARCH.tar.gz``, the plugin with equal bytes for all systems
- ``vertex-training-templates-vX.tar.gz``: folders for ``pulumi new``, each with the plugin's folder
- ``SHA256SUMS`` of all files

A commit produces equal bytes on every machine. Uses only the standard library and uv.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
#: Files that the wheel of each project contains, by the project's folder.
SOURCES: Final = {
    ".": ("infra/", "cli/", "pyproject.toml", "README.md", "LICENSE"),
    "localcloud": ("localcloud/",),
}
PLUGIN: Final = "pulumi-resource-vertex-training"
TEMPLATES: Final = "vertex-training-templates"
#: Name of the folder in a template that contains the files of the plugin's archive.
FOLDER: Final = "vertex-training"
#: Systems in Pulumi's spelling for which the pinned Python packages are available.
SYSTEMS: Final = ("darwin-amd64", "darwin-arm64", "linux-amd64", "linux-arm64")
SUMS: Final = "SHA256SUMS"
#: Files that a release writes to dist/. Files of other releases are deleted.
OUTPUTS: Final = ("*.whl", f"{PLUGIN}-*.tar.gz", f"{TEMPLATES}-*.tar.gz", SUMS)

PLUGIN_FILE: Final = "runtime: {name: python, options: {toolchain: pip, virtualenv: venv}}\n"
PROGRAM: Final = """\
\"\"\"The components of vertex-training for programs in all languages.\"\"\"

from vertex_training.host import main

main()
"""


class ReleaseError(Exception):
    """Error about a checkout that cannot be released."""


def version_of(root: Path) -> str:
    """Return the version of both projects. Raises ReleaseError if the versions differ."""
    versions = {
        folder: tomllib.loads((root / folder / "pyproject.toml").read_text())["project"]["version"]
        for folder in SOURCES
    }
    if len(set(versions.values())) > 1:
        lines = ", ".join(f"{folder}/pyproject.toml: {text}" for folder, text in versions.items())
        raise ReleaseError(f"the versions differ ({lines}). Hint: set one version in both files.")
    return versions["."]


def check_tag(root: Path, tag: str, version: str) -> None:
    """Raise ReleaseError unless the tag is the version and the changelog has its section."""
    problems = []
    if tag != f"v{version}":
        problems.append(f"tag {tag} differs from v{version}, the version in pyproject.toml")
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$"
    if not re.search(heading, (root / "CHANGELOG.md").read_text(), re.MULTILINE):
        problems.append(f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`")
    if changed := _git(root, "status", "--porcelain").splitlines():
        problems.append(f"the checkout has uncommitted changes: {changed[0].strip()}")
    if problems:
        raise ReleaseError("; ".join(problems) + ".")


def build(root: Path, target: Path, tag: str = "") -> list[Path]:
    """Build a release of the checkout ``root`` into ``target``. Return the files."""
    version = version_of(root)
    if tag:
        check_tag(root, tag, version)
    epoch = int(_git(root, "log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "dist")
        wheels = [_wheel(root, Path(scratch), project, folder, epoch) for project in SOURCES]
        plugin = _plugin(wheels[0], _pins(root))
        archive = _archive(plugin, epoch)
        for system in SYSTEMS:
            (folder / f"{PLUGIN}-v{version}-{system}.tar.gz").write_bytes(archive)
        archive = _archive(_templates(root, plugin, wheels[0].name), epoch)
        (folder / f"{TEMPLATES}-v{version}.tar.gz").write_bytes(archive)
        files = sorted(file for pattern in OUTPUTS for file in folder.glob(pattern))
        sums = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
        (folder / SUMS).write_text("".join(sums))
        target.mkdir(parents=True, exist_ok=True)
        for old in [file for pattern in OUTPUTS for file in target.glob(pattern)]:
            old.unlink()
        return [Path(shutil.copy(file, target)) for file in (*files, folder / SUMS)]


def _wheel(root: Path, scratch: Path, project: str, target: Path, epoch: int) -> Path:
    """Build the wheel of a project's committed files, without a network."""
    source = scratch / "source"
    for name in _files(root, SOURCES[project]):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, source / name)
    command = [sys.executable, "-m", "uv", "build", "--wheel", "--no-build-isolation", "--offline"]
    done = subprocess.run(
        [*command, "--python", sys.executable, "--out-dir", target / project],
        cwd=source / project, capture_output=True, text=True, check=False,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
    )  # fmt: skip
    if done.returncode:
        raise ReleaseError(f"cannot build the wheel of {project}: {done.stderr.strip()}")
    [wheel] = (target / project).glob("*.whl")
    return wheel.rename(target / wheel.name)


def _pins(root: Path) -> str:
    """Return the pins in requirements/runtime.txt without hashes: the local wheel has no hash."""
    text = (root / "requirements" / "runtime.txt").read_text()
    return "".join(f"{pin.strip()}\n" for pin in re.findall(r"^([\w.-]+==[^\\\n]+)", text, re.M))


def _plugin(wheel: Path, pins: str) -> dict[str, bytes]:
    return {
        "PulumiPlugin.yaml": PLUGIN_FILE.encode(),
        "__main__.py": PROGRAM.encode(),
        "constraints.txt": pins.encode(),
        "requirements.txt": f"-c constraints.txt\n./{wheel.name}\n".encode(),
        wheel.name: wheel.read_bytes(),
    }


def _templates(root: Path, plugin: Mapping[str, bytes], wheel: str) -> dict[str, bytes]:
    templates = {name: (root / name).read_bytes() for name in _files(root, ("templates/",))}
    for folder in sorted({name.rpartition("/")[0] for name in templates}):
        templates |= {f"{folder}/{FOLDER}/{name}": content for name, content in plugin.items()}
    needs = f"-c {FOLDER}/constraints.txt\n./{FOLDER}/{wheel}\n"
    return {**templates, "templates/python/requirements.txt": needs.encode()}


def _archive(files: Mapping[str, bytes], epoch: int) -> bytes:
    """Return a .tar.gz of these files, without metadata of this machine."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", mtime=0, fileobj=packed) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), epoch, 0o644
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def _files(root: Path, prefixes: tuple[str, ...]) -> list[str]:
    """Return the files below these folders, without files that git ignores."""
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return [
        name for name in listed.split("\0") if name.startswith(prefixes) and (root / name).is_file()
    ]


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> int:
    """Build into dist/ and print the files. Exit code 1 after an error."""
    try:
        for file in build(ROOT, ROOT / "dist", os.environ.get("TAG", "")):
            print(file.relative_to(ROOT))
    except ReleaseError as error:
        print(f"make release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
