"""Rules about ``models``, ``endpoints``, ``channels``, ``alerts`` and ``budget``."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Any, Final

from vertex_training import catalog, naming
from vertex_training.catalog import machines
from vertex_training.customjob.request.message import references_in
from vertex_training.customjob.rules.images import NAME
from vertex_training.errors import Path, Problem, UnknownReferenceError, counted, did_you_mean
from vertex_training.plan import facts
from vertex_training.plan.grants import IMAGE
from vertex_training.settings.model import Settings
from vertex_training.settings.serving import Endpoint, Model
from vertex_training.stack_rules import StackFile, file_rule, rule, unknown_entry
from vertex_training.stack_rules.names import other_stack_files

#: Multi-regions of Artifact Registry; their regions begin with these names.
_MULTI_REGIONS: Final = ("us", "europe", "asia")
#: Google's prebuilt serving images, and the day of their removal. Source:
#: predictions/pre-built-containers; sklearn 1.6 alone stays until 2027-10-14.
_PREBUILT: Final = re.compile(r"[a-z]+-docker\.pkg\.dev/vertex-ai/prediction/([a-z0-9.-]+)")
_PREBUILT_UNTIL: Final = datetime.date(2027, 1, 14)
_LATEST: Final = re.compile(r"sklearn-[a-z]+\.1-6")


@rule()
def models_and_endpoints(settings: Settings) -> Iterator[Problem]:
    """Check that models and endpoints name known resources that suit each other."""
    for key, model in settings.models.items():
        yield from _model(settings, key, model)
    ids: dict[str, str] = {}
    for key, endpoint in settings.endpoints.items():
        path = ("endpoints", key)
        name = settings.names.endpoint_id(key)
        if (other := ids.setdefault(name, key)) != key:
            what = f"endpoint '{other}' has the same id"
            yield Problem(what, name, "choose another key", path)
        yield from _endpoint(settings, key, endpoint)


@rule("warning")
def serving_machines(settings: Settings) -> Iterator[Problem]:
    """Warn about prebuilt serving images, and about machines with unknown properties or prices."""
    for key, model in settings.models.items():
        image = _PREBUILT.match(model.container.image)
        if image and not _LATEST.match(image[1]):
            what = f"Google removes its prebuilt serving images on {_PREBUILT_UNTIL}"
            path = ("models", key, "container", "image")
            yield Problem(what, image[1], "use an image of your own: ${images.NAME}", path)
    for key, endpoint in settings.endpoints.items():
        yield from tpu_warnings(endpoint, settings.region, ("endpoints", key))
        machine = machines.serving_machine_type(endpoint.machine)
        path = ("endpoints", key, "machine")
        if machine is None:
            what = "the catalogue lacks this machine type: price and accelerators are unknown"
            hint = did_you_mean(endpoint.machine, machines.machine_types())
            yield Problem(what, endpoint.machine, hint, path)
        elif machine.price is None:
            what = "no price is known for this machine type: cost estimates omit the endpoint"
            yield Problem(what, endpoint.machine, "", path)


def _model(settings: Settings, key: str, model: Model) -> Iterator[Problem]:
    path = ("models", key)
    name = settings.names.model_id(key)
    if not naming.MODEL_ID.match(name):
        what = "the model id must have 1 to 63 lowercase letters, digits, '-' and '_'"
        yield Problem(what, name, "shorten the key or the stack's name", path)
    job = settings.jobs.get(model.job or key)
    if job is None:
        hint = did_you_mean(model.job or key, settings.jobs) or "declare the job in section jobs"
        place = (*path, "job")
        yield Problem("this stack has no such job", model.job or key, hint, place)
    if (model.job or key) in settings.schedules:
        what = "model versions come from runs, and this job has a schedule instead of runs"
        hint = "name a job without schedule, for example a second job with the same file"
        yield Problem(what, model.job or key, hint, (*path, "job"))
    for index, run in enumerate(model.run):
        if job is not None and run > job.run:
            what = f"job '{model.job or key}' has only {counted(job.run, 'run')}"
            hint = "raise `run` of the job, deploy, and add the run here after success"
            yield Problem(what, str(run), hint, (*path, "run", index))
    yield from _image(settings, model, (*path, "container", "image"))


def _image(settings: Settings, model: Model, path: Path) -> Iterator[Problem]:
    text = model.container.image
    try:
        image = facts.image_of(settings, model)
    except UnknownReferenceError as unknown:
        yield Problem("this reference names no resource of the stack", text, unknown.hint, path)
        return
    match = IMAGE.match(image)
    if match is None or not NAME.match(image) or references_in(image):
        hint = "write ${images.NAME}, or REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME@sha256:…"
        yield Problem("the image must be in Artifact Registry", text, hint, path)
        return
    location, region = match[1], settings.region
    is_around = location in _MULTI_REGIONS and region.startswith(f"{location}-")
    if location != region and not is_around:
        what = f"the image is in {location}, but models in {region} need an image in {region}"
        yield Problem(what, image, f"push the image to a repository in {region}", path)


def _endpoint(settings: Settings, key: str, endpoint: Endpoint) -> Iterator[Problem]:
    path = ("endpoints", key)
    name = endpoint.model or key
    model = settings.models.get(name)
    if model is None:
        hint = did_you_mean(name, settings.models) or "declare the model in section models"
        yield Problem("this stack has no such model", name, hint, (*path, "model"))
    else:
        known = ", ".join(f"run {run}" for run in model.run)
        for run in endpoint.shares:
            if run not in model.run:
                what = f"model '{name}' has no version of this run"
                hint = f"use {known}, or add the run to models.{name}.run first"
                yield Problem(what, f"run {run}", hint, (*path, "split", f"run {run}"))
        if model.team not in (None, endpoint.team):
            hint = f"set team: {model.team} on the endpoint, or remove team from the model"
            what = f"team {model.team} owns this model"
            yield Problem(what, name, hint, (*path, "model"))
    yield from _accelerator(endpoint, (*path, "accelerator"))
    yield from tpu_problems(endpoint, settings.region, path)
    if endpoint.account is None:
        return
    account, place = settings.service_accounts.get(endpoint.account), (*path, "account")
    if account is None:
        hint = did_you_mean(endpoint.account, settings.service_accounts)
        what = "this stack has no such account"
        hint = hint or "declare the account in section serviceAccounts"
        yield Problem(what, endpoint.account, hint, place)
    elif account.team not in (None, endpoint.team):
        hint = f"set team: {account.team} on the endpoint, or use another account"
        yield Problem(f"team {account.team} owns this account", endpoint.account, hint, place)


def _accelerator(endpoint: Endpoint, path: Path) -> Iterator[Problem]:
    name, accelerator = endpoint.machine, endpoint.accelerator
    machine = machines.serving_machine_type(name)
    if machine is None or machine.tpu:
        return
    hint = f"use {machine.choices}" if machine.choices else "remove accelerator"
    if accelerator is None:
        if machine.accelerator_required:
            yield Problem(f"{name} requires an accelerator", "", hint, path)
    elif (counts := machine.accelerators.get(accelerator.type)) is None:
        what = f"{name} does not support this accelerator"
        yield Problem(what, accelerator.type, hint, (*path, "type"))
    elif accelerator.count not in counts:
        what = f"{name} supports only {', '.join(map(str, counts))} of {accelerator.type}"
        yield Problem(what, str(accelerator.count), hint, (*path, "count"))


def tpu_problems(endpoint: Endpoint, region: str, path: Path) -> Iterator[Problem]:
    """Yield the problems of an endpoint on TPUs."""
    name, accelerator = endpoint.machine, endpoint.accelerator
    tpus = catalog.load("serving_tpus.yaml")
    if name.startswith(tuple(tpus["refused"]["prefixes"])):
        known, families = machines.machine_types().items(), tpus["families"]
        names = [name for name, machine in known if machine.family in families]
        hint = f"use one of: {', '.join(names)}"
        what = "endpoints do not support TPUs of this generation"
        yield Problem(what, name, hint, (*path, "machine"))
        return
    row = _row(name)
    if row is None:
        return
    if region not in (*row["regions"], *row.get("allowlist", ())):
        hint = f"use a region with these machines: {', '.join(row['regions'])}"
        what = f"region {region} has no endpoint machines of this type"
        yield Problem(what, name, hint, (*path, "machine"))
    if accelerator is not None and not accelerator.type.startswith("TPU_"):
        what = f"{name} supports no accelerator but its built-in TPUs"
        yield Problem(what, accelerator.type, "remove accelerator", (*path, "accelerator", "type"))


def tpu_warnings(endpoint: Endpoint, region: str, path: Path) -> Iterator[Problem]:
    """Yield settings of endpoints on TPUs that the service ignores, and required allowlists."""
    name, accelerator, replicas = endpoint.machine, endpoint.accelerator, endpoint.replicas
    row = _row(name)
    if row is None:
        return
    if region in row.get("allowlist", ()):
        what = f"in {region} this machine requires that Google adds the project to an allowlist"
        hint = f"ask Google for access, or use another region: {', '.join(row['regions'])}"
        yield Problem(what, name, hint, (*path, "machine"))
    if accelerator is not None and accelerator.type.startswith("TPU_"):
        what = f"{name} has built-in TPUs and does not need an accelerator"
        yield Problem(what, accelerator.type, "remove accelerator", (*path, "accelerator"))
    if replicas.most > replicas.min:
        what = "endpoints on TPUs ignore replicas.max and always run replicas.min"
        hint = f"remove max, or raise min ({replicas.min} now)"
        yield Problem(what, str(replicas.most), hint, (*path, "replicas", "max"))


def _row(name: str) -> dict[str, Any] | None:
    machine = machines.machine_type(name)
    families = catalog.load("serving_tpus.yaml")["families"]
    return families.get(machine.family) if machine else None


@rule()
def channels(settings: Settings) -> Iterator[Problem]:
    """Check that channels exist, belong to the project and suit the alerts that use them."""
    own = (settings.project, settings.project_number)
    for key, channel in settings.channels.items():
        if channel.existing and channel.existing.split("/")[1] not in own:
            what = f"alerts of {settings.project} cannot use channels of other projects"
            path: Path = ("channels", key, "existing")
            yield Problem(what, channel.existing, f"name a channel of {settings.project}", path)
    for name, job in settings.jobs.items():
        if (key := job.messages and job.messages.channel) is not None:
            path = ("jobs", name, "messages", "channel")
            if key not in settings.channels:
                yield unknown_entry("channel", key, settings.channels, "channels", path)
            elif not settings.channels[key].pubsub:
                what = "Batch notifies only Pub/Sub topics"
                yield Problem(what, key, "name a channel with pubsub", path)
    for path, keys in _channel_lists(settings):
        for index, key in enumerate(keys):
            at = (*path, index)
            if key not in settings.channels:
                yield unknown_entry("channel", key, settings.channels, "channels", at)
            elif key in keys[:index]:
                yield Problem("this channel is listed twice", key, "remove one entry", at)
            elif path[0] == "budget" and settings.channels[key].pubsub:
                what = "budgets notify only channels with email"
                yield Problem(what, key, "name a channel with email", at)


@file_rule("warning")
def shared_alerts(file: StackFile) -> Iterator[Problem]:
    """Warn about unused channels, and about alerts of another stack on the same jobs."""
    settings, root = file.settings, file.root
    used = {key for _, keys in _channel_lists(settings) for key in keys}
    used |= {job.messages.channel for job in settings.jobs.values() if job.messages}
    for key in (channel for channel in settings.channels if channel not in used):
        hint = "name the channel in alerts or budget, or remove the channel"
        yield Problem("no alert or budget uses this channel", key, hint, ("channels", key))
    for section in ("alerts", "budget"):
        if getattr(settings, section) is None:
            continue
        others = [
            name
            for name, project, config in other_stack_files(settings, root)
            if project == settings.project and config.get(section) and "/" not in name
        ]
        if others:
            names = ", ".join(others)
            what = f"{section} covers all of {settings.project}, and so does {section} in {names}"
            hint = f"keep {section} in one stack: each reports jobs and costs of all these stacks"
            yield Problem(what, hint=hint, path=(section,))


def _channel_lists(settings: Settings) -> Iterator[tuple[Path, list[str]]]:
    if settings.alerts:
        yield ("alerts", "channels"), settings.alerts.channels
    if settings.budget:
        yield ("budget", "channels"), settings.budget.channels
