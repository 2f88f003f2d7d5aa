"""Code of a checkout that is there: what of it a job runs. It is read, and never run or changed."""

from __future__ import annotations

import ast
import configparser
import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from localgcp.root_directory import RootDirectory
from vertex_training.errors import CommandError, did_you_mean
from vertex_training.plan import packages
from vertex_training.plan.packages import REQUIREMENTS
from vertex_training_cli.engine.values import as_mapping

#: Files by which a folder is a project, whose package is below it.
PROJECT_FILES: Final = ("pyproject.toml", "setup.py", "setup.cfg")
#: Starts a script as ``python SCRIPT`` does: its folder is the first to be looked in for modules.
START: Final = """\
import pathlib, runpy, sys

folder = pathlib.Path(__file__).parent
sys.path.insert(0, str(folder))
sys.argv[0] = str(folder / {name!r})
runpy.run_path(sys.argv[0], run_name="__main__")
"""
#: How a module says that it can be run.
_RUNS: Final = re.compile(r"^if\s*\(?\s*__name__\s*==\s*['\"]__main__['\"]", re.MULTILINE)
_NO_PACKAGES: Final = ("tests", "test")


@dataclass(frozen=True, slots=True)
class Code:
    """What a stack packages of it, and what a job runs."""

    path: str
    """Below the checkout."""
    module: str
    files: dict[str, str] = field(default_factory=dict[str, str])
    """New files beside it, by their path below the checkout."""


def find(given: Path, root: Path, module: str = "") -> Code:
    """The code that a path names: a script, a package, or a project with one of either.

    Raises:
        CommandError: it is not in the checkout, or it is not clear what is to run.
        ConfigError: it cannot be packaged.
    """
    return _Finder(root, module).find(given)


def _below(given: Path, root: Path) -> Path:
    """The absolute path of what is named; no part of it leads elsewhere by a link."""
    path = Path(os.path.abspath(given))
    if not path.is_relative_to(root):
        raise CommandError(f"{given} lies outside of the checkout.", "copy the code into it")
    if path == root:
        raise CommandError(f"{given} is the checkout itself.", "name a folder or a script in it")
    for part in (path, *path.parents):
        if part == root:
            break
        if part.is_symlink():
            shown = part.relative_to(root).as_posix()
            raise CommandError(f"{shown} is a link.", "name the place that it leads to")
    if not path.exists():
        raise CommandError(f"{given}: no such file or folder.", "name code of this checkout")
    return path


