"""Stacks as data: what the product reports and registers for a stack file and its checkout.

An entry of ``tests/corpus/stacks/*.yaml`` has what is ``given`` beside ``stacks.BASE``, the
``files`` of the checkout, and ``expected``. An entry without ``given`` is read from its file
``Pulumi.prod.yaml``, as commands do. ``shows`` names what is expected beside reports: ``settings``,
``references``, ``packages``, or ``resources``: the difference from a stack with only ``BASE`` and
the entry's ``USUAL`` sections. A file is its text, a text of ``texts.yaml`` (``{like: NAME, more:
TEXT}``), a link, ``bytes`` spaces, ``copies`` of a small file, a ``folder``, or bytes in ``hex``. A
checkout with a stack file and without Pulumi.yaml has ``PROJECT``.
"""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pulumi
import pytest
import yaml
from google.protobuf.json_format import MessageToDict
from pulumi.runtime.mocks import MockMonitor

from tests.unit.infra.recorder import Recorder
from tests.unit.infra.stacks import BASE
from vertex_training import program, stack
from vertex_training.customjob.request.message import UnknownValue
from vertex_training.errors import ConfigError, Problem, UnknownStackError

FOLDER: Final = Path(__file__).parents[2] / "corpus" / "stacks"
#: Parts of an entry that have one row a name.
BY_NAME: Final = ("given", "files", "settings", "references", "packages", "registered")
PROJECT: Final = "name: vertex-training\nruntime: python\n"
STACK_FILE: Final = "Pulumi.prod.yaml"
#: Sections of most entries. ``resources`` omits what these sections alone register.
USUAL: Final[Mapping[str, Any]] = {
    "buckets": {"out": {}},
    "serviceAccounts": {"trainer": {"writes": ["out"]}},
    "deployers": ["serviceAccount:ci-deploy-prod@acme-ml-prod.iam.gserviceaccount.com"],
}
#: Type of the root of all resources. A process has one, named after the stack of its first test.
ROOT: Final = "pulumi:pulumi:Stack::"
#: Inputs that no reader of a stack cares for.
INTERNAL: Final = ("__provider", "__defaults", "__internal")


TEXTS: Final[Mapping[str, str]] = yaml.safe_load((FOLDER / "texts.yaml").read_text("utf-8"))


def write(root: Path, files: Mapping[str, Any]) -> None:
    """Write the files of an entry."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        match content:
            case {"link": target}:
                path.symlink_to(target)
            case {"bytes": count}:
                path.write_bytes(b" " * count)
            case {"hex": text}:
                path.write_bytes(bytes.fromhex(text))
            case {"copies": count}:
                write(path, {f"{number}.txt": "x" for number in range(count)})
            case {"folder": _}:
                path.mkdir(exist_ok=True)
            case {"like": name_of_text, **more}:
                path.write_text(TEXTS[name_of_text] + more.get("more", ""), encoding="utf-8")
            case _:
                path.write_text(content, encoding="utf-8", newline="")


def observe(entry: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Return what the product reports of an entry, and what else it shows, as plain data."""
    found = json.dumps(_observe(entry, root), default=str)
    return json.loads(found.replace(str(root), "ROOT"))


def _observe(entry: Mapping[str, Any], root: Path) -> dict[str, Any]:
    files = entry.get("files", {})
    write(root, {"Pulumi.yaml": PROJECT} | files if STACK_FILE in files else files)
    try:
        loaded = _load(entry, root)
        results = loaded.check_jobs()
        found = {
            "jobs": [problem for result in results.values() for problem in _of_file(result)],
            "limits": loaded.exceeded_limits(results),
            "deployment": loaded.deployment_warnings(),
        }
        requests = {key: each.request for key, each in results.items() if each.request}
        found["warnings"] = loaded.warnings(requests)
        reports = {name: lines(problems) for name, problems in found.items() if problems}
        given = entry.get("given", {})
        return reports | {name: SHOWN[name](loaded, given) for name in entry.get("shows", ())}
    except ConfigError as refused:
        return {"problems": lines(refused.problems)}
    except UnknownStackError as refused:
        return {"problems": [str(refused)]}
    except OSError as error:
        return {"problems": [f"{type(error).__name__}: {error.filename}"]}


def _load(entry: Mapping[str, Any], root: Path) -> stack.Stack:
    if STACK_FILE in entry.get("files", {}) and "given" not in entry:
        return stack.load(root, entry.get("stack", "prod"))
    return stack.from_raw(BASE | entry.get("given", {}), root)


def _of_file(result: Any) -> Iterator[Problem]:
    yield from (*result.errors, *result.warnings, *result.ignored)


def lines(problems: Iterable[Problem]) -> list[str]:
    """One line a problem, without the name of the stack's file and our namespace."""
    found = []
    for problem in problems:
        text = str(problem).removeprefix("Pulumi.prod.yaml: ").removeprefix("vertex-training:")
        rule = f" [{problem.rule}]" if problem.rule else ""
        found.append(("" if problem.level != "note" else "note: ") + text + rule)
    return found


