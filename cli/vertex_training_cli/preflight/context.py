"""Context of all checks: the read-only client, the declared stack, its state and the caller.

The answers of the checks are written as text, Markdown and JSON.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Concatenate, Final, ParamSpec
from urllib.parse import urlencode, urlsplit

from vertex_training.customjob.google import IMPERSONATION_VARIABLE, is_service_account
from vertex_training.errors import CommandError, ForbiddenReadError
from vertex_training_cli import rest
from vertex_training_cli.console import print_status
from vertex_training_cli.declared import DeclaredResource, DeclaredStack, declare_stack
from vertex_training_cli.deploy import approval
from vertex_training_cli.engine.pulumi_cli import BACKEND, PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.engine.values import redact
from vertex_training_cli.rest import Read, RestClient
from vertex_training_cli.review.parts import code, visible


class Verdict(StrEnum):
    """Effect of a check's result on a deployment."""

    OK = "ok"
    REFUSED = "refused"
    """A deployment would fail."""
    WARNING = "warning"
    """A deployment would succeed, but its result is probably not intended."""
    UNKNOWN = "unknown"
    """The check was not possible."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A check of one subject, and its result."""

    subject: str
    """Name of the checked resource in Google Cloud, or another subject."""
    asked: str
    """The check in a few words, such as ``permissions of the deploying account``."""
    answer: str
    verdict: Verdict = Verdict.OK
    meets: str = ""
    """Effect on a deployment; empty without an effect."""
    mend: str = ""
    """The command or step that fixes the problem."""
    permission: str = ""
    """The permission that the check needs and the caller lacks."""
    part: str = ""

    def refused(self, answer: str, meets: str, mend: str) -> Answer:
        """Return an answer: a deployment would fail."""
        return Answer(self.subject, self.asked, answer, Verdict.REFUSED, meets, mend)

    def warning(self, answer: str, meets: str, mend: str) -> Answer:
        """Return an answer: a deployment would have a result that is probably not intended."""
        return Answer(self.subject, self.asked, answer, Verdict.WARNING, meets, mend)

    def ok(self, answer: str) -> Answer:
        """Return an answer: the check passed."""
        return Answer(self.subject, self.asked, answer)

    def unknown(self, answer: str, permission: str = "", mend: str = "") -> Answer:
        """Return an answer: the check was not possible."""
        return Answer(
            self.subject, self.asked, answer, Verdict.UNKNOWN, mend=mend, permission=permission
        )


def question(subject: str, asked: str) -> Answer:
    """Return a check without a result. Its methods return answers."""
    return Answer(subject, asked, "")


@dataclass(frozen=True, slots=True)
class Preflight:
    """All answers about one stack."""

    stack: str
    project: str
    caller: str
    answers: tuple[Answer, ...]
    calls: int = 0

    def of(self, verdict: Verdict) -> list[Answer]:
        """Return the answers with this verdict."""
        return [answer for answer in self.answers if answer.verdict is verdict]

    @property
    def summary(self) -> str:
        """Return the number of checks by result, like ``41 checks, 0 refused, 3 unknown``."""
        counts = Counter(answer.verdict for answer in self.answers)
        text = f"{counts.total()} checks, {counts[Verdict.REFUSED]} refused"
        warnings = counts[Verdict.WARNING]
        text += f", {warnings} with a warning" if warnings else ""
        return f"{text}, {counts[Verdict.UNKNOWN]} unknown"


#: Version of the JSON format. It increases when a key changes its meaning or is removed.
VERSION: Final = 1
#: Headings in the order of a report.
HEADINGS: Final[Mapping[Verdict, str]] = {
    Verdict.REFUSED: "Refused by a deployment",
    Verdict.WARNING: "Warnings",
    Verdict.UNKNOWN: "Not checked",
}
COLUMNS: Final = ("subject", "check", "result", "effect on a deployment", "fix")


def text(preflight: Preflight) -> str:
    """Return text for a terminal: each problem with its fix, then the summary."""
    lines = list[str]()
    for verdict, heading in HEADINGS.items():
        if answers := preflight.of(verdict):
            lines += [f"{heading}:", *(line for answer in answers for line in _lines(answer)), ""]
    return "\n".join([*lines, preflight.summary, ""])


def _lines(answer: Answer) -> list[str]:
    shown = {
        "": f"{answer.subject}: {answer.asked}: {answer.answer}",
        "effect": answer.meets,
        "fix": answer.mend,
        "missing permission": answer.permission,
    }
    return [
        f"  {visible(redact(value))}" if not key else f"    {key}: {visible(redact(value))}"
        for key, value in shown.items()
        if value
    ]