class _Finder:
    """Looks in one checkout; ``module`` is what somebody chose, if anything."""

    def __init__(self, root: Path, module: str) -> None:
        self.root, self.module = root, module

    def find(self, given: Path) -> Code:
        path = _below(given, self.root)
        if path.is_file():
            return self._script(path)
        if (path / "__init__.py").is_file() or (path / "__main__.py").is_file():
            return self._package(path)
        found = self._packages_in(path)
        if not any((path / name).is_file() for name in PROJECT_FILES) or not found:
            found += self._scripts_in(path)
        if not found:
            hint = "a package has an __init__.py, and a script the line if __name__ == '__main__':"
            raise CommandError(f"{self._shown(path)} has no code that can be run.", hint)
        if len(found) > 1:
            names = ", ".join(map(self._shown, found))
            raise CommandError(f"{self._shown(path)} has several: {names}.", "name one by --code")
        return self.find(found[0])

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    @staticmethod
    def _packages_in(folder: Path) -> list[Path]:
        found = [
            each for base in (folder, folder / "src") for each in sorted(base.glob("*/__init__.py"))
        ]
        return [
            each.parent
            for each in found
            if each.parent.name not in _NO_PACKAGES and not each.parent.is_symlink()
        ]

    @staticmethod
    def _scripts_in(folder: Path) -> list[Path]:
        """Those that say that they can be run, or the only one."""
        found = [path for path in sorted(folder.glob("*.py")) if not path.is_symlink()]
        found = [path for path in found if path.name not in PROJECT_FILES]
        return [path for path in found if len(found) == 1 or _runs(path)]

    def _package(self, folder: Path) -> Code:
        _ensure_importable(folder.name)
        shown = self._shown(folder)
        modules = packages.build("code", folder, shown).modules
        module = self.module or self._only_module(folder, modules)
        if module not in modules:
            hint = did_you_mean(module, modules)
            raise CommandError(f"{shown} has no module {module!r} to run.", hint)
        return Code(shown, module, self._requirements_of(folder))

    def _only_module(self, folder: Path, modules: Iterable[str]) -> str:
        if folder.name in modules:
            return folder.name
        # A package with a __main__ is run by its own name.
        names = (each for each in sorted(modules) if not each.endswith(".__main__"))
        found = [each for each in names if _runs(_file_of(folder, each))]
        if len(found) == 1:
            return found[0]
        if found:
            what = f"several modules of {self._shown(folder)} can be run: {', '.join(found)}."
            raise CommandError(what, f"--module {found[0]} takes the first")
        hint = "give it a __main__.py, or name one by --module"
        raise CommandError(f"{self._shown(folder)} has no module to run.", hint)

    def _requirements_of(self, folder: Path) -> dict[str, str]:
        """Requirements of the project that a package belongs to, where pip finds them."""
        project = folder.parent.parent if folder.parent.name == "src" else folder.parent
        is_project = any((project / name).is_file() for name in PROJECT_FILES)
        if (folder / REQUIREMENTS).exists() or project == self.root or not is_project:
            return {}
        text = self._read(project / REQUIREMENTS)
        if text is None:
            shown = self._shown(project)
            lines, elsewhere = _of_pyproject(self._read(project / "pyproject.toml"), shown)
            lines += _of_setup(self._read(project / "setup.py"), shown)
            lines += _of_cfg(self._read(project / "setup.cfg"), shown)
            if elsewhere and not lines:
                raise _not_read(shown, f"pyproject.toml: {elsewhere} is not read")
            text = "".join(f"{line}\n" for line in lines)
        return {self._shown(folder / REQUIREMENTS): text} if text else {}

    def _script(self, file: Path) -> Code:
        shown, folder = self._shown(file), file.parent
        if file.suffix != ".py":
            raise CommandError(f"{shown} is no Python file.", "name a folder or a .py file")
        if self.module:
            raise CommandError("--module is for a package.", f"{shown} is run itself")
        if (folder / "__init__.py").is_file():
            top = folder
            while (top.parent / "__init__.py").is_file():
                top = top.parent
            self.module = ".".join(file.with_suffix("").relative_to(top.parent).parts)
            return self._package(top)
        _ensure_importable(file.stem)
        imported = _imports(self._read(file) or "", shown)
        beside = sorted(each for each in imported if _is_beside(folder, each) and each != file.stem)
        if beside:
            return self._started(file, beside)
        listed = file.with_name(f"{file.stem}.{REQUIREMENTS}")
        text = None if listed.exists() else self._read(folder / REQUIREMENTS)
        return Code(shown, file.stem, {self._shown(listed): text} if text else {})

    def _started(self, file: Path, beside: list[str]) -> Code:
        """A script with the folder that it imports from."""
        shown, folder = self._shown(file), file.parent
        what = f"{shown} imports {', '.join(beside)}, which lies beside it"
        if folder in (self.root, self.root / "jobs"):
            raise CommandError(f"{what}.", "put them into a folder of their own, and name that")
        _ensure_importable(folder.name)
        main = folder / "__main__.py"
        if main.exists():
            raise CommandError(f"{what}, and {self._shown(main)} is there already.",
                               f"name the folder: --code {self._shown(folder)}")  # fmt: skip
        packages.build("code", folder, self._shown(folder))
        return Code(
            self._shown(folder), folder.name, {self._shown(main): START.format(name=file.name)}
        )

    def _read(self, file: Path) -> str | None:
        """The text of a file; None if it is not there. A link is not followed."""
        try:
            data = RootDirectory(self.root).read(self._shown(file))
            return None if data is None else data.decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as failed:
            what = getattr(failed, "strerror", None) or "is not UTF-8"
            raise CommandError(
                f"{self._shown(file)} {what}.", "put the file itself there"
            ) from None