class Monitor(MockMonitor):
    """An engine that records each registration with its parent, dependencies and options."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.recorder = recorder
        self.requests: dict[str, Any] = {}
        self.ended: dict[str, Any] = {}

    def RegisterResource(self, request: Any) -> Any:
        self.requests[request.name] = request
        return super().RegisterResource(request)

    def RegisterResourceOutputs(self, request: Any) -> Any:
        self.ended[request.urn.rpartition("::")[2]] = MessageToDict(request.outputs)
        return super().RegisterResourceOutputs(request)

    def registered(self) -> dict[str, dict[str, Any]]:
        """Type, place, inputs and options of each resource, by name."""
        found = {}
        for name, (type_, inputs) in sorted(self.recorder.registered.items()):
            request = self.requests[name]
            row = {
                "type": type_,
                "parent": "" if ROOT in request.parent else request.parent.rpartition("::")[2],
                "inputs": readable(inputs),
                "outputs": readable(self.ended.get(name)),
                "waits": sorted({urn.rpartition("::")[2] for urn in request.dependencies}),
                "protect": request.protect,
                "retain": request.retainOnDelete,
                "ignores": list(request.ignoreChanges),
                "aliases": [each.spec.name or each.urn for each in request.aliases],
            }
            found[name] = {key: value for key, value in row.items() if value}
        return found


def readable(value: Any) -> Any:
    """Inputs as plain data: JSON in a text is parsed, and a file is its name."""
    if isinstance(value, pulumi.FileAsset | pulumi.FileArchive):
        return f"file {Path(value.path).name}"
    if isinstance(value, Mapping):
        return {str(k): readable(v) for k, v in sorted(value.items()) if k not in INTERNAL}
    if isinstance(value, list | tuple):
        return [readable(each) for each in value]
    if isinstance(value, UnknownValue):
        return f"unknown: {value.hint}"
    if isinstance(value, str) and value.startswith("{") and value.endswith("}"):
        try:
            return readable(json.loads(value))
        except ValueError:
            return value
    return value


def deployed(loaded: stack.Stack) -> dict[str, Any]:
    """Return the registered resources, the outputs and the log of a deployment of a stack."""
    monitor, said, exported = Monitor(Recorder()), [], {}
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(monitor.recorder, "vertex-training", "prod", monitor=monitor)
    with pytest.MonkeyPatch.context() as patch:
        for level in ("info", "warn"):
            patch.setattr(pulumi.log, level, lambda text, *_, **__: said.append(str(text)))

        @pulumi.runtime.test
        def run() -> pulumi.Output[None]:
            environment = program.deploy(loaded)
            outputs = program.outputs(loaded, environment, program.read_jobs(loaded))
            return pulumi.Output.from_input(outputs).apply(exported.update)

        run()
    texts = sorted({text.removeprefix("Pulumi.prod.yaml: vertex-training:") for text in said})
    logs = [line for text in texts for line in text.splitlines() if line]
    return {"resources": monitor.registered(), "outputs": readable(exported), "logs": logs}


@cache
def _usual(*keys: str) -> dict[str, Any]:
    sections = {key: USUAL[key] for key in keys}
    return deployed(stack.from_raw(BASE | sections, Path("/nonexistent")))


def _resources(loaded: stack.Stack, given: Mapping[str, Any]) -> dict[str, Any]:
    usual = [key for key, value in USUAL.items() if given.get(key) == value]
    return differences(_usual(*usual), deployed(loaded))


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is new or other after, by dotted names; what is gone is None."""
    found: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            if changed := differences(old, value):
                found[name] = changed
        elif isinstance(old, list) and isinstance(value, list) and old:
            if added := [each for each in value if each not in old]:
                found[f"{name} +"] = added
            if gone := [each for each in old if each not in value]:
                found[f"{name} -"] = gone
        elif name not in before or value != old:
            found[name] = value
    return found


def _settings(loaded: stack.Stack, given: Mapping[str, Any]) -> Any:
    return _said(loaded.settings.model_dump(by_alias=True, mode="json"))


def _said(value: Any) -> Any:
    """Settings without what is absent or empty."""
    if isinstance(value, Mapping):
        found = {key: _said(item) for key, item in value.items()}
        return {key: item for key, item in found.items() if item not in (None, "", [], {})}
    return [_said(item) for item in value] if isinstance(value, list) else value


def _packages(loaded: stack.Stack, given: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for key, package in loaded.packages.items():
        with tarfile.open(fileobj=io.BytesIO(package.content)) as archive:
            names = sorted(archive.getnames())
            setup = next(name for name in names if name.endswith("/setup.py"))
            file = archive.extractfile(setup)
            assert file is not None
            text = file.read().decode()
        row = {"file": package.file, "modules": sorted(package.modules), "members": names}
        found[key] = row | {"setup": text}
    return found


SHOWN: Final = {
    "settings": _settings,
    "references": lambda loaded, given: readable(loaded.references),
    "packages": _packages,
    "resources": _resources,
}


class _Flow(dict[str, Any]):
    """A mapping that is written in one line, if it fits."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    _Flow, lambda dumper, value: dumper.represent_mapping("tag:yaml.org,2002:map", value, True)
)
_Dumper.add_representer(
    tuple, lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value, True)
)


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)


def dump(entries: Iterable[Mapping[str, Any]]) -> str:
    """Return the entries as the corpus has them: sections and resources are short flow mappings."""
    shaped = [{key: _shaped(key, value) for key, value in entry.items()} for entry in entries]
    return yaml.dump(shaped, Dumper=_Dumper, sort_keys=False, width=118, allow_unicode=True)


def _shaped(key: str, value: Any) -> Any:
    if key == "expected" and isinstance(value, Mapping):
        return {name: _shaped(name, each) for name, each in value.items()} or _Flow()
    if key == "resources" and isinstance(value, Mapping):
        return {name: _shaped("given", each) for name, each in value.items()}
    if key in ("given", "files", "settings", "references", "packages", "registered") and isinstance(
        value, Mapping
    ):
        return {name: _flow(each) for name, each in value.items()} or _Flow()
    if key in ("problems", "jobs", "limits", "deployment", "warnings", "logs"):
        return value
    return _flow(value)


def _flow(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _Flow({key: _flow(each) for key, each in value.items()})
    return tuple(_flow(each) for each in value) if isinstance(value, list) else value
