"""The record of an approval: a commit's content, a stack, its target, and a plan's digest."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit, urlunsplit

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from vertex_training.errors import ApprovalParseError, CommandError, Problem
from vertex_training.stack import SCHEMA
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.pulumi_cli import BACKEND
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.engine.values import redact

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
#: Object ids of git: SHA-1 or SHA-256, in full.
ObjectId = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
StackName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]


class Approval(BaseModel):
    """Approved content, stack, target and plan.

    ``commit`` is only shown. A deployment compares ``tree``, because a merge creates another commit
    with the same content.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[2] = 2
    stack: StackName
    commit: ObjectId
    tree: ObjectId
    report: Digest
    """Digest of the plan, as ``vt review`` prints it."""
    target: Target
    """Target of the approved deployment."""

    def as_json(self) -> str:
        """Return the record as one line of JSON, for ``parse_approval``."""
        return self.model_dump_json()


def parse_approval(text: str) -> Approval:
    """Parse an approval record, or raise ApprovalParseError."""
    try:
        return Approval.model_validate_json(text.strip())
    except pydantic.ValidationError as failed:
        errors = [
            ": ".join(filter(None, (".".join(map(str, error["loc"])), error["msg"])))
            for error in failed.errors()
        ]
        raise ApprovalParseError("; ".join(errors)) from None


def make_approval(fields: Mapping[str, object]) -> Approval:
    """Return a validated record with these fields, or raise ApprovalParseError."""
    return parse_approval(json.dumps(dict(fields)))


NEW_APPROVAL_HINT: Final = (
    "read the new report (`make preview STACK={stack}`), then approve its digest: `vt approval "
    "--stack {stack} DIGEST`"
)


@dataclass(frozen=True, slots=True)
class Checkout:
    """Source of a deployment: a commit, its content, and uncommitted inputs in the folder."""

    commit: str
    tree: str
    changed: tuple[str, ...] = ()
    """Tracked files that differ from the commit."""
    added: tuple[str, ...] = ()
    """Code and YAML files that the commit does not contain."""
    environments: tuple[str, ...] = ()
    """Engine files whose code would run in an environment that the commit does not pin."""

    def problems(self) -> list[Problem]:
        """Return uncommitted files and other environments that the program would use."""
        conversion = (
            ". If `git diff` shows no difference, git converts these files (attributes, autocrlf)"
        )
        kinds = (
            ("files differ from the commit", self.changed, "undo", conversion),
            ("the program could read files that are not in the commit", self.added, "remove", ""),
        )
        hint = "commit or {} these files. Only committed content is deployed{}"
        problems = [
            Problem(what, ", ".join(names), hint.format(otherwise, note), ("checkout",))
            for what, names, otherwise, note in kinds
            if names
        ]
        if self.environments:
            what = "code would run in another Python environment than .venv"
            hint = "write `virtualenv: .venv`. `make setup DEPLOY=1` installs .venv with hashes"
            problems.append(Problem(what, ", ".join(self.environments), hint, ("checkout",)))
        return problems


def checkout_problems(approval: Approval, stack: str, checkout: Checkout) -> list[Problem]:
    """Return the reasons against a deployment that are known before the preview."""
    path, problems = (f"approval of {approval.stack}",), list[Problem]()
    if approval.stack != stack:
        hint = "pass the approval record of this stack"
        problems.append(Problem("the record approves another stack", stack, hint, path))
    problems += checkout.problems()
    if approval.tree != checkout.tree:
        what = (
            f"the record approves the content of commit {approval.commit[:12]}, but another "
            "commit is checked out"
        )
        problems.append(
            Problem(what, checkout.commit[:12], NEW_APPROVAL_HINT.format(stack=stack), path)
        )
    return problems


