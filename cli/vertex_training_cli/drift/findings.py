"""Finds differences in the plan of a preview with ``--refresh``.

After the refresh, the old state of a step is the cloud's, and its new inputs are declared.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import CONNECTION, ENDPOINT_TRAFFIC, NETWORK, SNAPSHOT
from vertex_training.customjob.protocol.ports import RECORD_DELETED
from vertex_training.errors import PreviewParseError
from vertex_training_cli.drift import policies
from vertex_training_cli.drift.policies import Declared, Membership
from vertex_training_cli.engine import events, values
from vertex_training_cli.engine.plan import JOBS, REPEATED_HINT, Plan, Step, explained
from vertex_training_cli.engine.values import as_mapping, redact
from vertex_training_cli.review.parts import visible

#: Text for a value that is not known before the deployment.
UNKNOWN: Final = "(known after `up`)"
#: Maximum length of a shown value. The state has the full value.
MAX_SHOWN: Final = 200
#: Kinds of differences that no deployment removes.
RUNS: Final = "runs"
GRANTED: Final = "granted"
SUBMITTED: Final = "submitted"
ADDED: Final = "added"
ENDED: Final = "ended"
DEPLOYED: Final = "deployed"
REWRITTEN: Final = "rewritten"
REPEATED: Final = "repeated"
#: Kind of a difference that no deployment removes -> predicate in the report.
BEYOND_UP: Final = {
    RUNS: "runs, but is not in the state",
    GRANTED: "has undeclared members",
    SUBMITTED: "runs as an account of the stack, but was not submitted by the stack",
    ADDED: "is in the stack's network, but is not declared",
    ENDED: "was ended by a user",
    DEPLOYED: "has an undeclared deployed model",
    REWRITTEN: "has a changed or missing manifest",
    REPEATED: "would be replaced by the same request, which `up` refuses",
}
_BY_UP: Final = {
    "create": "is declared, but does not exist",
    "delete": "exists, but is not declared",
    "update": "differs",
}
#: State of a declared job that only a user can cause -> predicate in the report.
_ENDED_BY_HAND: Final = {
    "JOB_STATE_CANCELLED": "was cancelled by hand",
    "JOB_STATE_CANCELLING": "was cancelled by hand",
    RECORD_DELETED: "lost its record, which a user deleted",
}

_PART: Final = re.compile(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[\]]+)')


class DriftOutcome(IntEnum):
    """Result of the comparison, which is also the exit code of ``vt drift``."""

    CLEAN = 0
    FAILED = 1
    """The cloud or the state could not be read."""
    DRIFTED = 7
    """The engine's exit code for unexpected changes."""


@dataclass(frozen=True, slots=True)
class PropertyDifference:
    """A property with different values. An empty text means that the property is absent."""

    path: str
    cloud: str
    declared: str


@dataclass(frozen=True, slots=True)
class ResourceDifference:
    """A resource that differs from its declaration."""

    op: str
    """Action of the next ``up``: create, update, replace, delete, adopt; or ``RUNS``."""
    name: str
    type: str
    id: str
    fields: tuple[PropertyDifference, ...] = ()
    note: str = ""
    """Notes on the difference, such as commands that resolve it."""
    is_lost: bool = False
    """True if a resource with data was deleted. A deployment recreates it without data."""
    resource: str = ""
    """Kind and name for ``drift.allowedResources``; empty if the difference cannot be allowed."""

    @property
    def summary(self) -> str:
        """Return the predicate of the resource in a report."""
        known = BEYOND_UP | _BY_UP
        return known.get(self.op, f"differs; `up` would {self.op} the resource")


@dataclass(frozen=True, slots=True)
class DeclaredNetwork:
    """A network that the stack creates."""

    path: str
    peerings: tuple[str, ...] = ()
    """Compute Engine's names of the network's peerings that the stack creates."""


