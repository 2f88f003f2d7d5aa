"""A plan: the engine's step for each resource, diagnostics, and policy violations.

Explains errors of refused reads: the object does not exist, or a permission is missing. Google
answers 403 without a permission, even if the object does not exist. The patterns match the texts of
the gcp plugin and of Vertex AI's client.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import Field

from vertex_training.catalog.resource_types import JOB, SCHEDULE, TUNING_JOB
from vertex_training.customjob.protocol.ports import LADDER, RECORD_DELETED, SUCCEEDED
from vertex_training.customjob.protocol.submission import is_usable
from vertex_training_cli.engine.values import as_mapping, redact

#: Operations of a part of a replacement. The engine also sends a step for the whole replacement.
PARTS: Final = ("create-replacement", "delete-replaced")
#: Operations that change nothing in the cloud.
UNCHANGED: Final = ("same", "read", "refresh", "discard")
#: Types that are no cloud resources.
PROVIDER: Final = "pulumi:providers:"
STACK: Final = "pulumi:pulumi:Stack"
JOBS: Final = frozenset({JOB, TUNING_JOB})
#: Types of resources whose inputs contain a job's request.
WITH_REQUEST: Final = JOBS | {SCHEDULE}

#: Prefix of the source of a preview that ignored the state (``StackRef.preview_target``).
OFFLINE: Final = "Previewed offline"
MAX_STEPS: Final = 20_000
MAX_TEXTS: Final = 5_000
#: The engine's operations: pulumi/pulumi v3.259.0, pkg/resource/deploy/step.go.
OPERATIONS: Final = (
    "same|create|update|delete|replace|create-replacement|delete-replaced|read|read-replacement"
    "|refresh|discard|discard-replaced|remove-pending-replace|import|import-replacement"
)
Text = Annotated[str, Field(max_length=1_000_000)]
Texts = Annotated[tuple[Text, ...], Field(max_length=MAX_TEXTS)]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,99}$")]
Urn = Annotated[str, Field(max_length=2_000, pattern=r"^urn:pulumi:[^\x00-\x1f\x7f]+$")]
Operation = Annotated[str, Field(pattern=f"^({OPERATIONS})$")]
#: Levels of policies, as the engine calls them.
Level = Annotated[str, Field(pattern="^(mandatory|advisory|remediate|disabled)$")]

#: Type of a component of this project in the parents of a URN.
_OWN: Final = re.compile(r"(?:vertextraining|vertex-training):")
_LABELS: Final = re.compile(r"labels\b")


def without_computed_labels(paths: Iterable[str]) -> Texts:
    """Return the paths without labels that Google's provider computes from ``labels``."""
    kept = tuple(paths)
    labels = [path[1:] for path in kept if _LABELS.match(path)]
    computed = {f"{kind}L{path}" for path in labels for kind in ("effective", "pulumi")}
    return tuple(path for path in kept if path not in computed)


def is_own(urn: str) -> bool:
    """Return True for a resource in this project's components, and for a job of the project."""
    parents, _, type_ = urn.split("::")[2].rpartition("$") if urn.count("::") > 2 else ("", "", "")
    return type_ in WITH_REQUEST or any(map(_OWN.match, (*parents.split("$"), type_)))