def target_problems(
    approval: Approval, target: Target, account: str, identity_provider: str
) -> list[Problem]:
    """Return the differences between the approved target and ``target`` with ``account``."""
    stack, approved = approval.stack, approval.target
    hint = (
        "restore the approved value, or approve the new value: "
        f"{NEW_APPROVAL_HINT.format(stack=stack)}"
    )
    path = (f"target of {stack}",)
    problems = [
        Problem(f"{name} differs from the approval: {_shown(old)} -> {_shown(new)}", "", hint, path)
        for name, old, new in approved.differences(target)
    ]
    used = (
        ("account", approved.deploy_account, account),
        ("identity provider", approved.identity_provider, identity_provider),
    )
    for name, approved_value, real in used:
        if approved_value and approved_value != real:
            change = f"{approved_value} -> {_shown(real)}"
            what = f"the {name} of the credentials differs from the approval: {change}"
            problems.append(Problem(what, "", hint, path))
    return problems


def _shown(value: str) -> str:
    return value or "(none)"


def plan_problems(approval: Approval, report: str) -> list[Problem]:
    """Return a problem if the plan's digest differs from the approved digest."""
    if approval.report == report:
        return []
    what = f"the plan differs from the approved plan with digest {approval.report[:12]}"
    hint = NEW_APPROVAL_HINT.format(stack=approval.stack)
    return [Problem(what, report[:12], hint, (f"plan of {approval.stack}",))]


#: Environment variables with the deploying account and its workload identity provider.
DEPLOY_ACCOUNT: Final = "VT_DEPLOY_ACCOUNT"
IDENTITY_PROVIDER: Final = "VT_IDENTITY_PROVIDER"
#: Environment variables that change the account, project or address of Google's clients and the gcp
#: provider (https://www.pulumi.com/registry/packages/gcp,
#: https://docs.cloud.google.com/sdk/docs/properties), or the config, folder, code, secret key or
#: checkpoints of the engine.
_REDIRECTS: Final = re.compile(
    r"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT|CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT|"
    r"GOOGLE_BILLING_PROJECT|GOOGLE_CLOUD_QUOTA_PROJECT|USER_PROJECT_OVERRIDE|"
    r"GOOGLE(?:_CLOUD)?_UNIVERSE_DOMAIN|CLOUDSDK_CORE_UNIVERSE_DOMAIN|"
    r"(?:GOOGLE|CLOUDSDK)_\w+_CUSTOM_ENDPOINT|CLOUDSDK_API_ENDPOINT_OVERRIDES_\w+|\w+_EMULATOR_HOST|"
    r"PULUMI_OPTION_(?:CONFIG\w*|CWD)|PULUMI_DEBUG_(?:PROVIDERS|LANGUAGES)|PULUMI_PYTHON_CMD|"
    r"PYTHON(?:PATH|HOME)|PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES|PULUMI_CLOUD_SECRET_OVERRIDE|"
    r"PULUMI_(?:DIY_BACKEND|SELF_MANAGED_STATE)_LEGACY_LAYOUT|PULUMI_SKIP_CHECKPOINTS"
)
#: Environment variables with a credential. A record contains only their names.
_CREDENTIALS: Final = re.compile(
    r"GOOGLE_CREDENTIALS|GOOGLE_CLOUD_KEYFILE_JSON|GCLOUD_KEYFILE_JSON|"
    r"GOOGLE_OAUTH_ACCESS_TOKEN|CLOUDSDK_AUTH_ACCESS_TOKEN"
)
#: Maximum length of a recorded value. A longer value is recorded as a digest.
_LONGEST: Final = 200
_IMPERSONATED: Final = re.compile(r"/serviceAccounts/([^/:]+):generateAccessToken\Z")
_AUDIENCE: Final = "//iam.googleapis.com/"

Text = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f\x7f]*$")]
Texts = Annotated[dict[Text, Text], Field(max_length=100)]


