"""A job of a few choices, as an import would have found it. What a stack has is used."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.settings.model import Settings
from vertex_training_cli.importing.imported import REQUEST_ID, ImportedJob
from vertex_training_cli.importing.sources import SourceContents
from vertex_training_cli.new.code import Code

#: The module of a new package.
MODULE: Final = "task"
#: Images that packages run in, without and with GPUs.
EXECUTORS: Final = {
    False: "us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest",
    True: "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest",
}
#: A bucket that a stack without any gets.
NEW_BUCKET: Final = "artifacts"

TASK: Final = '''\
"""{name}: the code of the job. It is installed as a package and run as `python -m {module}`."""

import argparse
import json
from pathlib import Path


def main() -> None:
    """Train, and write what was learned below --output."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, required=True, help="a folder, such as /gcs/…")
    parser.add_argument("--epochs", type=int, default=1)
    options = parser.parse_args()

    loss = 1.0
    for epoch in range(options.epochs):
        loss /= 2
        print(f"epoch {{epoch}}: loss {{loss:.4f}}", flush=True)

    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "metrics.json").write_text(json.dumps({{"loss": loss}}))


if __name__ == "__main__":
    main()
'''


@dataclass(frozen=True, slots=True)
class Choices:
    """What was asked for."""

    name: str
    image: str = ""
    """A key of the stack's images, or an image; empty for a package of this checkout."""
    command: tuple[str, ...] = ()
    machine: str = "n1-standard-4"
    accelerator: str = ""
    accelerators: int = 0
    replicas: int = 1
    timeout: str = "3600s"
    spot: bool = False
    code: Code | None = None
    """What is there already of this checkout, if not a package that is to be made."""


def source_of(choices: Choices, settings: Settings) -> SourceContents:
    """The job, and the files that it needs."""
    bucket = next(iter(_written(settings)), NEW_BUCKET)
    where = settings.names.bucket(bucket) if bucket in settings.buckets else bucket
    folder = f"{choices.name}/{REQUEST_ID}"
    pool: dict[str, Any] = {"replicaCount": 1, "machineSpec": _machine(choices)}
    if choices.image:
        own = f"${{images.{choices.image}}}" if choices.image in settings.images else choices.image
        command = {"command": list(choices.command)} if choices.command else {}
        pool["containerSpec"] = {"imageUri": own, **command}
    else:
        own = [] if choices.code else [f"--output=/gcs/{where}/{folder}", "--epochs=3"]
        args = {"args": [*own, *choices.command]} if own or choices.command else {}
        task = {"executorImageUri": EXECUTORS[bool(choices.accelerator)], **args}
        if choices.code:
            task["pythonModule"] = choices.code.module
        pool["pythonPackageSpec"] = task
    pools = [pool]
    if choices.replicas > 1:
        pools.append({**pool, "replicaCount": choices.replicas - 1})
    spec: dict[str, Any] = {
        "baseOutputDirectory": {"outputUriPrefix": f"gs://{where}/{folder}"},
        "scheduling": {"timeout": choices.timeout, **_strategy(choices)},
        "workerPoolSpecs": pools,
    }
    if choices.code:
        return SourceContents([ImportedJob(choices.name, spec, package=choices.code.path)])
    job = ImportedJob(choices.name, spec, script="" if choices.image else f"{MODULE}.py")
    code = TASK.format(name=choices.name, module=MODULE)
    return SourceContents([job], {} if choices.image else {f"{MODULE}.py": textwrap.dedent(code)})


def _written(settings: Settings) -> list[str]:
    """Buckets that an account of the stack writes, else any of its buckets."""
    written = [key for each in settings.service_accounts.values() for key in each.writes]
    return [*written, *settings.buckets]


def _machine(choices: Choices) -> dict[str, Any]:
    found: dict[str, Any] = {"machineType": choices.machine}
    if choices.accelerator:
        found["acceleratorType"] = choices.accelerator
        found["acceleratorCount"] = choices.accelerators or 1
    return found


def _strategy(choices: Choices) -> dict[str, str]:
    return {"strategy": "SPOT"} if choices.spot else {}
