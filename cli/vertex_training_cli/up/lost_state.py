"""Recovery of a lost state: ``pulumi import`` of declared resources that exist.

A preview lists the missing resources, ``resource_types.yaml`` the recovery of each type. A preview
of the import then shows which of these resources exist.
"""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from vertex_training import stack as stacks
from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import Recovery, ResourceType
from vertex_training.customjob.refusal_lookup import COMPARES
from vertex_training.errors import CommandError, ConfigError, OperatorError, UnknownStackError
from vertex_training.naming import CONTROL
from vertex_training.settings.model import Settings
from vertex_training_cli import rest
from vertex_training_cli.console import plain
from vertex_training_cli.engine.pulumi_cli import PulumiCli, error_diagnostics
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.engine.values import WIRE_UNKNOWN, redact
from vertex_training_cli.jobs.objects import Objects

Log = Callable[[str], None]
#: Options of `pulumi import`: set no protection, and generate no code.
_PLAIN: Final = ("--protect=false", "--generate-code=false")
#: A resource in the engine's import file, or one of its parent components.
Entry = dict[str, Any]
#: End of the engine's message about the import of a missing resource.
_ABSENT: Final = "does not exist"
#: The last segment of a name that a service chose.
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
#: Texts about resources that are not imported, by their recovery.
_LEFT: Final[Mapping[Recovery, str]] = {
    "imported": "missing in the cloud; `vt up` will create these resources",
    "adopted": "`vt up` will adopt these resources if they exist in the cloud",
    "repeated": "`vt up` will create these resources; existing ones stay unchanged",
    "restarted": "`vt up` will restart these schedules, without jobs for earlier start times",
    "unsought": "not searched for; `vt up` will create duplicates or fail if these exist",
}


def refuse_if_lost(stack: StackRef) -> None:
    """Refuse to deploy a stack with an empty state whose control bucket or account exists."""
    try:
        settings = stacks.load(stack.root, stack.stack).settings
        stack.connect_clients()
    except (CommandError, ConfigError, OperatorError, UnknownStackError, OSError):
        return
    if trace := next(_traces(stack, settings), None):
        raise CommandError(
            f"the state of stack {stack.stack} is empty, but the stack's {trace} exists. Either "
            "the state was lost, or the backend or the `name` in Pulumi.yaml is wrong. "
            "Nothing was changed.",
            f"run `vt import --state --stack {stack.stack}` to list existing resources.",
        )


def _traces(stack: StackRef, settings: Settings) -> Iterator[str]:
    names, control = settings.names, settings.names.bucket(CONTROL)
    with suppress(CommandError, OperatorError):
        if Objects(stack.project).has_bucket(control, settings.project_number):
            yield f"bucket gs://{control}"
    with suppress(CommandError, OperatorError):
        client = rest.connect(stack)
        for key, account in settings.service_accounts.items():
            name = names.account(key)
            if not account.existing and client.call("GET", rest.ACCOUNT.url(name), name):
                yield f"account {names.account_email(key)}"


def take_over(stack: StackRef, pulumi: PulumiCli, log: Log, *, write: bool) -> int:
    """Import existing resources that the state lacks; without ``write``, only log them.

    Return the exit code of ``pulumi import``. Imports repeat, because the id of a resource may
    depend on an imported resource.
    """
    engine = _Import(stack.stack, pulumi, pulumi.with_variables(**{COMPARES: "1"}), _Lists(stack))
    imported: list[str] = []
    while entries := engine.find():
        names = [item["name"] for item in entries if "id" in item]
        for entry in entries:
            if "id" in entry:
                log(f"{entry['name']} exists: {entry['id']}")
        if not write:
            break
        if code := engine.run(entries):
            return code
        imported += names
    done = f"imported: {len(imported)} ({_joined(imported)})"
    log(done if imported else "no resource was imported")
    for line in engine.left():
        log(line)
    log("resources that the stack's files do not declare were not searched for")
    if entries:
        log(f"to import the existing resources: `vt import --state --stack {stack.stack} --write`")
    else:
        log(f"next: run `vt review --stack {stack.stack}`, then `vt up --stack {stack.stack}`")
    return 0


