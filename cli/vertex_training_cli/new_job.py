"""``vt new job``: creates a sample job to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from vertex_training.errors import CheckUnavailableError, CommandError
from vertex_training.settings.model import Settings
from vertex_training.stack import settings_of
from vertex_training_cli.engine import paths
from vertex_training_cli.importing import proposal
from vertex_training_cli.importing.command import offer
from vertex_training_cli.importing.imported import REQUEST_ID, ImportedJob, to_key
from vertex_training_cli.importing.sources import SourceContents
from vertex_training_cli.options import StackOfJob, Write
from vertex_training_cli.run.script import EXECUTOR

#: The module of the sample package.
MODULE: Final = "task"
#: Key of the bucket that is added to a stack without buckets.
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


def job(
    name: Annotated[str, typer.Argument(help="Name of the job: a-z, 0-9 and hyphens.")],
    stack: StackOfJob = "local",
    image: Annotated[
        str, typer.Option("--image", help="Image URI, or the name of an image of the stack.")
    ] = "",
    write: Write = False,
) -> None:
    """Create a sample job to edit: job file, code and entries of the stack file.

    The job runs --image. Without --image it runs a new Python package of this checkout, which is
    created with one file. Existing files are not overwritten.

    Exit code: 0 no mistakes, 1 the new files have mistakes, 2 no file was created.

    Example: `vt new job tune --image trainer --write`.
    """
    root = paths.root_of(Path.cwd())
    if root is None:
        raise CheckUnavailableError(
            "no Pulumi.yaml in this folder or above: a stack needs a Pulumi project"
        )
    settings = settings_of(root, stack)
    if to_key(name) in settings.jobs:
        raise CommandError(f"stack {stack} already has a job {name}.", "choose another name")
    if (root / "jobs" / f"{name}.yaml").exists():
        raise CommandError(f"jobs/{name}.yaml already exists.", "choose another name")
    source = _sample(name, image, settings)
    offer(proposal.propose(source, root, root, stack, settings), write=write)


def _sample(name: str, image: str, settings: Settings) -> SourceContents:
    written = [key for account in settings.service_accounts.values() for key in account.writes]
    bucket = next(iter([*written, *settings.buckets]), NEW_BUCKET)
    where = settings.names.bucket(bucket) if bucket in settings.buckets else bucket
    folder = f"{where}/{name}/{REQUEST_ID}"
    pool: dict[str, Any] = {"replicaCount": 1, "machineSpec": {"machineType": "n1-standard-4"}}
    if image:
        own = f"${{images.{image}}}" if image in settings.images else image
        pool["containerSpec"] = {"imageUri": own}
    else:
        args = [f"--output=/gcs/{folder}", "--epochs=3"]
        pool["pythonPackageSpec"] = {"executorImageUri": EXECUTOR, "args": args}
    spec = {
        "baseOutputDirectory": {"outputUriPrefix": f"gs://{folder}"},
        "scheduling": {"timeout": "3600s"},
        "workerPoolSpecs": [pool],
    }
    if image:
        return SourceContents([ImportedJob(name, spec)])
    code = TASK.format(name=name, module=MODULE)
    return SourceContents([ImportedJob(name, spec, script=f"{MODULE}.py")], {f"{MODULE}.py": code})
