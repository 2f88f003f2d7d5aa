"""Command lines of ``vt init`` and ``vt upgrade``. Exit codes: 0 done, 2 refused."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import unquote, urlsplit

import typer
from packaging.version import InvalidVersion, Version

from localgcp.errors import UnsafePathError
from localgcp.system.processes import checkout_around
from localgcp.system.root_directory import RootDirectory
from vertex_training.errors import CommandError, ConfigError, Problem, counted
from vertex_training_cli.console import print_line
from vertex_training_cli.init import answers as answers_
from vertex_training_cli.init import manifest
from vertex_training_cli.init.answers import Answers, placeholders, release, render
from vertex_training_cli.init.manifest import Manifest
from vertex_training_cli.toolchain.python_env import find_uv, uv_command

#: Files that may exist. The generated lines are appended to these files.
EXTENDED: Final = (".gitignore", ".gitattributes")
#: Files that stay unchanged if they exist.
LEFT: Final = ("README.md",)
#: Distributions whose wheels a repository contains.
PACKAGES: Final = ("vertex-training", "localgcp")

_PIN: Final = re.compile(
    r"^(?:\./wheels/vertex_training-|vertex-training(?:\[[a-z,]+\])?\s*==\s*)([^\s;#-]+)",
    re.MULTILINE,
)
#: Files that pin the package. An upgrade does not write these files.
_PINNING: Final = ("requirements-dev.txt", "requirements.lock")

Directory = Annotated[
    Path | None,
    typer.Argument(
        metavar="DIR", help="Folder of the new repository. Default: the current folder."
    ),
]
UpgradedDirectory = Annotated[
    Path | None,
    typer.Argument(metavar="DIR", help="Folder of the repository to upgrade. Default: current."),
]
Name = Annotated[
    str, typer.Option("--name", help="Name of the Pulumi project, such as acme-training.")
]
Project = Annotated[str, typer.Option("--project", help="Id of the Google Cloud project.")]
Number = Annotated[str, typer.Option("--number", help="Number of the Google Cloud project.")]
Region = Annotated[str, typer.Option("--region", help="Region of all resources.")]
Team = Annotated[
    str, typer.Option("--team", help="Team: value of the label `team`, and code owners on GitHub.")
]
Submitter = Annotated[
    list[str] | None,
    typer.Option("--submitter", help="IAM member that may submit jobs. Repeatable."),
]
GitHub = Annotated[
    str, typer.Option("--github", help="Repository on GitHub.", metavar="OWNER/NAME")
]
NewEnvironment = Annotated[
    str,
    typer.Option("--environment", help="Add this environment to the repository that contains DIR."),
]
Before = Annotated[
    str,
    typer.Option(
        "--before", help="With --environment: deploy the new environment before this one."
    ),
]
Wheels = Annotated[
    bool,
    typer.Option(help="Build the wheels of this checkout into DIR/wheels.", show_default=False),
]


def init(
    directory: Directory = None,
    name: Name = "",
    project: Project = "",
    project_number: Number = "",
    region: Region = "",
    team: Team = "",
    submitter: Submitter = None,
    github: GitHub = "",
    environment: NewEnvironment = "",
    before: Before = "",
    wheels: Wheels = True,
) -> None:
    """Create a repository of stack files with one job, or add an environment to a repository.

    Existing files are not overwritten. If `vt` runs from a checkout, the command also builds the
    wheels of `vt`, so that `make local` works at once. --environment creates a branch. `git
    cherry-pick` applies this branch.

    Examples: `vt init acme --project acme-ml-dev --number 210987654321`, `vt init --environment qa
    --before prod`.

    Exit code: 0 created, 2 not created.
    """
    repository = _set_options(name=name, team=team, submitters=submitter, github=github)
    own = _set_options(project=project, projectNumber=project_number, region=region)
    if environment:
        _add_environment(directory or Path(), environment, before, own, [*repository])
    elif before:
        hint = "omit --before, or pass --environment."
        raise CommandError("--before requires --environment.", hint)
    else:
        _create(directory or Path(), repository, own, wheels=wheels)


def _set_options(**options: Any) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value}


def _create(
    directory: Path, repository: dict[str, Any], environment: dict[str, Any], *, wheels: bool
) -> None:
    root = directory.absolute()
    if root.exists() and not root.is_dir():
        raise CommandError(f"{root} is a file, not a folder.", "pass the path of a folder.")
    if (root / manifest.NAME).exists():
        what = f"{root} is already a repository of `vt init`."
        hint = "run `vt init --environment NAME` to add an environment, or `vt upgrade`."
        raise CommandError(what, hint)
    answers = answers_.of_options(repository, environment, root.name)
    try:
        count, remarks = _write(root, answers)
    except UnsafePathError as error:
        what = f"{error.filename} {error.strerror}, and `vt init` does not follow it."
        hint = "replace that path by a file or folder in the repository."
        raise CommandError(what, hint) from None
    except OSError as error:
        what = f"cannot write {error.filename or root}: {error.strerror}."
        raise CommandError(what) from None
    if unset := placeholders(answers):
        names = " and ".join(unset)
        remarks.append(f"before a deployment, replace {names} in the files (see README.md)")
    above = checkout_around(root.parent)
    if above is not None and not (root / ".git").exists():
        what = f"{root} is inside the repository {above}"
        remarks.append(f"{what}, so GitHub does not run its workflows")
    for remark in remarks:
        print_line(f"note: {remark}.")
    print_line(f"Wrote {count} files to {directory}.")
    go = "" if root == Path.cwd() else f"cd {shlex.quote(str(directory))} && "
    built = wheels and _build_wheels(root)
    first = "" if built else f"copy the wheels of this release to {directory / 'wheels'}, then "
    print_line(f"Next: {first}{go}git init && make local")


def _write(root: Path, answers: Answers) -> tuple[int, list[str]]:
    """Write all files, the manifest last. Return their number, and remarks on existing files.

    Existing files with equal texts are accepted, so that a second run completes an interrupted run.
    Raises CommandError before any file is written, or OSError.
    """
    files, below = render(answers, release()), RootDirectory(root, refuse_git=True)
    texts, remarks, taken, left = dict[str, bytes](), list[str](), list[str](), list[str]()
    for path, file in files.items():
        here, text = below.read(path) if root.exists() else None, file.text.encode()
        if here is None:
            texts[path] = text
        elif path in EXTENDED and text not in here:
            texts[path] = here + (b"" if here.endswith(b"\n") or not here else b"\n") + b"\n" + text
            remarks.append(f"the generated lines were appended to the existing {path}")
        elif path in LEFT and here != text:
            left.append(path)
            remarks.append(f"the existing {path} stays unchanged")
        elif here != text and path not in EXTENDED:
            taken.append(path)
    if taken:
        what = f"{root} already has different files: {', '.join(taken)}. No file was written."
        raise CommandError(what, "pass another folder, or move these files to another folder.")
    root.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        existing = below.status(path)  # an existing file keeps its permissions
        default = 0o755 if files[path].executable else 0o644
        below.write(path, text, existing.st_mode & 0o777 if existing else default)
    new_manifest = manifest.of_files(release(), answers, files.values(), left)
    below.write(manifest.NAME, new_manifest.to_json().encode())
    return len(texts), remarks


def _build_wheels(root: Path) -> bool:
    """Build wheels from this program's checkout. Return True if the build succeeded."""
    sources = [_checkout_of(name) for name in PACKAGES]
    uv = find_uv(Path(sys.executable).with_name("uv"))
    if None in sources or uv is None:
        return False
    # A development environment has the build backend. In other environments uv downloads it.
    own = ["--no-build-isolation", "--python", sys.executable] if find_spec("hatchling") else []
    with tempfile.TemporaryDirectory() as folder:  # uv writes a .gitignore next to wheels
        for source in sources:
            options = ("--quiet", "--wheel", *own, "--out-dir", folder)
            command = uv_command(uv, "build", *options, str(source))
            done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
            if done.returncode:
                print_line(
                    f"note: the wheel of {source} was not built: {done.stderr.strip()[-300:]}."
                )
                return False
        for wheel in Path(folder).glob("*.whl"):
            RootDirectory(root).write(f"wheels/{wheel.name}", wheel.read_bytes())
    return True


