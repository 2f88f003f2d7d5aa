"""``vt local up --endpoints FILE``: trains and serves a model in a separate stack.

A model is made of what a run has left, so its sections can only follow the run. The stack's file is
written twice: from the one that trains, with what it has served so far, then with the sections of
FILE. Images are built where this
machine can, else the container's command runs on this host. At the end each endpoint is asked for
the predictions that the training script wrote of its own (``predictions.jsonl``).
"""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from localgcp.home import Home
from vertex_training.errors import CommandError, ImageBuildError
from vertex_training.settings.project_files import file_name
from vertex_training.stack import settings_of
from vertex_training_cli.console import console, show_facts
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.images import registry
from vertex_training_cli.local import image_form, results
from vertex_training_cli.local.image_form import NAMESPACE, ImageForm, Report
from vertex_training_cli.local.results import JobRecords

#: Function that deploys a stack and returns the exit code.
Run = Callable[[str], int]
#: Suffix of the stack's name.
SUFFIX: Final = "-endpoint"
#: Sections of FILE that the stack gets only after its runs have succeeded.
LATER: Final = ("models", "endpoints")
#: File with the script's own predictions, in the folder of the model.
OWN: Final = "predictions.jsonl"
ROWS: Final = 100
#: Maximum difference of numbers that were added in different order.
TOLERANCE: Final = 1e-6
_IMAGE: Final = re.compile(r"\$\{images\.([a-z0-9-]{1,63})\}")
_ENTRYPOINT: Final = re.compile(r"^ENTRYPOINT (\[.*\])$", re.MULTILINE)
#: Image of a container whose command runs on this host. The image is never pulled.
_NO_IMAGE: Final = f"us-docker.pkg.dev/this-machine/none/none@sha256:{'0' * 64}"


def run(home: Home, stack: str, added: Path, train: Run, bring_up: Run, report: Report) -> int:
    """Return the exit code of ``train`` or ``bring_up``, or 1 if predictions differ.

    Raises:
        CommandError: there is no such file, the stack is not local, or its file is somebody's own.
    """
    ref = stacks.find(stack, home.repo)
    form, file = find_form(ref, added), ref.root / file_name(f"{stack}{SUFFIX}")
    pinned = image_form.pinned_images(ref.root, form)
    write = partial(image_form.write, file, stack)
    write(_while_training(form, ref), pinned)
    if code := train(form.stack):
        return code
    form, pinned = _with_images(home, ref, form, report)
    write(form, pinned)
    if code := bring_up(form.stack):
        return code
    return _show_endpoints(home, stacks.find(form.stack, home.repo), form.config)


def find_form(ref: StackRef, added: Path) -> ImageForm:
    """Return the stack that trains and serves the model. Raises CommandError."""
    if not ref.is_local:
        raise CommandError(f"stack {ref.stack} is not a stack of the local cloud.")
    config = copy.deepcopy(stacks.read_stack_file(ref.root, ref.stack).get("config") or {})
    try:
        sections = yaml.safe_load(added.read_text("utf-8"))["config"]
        images = {name: str(keys["context"]) for name, keys in sections[_key("images")].items()}
        for key, entries in sections.items():
            config[key] = {**(config.get(key) or {}), **entries}
        return ImageForm(f"{ref.stack}{SUFFIX}", (), images, config)
    except OSError as error:
        raise CommandError(f"cannot read {added}: {error.strerror}.") from None
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:
        text = f"{added} must have the form of a stack file with images, models and endpoints."
        raise CommandError(text, "see the example in docs/serving.md") from error


def _while_training(form: ImageForm, ref: StackRef) -> ImageForm:
    """Return ``form`` for the training: models and endpoints stay as the stack serves them now."""
    later = {_key(section) for section in LATER}
    file = ref.root / file_name(form.stack)
    before = stacks.read_stack_file(ref.root, form.stack)["config"] if file.exists() else {}
    served = {key: before[key] for key in later & before.keys()}
    kept = {key: value for key, value in form.config.items() if key not in later}
    return replace(form, config=kept | served)


def _key(section: str) -> str:
    return f"{NAMESPACE}:{section}"


def _with_images(
    home: Home, ref: StackRef, form: ImageForm, report: Report
) -> tuple[ImageForm, Mapping[str, Any]]:
    """Return the form with its images built, or with commands of this host instead of images."""
    names = ", ".join(form.images)
    reason = image_form.missing(home)
    if not reason:
        settings = settings_of(ref.root, form.stack)
        registry.connect(ref, report, start=True)
        try:
            return form, dict(image_form.built_pins(settings, form, ref))
        except ImageBuildError as failed:
            reason = str(failed)
            for line in failed.last_lines:
                report(f"  | {line}")
    report(f"{names} run on this host, not in a container: {reason}")
    config = copy.deepcopy(dict(form.config))
    for model in config[_key("models")].values():
        match = _IMAGE.fullmatch(str(model.get("container")))
        if match and match[1] in form.images:
            model["container"] = on_host(ref.root, config[_key("images")][match[1]])
    return replace(form, config=config), {}


def on_host(root: Path, image: Mapping[str, Any]) -> dict[str, Any]:
    """Return a serving container that runs the ENTRYPOINT of a Dockerfile on this host."""
    text = (root / image["context"] / image.get("dockerfile", "Dockerfile")).read_text("utf-8")
    match = _ENTRYPOINT.search(text)
    words = json.loads(match[1]) if match else []
    if words[:1] != ["python"]:
        text = (
            f"{image['context']} does not start python, and this machine cannot run its container."
        )
        raise CommandError(text, "`make containers` lists the programs to install")
    folders = [(root / pattern).parent for pattern in image.get("include", ())]
    path = ":".join(str(fromkey) for fromkey in dict.fromkeys(folders))
    return {
        "image": _NO_IMAGE,
        "command": [sys.executable, *words[1:]],
        "env": {"PYTHONPATH": path},
    }


def _show_endpoints(home: Home, ref: StackRef, config: Mapping[str, Any]) -> int:
    """Print each endpoint's predictions beside the script's. Return 1 if they differ, else 0."""
    from vertex_training_cli.serving import endpoints, service

    ref.connect_clients()
    differ = 0
    for key, entry in config[_key("endpoints")].items():
        model = entry.get("model", key)
        own = _own_predictions(home, ref, config[_key("models")][model], model)
        endpoint = service.Endpoints(ref).find(key)
        facts = [("id", endpoint.name.rpartition("/")[2])]
        if own:
            asked = endpoints.sender(ref, endpoint)([row["instance"] for row in own])
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
    """Return the first rows that the run's script predicted; empty if it predicted none."""
    job_name, records = model.get("job", key), JobRecords(home)
    for job in results.read_state(home, ref.pulumi_project, ref.stack).jobs:
        record = records.get(job.job_id) if job.name == job_name else None
        where = results.artifacts(home, record) if record else None
        file = Path(where[1], model.get("artifacts", "model"), OWN) if where else None
        if file and file.is_file():
            return [json.loads(line) for line in file.read_text("utf-8").splitlines()[:ROWS]]
    return []