@dataclass
class _Declared:
    type: str
    name: str
    inputs: Mapping[str, Any]
    parent: str = ""
    """URN of the parent component."""
    id: str = ""
    """Id for the import; empty if the resource cannot be imported or does not exist."""
    doubt: str = ""
    """Reason why it is unknown whether the resource exists."""

    @property
    def row(self) -> ResourceType:
        return resource_types.find(self.type)


@dataclass(frozen=True, slots=True)
class _Lists:
    """Lists of services that choose the ids of resources. Each list is read once."""

    stack: StackRef
    read: dict[str, list[dict[str, Any]] | CommandError] = field(default_factory=dict)

    def find(self, resource: _Declared, held: set[str]) -> None:
        """Set the id of the only item that matches the resource, else the reason for the doubt."""
        url = resource.row.list_address(resource.inputs)
        if not url:
            resource.doubt = "the resource's inputs do not identify an item of a list"
            return
        if url not in self.read:
            try:
                self.read[url] = list(self._read(url))
            except CommandError as error:
                self.read[url] = error
        items = self.read[url]
        if isinstance(items, CommandError):
            resource.doubt = plain(redact(str(items))).rstrip(".")
            return
        names = ((plain(str(item.get("name") or "")), item) for item in items)
        # Ids in the state belong to other resources.
        items_by_name = {name: item for name, item in names if _last(name) not in held}
        row, inputs = resource.row, resource.inputs
        same = [name for name, item in items_by_name.items() if row.is_same(item, inputs)]
        alike = [name for name, item in items_by_name.items() if row.is_alike(item, inputs)]
        if len(same) > 1:
            resource.doubt = f"{len(same)} resources match: {_joined(same)}"
        elif same and _ID.fullmatch(_last(same[0])):
            resource.id = row.id_to_import({**inputs, "id": _last(same[0])})
        elif same:
            resource.doubt = f"{same[0]} matches, but its name does not end with an id"
        elif alike:
            resource.doubt = f"{_joined(alike)} has the same name, but belongs to another stack"

    def _read(self, url: str) -> Iterator[dict[str, Any]]:
        client, collection = rest.connect(self.stack), url.partition("?")[0].rpartition("/")[2]

        def get(page: str) -> dict[str, Any]:
            # A missing list is an error, not an empty list.
            return client.call("GET", page, collection, missing_ok=False) or {}

        for page in rest.pages(url, collection, get):
            items = page.get(collection, [])
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                raise CommandError(f"cannot read {collection}: the answer is not a list.")
            yield from items


