"""Collects what ``vt deploy`` compares: the commit, the state, and the plan of ``vt review``."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from localgcp.system import git
from vertex_training.errors import CommandError, ConfigError, UnknownStackError
from vertex_training.settings import reader, stack_files
from vertex_training.settings.project_files import PROJECT_FILE, file_name
from vertex_training.stack import SCHEMA
from vertex_training_cli.deploy.approval import Checkout
from vertex_training_cli.deploy.working_tree import (
    ENGINE_FILES,
    ENVIRONMENT,
    INSTALLED,
    LINK,
    CommittedFile,
    changed_files,
    other_environment,
    patterns_from_top,
    plugin_paths,
    uncommitted_code,
    uncommitted_inputs,
)
from vertex_training_cli.engine import paths
from vertex_training_cli.engine.plan import OFFLINE
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.engine.values import redact

#: Exit codes of ``vt review`` for a plan that policies and limits allow.
REVIEWED: Final = 0
#: Outcomes of a report that can be approved, also for a plan that differs from the expected one.
_APPROVABLE: Final = ("clean", "different")


def checkout(root: Path, stack: str, policy_pack: str | None = None) -> Checkout:
    """Return the commit checked out in ``root``, and the files that differ from the commit.

    ``policy_pack`` is the folder of the policies that are asked, if any are.

    Raises:
        CommandError: ``root`` is no checkout of git, or has no commit.
    """
    commit, tree = run_git(root, "rev-parse", "HEAD", "HEAD^{tree}").split()
    with _index_of(root, tree) as index:
        lines = _names(root, index, "ls-files", "-z", "--stage")
        committed = [CommittedFile.parse(line) for line in lines]
        changed = changed_files(root, committed)
        if submodules := [file.name for file in committed if file.is_repository]:
            diff = ("diff", "--name-only", "-z", "--relative", "--ignore-submodules=none", "HEAD")
            changed += _names(root, index, *diff, "--", *submodules)
        # What other files ignore, the commit does not: `.git/info/exclude`, `core.excludesFile`,
        # and a `.gitignore` that lies about. An environment brings one, and is no part of it.
        ignored_by = f"--exclude-from={_ignore_file(root, index)}"
        others = _names(root, index, "ls-files", "-z", "--others", ignored_by)
        untracked = [name for name in others if not name.startswith(f"{ENVIRONMENT}/")]
    links = [file.name for file in committed if file.mode == LINK]
    tracked = {file.name for file in committed}
    read = {file_name(stack), PROJECT_FILE, *INSTALLED, *_named_files(root, stack)}
    ignored = {name for name in read - tracked if (root / name).exists()}  # by git, maybe
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
    """Return the content of an engine file; empty if the file is missing or has no keys.

    Raises:
        CommandError: it is not read here. The engine takes more, like tags of its own.
    """
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, yaml.YAMLError) as failed:
        reason = str(failed).strip().splitlines()[0]
        text = (
            f"cannot read {file.name}: {reason}. The check needs to know which code the "
            "engine would run."
        )
        raise CommandError(text, "write the file in plain YAML, without tags.") from None
    return document if isinstance(document, Mapping) else {}


@contextmanager
def _index_of(root: Path, tree: str) -> Iterator[Mapping[str, str]]:
    """Yield variables with which git uses a new index of ``tree``, not the checkout's index.

    That one holds times and sizes by which git takes a file for unchanged, and flags by which it
    does not look (``git update-index --assume-unchanged``, ``--skip-worktree``).
    """
    with tempfile.TemporaryDirectory() as folder:
        variables = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        run_git(root, "read-tree", tree, variables=variables)
        yield variables


def _ignore_file(root: Path, index: Mapping[str, str]) -> Path:
    """Write the commit's ``.gitignore`` patterns to a file beside the index; return the file."""
    every = ("ls-files", "-z", "--stage", "--full-name", "--", ":(top,glob)**/.gitignore")
    ignore_files = [CommittedFile.parse(line) for line in _names(root, index, *every)]
    patterns = list[str]()
    ignore_files.sort(key=lambda entry: entry.name.count("/"))  # the inner one counts more
    for ignore_file in ignore_files:
        if ignore_file.mode != LINK:  # git follows none
            content = run_git(root, "cat-file", "blob", ignore_file.object_id)
            patterns += patterns_from_top(ignore_file.name.rpartition("/")[0], content)
    file = Path(index["GIT_INDEX_FILE"]).with_name("ignored")
    file.write_text("".join(f"{pattern}\n" for pattern in patterns), "utf-8", "surrogateescape")
    return file