@dataclass(frozen=True, slots=True)
class Drift:
    """The result of comparing one stack with the cloud."""

    stack: str
    outcome: DriftOutcome
    differences: tuple[ResourceDifference, ...] = ()
    errors: tuple[str, ...] = ()
    ids: frozenset[str] = frozenset()
    """Ids of all resources in the state."""
    declared: Declared | None = None
    """IAM members that the stack declares; None if they cannot be read."""
    never_made: tuple[str, ...] = ()
    """Names of declared resources that an unfinished deployment did not create."""
    not_looked_at: tuple[str, ...] = ()
    """Lines about parts that were not judged, such as exceptions and refused reads."""
    network: DeclaredNetwork | None = None
    deployed_by_hand: tuple[ResourceDifference, ...] = ()
    """Models that a user deployed to endpoints of the stack, including allowed models."""

    def with_differences(self, more: Sequence[ResourceDifference]) -> Drift:
        """Return a copy with differences that the engine does not report."""
        if not more:
            return self
        return replace(self, outcome=DriftOutcome.DRIFTED, differences=(*self.differences, *more))

    def without_looking_at(self, more: Sequence[str]) -> Drift:
        """Return a copy with lines about parts that the comparison does not judge."""
        return replace(self, not_looked_at=(*self.not_looked_at, *more))

    def with_undeclared(self, memberships: Sequence[Membership]) -> Drift:
        """Return a copy with undeclared members of IAM policies."""
        by_policy: dict[str, list[PropertyDifference]] = {}
        for membership in memberships:
            condition = f" if {membership.condition}" if membership.condition else ""
            added = PropertyDifference(f"{membership.role}{condition}", membership.member, "")
            by_policy.setdefault(membership.policy, []).append(added)
        return self.with_differences(
            [
                ResourceDifference(GRANTED, policy, "IAM policy", "", tuple(members))
                for policy, members in by_policy.items()
            ]
        )


def read(stack: str, exit_code: int, stdout: str, stderr: str) -> Drift:
    """Return the drift in the output of a preview."""
    succeeded = exit_code in (DriftOutcome.CLEAN, DriftOutcome.DRIFTED)
    try:
        plan = events.parse_document(stdout, stack, succeeded=succeeded)
    except PreviewParseError:
        if exit_code == 0:
            raise
        text = values.redact(stderr.strip() or stdout.strip())
        return Drift(stack, DriftOutcome.FAILED, errors=explained((text,)))
    if not plan.succeeded:
        errors = tuple(error.message for error in plan.errors) or (values.redact(stderr.strip()),)
        return Drift(stack, DriftOutcome.FAILED, errors=explained(errors))
    rows = (resource_types.find(step.type) for step in plan.steps if step.new and step.custom)
    before = {step.urn for step in plan.steps if step.old is not None}
    differences = (_difference(step, step.urn in before) for step in plan.steps if step.changes)
    return Drift(
        stack,
        DriftOutcome(exit_code),
        tuple(sorted(differences, key=lambda difference: difference.name)),
        ids=values.known_ids((step.old.id, step.old.outputs) for step in plan.steps if step.old),
        never_made=_never_made(plan),
        declared=policies.declared(plan),
        not_looked_at=tuple(sorted({row.unread for row in rows if row.unread})),
        network=_network(plan),
        deployed_by_hand=tuple(_deployed_by_hand(plan)),
    ).with_differences([*_ended_by_hand(plan), *_rewritten(plan)])


def _network(plan: Plan) -> DeclaredNetwork | None:
    kept = [(step.type, step.old) for step in plan.steps if step.old and step.new]
    path = next((old.id for type_, old in kept if type_ == NETWORK and old.id), None)
    names = {str(old.outputs.get("peering", "")) for type_, old in kept if type_ == CONNECTION}
    return DeclaredNetwork(path, tuple(sorted(names - {""}))) if path else None


def _ended_by_hand(plan: Plan) -> Iterator[ResourceDifference]:
    for step in plan.steps:
        if step.type not in JOBS or step.op != "same" or step.old is None:
            continue
        state = str(step.old.outputs.get("state"))
        if state not in _ENDED_BY_HAND:
            continue
        note = (
            f"The job {_ENDED_BY_HAND[state]}, and `up` does not submit it again. To run the job "
            "again, raise its run in the stack file. Otherwise remove the job from the stack file."
        )
        shown = (PropertyDifference("state", state.removeprefix("JOB_STATE_"), "not cancelled"),)
        yield ResourceDifference(ENDED, step.name, step.type, step.old.id, shown, note)


