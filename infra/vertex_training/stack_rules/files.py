"""Rules about files that a stack uses: they must exist in the checkout, without secrets.

Code must name its project. The default project of a job is Google's own, where the job's account
has no rights (https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/174).
"""

from __future__ import annotations

import ast
import errno
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from vertex_training.errors import ConfigError, Location, Path, Problem
from vertex_training.images import pins
from vertex_training.images.context import BuildContext
from vertex_training.plan import packages
from vertex_training.secret_rules import files
from vertex_training.secret_rules.files import File, Scan
from vertex_training.secret_rules.redaction import is_secret_variable
from vertex_training.settings.model import Image, Settings
from vertex_training.settings.project_files import is_of_git
from vertex_training.snapshots.request import is_of_snapshot
from vertex_training.stack_rules import StackFile, file_rule


@file_rule()
def named_files(file: StackFile) -> Iterator[Problem]:
    """Check that files exist inside the checkout and that contexts can build an image."""
    settings, root = file.settings, file.root
    for section, key, job in settings.jobs_by_section():
        yield from file_problems((section, key, "file"), job.file, root)
    for key, package in settings.packages.items():
        yield from _problem(("packages", key, "path"), package.path, root, is_file=False)
    for key, bucket in settings.buckets.items():
        yield from _objects(("buckets", key, "objects"), bucket.objects, root)
    for key, image in settings.images.items():
        if image.context:
            yield from _context(("images", key), image, image.context, root)


def file_problems(path: Path, name: str, root: pathlib.Path) -> Iterator[Problem]:
    """Yield a problem if file ``name`` is missing or is outside of ``root``."""
    return _problem(path, name, root, is_file=True)


def _problem(path: Path, name: str, root: pathlib.Path, *, is_file: bool) -> Iterator[Problem]:
    what = hint = ""
    try:
        target, top = (root / name).resolve(), root.resolve()
        exists = target.is_file() if is_file else target.exists()
        if not target.is_relative_to(top):
            what, hint = "this path is outside of the checkout", "use a path inside the checkout"
        elif is_of_git(target.relative_to(top)):
            what = "files of git may contain a token and are not uploaded"
            hint = "name another file"
        elif not exists:
            what, hint = "no such file", "write the path relative to the folder of Pulumi.yaml"
    except (OSError, RuntimeError) as error:  # the latter is a link to itself, before Python 3.13
        what, hint = "this path is a symbolic link to itself", "name a regular file"
        if getattr(error, "errno", None) == errno.ENAMETOOLONG:
            what, hint, name = "this path is too long for the file system", "", f"{name[:40]}…"
    except ValueError:
        what = "this path contains a NUL character"
    if what:
        yield Problem(what, name, hint, path)


def _objects(path: Path, kept: Mapping[str, str], root: pathlib.Path) -> Iterator[Problem]:
    names: dict[str, str] = {}
    folders = 0
    for name, file in kept.items():
        here = (*path, name)
        if missing := list(_problem(here, file, root, is_file=False)):
            yield from missing
            continue
        is_folder = (root / file).is_dir()
        folders += is_folder
        if is_folder and (wrong := packages.folder_problem(root / file)):
            what, hint = wrong
            target = f"gs://BUCKET/{packages.prefix_of(name)}".rstrip("/")
            upload = f"upload the folder: gcloud storage rsync --recursive {file} {target}"
            yield Problem(what, file, hint or upload, here)
            continue
        for kept_object in packages.kept_objects({name: file}, root):
            what = packages.name_problem(kept_object)
            if what is None and is_of_snapshot(kept_object):
                what = "this object name is reserved for files of snapshots, which never change"
            if what:
                yield Problem(what, kept_object, "choose another object name", here)
                break
            if kept_object in names:
                what = f"object {kept_object} is declared twice, here and by {names[kept_object]}"
                yield Problem(what, file, "remove one entry", here)
                break
            names[kept_object] = name
    if folders > 1 and len(names) > packages.MOST_FILES:
        what = f"objects has {len(names)} files, the limit is {packages.MOST_FILES}"
        hint = "upload larger folders: gcloud storage rsync --recursive FOLDER gs://BUCKET"
        yield Problem(what, "", hint, path)


def _context(path: Path, image: Image, context: str, root: pathlib.Path) -> Iterator[Problem]:
    for number, folder in enumerate(image.include):
        at = (*path, "include", number)
        if missing := list(_problem(at, folder, root, is_file=False)):
            yield from missing
        elif (root / folder).is_file():
            hint = "name the folder that contains the file"
            yield Problem("include accepts only folders", folder, hint, at)
    if missing := list(_problem((*path, "context"), context, root, is_file=False)):
        yield from missing
        return
    included = {folder.rpartition("/")[2] for folder in image.include}
    for what, hint in pins.problems(root / context, image.dockerfile, included):
        yield Problem(what, context, hint, (*path, "context"))


def scan(settings: Settings, root: pathlib.Path) -> Scan:
    """Scan the packages and objects that ``pulumi up`` uploads for secrets."""
    return files.scan(_sent(settings, root), settings.allowed_secrets)


