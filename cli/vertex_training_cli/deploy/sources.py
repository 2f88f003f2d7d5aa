"""Compare a checkout with its commit, and review the plan, for ``vt deploy``.

Files are compared byte by byte, because ``git diff`` compares converted content (encodings, line
ends, filters), but Python reads unconverted files.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.machinery
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

import yaml

from localgcp.system.processes import git_command, git_variables
from localgcp.system.root_directory import RootDirectory
from vertex_training.errors import CommandError, ConfigError, UnknownStackError
from vertex_training.settings import reader, stack_files
from vertex_training.settings.project_files import PROJECT_FILE, file_name
from vertex_training.stack import SCHEMA
from vertex_training_cli.deploy.approval import Checkout
from vertex_training_cli.engine import paths
from vertex_training_cli.engine.plan import OFFLINE
from vertex_training_cli.engine.values import redact

#: Outcomes of reports that can be approved.
_APPROVABLE: Final = ("clean", "different")
#: Git's file modes of a symbolic link, an executable file, and a submodule.
LINK: Final = "120000"
_EXECUTABLE: Final = "100755"
_REPOSITORY: Final = "160000"
_CHUNK: Final = 1 << 20
#: Length of an object id in a repository with SHA-1. A longer id is a SHA-256.
_SHA1: Final = 40
#: Suffixes of importable files: sources, bytecode without a source, and extension modules.
CODE: Final = tuple(importlib.machinery.all_suffixes())
#: Suffixes of files that the program reads: code, stack files, included files and job files.
READ: Final = (*CODE, ".yaml", ".yml")
#: Files from which ``make setup`` installs packages in a repository that ``vt init`` created.
INSTALLED: Final = frozenset({"requirements.lock", "requirements.txt"})
#: Files of a project, plugin or policy pack. The engine runs the code in the same folder.
ENGINE_FILES: Final = frozenset(
    f"Pulumi{kind}.{form}" for kind in ("", "Plugin", "Policy") for form in ("json", "yaml", "yml")
)
#: Folder of the virtual environments that ``make setup`` installs.
ENVIRONMENT: Final = ".venv"
#: Folders without importable code (``stacks.own_bytecode`` disables ``__pycache__``).
_NOT_IMPORTED: Final = frozenset({"__pycache__", ".git"})


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """An entry of a commit's tree."""

    mode: str
    object_id: str
    name: str

    @classmethod
    def parse(cls, line: str) -> CommittedFile:
        """Parse a line of ``git ls-files --stage``."""
        entry, name = line.split("\t", 1)
        mode, object_id, _ = entry.split()
        return cls(mode, object_id, name)

    @property
    def is_repository(self) -> bool:
        """Return True for a submodule: git stores its commit, but not its files."""
        return self.mode == _REPOSITORY

    def is_in(self, root: RootDirectory) -> bool:
        """Return True if the folder has the file with the same bytes, type and executable bit."""
        try:
            if self.mode == LINK:
                target = os.fsencode(os.readlink(root.path / self.name))
                return self._digest(len(target), [target]) == self.object_id
            with root.open(self.name) as file:
                status = os.fstat(file.fileno())
                is_executable = bool(status.st_mode & stat.S_IXUSR)
                return is_executable == (self.mode == _EXECUTABLE) and (
                    self._digest(status.st_size, iter(lambda: file.read(_CHUNK), b""))
                    == self.object_id
                )
        except OSError:
            return False

    def _digest(self, size: int, content: Iterable[bytes]) -> str:
        algorithm = "sha1" if len(self.object_id) == _SHA1 else "sha256"
        digest = hashlib.new(algorithm, b"blob %d\0" % size, usedforsecurity=False)
        for chunk in content:
            digest.update(chunk)
        return digest.hexdigest()