def _rewritten(plan: Plan) -> Iterator[ResourceDifference]:
    for step in plan.steps:
        if step.type != SNAPSHOT or step.op != "same" or step.old is None:
            continue
        state = str(step.old.outputs.get("state", ""))
        if state != "READY":
            note = (
                "The snapshot's record in the control bucket refers to manifest "
                f"{step.old.outputs.get('manifest')}. `up` refuses the snapshot, because source "
                "tables may have changed. Restore this generation of the manifest or the record, "
                "or raise the snapshot's run in the stack file."
            )
            shown = (PropertyDifference("state", state, "READY"),)
            yield ResourceDifference(REWRITTEN, step.name, step.type, step.old.id, shown, note)


def _deployed_by_hand(plan: Plan) -> Iterator[ResourceDifference]:
    """Yield models deployed by hand to the stack's endpoints, which ``up`` never removes."""
    for step in plan.steps:
        if step.type != ENDPOINT_TRAFFIC or not (step.old and step.new) or step.op == "refresh":
            continue
        place = as_mapping(step.new.inputs.get("endpoint"))
        others = step.old.outputs.get("others")
        for id_ in map(str, others if isinstance(others, list) else ()):
            resource = f"deployedModels/{id_}"
            note = (
                "The model may answer requests, and `up` does not remove it. To undeploy it, run "
                f"`gcloud ai endpoints undeploy-model {place.get('id')} --region "
                f"{place.get('region')} --deployed-model-id {id_}`. To keep it, list `{resource}` "
                "with a reason under `drift.allowedResources`."
            )
            name, type_ = str(place.get("key") or step.name), step.type
            yield ResourceDifference(DEPLOYED, name, type_, id_, (), note, resource=resource)


def _never_made(plan: Plan) -> tuple[str, ...]:
    """Return the names of declared resources that are in no state, although the stack was deployed.

    A resource that was deleted in the cloud has a refresh step before its creation.
    """
    before = {step.urn for step in plan.steps if step.old is not None}
    if not before:
        return ()
    created = (step for step in plan.steps if step.op == "create" and step.custom)
    return tuple(sorted(step.name for step in created if step.urn not in before))


def _difference(step: Step, existed: bool) -> ResourceDifference:
    cloud = step.old.outputs if step.old else {}
    declared = step.new.inputs if step.new else {}
    paths = step.paths
    if not paths and step.op in ("update", "replace"):
        # A dynamic resource has no paths: compare its inputs.
        cloud = step.old.inputs if step.old else {}
        if step.old and step.type == ENDPOINT_TRAFFIC:
            # A refresh writes the actual state into these outputs.
            cloud = {**cloud, **{key: step.old.outputs.get(key) for key in ("deployed", "split")}}
        keys = {*cloud, *declared}
        paths = tuple(f'["{key}"]' for key in keys if cloud.get(key) != declared.get(key))
    fields = tuple(
        PropertyDifference(
            str(_path_parts(path)[0]) if len(_path_parts(path)) == 1 else path,
            _text_at(cloud, path),
            _text_at(declared, path),
        )
        for path in sorted(paths)
    )
    state = step.old or step.new
    row, id_ = resource_types.find(step.type), state.id if state else ""
    is_lost = step.op == "create" and existed and bool(row.holds) and not row.copy
    note = row.restoration(declared) if is_lost else ""
    op = "adopt" if step.adopts_again() else step.op
    if step.repeats_request and op != "adopt":
        op, note = REPEATED, f"{REPEATED_HINT[0].upper()}{REPEATED_HINT[1:]}."
    return ResourceDifference(op, step.name, step.type, id_, fields, note, is_lost)


def _path_parts(path: str) -> list[str | int]:
    """Return keys and indices of a path: ``rules[0]["a.b"]`` has ``rules``, 0 and ``a.b``."""
    return [
        json.loads(f'"{quoted}"') if quoted else int(index) if index else plain
        for quoted, index, plain in _PART.findall(path)
    ]


def _text_at(value: Any, path: str) -> str:
    for part in _path_parts(path):
        if value == values.SECRET:
            return values.SECRET
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return ""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    text = " ".join(text.split()).replace(values.UNKNOWN, UNKNOWN)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


#: Version of the JSON format. It increases when a key changes its meaning or is removed.
VERSION: Final = 2
#: Maximum length of an issue or a comment on GitHub.
MAX_TEXT: Final = 65_536
#: Characters reserved for the text after the differences.
ROOM: Final = 4_096

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]()#+!|<>~@&:])")