@dataclass(frozen=True, slots=True)
class ResourceState:
    """A resource before or after a step, with redacted values."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    protect: bool = False
    id: Text = ""
    """Id from the provider; empty before the resource exists."""
    retained: bool = False
    """True if the resource stays in the cloud when it is removed from the stack."""

    @classmethod
    def parse(cls, raw: Mapping[str, Any] | None) -> ResourceState | None:
        """Parse a state in events or documents; None if ``raw`` is empty."""
        if not raw:
            return None
        return cls(
            inputs=redact(raw.get("inputs") or {}),
            outputs=redact(raw.get("outputs") or {}),
            protect=bool(raw.get("protect")),
            id=str(raw.get("id") or ""),
            retained=bool(raw.get("retainOnDelete")),
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on one resource."""

    op: Operation
    """Operation, such as create, update, replace, delete or same."""
    urn: Urn
    type: Text
    old: ResourceState | None
    new: ResourceState | None
    keys: Texts = ()
    """Inputs that force the replacement, if the provider names them."""
    paths: Texts = ()
    """Properties that will change, as the provider names them."""
    deployed: ResourceState | None = None
    """State before the refresh, if the refresh returned a different resource or none."""

    @property
    def name(self) -> str:
        """Return the name of the resource in the program."""
        return self.urn.rpartition("::")[2]

    @property
    def is_own(self) -> bool:
        """Return True for a resource of this project's components, not of ``extra.py``."""
        return is_own(self.urn)

    @property
    def changes(self) -> bool:
        """Return True if the step changes the resource in the cloud."""
        return self.op not in UNCHANGED

    @property
    def is_protected(self) -> bool:
        """Return True if the engine refuses to delete or replace the resource."""
        # Protection does not prevent an update. Protection that a replacement adds or removes does
        # not prevent this replacement: https://github.com/pulumi/pulumi (step_generator.go).
        agreed = self.op != "replace" or (self.new is not None and self.new.protect)
        return self.old is not None and self.old.protect and agreed

    @property
    def repeats_request(self) -> bool:
        """Return True if the replaced job's request equals the new request or one of its rungs."""
        if self.op != "replace" or self.type not in JOBS or self.old is None:
            return False
        running = self.old.outputs.get("requestId")
        return running is not None and running in [e.get("requestId") for e in rungs(self.inputs)]

    def adopts_again(self, state: str = "") -> bool:
        """Return True if ``up`` adopts the existing job, whose request equals the new request.

        A succeeded job is adopted, and a live job if it is retained. ``state`` is the current
        state; if empty, the state of the last deployment is used.
        """
        if not self.repeats_request or self.old is None:
            return False
        state = state or str(self.old.outputs.get("state"))
        return state in SUCCEEDED or (self.old.retained and is_usable(state))

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Return the inputs after the step; for a deletion, those before it."""
        state = self.new or self.old
        return state.inputs if state else {}

    @property
    def custom(self) -> bool:
        """Return True for a cloud resource; False for components, providers and the stack."""
        component = self.type.startswith("vertextraining:")
        return not (component or self.type == STACK or self.type.startswith(PROVIDER))


#: Hint for a job that `up` refuses to replace by an equal request.
REPEATED_HINT: Final = (
    "to submit the job again, increase its `run` in the stack file; if the resource is "
    "tainted and the job should stay, run `pulumi state untaint`"
)


def rungs(inputs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the inputs of a job and of each rung of its ladder."""
    ladder = (inputs.get("options") or {}).get(LADDER)
    others = [rung for rung in ladder or () if isinstance(rung, Mapping)]
    return [inputs, *({**inputs, **other} for other in others)]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message from the engine, a plugin or the program."""

    severity: Annotated[str, Field(pattern="^(error|warning|info|debug)$")]
    """Severity: error, warning or info."""
    message: Text
    urn: Text = ""


@dataclass(frozen=True, slots=True)
class PolicyViolation:
    """A policy violation of a resource or of the stack."""

    policy: Text
    pack: Text
    level: Level | Annotated[str, Field(max_length=0)]
    """Level: mandatory (blocks the deployment), advisory or remediate."""
    message: Text
    urn: Text = ""
    severity: Annotated[str, Field(pattern="^[a-z]{0,20}$")] = ""

    @property
    def is_mandatory(self) -> bool:
        """Return True if the violation blocks the deployment."""
        return self.level == "mandatory"


@dataclass(frozen=True, slots=True)
class Plan:
    """The result of one preview."""

    stack: Word
    config: Mapping[Text, Text] = field(default_factory=dict)
    steps: Annotated[tuple[Step, ...], Field(max_length=MAX_STEPS)] = ()
    diagnostics: Annotated[tuple[Diagnostic, ...], Field(max_length=MAX_TEXTS)] = ()
    violations: Annotated[tuple[PolicyViolation, ...], Field(max_length=MAX_TEXTS)] = ()
    packs: Annotated[Mapping[Word, Text], Field(max_length=50)] = field(default_factory=dict)
    """Policy packs that checked the plan, with their versions."""
    policies: Annotated[frozenset[Text], Field(max_length=MAX_TEXTS)] = frozenset()
    """Names of the policies that checked a resource."""
    levels: Annotated[Mapping[Word, Level], Field(max_length=MAX_TEXTS)] = field(
        default_factory=dict
    )
    """Configured levels of policies, by name; other policies are mandatory."""
    succeeded: bool = False
    """True if the preview ended without an error."""

    @property
    def changed(self) -> tuple[Step, ...]:
        """Return the steps that change a resource of the cloud."""
        return tuple(step for step in self.steps if step.changes and step.custom)

    def inputs_of(self, *types: str) -> Iterator[tuple[Step, Mapping[str, Any], Mapping[str, Any]]]:
        """Yield changed steps of these types, or all, with the inputs before and after the step."""
        for step in self.changed:
            if not types or step.type in types:
                yield step, step.old.inputs if step.old else {}, step.new.inputs if step.new else {}

    def section(self, name: str) -> Mapping[str, Any]:
        """Return a section of the stack file as JSON; empty if absent."""
        try:
            return as_mapping(json.loads(self.config.get(f"vertex-training:{name}") or "{}"))
        except json.JSONDecodeError:
            return {}

    @property
    def deployed_outputs(self) -> Mapping[str, Any]:
        """Return the outputs of the deployed stack; empty if there are none."""
        return next((s.old.outputs for s in self.steps if s.type == STACK and s.old), {})

    def deployed_output(self, name: str) -> Mapping[str, Any] | None:
        """Return an output of the deployed stack that is an object, or None."""
        output = self.deployed_outputs.get(name)
        return output if isinstance(output, Mapping) else None

    @property
    def is_compared(self) -> bool:
        """Return True if the outputs of the deployed stack are known, or the stack is new."""
        return self.succeeded or any(step.type == STACK for step in self.steps)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of severity ``error``."""
        return tuple(message for message in self.diagnostics if message.severity == "error")

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of severity ``warning``."""
        return tuple(message for message in self.diagnostics if message.severity == "warning")


@dataclass(frozen=True, slots=True)
class CheckpointObservation:
    """Checkpoints of a running job, below its output directory."""

    seconds: float | None
    """Age of the newest checkpoint; None if there is none."""
    at_most: bool = False
    """True if the list is incomplete, so that a newer checkpoint may exist."""


@dataclass(frozen=True, slots=True)
class JobObservation:
    """A job as the service returned it. Values are redacted."""

    state: str
    """State without its prefix, like ``RUNNING``, or ``RECORD_DELETED``."""
    seconds: float = 0.0
    """Running time of the job's code."""
    cost: float | None = None
    """Cost so far in USD; None if the price is unknown."""
    last_line: str = ""
    """The last line of the job's log, while the job runs."""
    checkpoint: CheckpointObservation | None = None
    """Checkpoints of a running job; None if they could not be listed."""

    @property
    def whole_state(self) -> str:
        """Return the full state name, like ``JOB_STATE_RUNNING``."""
        return self.state if self.state == RECORD_DELETED else f"JOB_STATE_{self.state}"


