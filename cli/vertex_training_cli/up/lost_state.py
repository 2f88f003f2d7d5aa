"""After a state was lost: what a stack declares and the cloud has, taken over by ``pulumi import``.

The preview says what would be created, and the catalogue by which id each would be imported. The
plugin is asked which of them are there: an import that is only previewed reads each. APIs, rights
and objects are not imported: to make one that is there changes nothing. Jobs are adopted by ``up``.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from vertex_training import stack as stacks
from vertex_training.catalog import resource_types
from vertex_training.errors import CommandError, ConfigError, OperatorError, UnknownStackError
from vertex_training.naming import CONTROL
from vertex_training.settings.model import Settings
from vertex_training_cli.drift import rest
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.engine.values import WIRE_UNKNOWN, redact
from vertex_training_cli.jobs.objects import Objects

Log = Callable[[str], None]
#: Options of both imports: nothing is protected that the program does not protect, and no code.
_PLAIN: Final = ("--protect=false", "--generate-code=false")
#: A resource of the engine's import file, or one of its components.
Entry = dict[str, Any]


def refuse_if_lost(stack: StackRef) -> None:
    """Refuse to make a stack whose state is empty, and whose control bucket or an account is there.

    None of them is there before the first ``up``. A stack whose files cannot be read, and a cloud
    that cannot be asked, are left to ``pulumi``.

    Raises:
        CommandError: one of them is there.
    """
    try:
        settings = stacks.load(stack.root, stack.stack).settings
        stack.connect_clients()
    except (CommandError, ConfigError, OperatorError, UnknownStackError, OSError):
        return
    if found := next(_traces(stack, settings), None):
        raise CommandError(
            f"the state of {stack.stack} is empty, and its {found} is there: the state was lost, "
            "or this is not its backend or not its `name` in Pulumi.yaml. Nothing was changed.",
            f"`vt import --state --stack {stack.stack}` shows what else is there.",
        )


def _traces(stack: StackRef, settings: Settings) -> Iterator[str]:
    """What is there of that: one question each, and what has no answer counts as not there."""
    names, control = settings.names, settings.names.bucket(CONTROL)
    with suppress(CommandError, OperatorError):
        if Objects(stack.project).has_bucket(control, settings.project_number):
            yield f"bucket gs://{control}"
    with suppress(CommandError, OperatorError):
        client = rest.connect(stack)
        for key in [key for key, each in settings.service_accounts.items() if not each.existing]:
            name = names.account(key)
            if client.get(f"https://iam.googleapis.com/v1/{name}", name):
                yield f"account {names.account_email(key)}"


def take_over(stack: StackRef, pulumi: PulumiCli, log: Log, *, write: bool) -> int:
    """Import what is there and not in the state; without ``write``, log what would be.

    Imports in rounds: the id of one resource may be known only when another one was imported.
    Returns the exit code of ``pulumi import``.

    Raises:
        CommandError: the preview failed.
    """
    engine = _Import(stack.stack, pulumi)
    while found := engine.find():
        for entry in found:
            if "id" in entry:
                log(f"{entry['name']} is there: {entry['id']}")
        if not write:
            log(f"nothing was imported: `vt import --state --stack {stack.stack} --write` does it")
            return 0
        if code := engine.run(found):
            return code
    log(f"the state of {stack.stack} has all that is declared and there, but for rights and jobs")
    log(f"next: `vt review --stack {stack.stack}`, then `vt up`: it adopts the jobs")
    return 0


@dataclass(frozen=True, slots=True)
class _Import:
    """``pulumi import`` of one stack, by files."""

    stack: str
    pulumi: PulumiCli
    parents: dict[str, str] = field(default_factory=dict)
    """Names of components that the state has -> their URNs; of the last preview."""

    def find(self) -> list[Entry]:
        """Entries of what is declared, not in the state, and there; with their components."""
        entries = self._declared()
        while any("id" in entry for entry in entries):
            missing = self._missing(entries)
            if not missing:
                return entries
            entries = [each for each in entries if each["name"] not in missing]
        return []

    def run(self, entries: Sequence[Entry]) -> int:
        """The exit code of the import."""
        with self._arguments(entries) as arguments:
            return self.pulumi.run_in_foreground(*arguments, "--yes", "--skip-preview")

    def _declared(self) -> list[Entry]:
        """What a preview creates, each with the id by which it would be imported."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "declared.json"
            options = ["--json", "--import-file", str(file)]
            steps = self.pulumi.read_json("preview", "--stack", self.stack, *options)["steps"]
            declared: list[Entry] = json.loads(file.read_text(encoding="utf-8"))["resources"]
        own = {entry["name"] for entry in declared if entry.get("component")}
        urns = {parent for each in steps if (parent := each.get("newState", {}).get("parent"))}
        self.parents.clear()
        self.parents.update({_name(urn): urn for urn in urns if _name(urn) not in own})
        made = [step["newState"] for step in steps if step.get("op") == "create"]
        ids = {(each["type"], _name(each["urn"])): _id_to_import(each) for each in made}
        found: list[Entry] = []
        for entry in declared:
            if entry.get("component"):
                found.append(entry)
            elif id_ := ids.get((entry["type"], entry.get("logicalName") or entry["name"])):
                found.append({**entry, "id": id_})
        return found

    def _missing(self, entries: Sequence[Entry]) -> set[str]:
        """Names of those that are not there, or cannot be read: some of them, or none is left."""
        with self._arguments(entries) as arguments:
            done = self.pulumi.capture(*arguments, "--preview-only", "--json")
        if done.returncode == 0:
            return set()
        try:
            told = json.loads(done.stdout).get("diagnostics") or []
        except ValueError:
            text = redact(done.stderr.strip() or done.stdout.strip())
            raise CommandError(f"`pulumi import` failed: {text}") from None
        errors = [each for each in told if each.get("severity") == "error"]
        names = {_name(each["urn"]) for each in errors if each.get("urn")}
        if not names:
            raise CommandError("; ".join(each["message"].strip() for each in errors))
        return names

    @contextmanager
    def _arguments(self, entries: Sequence[Entry]) -> Iterator[list[str]]:
        """Words of ``pulumi import`` with a file of these entries."""
        content = {"nameTable": self.parents, "resources": list(entries)}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "import.json"
            file.write_text(json.dumps(content), encoding="utf-8")
            yield ["import", "--stack", self.stack, "--file", str(file), *_PLAIN]


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]


def _id_to_import(state: Mapping[str, Any]) -> str:
    inputs = state.get("inputs") or {}
    known = {key: value for key, value in inputs.items() if value != WIRE_UNKNOWN}
    return resource_types.find(state["type"]).id_to_import(known)
