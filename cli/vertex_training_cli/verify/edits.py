"""The edited job files of a run: the job goes on for long, so that it runs when it is replaced.

The user's files stay as they are: a copy of the stack file names the edited ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from vertex_training.errors import CommandError
from vertex_training_cli.engine import stacks

#: An argument of the Titanic job.
EPOCHS: Final = re.compile(r"--epochs=\d+")
#: Of the edited job: days on any machine, so that its timeout is its end. The last one counts.
LONG: Final = ("--epochs=100000000", "--patience=100000000")


def edited_job(text: str, display_name: str) -> str:
    """A job file that trains for long under a name of its own.

    The name makes it another request than that of any run before.
    """
    document = yaml.safe_load(text)
    job = document if "jobSpec" in document else {"jobSpec": document}
    pool = job["jobSpec"]["workerPoolSpecs"][0]
    pool.get("pythonPackageSpec", pool.get("containerSpec"))["args"] += LONG
    return yaml.safe_dump({**job, "displayName": display_name}, sort_keys=False)


def write_edit(
    ref: stacks.StackRef, folder: Path, job: str, name: str, deployment: Mapping[str, Any]
) -> Path:
    """Write an edited job file and a stack file that names it into ``folder``, below the checkout.

    Returns the stack file. It has the encryption settings of the ``deployment``.

    Raises:
        CommandError: the stack file itself does not have the job.
    """
    content = stacks.read_stack_file(ref.root, ref.stack)
    config = content.get("config") or {}
    keys = [key for key in ("vertex-training:jobs", "jobs") if job in (config.get(key) or {})]
    if not keys:
        raise CommandError(f"Pulumi.{ref.stack}.yaml has no job {job}, or includes it.")
    entry = config[keys[0]][job]
    text = edited_job((ref.root / entry["file"]).read_text(encoding="utf-8"), name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    entry["file"] = str((folder / f"{name}.yaml").relative_to(ref.root))
    file = folder / f"Pulumi.{name}.yaml"
    found = yaml.safe_dump({**content, **_encryption(deployment)}, sort_keys=False)
    file.write_text(found, encoding="utf-8")
    return file


def _encryption(deployment: Mapping[str, Any]) -> dict[str, str]:
    """Settings of a stack file by which the engine opens the secrets of this state."""
    provider = deployment.get("secrets_providers") or {}
    state = provider.get("state") or {}
    if provider.get("type") == "passphrase":
        return {"encryptionsalt": state["salt"]}
    if provider.get("type") == "cloud":
        return {"secretsprovider": state["url"], "encryptedkey": state["encryptedkey"]}
    return {}