def markdown(preflight: Preflight) -> str:
    """Return Markdown for a job summary or a comment."""
    parts = [f"## Preflight of stack {code(preflight.stack)}", "", f"**{preflight.summary}**", ""]
    for verdict, heading in HEADINGS.items():
        if answers := preflight.of(verdict):
            parts += [f"### {heading}", "", *_table(answers), ""]
    if passed := preflight.of(Verdict.OK):
        parts += [f"<details><summary>Passed: {len(passed)}</summary>", "", *_table(passed), ""]
        parts += ["</details>", ""]
    caller = f" as {code(preflight.caller)}" if preflight.caller else ""
    parts += [f"<sub>project {code(preflight.project)}{caller}; {preflight.calls} calls</sub>", ""]
    return "\n".join(parts)


def _table(answers: Sequence[Answer]) -> list[str]:
    rows = [(a.subject, a.asked, a.answer, a.meets, a.mend or a.permission) for a in answers]
    used = [n for n in range(len(COLUMNS)) if any(row[n] for row in rows)]
    lines = [tuple(COLUMNS[n] for n in used), tuple("---" for _ in used)]
    lines += [tuple(_cell(row[n]) for n in used) for row in rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _cell(value: str) -> str:
    return code(redact(value), len(value)).replace("|", "\\|") if value else ""


def as_json(preflight: Preflight) -> str:
    """Return JSON for programs."""
    document = {"version": VERSION, "summary": preflight.summary, **dataclasses.asdict(preflight)}
    return json.dumps(redact(document), indent=2) + "\n"


WRITERS: Final[Mapping[str, Callable[[Preflight], str]]] = {
    "text": text,
    "markdown": markdown,
    "json": as_json,
}


Parameters = ParamSpec("Parameters")
#: URL endings of the only methods that are sent by POST. These methods are read-only.
TEST_METHODS: Final = (":testIamPermissions", "/testIamPermissions")
#: Maximum number of permissions in one request of ``testIamPermissions``:
#: https://docs.cloud.google.com/resource-manager/reference/rest/v3/projects/testIamPermissions
MOST_PERMISSIONS: Final = 100
#: Exceptions that an unexpected response document causes.
MALFORMED: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)


