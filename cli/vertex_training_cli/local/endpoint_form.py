"""``vt local up --endpoints FILE``: train and serve a model in a separate stack.

A model needs the output of a run. So the stack is deployed first without the models and endpoints
of FILE, then with them. Serving containers run on this machine.
"""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from localgcp.home import Home
from localgcp.system.root_directory import RootDirectory
from vertex_training.errors import CommandError
from vertex_training.settings.project_files import file_name
from vertex_training.stack import SCHEMA
from vertex_training_cli.console import console, show_facts
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.local import results
from vertex_training_cli.local.results import JobRecords

Run = Callable[[str], int]
SUFFIX: Final = "-endpoint"
#: First line of a stack file that this command may overwrite.
MARK: Final = "# Written by `vt local up"
#: Sections of FILE that are deployed after the runs of the stack have succeeded.
LATER: Final = ("models", "endpoints")
#: File with the script's predictions in the folder of the model.
OWN: Final = "predictions.jsonl"
ROWS: Final = 100
#: Maximum difference between equal predictions, for example by another order of additions.
TOLERANCE: Final = 1e-6
_IMAGE: Final = re.compile(r"\$\{images\.([a-z0-9-]{1,63})\}")
_ENTRYPOINT: Final = re.compile(r"^ENTRYPOINT (\[.*\])$", re.MULTILINE)
#: Image of a container whose command runs on this host. The image is never pulled.
_NO_IMAGE: Final = f"us-docker.pkg.dev/this-machine/none/none@sha256:{'0' * 64}"


def run(home: Home, stack: str, added: Path, train: Run, bring_up: Run) -> int:
    """Return the exit code of ``train`` or ``bring_up``, or 1 if predictions differ."""
    ref = stacks.find(stack, home.repo)
    config, served = read_config(ref, added), f"{stack}{SUFFIX}"
    file = ref.root / file_name(served)
    # During the training, the stack keeps the models and endpoints that it serves.
    later = {_key(section) for section in LATER}
    before = stacks.read_stack_file(ref.root, served)["config"] if file.exists() else {}
    kept = {key: before[key] for key in later & before.keys()}
    write(file, stack, {key: value for key, value in config.items() if key not in later} | kept)
    if code := train(served):
        return code
    images = config[_key("images")]
    for model in config[_key("models")].values():
        match = _IMAGE.fullmatch(str(model.get("container")))
        if match and match[1] in images and "digest" not in images[match[1]]:
            model["container"] = on_host(ref.root, images[match[1]])
    write(file, stack, config)
    if code := bring_up(served):
        return code
    return _show_endpoints(home, stacks.find(served, home.repo), config)


def read_config(ref: StackRef, added: Path) -> dict[str, Any]:
    """Return the config of the stack that trains and serves the model."""
    if not ref.is_local:
        raise CommandError(f"stack {ref.stack} is not a stack of the local cloud.")
    config = copy.deepcopy(stacks.read_stack_file(ref.root, ref.stack).get("config") or {})
    try:
        sections = yaml.safe_load(added.read_text("utf-8"))["config"]
        for key in dict.fromkeys([*sections, *map(_key, ("images", *LATER))]):
            config[key] = {**(config.get(key) or {}), **sections[key]}
    except OSError as error:
        raise CommandError(f"cannot read {added}: {error.strerror}.") from None
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:
        text = f"{added} must have the form of a stack file with images, models and endpoints."
        raise CommandError(text, "see the example in docs/serving.md") from error
    return config


def write(file: Path, source: str, config: Mapping[str, Any]) -> None:
    """Replace the stack file atomically; refuse a file that this command did not write."""
    if file.exists() and not file.read_text("utf-8", errors="replace").startswith(MARK):
        text = f"{file.name} exists, and this command did not write the file."
        raise CommandError(text, f"rename {file.name}.")
    head = (
        f"{MARK}` from Pulumi.{source}.yaml. Each run overwrites this file: edit "
        f"Pulumi.{source}.yaml instead.\n"
    )
    text = head + yaml.safe_dump({"config": dict(config)}, sort_keys=False, allow_unicode=True)
    RootDirectory(file.parent).write(file.name, text.encode())


def _key(section: str) -> str:
    return f"{SCHEMA.namespace}:{section}"


def on_host(root: Path, image: Mapping[str, Any]) -> dict[str, Any]:
    """Return a serving container that runs the ENTRYPOINT of a Dockerfile on this host."""
    text = (root / image["context"] / image.get("dockerfile", "Dockerfile")).read_text("utf-8")
    match = _ENTRYPOINT.search(text)
    words = json.loads(match[1]) if match else []
    if words[:1] != ["python"]:
        text = f"the ENTRYPOINT of {image['context']} is not python, so it cannot run on this host."
        raise CommandError(text, "build the image with `vt images build`, and set its digest.")
    folders = [(root / pattern).parent for pattern in image.get("include", ())]
    path = ":".join(dict.fromkeys(map(str, folders)))
    return {
        "image": _NO_IMAGE,
        "command": [sys.executable, *words[1:]],
        "env": {"PYTHONPATH": path},
    }


def _show_endpoints(home: Home, ref: StackRef, config: Mapping[str, Any]) -> int:
    """Print each endpoint's predictions beside the script's. Return 1 if they differ, else 0."""
    from vertex_training_cli.serving import endpoints, service
    from vertex_training_cli.serving.endpoints import Batch

    ref.connect_clients()
    differ = 0
    for key, entry in config[_key("endpoints")].items():
        model = entry.get("model", key)
        own = _own_predictions(home, ref, config[_key("models")][model], model)
        endpoint = service.Endpoints(ref).find(key)
        facts = [("id", endpoint.name.rpartition("/")[2])]
        if own:
            asked = endpoints.sender(ref, endpoint)(Batch(1, [row["instance"] for row in own]))
            pairs = zip(asked, own, strict=True)
            largest = max(abs(answer - row["prediction"]) for answer, row in pairs)
            equal = largest <= TOLERANCE
            differ += not equal
            verdict = "equal to" if equal else "DIFFERENT FROM"
            text = f"{len(own)}, {verdict} the script's predictions (at most {largest:.1g} apart)"
            facts.append(("predictions", text))
        console().print()
        show_facts(console(), ("ENDPOINT", key), facts)
    return 1 if differ else 0


def _own_predictions(
    home: Home, ref: StackRef, model: Mapping[str, Any], key: str
) -> list[dict[str, Any]]:
    job_name, records = model.get("job", key), JobRecords(home)
    for job in results.read_state(home, ref.pulumi_project, ref.stack).jobs:
        record = records.get(job.job_id) if job.name == job_name else None
        where = results.artifacts(home, record) if record else None
        file = Path(where[1], model.get("artifacts", "model"), OWN) if where else None
        if file and file.is_file():
            return [json.loads(line) for line in file.read_text("utf-8").splitlines()[:ROWS]]
    return []