@dataclass(frozen=True, slots=True)
class Observations:
    """Observed jobs of a plan by resource name."""

    jobs: Mapping[str, JobObservation] = field(default_factory=dict)
    not_observed: str = ""
    """Reason why jobs could not be read; empty if all jobs were read."""
    adopted: frozenset[str] = frozenset()
    """Ids of requests whose existing job ``up`` adopts."""
    repeated: Mapping[str, str] = field(default_factory=dict)
    """Previous job of a request that is submitted again, by the request's id."""
    dropped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Due slots that a changed schedule drops, by the name of the scheduled job."""


NOTHING_OBSERVED: Final = Observations()


def with_error(plan: Plan, reason: str) -> Plan:
    """Return the plan with ``reason`` as an error, for a preview that failed without an error."""
    error = Diagnostic("error", redact(reason))
    return dataclasses.replace(plan, diagnostics=(*plan.diagnostics, error), succeeded=False)


_FORBIDDEN: Final = re.compile(
    r"\bError 403\b|\bPERMISSION_DENIED\b|\b403 Forbidden\b", re.IGNORECASE
)
_MISSING: Final = re.compile(r"\bError 404\b|\bNOT_FOUND\b|\b404 Not Found\b", re.IGNORECASE)
#: A permission in an error message: ``Permission 'x' denied``, ``does not have x access``.
_PERMISSION: Final = re.compile(
    r"[Pp]ermission '?([a-z]+(?:\.[A-Za-z]+){1,4})'?|"
    r"does not have ([a-z]+(?:\.[A-Za-z]+){1,4}) access"
)
#: The object that could not be read, in an error message.
_TARGET: Final = re.compile(
    r"on resource:? '?(?://[a-z.]+/)?([\w./@:-]{3,300})|"
    r"No such object: ([\w./@-]{3,300})|\b(projects/[\w./@:-]{3,300})"
)
#: Prefix of a permission, and the role that grants the permission.
_ROLES: Final = (
    ("storage.objects.", "roles/storage.objectViewer (`planReads` in the bootstrap) on the bucket"),
    ("aiplatform.", "roles/aiplatform.viewer on the project"),
    ("iam.", "roles/iam.securityReviewer on the project"),
    ("secretmanager.", "roles/secretmanager.viewer on the project"),
    ("compute.", "roles/compute.viewer on the project"),
)
#: Text of a 403 error because of a disabled API.
_API_OFF: Final = re.compile(r"\bSERVICE_DISABLED\b|\bhas not been used in project\b")


def explained(errors: Iterable[str]) -> tuple[str, ...]:
    """Return the errors. An explanation follows each error of a refused or failed read."""
    return tuple(line for error in errors for line in (error, *_meaning(error)))


def _meaning(error: str) -> Iterator[str]:
    match = _TARGET.search(error)
    target = next((group.rstrip(".,:") for group in match.groups() if group), "") if match else ""
    if _API_OFF.search(error):
        yield (
            "An API is disabled in the project, so its resources cannot be read. The error "
            "names the API."
        )
    elif _FORBIDDEN.search(error):
        what = target or "the object"
        yield (
            f"The account cannot read {what}: {_missing_permission(error)}. It is unknown "
            "whether the object exists."
        )
    elif _MISSING.search(error):
        what = target or "the error names no object"
        yield f"Does not exist: {what}. The account has the permission to read it."


def _missing_permission(error: str) -> str:
    named = _PERMISSION.search(error)
    if named is None:
        return "it lacks a permission that the error does not name"
    permission = named[1] or named[2]
    role = next((role for start, role in _ROLES if permission.startswith(start)), None)
    return f"permission {permission} is missing" + (f" (granted by {role})" if role else "")
