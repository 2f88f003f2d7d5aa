"""Rules about files that a stack uses: they must exist in the checkout, without secrets.

Code must name its project. The default project of a job is Google's own, where the job's account
has no rights (https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/174). Configuration
files of accelerate and DeepSpeed must agree with worker pools. Such a file is read only if a single
file of the job's code has its name, is no link and has at most 64 KiB.
"""

from __future__ import annotations

import ast
import errno
import json
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import PurePosixPath
from typing import Any, Final

from vertex_training.customjob.rules.command_lines import (
    Command,
    Launch,
    launch_of,
    processes_of,
    read_command_line,
)
from vertex_training.customjob.rules.job import Job, Pool
from vertex_training.errors import ConfigError, Location, Path, Problem
from vertex_training.images import pins
from vertex_training.images.context import BuildContext
from vertex_training.located_yaml import document
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
    except (OSError, RuntimeError) as error:  # Python 3.12 raises RuntimeError for a link to itself
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
                yield Problem(what, file, "remove one of the two entries", here)
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
        calls = _calls_without_project(path.read_bytes())
        for line, call, argument in sorted(calls, key=itemgetter(0)):
            what = f"{call} has no {argument}: a job's default project is Google's own"
            hint = f"pass {argument}=…, or set the variable {PROJECT} in the job file"
            yield Problem(what, hint=hint, location=Location(name, line))


def _files(settings: Settings, root: pathlib.Path) -> set[str]:
    folders = [image.context for image in settings.images.values() if image.context]
    places: Iterable[str] = (*folders, *(package.path for package in settings.packages.values()))
    names = (name for place in places for name in packages.sources(root / place, place))
    return {name for name in names if name.endswith(".py")}