class UnansweredError(Exception):
    """Raised if a check was not possible. ``answer`` is the unknown answer of the check."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.answer)
        self.answer = answer


def answered(
    check: Callable[Concatenate[PreflightContext, Parameters], Answer | Iterator[Answer]],
) -> Callable[Concatenate[PreflightContext, Parameters], Iterator[Answer]]:
    """Decorate a check: if it is not possible, its answer is unknown instead of an error."""

    @functools.wraps(check)
    def run(
        context: PreflightContext, *args: Parameters.args, **named: Parameters.kwargs
    ) -> Iterator[Answer]:
        try:
            answers = check(context, *args, **named)
            yield from [answers] if isinstance(answers, Answer) else answers
        except UnansweredError as error:
            yield error.answer
        except MALFORMED as error:
            if (last_check := context.client.last) is None:
                raise
            yield last_check.unknown(
                f"the response has an unexpected form: {type(error).__name__}: {error}"
            )

    return run


class ReadOnlyClient:
    """Client that sends and counts read-only requests. Threads can share the client.

    Methods raise ``UnansweredError`` if the caller lacks a permission, or the service does not
    answer. ``of`` is the check that needs the response.
    """

    def __init__(self, client: RestClient) -> None:
        self._client, self._lock, self._local = client, threading.Lock(), threading.local()
        self._documents: dict[str, dict[str, Any] | None] = {}
        self.calls = 0

    @property
    def last(self) -> Answer | None:
        """Return the check of the last request that this thread sent."""
        return getattr(self._local, "check", None)

    def get(self, read: Read, of: Answer, *names: str) -> dict[str, Any] | None:
        """Return a document, or None if it does not exist. Each document is read only once."""
        url, self._local.check = read.url(*names), of
        if url not in self._documents:
            self._documents[url] = self.send("GET", url, of, read.permission)
        return self._documents[url]

    def items(self, read: Read, of: Answer, *names: str) -> list[dict[str, Any]]:
        """Return the items of all pages of a list."""

        def page(url: str) -> dict[str, Any] | None:
            return self.send("GET", url, of, read.permission)

        try:
            return list(rest.items(read, read.url(*names), of.subject, page))
        except CommandError as error:
            raise UnansweredError(of.unknown(str(error))) from None

    def held(self, policy: str, permissions: Iterable[str], of: Answer) -> set[str] | None:
        """Return the permissions that the caller has on a resource; None if it does not exist.

        ``policy`` is the name of the resource's IAM policy. The request requires no permission.
        """
        url = rest.policy_url(policy, "testIamPermissions")
        names, held = sorted(permissions), set[str]()
        for start in range(0, len(names), MOST_PERMISSIONS):
            some = names[start : start + MOST_PERMISSIONS]
            if url.endswith(TEST_METHODS):
                answer = self.send("POST", url, of, json={"permissions": some})
            else:  # Cloud Storage tests permissions by GET.
                query = urlencode([("permissions", permission) for permission in some])
                answer = self.send("GET", f"{url}?{query}", of)
            if answer is None:
                return None
            held |= set(answer.get("permissions") or ())
        return held

    def send(
        self, method: str, url: str, of: Answer, permission: str = "", **more: Any
    ) -> dict[str, Any] | None:
        """Send a read-only request; return None if the resource does not exist."""
        path = urlsplit(url).path
        if method != "GET" and not (method == "POST" and path.endswith(TEST_METHODS)):
            raise AssertionError(f"{method} {path} is not a read-only request")
        self._local.check = of
        with self._lock:
            self.calls += 1
        try:
            return self._client.call(method, url, of.subject, **more)
        except CommandError as error:
            missing = permission if isinstance(error, ForbiddenReadError) else ""
            raise UnansweredError(of.unknown(str(error), missing)) from None


@dataclass(frozen=True, slots=True)
class PreflightContext:
    """Input of all checks of a preflight."""

    ref: StackRef
    declared: DeclaredStack
    client: ReadOnlyClient
    recorded: frozenset[tuple[str, str]] | None
    """Type and id of the resources in the state; None if the state could not be read."""
    backend: str = ""
    """URL of the state backend, such as ``gs://BUCKET``; empty without a backend."""
    checked_as: str = ""
    """Account that sends the requests, if another account deploys the stack; otherwise empty."""
    as_ci: bool = False
    """True if the requests use CI's account. Its roles from ``bootstrap/`` have conditions."""

    @property
    def project(self) -> str:
        """Id of the stack's project."""
        return self.ref.project

    @property
    def number(self) -> str:
        """Number of the stack's project in the stack file."""
        return self.declared.stack.settings.project_number

    def of_type(self, token: str) -> Iterator[DeclaredResource]:
        """Yield the declared resources of a type."""
        return (resource for resource in self.declared.resources if resource.type == token)

    def is_made(self, resource: DeclaredResource) -> bool:
        """Return True if the stack's state contains the resource, so that the stack created it."""
        return (resource.type, resource.id) in (self.recorded or ())


def connect(ref: StackRef, account: str = "") -> tuple[PreflightContext, list[Answer]]:
    """Return the context of a stack, and an unknown answer if its state cannot be read."""
    if account:
        if not is_service_account(account):
            raise CommandError(f"--as must be the address of a service account (got {account}).")
        if ref.is_local:
            raise CommandError("--as: the local cloud has no accounts. Omit --as.")
        # All clients of this process read this variable.
        os.environ[IMPERSONATION_VARIABLE] = account
    env = ref.environment(print_status)
    client = ReadOnlyClient(rest.connect(ref))
    declared = declare_stack(ref.root, ref.stack)
    unread, recorded, backend = list[Answer](), None, env.get(BACKEND, "")
    try:
        recorded = _recorded(ref, env) if backend else None
    except CommandError as error:
        unread.append(question(backend, "state of the stack").unknown(str(error)))
    if not backend:
        of = question(f"state of {ref.stack}", "resources in the state")
        mend = f"set {BACKEND} to the address of the state"
        unread.append(of.unknown(f"{BACKEND} is not set", mend=mend))
    signed_in = account or approval.signed_in()[0]
    ci = os.environ.get(approval.DEPLOY_ACCOUNT, "")
    other = signed_in if ci not in ("", signed_in) else ""
    as_ci = bool(ci) and not other
    return PreflightContext(ref, declared, client, recorded, backend, other, as_ci), unread


def _recorded(ref: StackRef, env: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return type and id of each resource in the state; empty if no deployment created a state."""
    pulumi = PulumiCli(ref.root, env)
    stacks: list[dict[str, Any]] = pulumi.read_json("stack", "ls", "--json")
    if ref.stack not in {str(stack["name"]).rpartition("/")[2] for stack in stacks}:
        return frozenset()
    resources = pulumi.export_deployment(ref.stack).get("resources") or ()
    return frozenset(
        (str(resource["type"]), str(resource["id"])) for resource in resources if resource.get("id")
    )