class Target(BaseModel):
    """Target of a plan, and the accounts that it uses."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    backend: Annotated[Text, Field(min_length=1)]
    """URL of the state, without a password. The state contains code: pickled providers."""
    secrets_provider: Text = ""
    """Key provider that encrypts secrets in the state, and a digest of the encrypted key."""
    deploy_account: Text = ""
    """Service account that deploys; empty if no variable names it."""
    identity_provider: Text = ""
    """Workload identity provider of the deploying account; empty if no variable names it."""
    settings: Texts = {}
    """Config of the default providers in the stack file, such as ``gcp:project``."""
    redirects: Texts = {}
    """Environment variables that redirect clients to another address."""

    def facts(self) -> dict[str, str]:
        """Return each property of the target by its name, in a flat mapping."""
        plain = {
            "backend": self.backend,
            "secrets provider": self.secrets_provider,
            "deploying account": self.deploy_account,
            "identity provider": self.identity_provider,
        }
        return {**plain, **self.settings, **self.redirects}

    def differences(self, other: Target) -> list[tuple[str, str, str]]:
        """Return (name, own value, value in ``other``) of each property that differs."""
        mine, theirs = self.facts(), other.facts()
        names = dict.fromkeys((*mine, *theirs))
        triples = ((name, mine.get(name, ""), theirs.get(name, "")) for name in names)
        return [(name, old, new) for name, old, new in triples if old != new]


def target_of(ref: StackRef, env: Mapping[str, str] | None = None) -> Target:
    """Return the target of a deployment of ``ref`` with the variables ``env``."""
    env = os.environ if env is None else env
    config = stacks.read_stack_file(ref.root, ref.stack)
    provider = redact(str(config.get("secretsprovider") or ""))
    if key := str(config.get("encryptedkey") or config.get("encryptionsalt") or ""):
        provider = f"{provider} key {_short_digest(key)}".strip()
    values = config.get("config")
    own = (f"{ref.pulumi_project}:", f"{SCHEMA.namespace}:")
    settings = {
        str(key): _recorded(value)
        for key, value in sorted(
            values.items() if isinstance(values, Mapping) else (), key=lambda item: str(item[0])
        )
        if ":" in str(key) and not str(key).startswith(own)
    }
    redirects = {name: _recorded(env[name]) for name in sorted(env) if _REDIRECTS.fullmatch(name)}
    redirects |= {name: "[set]" for name in sorted(env) if _CREDENTIALS.fullmatch(name)}
    return Target(
        backend=_backend(ref, env),
        secrets_provider=provider,
        deploy_account=env.get(DEPLOY_ACCOUNT, ""),
        identity_provider=env.get(IDENTITY_PROVIDER, ""),
        settings=settings,
        redirects={} if ref.is_local else redirects,
    )


def _backend(ref: StackRef, env: Mapping[str, str]) -> str:
    if ref.is_local and not env.get(stacks.EMULATOR):
        return ref.local_backend()
    if not env.get(BACKEND):
        hint = f"set {BACKEND} to the gs:// URL of the state."
        raise CommandError(f"environment variable {BACKEND} is not set.", hint)
    parts = urlsplit(env[BACKEND])
    host = parts.netloc.rpartition("@")[2]
    return redact(urlunsplit((parts.scheme, host, parts.path, parts.query, "")))


def _recorded(value: object) -> str:
    """Return a text for a record: the value, or its digest if it is secret, long or unprintable."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    shown = redact(text)
    if shown != text or len(text) > _LONGEST or not text.isprintable():
        return f"[sha256:{_short_digest(text)}]"
    return text


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def signed_in(env: Mapping[str, str] | None = None) -> tuple[str, str]:
    """Return (account, identity provider) of the credentials file in ``env``; empty if unknown.

    https://google.aip.dev/auth/4117 describes files of federated accounts.
    """
    env = os.environ if env is None else env
    try:
        text = Path(env["GOOGLE_APPLICATION_CREDENTIALS"]).read_text(encoding="utf-8")
        credentials = json.loads(text)
    except (KeyError, OSError, ValueError):
        return "", ""
    if not isinstance(credentials, dict):
        return "", ""
    impersonated = _IMPERSONATED.search(str(credentials.get("service_account_impersonation_url")))
    account = impersonated[1] if impersonated else str(credentials.get("client_email", ""))
    return account, str(credentials.get("audience", "")).removeprefix(_AUDIENCE)