def _named_files(root: Path, stack: str) -> Iterator[str]:
    """Return text files that the stack file names: job files, queries and included files.

    None if the file cannot be read, and none of a section that is not in order: nothing is deployed
    of such a stack.
    """
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
    """Run git in ``root`` without git variables of this process, and return its output.

    Raises:
        CommandError: there is no git, or it failed.
    """
    command = git.command(root, *arguments)
    try:
        env = {**git.variables(), **(variables or {})}
        done = subprocess.run(command, capture_output=True, check=False, env=env)
    except FileNotFoundError:
        raise CommandError("git is not on PATH.", "install it.") from None
    if done.returncode:
        lines = redact(done.stderr.decode(errors="replace").strip()).splitlines()
        raise CommandError(f"git {arguments[0]}: {lines[-1] if lines else 'it failed'}")
    return done.stdout.decode("utf-8", "surrogateescape")  # a CR stays one, and ends no line


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """Options that a review and the deployment after the review share."""

    policy_pack: str | None = None
    refresh: bool = False
    """True to refresh from the cloud first; False to start from the state."""
    policy_levels: Path | None = None
    """File of policy levels that override those of the stack file."""

    def options(self) -> list[str]:
        """Return the options that ``vt review`` and ``vt up`` share."""
        pack = ["--policy-pack", self.policy_pack] if self.policy_pack else []
        levels = ["--policy-levels", str(self.policy_levels)] if self.policy_levels else []
        return [*pack, *levels, *(["--refresh"] if self.refresh else [])]


def engine_plan(root: Path, stack: str) -> Path:
    """Return the file of the engine's plan, in a folder that only this user can read.

    Raises:
        CommandError: others could put another plan there.
    """
    return paths.own_folder(root, "plans") / f"{stack}.json"


@contextmanager
def plan_held(root: Path, stack: str) -> Iterator[None]:
    """Lock ``engine_plan`` against other deployments of the stack, also after ``execve``.

    Raises:
        CommandError: another one has it.
    """
    lock = os.open(engine_plan(root, stack).with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = f"another `vt deploy` of stack {stack} is running in this folder."
            raise CommandError(
                what, "wait until it has ended, or deploy from another checkout."
            ) from None
        os.set_inheritable(lock, True)  # past `execve`, and not to processes that are started
        yield
    finally:
        os.close(lock)


def review(root: Path, stack: str, inputs: PlanInputs) -> str:
    """Review the stack in its current form, and return the digest of the plan.

    The output of the review goes to stderr, and the engine's plan to ``engine_plan``.

    Raises:
        CommandError: there is no plan, or policies or limits forbid it.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        command = [sys.executable, "-m", "vertex_training_cli.cli", "review", "--stack", stack]
        command += ["--format", "json", "--output", str(file)]
        plan = engine_plan(root, stack)
        plan.unlink(missing_ok=True)  # an older one must never be deployed
        command += ["--save-plan", str(plan)]
        command += inputs.options()
        code = subprocess.run(command, cwd=root, check=False, stdout=sys.stderr).returncode
        if code != REVIEWED:
            hint = f"run `make preview STACK={stack}` to see the whole report."
            raise CommandError(f"the review of stack {stack} ended with exit code {code}.", hint)
        return digest_in(file.read_text())


def deployment(ref: StackRef, env: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the deployment in the stack's state; empty if the stack has never been deployed.

    Raises:
        CommandError: the state cannot be read.
    """
    return PulumiCli(ref.root, env).export_deployment(ref.stack)


def digest_in(report: str) -> str:
    """Return the digest of the plan in a JSON report of ``vt review``.

    Raises:
        CommandError: it is no such report.
    """
    try:
        digest = json.loads(report)["digest"]
    except (ValueError, KeyError, TypeError, RecursionError):
        digest = None
    if not isinstance(digest, str) or not digest:
        raise CommandError("the report has no digest. Pass a report of `vt review --format json`.")
    return digest


def approvable_digest_in(report: str, stack: str) -> str:
    """Return the digest of the plan in a report on ``stack``, if the report can be approved.

    It was made against a real state, and nothing stands against the plan.

    Raises:
        CommandError: it is no such report.
    """
    digest, document = digest_in(report), json.loads(report)
    if (other := document.get("stack", stack)) != stack:
        what = f"cannot approve the report: it belongs to stack {other!r}, not to {stack}."
        raise CommandError(what, "pass a report of this stack.")
    if document.get("outcome", _APPROVABLE[0]) not in _APPROVABLE:
        what = f"cannot approve the report: {document.get('verdict', document['outcome'])}"
        raise CommandError(what, "fix the problems in the report, then review again.")
    if str(document.get("source")).startswith(OFFLINE):
        what = "cannot approve the report: it was made offline, against an empty state."
        raise CommandError(what, "set PULUMI_BACKEND_URL and review again.")
    return digest


def up_command(root: Path, stack: str, inputs: PlanInputs) -> list[str]:
    """Return the `vt up` command that replaces this process: signals then reach `vt up` directly.

    It shows no preview: the review before it was one. The engine stops at the first step that the
    plan of that review does not have.
    """
    command = [sys.executable, "-m", "vertex_training_cli.cli", "up", "--stack", stack]
    command += ["--yes", "--skip-preview", "--non-interactive", *inputs.options()]
    return [*command, "--plan", str(engine_plan(root, stack))]