def checkout(root: Path, stack: str, policy_pack: str | None = None) -> Checkout:
    """Return the commit checked out in ``root``, and the files that differ from the commit."""
    commit, tree = run_git(root, "rev-parse", "HEAD", "HEAD^{tree}").split()
    with _index_of(root, tree) as index:
        lines = _names(root, index, "ls-files", "-z", "--stage")
        committed = [CommittedFile.parse(line) for line in lines]
        folder = RootDirectory(root)
        changed = [f.name for f in committed if not (f.is_repository or f.is_in(folder))]
        if submodules := [file.name for file in committed if file.is_repository]:
            diff = ("diff", "--name-only", "-z", "--relative", "--ignore-submodules=none", "HEAD")
            changed += _names(root, index, *diff, "--", *submodules)
        # Only the commit's `.gitignore` files count, not `.git/info/exclude`, `core.excludesFile`
        # or the `.gitignore` file of a virtual environment.
        ignored_by = f"--exclude-from={_ignore_file(root, index)}"
        others = _names(root, index, "ls-files", "-z", "--others", ignored_by)
        untracked = [name for name in others if not name.startswith(f"{ENVIRONMENT}/")]
    links = [file.name for file in committed if file.mode == LINK]
    tracked = {file.name for file in committed}
    read = {file_name(stack), PROJECT_FILE, *INSTALLED, *_named_files(root, stack)}
    ignored = {name for name in read - tracked if (root / name).exists()}
    added = [*ignored, *uncommitted_inputs(root, tracked, untracked, links)]
    project = _content(root / PROJECT_FILE)
    added += uncommitted_code(root, tracked, project)
    folders = [*plugin_paths(project), *([policy_pack] if policy_pack else [])]
    files = [root / PROJECT_FILE]
    files += [root / folder / name for folder in folders for name in sorted(ENGINE_FILES)]
    environments = [
        environment
        for file in files
        for environment in other_environment(root, file, _content(file))
    ]
    return Checkout(commit, tree, tuple(changed), tuple(sorted(set(added))), tuple(environments))


def _content(file: Path) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, yaml.YAMLError) as failed:
        reason = str(failed).strip().splitlines()[0]
        text = f"cannot read {file.name}, which names the code that the engine runs: {reason}."
        raise CommandError(text, "write the file in plain YAML, without tags.") from None
    return document if isinstance(document, Mapping) else {}