def _sent(settings: Settings, root: pathlib.Path) -> Iterator[File]:
    names: dict[str, None] = {}
    for package in settings.packages.values():
        names |= dict.fromkeys(packages.sources(root / package.path, package.path))
    for bucket in settings.buckets.values():
        names |= dict.fromkeys(packages.kept_objects(bucket.objects, root).values())
    for name in names:
        if (path := root / name).is_file():
            yield File(name, path.stat().st_size, path.read_bytes)


def scan_context(settings: Settings, name: str, context: BuildContext) -> Scan:
    """Scan the files and build arguments that an image build uploads for secrets."""
    image = settings.images[name]
    folders = {folder.rpartition("/")[2]: folder for folder in image.include}

    def shown(inside: str) -> str:
        top, _, rest = inside.partition("/")
        return f"{folders[top]}/{rest}" if top in folders else f"{image.context}/{inside}"

    uploaded = (
        File(shown(entry.name), entry.size, pathlib.Path(entry.path).read_bytes)
        for entry in context.entries
        if entry.is_file
    )
    scanned = files.scan(uploaded, settings.allowed_secrets)
    what = "this build argument looks like a secret"
    hint = "image layers store build arguments: mount a build secret, or read the value in the job"
    arguments = (
        Problem(what, "", hint, ("images", name, "buildArgs", key))
        for key, value in image.build_args.items()
        if is_secret_variable(key, value)
    )
    return Scan((*arguments, *scanned.problems), scanned.unscanned)


@file_rule("warning")
def images_behind_contexts(file: StackFile) -> Iterator[Problem]:
    """Warn about images that were built before their context changed."""
    return pins.warnings(file.settings, file.root)


@file_rule("warning")
def secrets_in_contexts(file: StackFile) -> Iterator[Problem]:
    """Warn about secrets in build contexts, which ``vt images build`` refuses."""
    settings, root = file.settings, file.root
    for name, image in settings.images.items():
        source = pins.source_of(image)
        try:
            context = source.read(root) if source else None
        except ConfigError:
            continue
        if context:
            scanned = scan_context(settings, name, context)
            yield from scanned.problems
            if scanned.note:
                yield Problem(scanned.note, path=("images", name, "context"), level="note")


#: Environment variable from which Google's clients read the project.
PROJECT: Final = "GOOGLE_CLOUD_PROJECT"
#: Function -> argument with the project, and its position.
CALLS: Final = {
    "google.cloud.bigquery.Client": ("project", 0),
    "pandas_gbq.read_gbq": ("project_id", 1),
    "pandas_gbq.to_gbq": ("project_id", 2),
    "pandas.read_gbq": ("project_id", 1),
}
#: Maximum size of a parsed file in bytes. Larger files are generated code.
MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DefaultProject:
    """A BigQuery call without a project."""

    line: int
    call: str
    argument: str


@file_rule("warning")
def default_project_calls(file: StackFile) -> Iterator[Problem]:
    """Warn about BigQuery calls without a project, unless all jobs set the project's variable."""
    settings, root, requests = file.settings, file.root, file.requests
    if requests and all(f'"{PROJECT}"' in request.body for request in requests.values()):
        return
    for name in sorted(_files(settings, root)):
        path = root / name
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            continue
        for usage in default_projects(path.read_bytes()):
            call = f"{usage.call} without {usage.argument}"
            what = f"{call}: in a job the default project is Google's own"
            hint = f"pass {usage.argument}=…, or set the variable {PROJECT} in the job file"
            yield Problem(what, hint=hint, location=Location(name, usage.line))


def _files(settings: Settings, root: pathlib.Path) -> set[str]:
    folders = [image.context for image in settings.images.values() if image.context]
    places: Iterable[str] = (*folders, *(package.path for package in settings.packages.values()))
    names = (name for place in places for name in packages.sources(root / place, place))
    return {name for name in names if name.endswith(".py")}


def default_projects(code: bytes) -> list[DefaultProject]:
    """Return the calls without a project by line; empty if the code is not valid Python."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names = _imported(tree)
    usages: list[DefaultProject] = []
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        full = _full_name(call.func, names)
        if full in CALLS and not _has(call, *CALLS[full]):
            argument, _ = CALLS[full]
            shown = ".".join(full.split(".")[-2:])
            usages.append(DefaultProject(call.lineno, f"{shown}()", argument))
    return sorted(usages, key=lambda usage: usage.line)


def _has(call: ast.Call, argument: str, position: int) -> bool:
    """Return True if a call passes the argument, possibly in ``*`` or ``**``."""
    starred = (isinstance(arg, ast.Starred) for arg in call.args)
    named = (keyword.arg is None or keyword.arg == argument for keyword in call.keywords)
    return len(call.args) > position or any(starred) or any(named)


def _imported(tree: ast.AST) -> dict[str, str]:
    """Return the full name of each name that an import anywhere in the file binds."""
    result: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                top = name.name.partition(".")[0]
                result[name.asname or top] = name.name if name.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            result |= {n.asname or n.name: f"{node.module}.{n.name}" for n in node.names}
    return result


def _full_name(node: ast.expr, names: Mapping[str, str]) -> str | None:
    """Return the full name of ``a.b.c`` if ``a`` is imported; None for other expressions."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    imported = names.get(node.id) if isinstance(node, ast.Name) else None
    return ".".join([imported, *reversed(parts)]) if imported else None