def _calls_without_project(code: bytes) -> Iterator[tuple[int, str, str]]:
    """Yield line, function and missing argument of calls without a project in valid Python."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    names = _imported(tree)
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        full = _full_name(call.func, names)
        if full in CALLS and not _has(call, *CALLS[full]):
            argument, _ = CALLS[full]
            yield call.lineno, f"{'.'.join(full.split('.')[-2:])}()", argument


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


#: A larger file is no configuration of a launcher.
MOST_LAUNCHER_BYTES: Final = 1 << 16
#: Options that name a configuration of DeepSpeed, without dashes and underscores.
_DEEPSPEED: Final = ("deepspeedconfig", "deepspeedconfigfile", "deepspeed")
#: Keys of DeepSpeed configurations with which fewer ranks than processes share a batch.
_PARALLEL: Final = ("tensor_parallel", "pipeline", "sequence_parallel_size", "elasticity")


@file_rule("warning")
def launcher_files(file: StackFile) -> Iterator[Problem]:
    """Check that configuration files of launchers agree with the worker pools of their jobs."""
    reported = set[str]()
    for key, request in file.requests.items():
        pools = [pool for pool in Job(request.trial).pools if pool.index < 2]
        for pool in pools:
            for command in read_command_line(pool).commands:
                for problem in _command_problems(file, pools, pool, command):
                    if str(problem) not in reported:
                        reported.add(str(problem))
                        yield replace(problem, what=f"job '{key}': {problem.what}")


def _command_problems(
    file: StackFile, pools: Sequence[Pool], pool: Pool, command: Command
) -> Iterator[Problem]:
    launch = launch_of(command) if command.certain else None
    if launch is None:
        return
    if launch.launcher == "accelerate" and (name := launch.options.get("config-file")):
        for path, content in _read(file, pool, name):
            yield from _accelerate_problems(Location(path), content, launch, pools)
    world = _world_size(pools)
    for path, content in _read(file, pool, _deepspeed_file(command)):
        if world and not any(key in content for key in _PARALLEL):
            yield from _batch_problems(Location(path), content, world)


def _deepspeed_file(command: Command) -> str:
    """Return FILE of an option like ``--deepspeed_config FILE``; empty without the option."""
    words = command.words
    if any("parallel" in word for word in words):
        return ""  # then fewer ranks than processes share a batch
    for word, after in zip(words, (*words[1:], ""), strict=True):
        name, equals, value = word.partition("=")
        option = name.replace("-", "").replace("_", "")
        if name.startswith("--") and option in _DEEPSPEED:
            value = value if equals else after
            if value.endswith((".json", ".yaml", ".yml")):
                return value
    return ""


def _world_size(pools: Sequence[Pool]) -> int | None:
    """Return the number of processes in all pools; None if it is known only at run time."""
    total = 0
    for pool in pools:
        commands = [command for command in read_command_line(pool).commands if command.certain]
        launches = [launch for command in commands if (launch := launch_of(command))]
        counts = [processes_of(launch, pool) for launch in launches]
        if len(counts) != 1 or counts[0] is None:
            return None
        total += counts[0] * pool.replicas
    return total


def _read(file: StackFile, pool: Pool, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if not name:
        return
    parts = PurePosixPath(name).parts
    matches = [
        path
        for folder in _folders(file.settings, pool)
        for path in packages.sources(file.root / folder, folder)
        if PurePosixPath(path).name == parts[-1]
    ]
    if len(matches) > 1:
        matches = [path for path in matches if PurePosixPath(path).parts[-len(parts) :] == parts]
    if len(matches) == 1 and (content := _content(file.root, matches[0])):
        yield matches[0], content


def _folders(settings: Settings, pool: Pool) -> Iterator[str]:
    files = [uri.rpartition("/")[2] for uri in pool.task.get("packageUris", [])]
    for key, package in settings.packages.items():
        if any(name.rpartition("-")[0] == key for name in files):
            yield package.path
    for key, image in settings.images.items():
        uri = image.uri or settings.names.image(key)
        if image.context and pool.image.partition("@")[0] == uri.partition("@")[0]:
            yield image.context


def _content(root: pathlib.Path, name: str) -> dict[str, Any]:
    path = root / name
    try:
        if path.resolve() != root.resolve() / name or not path.is_file():
            return {}
        with path.open("rb") as stream:
            data = stream.read(MOST_LAUNCHER_BYTES + 1)
        if len(data) > MOST_LAUNCHER_BYTES:
            return {}
        is_json = path.suffix == ".json"
        content = json.loads(data) if is_json else document.parse(data, name).root.plain()
    except (OSError, ValueError, RecursionError, ConfigError):
        return {}
    return content if isinstance(content, dict) else {}


def _count(content: Mapping[str, Any], key: str) -> int | None:
    """Return a positive whole number; None for ``auto``, other types and numbers out of range."""
    value = content.get(key)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31
    return value if is_count else None


def _accelerate_problems(
    location: Location, content: Mapping[str, Any], launch: Launch, pools: Sequence[Pool]
) -> Iterator[Problem]:
    nodes, machines = sum(pool.replicas for pool in pools), _count(content, "num_machines")
    if machines and "num-machines" not in launch.options and machines != nodes:
        what = f"num_machines differs from the {nodes} machines of the worker pools"
        yield Problem(what, str(machines), f"num_machines: {nodes}", location=location)
    total = _count(content, "num_processes")
    gpus = sum(pool.replicas * pool.count for pool in pools) if all(p.gpu for p in pools) else 0
    if total and gpus and "num-processes" not in launch.options and total != gpus:
        what = f"num_processes differs from {gpus}, the number of GPUs of all machines together"
        yield Problem(what, str(total), f"num_processes: {gpus}", location=location)
    if nodes > 1 and machines == nodes and "machine-rank" not in launch.options:
        what = f"machine_rank is the same on all {nodes} machines"
        hint = "pass --machine_rank, derived from CLUSTER_SPEC, in the command line"
        yield Problem(what, str(content.get("machine_rank", 0)), hint, location=location)


def _batch_problems(
    location: Location, content: Mapping[str, Any], world: int
) -> Iterator[Problem]:
    train = _count(content, "train_batch_size")
    micro = _count(content, "train_micro_batch_size_per_gpu")
    steps = _count(content, "gradient_accumulation_steps")
    parts = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    if train is None or "auto" in map(content.get, parts):
        return
    product = (micro or 1) * (steps or 1) * world
    if train % product or (micro and steps and train != product):
        what = (
            f"DeepSpeed refuses train_batch_size unless it equals micro batch {micro or 'size'} x "
            f"accumulation {steps or 'steps'} x {world} processes"
        )
        times = "" if micro and steps else "a multiple of "
        hint = f"train_batch_size: {times}{product}"
        yield Problem(what, str(train), hint, location=location)