@contextmanager
def _index_of(root: Path, tree: str) -> Iterator[Mapping[str, str]]:
    """Yield variables for a new git index, because the checkout's index may hide changes."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        run_git(root, "read-tree", tree, variables=variables)
        yield variables


def _ignore_file(root: Path, index: Mapping[str, str]) -> Path:
    every = ("ls-files", "-z", "--stage", "--full-name", "--", ":(top,glob)**/.gitignore")
    ignore_files = [CommittedFile.parse(line) for line in _names(root, index, *every)]
    patterns = list[str]()
    ignore_files.sort(key=lambda entry: entry.name.count("/"))  # Later patterns take precedence.
    for ignore_file in ignore_files:
        if ignore_file.mode != LINK:  # Git does not follow such links.
            content = run_git(root, "cat-file", "blob", ignore_file.object_id)
            patterns += patterns_from_top(ignore_file.name.rpartition("/")[0], content)
    file = Path(index["GIT_INDEX_FILE"]).with_name("ignored")
    file.write_text("".join(f"{pattern}\n" for pattern in patterns), "utf-8", "surrogateescape")
    return file


def _named_files(root: Path, stack: str) -> Iterator[str]:
    try:
        settings = reader.read(SCHEMA, stack_files.read_raw(SCHEMA, root, stack)).settings
    except (ConfigError, UnknownStackError, OSError):
        return
    for name in paths.read_files(settings) if settings else ():
        file = (root / name).resolve()
        if file.is_file() and file.is_relative_to(root.resolve()):
            yield file.relative_to(root.resolve()).as_posix()


def _names(root: Path, variables: Mapping[str, str], *arguments: str) -> list[str]:
    return [name for name in run_git(root, *arguments, variables=variables).split("\0") if name]


def run_git(root: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
    """Run git in ``root`` without git variables of this process, and return its output."""
    command = git_command(root, *arguments)
    try:
        env = {**git_variables(), **(variables or {})}
        done = subprocess.run(command, capture_output=True, check=False, env=env)
    except FileNotFoundError:
        raise CommandError("git is not on PATH.", "install git.") from None
    if done.returncode:
        lines = redact(done.stderr.decode(errors="replace").strip()).splitlines()
        reason = lines[-1] if lines else f"exit code {done.returncode}"
        raise CommandError(f"`git {arguments[0]}` failed: {reason}")
    return done.stdout.decode("utf-8", "surrogateescape")


def uncommitted_inputs(
    root: Path, tracked: Collection[str], untracked: Iterable[str], links: Iterable[str]
) -> list[str]:
    """Return names of files that a program in ``root`` could read but that are not ``tracked``.

    ``untracked`` are files that git neither tracks nor ignores. Ignored files are included if they
    can be imported. ``links`` are tracked symbolic links, whose targets must also be tracked.
    """
    links = set(links)
    inputs = {
        file for name in untracked for file in _files_of(root, name) if _is_read(root, file)
    } | {name for name in _importable(root, links) if name not in tracked}
    return sorted(inputs) + [
        f"{name} -> {os.readlink(root / name)}"
        for name in sorted(links)
        if _is_read(root, name) and not _leads_to_tracked(root, name, tracked)
    ]


def uncommitted_code(
    root: Path, tracked: Collection[str], project: Mapping[str, Any]
) -> Iterator[str]:
    """Yield untracked code that ``main`` or ``plugins`` of the project file names."""
    top, main = root.resolve(), project.get("main")
    for path in (*([main] if isinstance(main, str) else ()), *plugin_paths(project)):
        target = (root / path).resolve()
        if not target.is_relative_to(top):
            yield f"{PROJECT_FILE} -> {path}"
            continue
        place = target.relative_to(top)
        is_program = path == main and target.is_dir()
        names = _importable(target, ()) if is_program else _files_of(target, "./")
        files = [place.as_posix()] if target.is_file() else [(place / n).as_posix() for n in names]
        yield from (name for name in files if name not in tracked)


def patterns_from_top(folder: str, content: str) -> Iterator[str]:
    """Yield the patterns of a folder's ``.gitignore``, relative to the top of the checkout.

    >>> list(patterns_from_top("a", "b.yaml\\n!/c/\\nd/e\\n"))
    ['/a/**/b.yaml', '!/a/c/', '/a/d/e']
    """
    top = re.sub(r"([*?\[\\])", r"\\\1", f"/{folder}") if folder else ""
    for line in content.removeprefix("\ufeff").split("\n"):
        pattern = line.removesuffix("\r")
        if not pattern.strip() or pattern.startswith("#"):
            continue
        sign = "!" if pattern.startswith("!") else ""
        pattern = pattern.removeprefix("!")
        if not top:
            yield sign + pattern
        elif "/" in pattern.rstrip(" ").removesuffix("/"):
            yield f"{sign}{top}/{pattern.removeprefix('/')}"
        else:
            yield f"{sign}{top}/**/{pattern}"


def plugin_paths(project: Mapping[str, Any]) -> list[str]:
    """Return the paths in ``plugins`` of a project file."""
    plugins = project.get("plugins")
    kinds = plugins.values() if isinstance(plugins, Mapping) else ()
    entries = [path for kind in kinds if isinstance(kind, list) for path in kind]
    paths = [entry.get("path") for entry in entries if isinstance(entry, Mapping)]
    return [path for path in paths if isinstance(path, str)]


def other_environment(root: Path, file: Path, content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the environment of an engine file unless it is ``.venv`` or inside ``.venv``."""
    runtime = content.get("runtime")
    options = runtime.get("options") if isinstance(runtime, Mapping) else None
    options = options if isinstance(options, Mapping) else {}
    if (toolchain := options.get("toolchain") or "pip") != "pip":
        yield f"{os.path.relpath(file, root)} -> {toolchain}"
    path = options.get("virtualenv")
    own = os.path.abspath(root / ENVIRONMENT)
    # Like the engine, do not resolve links.
    if path and not Path(os.path.abspath(file.parent / str(path))).is_relative_to(own):
        yield f"{os.path.relpath(file, root)} -> {path}"


def _files_of(root: Path, name: str) -> Iterator[str]:
    if not name.endswith("/"):
        yield name
        return
    for file in (root / name).rglob("*"):
        if file.is_file() and _NOT_IMPORTED.isdisjoint(file.parts):
            yield file.relative_to(root).as_posix()


def _is_read(root: Path, name: str) -> bool:
    path = root / name
    linked_folder = path.is_symlink() and path.is_dir()
    return (
        name in INSTALLED
        or name.endswith(READ)
        or path.name in ENGINE_FILES
        or linked_folder
        or (path.is_symlink() and not path.exists())
    )


