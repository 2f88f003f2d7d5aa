"""The arguments after ``--``: flags of a job file get other values, others are added. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vertex_training.errors import CommandError

#: Keys on the way to a task, in both spellings of the API.
_SPECS = ("trialJobSpec", "trial_job_spec", "jobSpec", "job_spec")
_POOLS = ("workerPoolSpecs", "worker_pool_specs")
_TASKS = ("containerSpec", "container_spec", "pythonPackageSpec", "python_package_spec")


def add_arguments(content: Any, words: Sequence[str], file: str) -> None:
    """Change ``content``, the document of a job file, in every pool that has a task.

    Raises:
        CommandError: it has none.
    """
    tasks = list(_tasks(content))
    if not tasks:
        raise CommandError(f"{file} has no task that takes arguments.", "leave out what follows --")
    for task in tasks:
        task["args"] = with_words([str(word) for word in task.get("args") or []], words)


def with_words(args: Sequence[str], words: Sequence[str]) -> list[str]:
    """``args`` with ``words``: of a flag that is in both, the later value is the only one.

    >>> with_words(["--epochs=2", "--lr", "0.1", "train"], ["--epochs=3", "--lr=1", "--fast"])
    ['train', '--epochs=3', '--lr=1', '--fast']
    """
    given = {_flag(word) for word in words if word.startswith("-")}
    kept: list[str] = []
    index = 0
    while index < len(args):
        word = args[index]
        index += 1
        if not word.startswith("-") or _flag(word) not in given:
            kept.append(word)
        elif "=" not in word and index < len(args) and not args[index].startswith("-"):
            index += 1  # its value is a word of its own
    return [*kept, *words]


def _flag(word: str) -> str:
    """``--epochs`` of ``--epochs=3``."""
    return word.partition("=")[0]


def _tasks(content: Any) -> list[dict[str, Any]]:
    """The tasks of a CustomJob, of its ``jobSpec`` alone, or of a tuning job."""
    for names in (_SPECS, _SPECS, _POOLS):
        key = next((n for n in names if isinstance(content, Mapping) and n in content), None)
        content = content[key] if key else content
    pools = content if isinstance(content, list) else []
    found = [pool.get(key) for pool in pools if isinstance(pool, Mapping) for key in _TASKS]
    return [task for task in found if isinstance(task, dict)]