def _checkout_of(name: str) -> Path | None:
    """Return the folder that a distribution is installed from (PEP 610); None for a wheel."""
    origin = json.loads(distribution(name).read_text("direct_url.json") or "{}")
    address = urlsplit(origin.get("url", ""))
    folder = Path(unquote(address.path))
    is_folder = address.scheme == "file" and "dir_info" in origin
    return folder if is_folder and (folder / "pyproject.toml").is_file() else None


def _add_environment(
    directory: Path, name: str, before: str, options: dict[str, Any], unfit: list[str]
) -> None:
    root, new = manifest.root_of(directory), release()
    old = manifest.read(root)
    if old.release != new:
        what = f"the repository has release {old.release}, but release {new} is installed"
        raise CommandError(f"{what}.", f"run `vt upgrade` first, or install {old.release}.")
    if unfit:
        hint = "omit the option, and edit the files of the repository instead"
        what = "applies to the repository, not to one environment"
        raise ConfigError([Problem(f"{answers_.OPTIONS[key]}: {what}", hint=hint) for key in unfit])
    added = answers_.environment_of_options(name, options, old.answers.environments[0])
    answers = old.answers.with_environment(added, before)
    _offer(root, f"vt-environment-{name}", old, answers, new)
    print_line(f"Then write the real ids to these files, and run `vt check --stack {name}`.")