def _importable(root: Path, links: Collection[str]) -> Iterator[str]:
    seen = set[str]()
    for folder, folders, files in os.walk(root, followlinks=True):
        place = Path(folder).relative_to(root)
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [
            name
            for name in folders
            if name.isidentifier()
            and name not in _NOT_IMPORTED
            and (place / name).as_posix() not in links
        ]
        for name in files:
            is_code = name.endswith(CODE) and name.partition(".")[0].isidentifier()
            if is_code or name in ENGINE_FILES:
                yield (place / name).as_posix()


def _leads_to_tracked(root: Path, link: str, tracked: Collection[str]) -> bool:
    target, top = (root / link).resolve(), root.resolve()
    if not target.is_relative_to(top):
        return False
    name = PurePosixPath(target.relative_to(top))
    return str(name) in tracked or any(name in PurePosixPath(file).parents for file in tracked)


def plan_options(
    policy_pack: str | None, policy_levels: Path | None, *, refresh: bool
) -> list[str]:
    """Return the options that ``vt review`` and ``vt up`` share."""
    pack = ["--policy-pack", policy_pack] if policy_pack else []
    levels = ["--policy-levels", str(policy_levels)] if policy_levels else []
    return [*pack, *levels, *(["--refresh"] if refresh else [])]


def engine_plan(root: Path, stack: str) -> Path:
    """Return the file of the engine's plan, in a folder that only this user can write."""
    return paths.own_folder(root, "plans") / f"{stack}.json"


@contextmanager
def plan_held(root: Path, stack: str) -> Iterator[None]:
    """Lock ``engine_plan`` against other deployments of the stack, also after ``execve``."""
    lock = os.open(engine_plan(root, stack).with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = f"another `vt deploy` of stack {stack} is running in this folder."
            hint = "wait for the end of the other `vt deploy`, or deploy from another checkout."
            raise CommandError(what, hint) from None
        os.set_inheritable(lock, True)  # The lock remains after `execve`.
        yield
    finally:
        os.close(lock)


def review(root: Path, stack: str, options: Sequence[str]) -> str:
    """Review the stack, save the engine's plan to ``engine_plan``, and return the plan's digest."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        command = [sys.executable, "-m", "vertex_training_cli.cli", "review", "--stack", stack]
        command += ["--format", "json", "--output", str(file)]
        plan = engine_plan(root, stack)
        plan.unlink(missing_ok=True)  # An older plan must never be deployed.
        command += ["--save-plan", str(plan), *options]
        code = subprocess.run(command, cwd=root, check=False, stdout=sys.stderr).returncode
        if code:
            hint = f"run `make preview STACK={stack}` to see the whole report."
            raise CommandError(f"the review of stack {stack} ended with exit code {code}.", hint)
        return digest_in(file.read_text())


def digest_in(report: str) -> str:
    """Return the digest of the plan in a JSON report of ``vt review``."""
    try:
        digest = json.loads(report)["digest"]
    except (ValueError, KeyError, TypeError, RecursionError):
        digest = None
    if not isinstance(digest, str) or not digest:
        raise CommandError("the report has no digest. Pass a report of `vt review --format json`.")
    return digest


def approvable_digest_in(report: str, stack: str) -> str:
    """Return the digest of the plan in a report on ``stack``; refuse other reports."""
    digest, document = digest_in(report), json.loads(report)
    if (other := document.get("stack", stack)) != stack:
        what = f"cannot approve the report: the report belongs to stack {other!r}, not to {stack}."
        raise CommandError(what, "pass a report of this stack.")
    if document.get("outcome", _APPROVABLE[0]) not in _APPROVABLE:
        what = f"cannot approve the report: {document.get('verdict', document['outcome'])}"
        raise CommandError(what, "fix the problems in the report, then review again.")
    if str(document.get("source")).startswith(OFFLINE):
        what = "cannot approve the report: the review was made offline, against an empty state."
        raise CommandError(what, "set PULUMI_BACKEND_URL and review again.")
    return digest


def up_command(root: Path, stack: str, options: Sequence[str]) -> list[str]:
    """Return the `vt up` command that replaces this process and deploys the reviewed plan."""
    command = [sys.executable, "-m", "vertex_training_cli.cli", "up", "--stack", stack]
    command += ["--yes", "--skip-preview", "--non-interactive", *options]
    return [*command, "--plan", str(engine_plan(root, stack))]