@dataclass(slots=True)
class _Import:
    stack: str
    pulumi: PulumiCli
    asks_nothing: PulumiCli
    """Runs previews that accept failed jobs and missing resources."""
    lists: _Lists
    parents: dict[str, str] = field(default_factory=dict)
    """URNs of parents that are not in the import file, by name."""
    declared: dict[tuple[str, str], _Declared] = field(default_factory=dict)
    """Resources that the last preview creates, by type and name."""

    def find(self) -> list[Entry]:
        """Return import entries for existing declared resources that the state lacks."""
        entries = self._declared()
        while any("id" in entry for entry in entries):
            missing = self._missing(entries)
            if not missing:
                return entries
            for entry in entries:
                if "id" in entry and entry["name"] in missing:
                    left = self.declared[entry["type"], _logical(entry)]
                    message = missing[entry["name"]]
                    left.id, left.doubt = "", "" if _ABSENT in message else plain(redact(message))
            entries = [remaining for remaining in entries if remaining["name"] not in missing]
        return []

    def run(self, entries: Sequence[Entry]) -> int:
        with self._arguments(entries) as arguments:
            return self.pulumi.run_in_foreground(*arguments, "--yes", "--skip-preview")

    def left(self) -> Iterator[str]:
        """Yield lines about resources that were not imported and that ``up`` would create."""
        left = [declared for declared in self.declared.values() if not declared.id]
        certain: dict[Recovery, list[_Declared]] = {}
        for resource in left:
            if resource.doubt:
                # Without its parent, the import would create another resource in the state.
                urn, options = resource.parent, [*_PLAIN, "--stack", self.stack]
                if urn and "::pulumi:pulumi:Stack::" not in urn:
                    options.append(f"--parent={_name(urn)}={urn}")
                words = ["pulumi", "import", resource.type, resource.name, "ID", *options]
                command = f"To import {resource.name} by its id: `{shlex.join(words)}`"
                yield f"not imported: {resource.name}: {resource.doubt}. {command}"
            else:
                certain.setdefault(resource.row.recovery, []).append(resource)
        for recovery, text in _LEFT.items():
            if recovered := certain.get(recovery):
                types = Counter(entry.type.rpartition(":")[2] for entry in recovered)
                counts = [f"{count} {type_}" for type_, count in sorted(types.items())]
                names = counts if recovery == "repeated" else [entry.name for entry in recovered]
                yield f"{text}: {_joined(names)}"
        done = self.pulumi.capture("preview", "--stack", self.stack, "--json")
        if done.returncode:
            for error in error_diagnostics(done.stdout):
                yield f"`vt up` refuses: {plain(redact(error['message'].strip()))}"

    def _declared(self) -> list[Entry]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "declared.json"
            options = ["--json", "--import-file", str(file)]
            command = ("preview", "--stack", self.stack, *options)
            steps = self.asks_nothing.read_json(*command)["steps"]
            # The key `resources` is missing if the preview creates no resource.
            declared = json.loads(file.read_text(encoding="utf-8")).get("resources") or []
        own = {entry["name"] for entry in declared if entry.get("component")}
        urns = {parent for step in steps if (parent := step.get("newState", {}).get("parent"))}
        self.parents = {_name(urn): urn for urn in urns if _name(urn) not in own}
        self.declared = {(created.type, created.name): created for created in self._created(steps)}
        entries: list[Entry] = []
        for entry in declared:
            created = self.declared.get((entry["type"], _logical(entry)))
            if entry.get("component"):
                entries.append(entry)
            elif created and created.id:
                entries.append({**entry, "id": created.id})
        return entries

    def _created(self, steps: Sequence[Mapping[str, Any]]) -> list[_Declared]:
        held = {
            (state["type"], _last(state["id"]))
            for step in steps
            if (state := step.get("oldState") or {}).get("id")
        }
        states = [step["newState"] for step in steps if step.get("op") == "create"]
        created = [
            _Declared(
                new["type"],
                _name(new["urn"]),
                {k: v for k, v in (new.get("inputs") or {}).items() if v != WIRE_UNKNOWN},
                new.get("parent") or "",
            )
            for new in states
            if new.get("custom", True) and not new["type"].startswith("pulumi:")
        ]
        for resource in created:
            if resource.row.listed_at:
                self.lists.find(resource, {id_ for type_, id_ in held if type_ == resource.type})
            elif resource.row.recovery == "imported":
                resource.id = resource.row.id_to_import(resource.inputs)
                if not resource.id:
                    resource.doubt = "the resource's id depends on resources that are not imported"
        taken = Counter((entry.type, entry.id) for entry in created if entry.id)
        for resource in created:
            if (uses := taken[resource.type, resource.id]) > 1:
                resource.doubt = f"id {resource.id} is declared {uses} times"
                resource.id = ""
        return created

    def _missing(self, entries: Sequence[Entry]) -> dict[str, str]:
        """Return missing or unreadable resources, each with the engine's reason."""
        with self._arguments(entries) as arguments:
            done = self.pulumi.capture(*arguments, "--preview-only", "--json")
        if done.returncode == 0:
            return {}
        errors = error_diagnostics(done.stdout)
        if not errors:
            text = redact(done.stderr.strip() or done.stdout.strip())
            raise CommandError(f"`pulumi import` failed: {text}")
        messages = [(error.get("urn"), error["message"].strip()) for error in errors]
        reasons = {_name(urn): message for urn, message in messages if urn}
        if not reasons:
            raise CommandError("; ".join(redact(message) for _, message in messages))
        return reasons

    @contextmanager
    def _arguments(self, entries: Sequence[Entry]) -> Iterator[list[str]]:
        content = {"nameTable": self.parents, "resources": list(entries)}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "import.json"
            file.write_text(json.dumps(content), encoding="utf-8")
            yield ["import", "--stack", self.stack, "--file", str(file), *_PLAIN]


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _logical(entry: Entry) -> str:  # The engine renames the second of two equal names.
    return entry.get("logicalName") or entry["name"]


def _joined(names: Iterable[str]) -> str:
    return ", ".join(names)