def upgrade(directory: UpgradedDirectory = None) -> None:
    """Create a branch that upgrades a repository of `vt init` to the templates of this release.

    The last commit of the branch is the upgrade. `git cherry-pick` applies this commit to your
    edited files and reports conflicts. The command changes no files of the checkout.

    Exit code: 0 branch created, 2 upgrade not possible.
    """
    root, new = manifest.root_of(directory or Path()), release()
    old = manifest.read(root)
    try:
        is_older = Version(new) < Version(old.release)
    except InvalidVersion:
        what = f"{manifest.NAME}: release {old.release!r} is not a version."
        raise CommandError(what) from None
    if is_older:
        what = f"the repository has release {old.release}, but the installed {new} is older."
        raise CommandError(what, "run `make setup` to install the pinned release.")
    _offer(root, f"vt-upgrade-{new}", old, old.answers, new)
    for name in _PINNING:
        try:
            pins = _PIN.findall((root / name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue
        hint = "make lock UPGRADE=1" if name.endswith(".lock") else f"pin {new}"
        for pin in pins:
            if pin != new:
                print_line(f"note: {name} pins vertex-training {pin}: {hint}.")


def _offer(root: Path, branch: str, old: Manifest, answers: Answers, new: str) -> None:
    """Create the branch of a change, and print the commands to read and apply the change."""
    changes, manifest_after = manifest.compare(old, answers, new)
    if not changes and old.release == new:
        print_line(f"{root} is up to date with release {new}. Your edits are unchanged.")
        return
    manifest.create_branch(root, branch, changes, manifest_after)
    print_line(f"Branch {branch} changes {counted(len(changes), 'file')}:")
    for change in changes:
        print(f"  {'-' if change.new is None else '+' if change.is_new else ' '} {change.path}")
    print_line(f"Review: git diff {branch}~ {branch}")
    print_line(f"Apply:  git cherry-pick {branch} && git branch -D {branch}")
