"""Rule about configuration files of accelerate and DeepSpeed in packages and image contexts.

The rule reads a file only if a single file of the job's code has its name, is no link and has at
most 64 KiB.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence
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
from vertex_training.errors import ConfigError, Location, Problem
from vertex_training.located_yaml import document
from vertex_training.plan import packages
from vertex_training.settings.model import Settings
from vertex_training.stack_rules import StackFile, file_rule

#: A larger file is no configuration of a launcher.
MOST_BYTES: Final = 1 << 16
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
                        yield dataclasses.replace(problem, what=f"job '{key}': {problem.what}")


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
        return ""  # fewer ranks than processes share a batch
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
            data = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
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
        what = f"num_processes differs from the {gpus} GPUs of all machines"
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