def _ensure_importable(name: str) -> None:
    if not name.isidentifier():
        better = re.sub(r"\W|^(?=\d)", "_", name)
        hint = f"rename it, such as {better}"
        raise CommandError(f"{name} is no name that Python imports.", hint)


def _runs(file: Path) -> bool:
    return bool(_RUNS.search(file.read_text("utf-8", errors="replace")))


def _file_of(folder: Path, module: str) -> Path:
    path = folder.parent.joinpath(*module.split("."))
    return path.with_name(f"{path.name}.py") if not path.is_dir() else path / "__main__.py"


def _is_beside(folder: Path, module: str) -> bool:
    return (folder / f"{module}.py").is_file() or any((folder / module).glob("*.py"))


def _tree(text: str, shown: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as failed:
        line = getattr(failed, "lineno", None) or 1
        raise CommandError(f"{shown}:{line}: this is no Python that can be read.") from None


def _imports(text: str, shown: str) -> set[str]:
    """First parts of the modules that a script imports."""
    found = set[str]()
    for node in ast.walk(_tree(text, shown)):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def _not_read(shown: str, what: str) -> CommandError:
    """Requirements of the project ``shown`` that only a run of its tools would tell."""
    return CommandError(f"{shown}/{what}.", f"write them into {shown}/{REQUIREMENTS}")


def _of_pyproject(text: str | None, shown: str) -> tuple[list[str], str]:
    """Those that are written out there, and where it says that there are others; empty if not."""
    try:
        read: Any = tomllib.loads(text or "")
    except tomllib.TOMLDecodeError as failed:
        raise CommandError(f"{shown}/pyproject.toml cannot be read: {failed}.") from None
    project = as_mapping(read.get("project"))
    listed: Any = project.get("dependencies", [])
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise CommandError(f"{shown}/pyproject.toml: project.dependencies is no list of texts.")
    if "dependencies" in str(project.get("dynamic") or ""):
        return listed, "what makes project.dependencies (dynamic)"
    poetry = as_mapping(as_mapping(as_mapping(read.get("tool")).get("poetry")).get("dependencies"))
    return listed, "tool.poetry.dependencies" if poetry.keys() - {"python"} else ""


def _of_setup(text: str | None, shown: str) -> list[str]:
    """Those of ``install_requires``, if they are written out there."""
    for node in ast.walk(_tree(text or "", f"{shown}/setup.py")):
        if isinstance(node, ast.keyword) and node.arg == "install_requires":
            try:
                return [str(each) for each in ast.literal_eval(node.value)]
            except (ValueError, TypeError):
                what = f"setup.py:{node.lineno}: install_requires is not written out"
                raise _not_read(shown, what) from None
    return []


def _of_cfg(text: str | None, shown: str) -> list[str]:
    """Those of ``install_requires``: one a line, or all on one, between semicolons.

    https://setuptools.pypa.io/en/latest/userguide/declarative_config.html
    """
    read = configparser.RawConfigParser()
    try:
        read.read_string(text or "")
    except configparser.Error as failed:
        first = str(failed).splitlines()[0]
        raise CommandError(f"{shown}/setup.cfg cannot be read: {first}.") from None
    listed = read.get("options", "install_requires", fallback="").strip()
    if listed.startswith("file:"):
        raise _not_read(shown, "setup.cfg: install_requires is not written out")
    lines = listed.splitlines() if "\n" in listed else listed.split(";")
    return [each.strip() for each in lines if each.strip()]