def title(stack: str) -> str:
    """Return the title of the issue about a stack's drift."""
    return f"Drift in {stack}"


def markdown(drift: Drift) -> str:
    """Return the report, cut to GitHub's maximum length."""
    if drift.outcome is DriftOutcome.CLEAN:
        return f"Stack **{_text(drift.stack)}** has no drift.\n{_not_checked(drift)}"
    if drift.outcome is DriftOutcome.FAILED:
        quoted = "\n".join(
            f"> {_text(line)}" for error in drift.errors for line in error.splitlines() or [""]
        )
        return f"Stack **{_text(drift.stack)}** was not compared with the cloud:\n\n{quoted}\n"
    count = len(drift.differences)
    what = "1 resource differs" if count == 1 else f"{count} resources differ"
    text = f"In stack **{_text(drift.stack)}**, {what} from the declaration.\n"
    if drift.never_made:
        names = ", ".join(_text(name) for name in drift.never_made[:20])
        text += (
            f"\n**A deployment did not finish.** {len(drift.never_made)} declared resources were "
            f"never created: {names}. Deploy again: `make deploy STACK={drift.stack}`.\n"
        )
    for number, difference in enumerate(drift.differences):
        part = _difference_line(difference)
        if len(text) + len(part) > MAX_TEXT - ROOM:
            rest = count - number
            text += f"\nThe workflow's log lists {rest} more differences.\n"
            break
        text += part
    if any(difference.op == GRANTED for difference in drift.differences):
        text += (
            "\nDeployments do not remove undeclared members. Remove each with `gcloud` "
            "(`remove-iam-policy-binding`). To keep a member, declare it, or list it with a "
            "reason under `drift.allowed`.\n"
        )
    by_engine = any(difference.op not in BEYOND_UP for difference in drift.differences)
    is_lost = any(difference.is_lost for difference in drift.differences)
    text += _remediation(drift.stack, is_lost) if by_engine else ""
    return text + _not_checked(drift)


def _not_checked(drift: Drift) -> str:
    if not drift.not_looked_at:
        return ""
    lines, size = list[str](), 0
    for number, line in enumerate(drift.not_looked_at):
        size += len(part := f"- {_text(line)}\n")
        if size > ROOM // 2:
            rest = len(drift.not_looked_at) - number
            lines.append(f"- {rest} more lines in the JSON of this report\n")
            break
        lines.append(part)
    count = len(drift.not_looked_at)
    head = f"\n<details><summary>Not checked: {count}</summary>\n\n"
    return head + "".join(lines) + "\n</details>\n"


def _difference_line(difference: ResourceDifference) -> str:
    text = f"\n### {_text(difference.name)} {difference.summary}\n\n{_text(difference.type)}"
    text += f", {_text(difference.id)}\n" if difference.id else "\n"
    if difference.fields:
        text += "\n| property | in the cloud | declared |\n|---|---|---|\n"
        for field in difference.fields:
            cells = (field.path, field.cloud, field.declared)
            text += "| " + " | ".join(_text(cell) or "(none)" for cell in cells) + " |\n"
    return text + (f"\n{_text(difference.note)}\n" if difference.note else "")


def _remediation(stack: str, is_lost: bool) -> str:
    if is_lost:
        return (
            "\n**Restore deleted resources first**, by the steps above: a deployment with "
            "*refresh* recreates them without data, and then their data cannot be restored under "
            f"the same name (docs/operations.md). Then compare again: `make drift STACK={stack}`.\n"
        )
    preview = f"make preview STACK={stack} REFRESH=1"
    return (
        f"\nTo undo manual changes, review the plan that `{preview}` prints. Then run the workflow "
        "*deploy* by hand: enter the digest of that plan's report, and select *refresh*. To keep a "
        "change, declare it in a pull request.\n"
    )


def _text(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", visible(redact(text))).replace("\\@", "@\u200b")


def as_json(drift: Drift) -> str:
    """Return the report as JSON."""
    document = dataclasses.asdict(drift) | {"outcome": drift.outcome.name.lower()}
    del document["ids"], document["declared"], document["network"], document["deployed_by_hand"]
    return json.dumps({"version": VERSION, **redact(document)}, indent=2, ensure_ascii=False) + "\n"
