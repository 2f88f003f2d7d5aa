"""The target of a deployment: what decides where a plan goes, beside the commit's content.

None of it is in the plan's digest. Part of it comes from variables of the repository, which more
people can change than may approve: an approval records the target, and ``vt deploy`` compares.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field

from vertex_training.errors import CommandError
from vertex_training.stack import SCHEMA
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.pulumi_cli import BACKEND
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.engine.values import redact

#: Name the account that deploys, and the provider of identities that it signs in with.
DEPLOY_ACCOUNT: Final = "VT_DEPLOY_ACCOUNT"
IDENTITY_PROVIDER: Final = "VT_IDENTITY_PROVIDER"
#: Variables that lead Google's clients, or the gcp provider, to another account, project or
#: address than the stack file says: https://www.pulumi.com/registry/packages/gcp and
#: https://docs.cloud.google.com/sdk/docs/properties. The engine takes its options from variables,
#: too: these give it other config than the stack file, or another folder. The last lead the engine
#: to other code: a provider that runs already, Python and its modules, downloads, another key; or
#: have it save no state before its end.
_REDIRECTS: Final = re.compile(
    r"GOOGLE_IMPERSONATE_SERVICE_ACCOUNT|CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT|"
    r"GOOGLE_BILLING_PROJECT|GOOGLE_CLOUD_QUOTA_PROJECT|USER_PROJECT_OVERRIDE|"
    r"GOOGLE(?:_CLOUD)?_UNIVERSE_DOMAIN|CLOUDSDK_CORE_UNIVERSE_DOMAIN|"
    r"(?:GOOGLE|CLOUDSDK)_\w+_CUSTOM_ENDPOINT|CLOUDSDK_API_ENDPOINT_OVERRIDES_\w+|\w+_EMULATOR_HOST|"
    r"PULUMI_OPTION_(?:CONFIG\w*|CWD)|PULUMI_DEBUG_(?:PROVIDERS|LANGUAGES)|PULUMI_PYTHON_CMD|"
    r"PYTHON(?:PATH|HOME)|PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES|PULUMI_CLOUD_SECRET_OVERRIDE|"
    r"PULUMI_(?:DIY_BACKEND|SELF_MANAGED_STATE)_LEGACY_LAYOUT|PULUMI_SKIP_CHECKPOINTS"
)
#: Variables that hold a credential. Only that they are set is recorded.
_CREDENTIALS: Final = re.compile(
    r"GOOGLE_CREDENTIALS|GOOGLE_CLOUD_KEYFILE_JSON|GCLOUD_KEYFILE_JSON|"
    r"GOOGLE_OAUTH_ACCESS_TOKEN|CLOUDSDK_AUTH_ACCESS_TOKEN"
)
#: Longer values are recorded by their digest.
_LONGEST: Final = 200
_IMPERSONATED: Final = re.compile(r"/serviceAccounts/([^/:]+):generateAccessToken\Z")
_AUDIENCE: Final = "//iam.googleapis.com/"

Text = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f\x7f]*$")]
Texts = Annotated[dict[Text, Text], Field(max_length=100)]


class Target(BaseModel):
    """Where a plan goes, through which accounts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    backend: Annotated[Text, Field(min_length=1)]
    """URL of the state, without a password. State is code: it holds a pickled provider."""
    secrets_provider: Text = ""
    """Provider of the key that encrypts secrets in the state, and a digest of the key in the file.
    """
    deploy_account: Text = ""
    """The service account that deploys; empty where no variable names one."""
    identity_provider: Text = ""
    """The workload identity provider that it signs in with; empty as above."""
    settings: Texts = {}
    """Config of the default providers in the stack file, such as ``gcp:project``."""
    redirects: Texts = {}
    """Variables that lead clients elsewhere."""

    def facts(self) -> dict[str, str]:
        """Each fact by its name, flat."""
        plain = {
            "backend": self.backend,
            "secrets provider": self.secrets_provider,
            "deploying account": self.deploy_account,
            "identity provider": self.identity_provider,
        }
        return {**plain, **self.settings, **self.redirects}

    def differences(self, other: Target) -> list[tuple[str, str, str]]:
        """(Name, value here, value in ``other``) of every fact that differs; empty if absent."""
        mine, theirs = self.facts(), other.facts()
        names = dict.fromkeys((*mine, *theirs))
        found = ((name, mine.get(name, ""), theirs.get(name, "")) for name in names)
        return [(name, old, new) for name, old, new in found if old != new]


def target_of(ref: StackRef, env: Mapping[str, str] | None = None) -> Target:
    """The target of a deployment of ``ref`` from here, in ``env``, else this process's variables.

    Raises:
        CommandError: no state is named, or the stack file cannot be read.
    """
    env = os.environ if env is None else env
    config = stacks.read_stack_file(ref.root, ref.stack)
    return Target(
        backend=_backend(ref, env),
        secrets_provider=_secrets_provider(config),
        deploy_account=env.get(DEPLOY_ACCOUNT, ""),
        identity_provider=env.get(IDENTITY_PROVIDER, ""),
        settings=_provider_settings(config.get("config"), ref.pulumi_project),
        redirects={} if ref.is_local else _redirects(env),
    )


def _backend(ref: StackRef, env: Mapping[str, str]) -> str:
    if ref.is_local and not env.get(stacks.EMULATOR):
        return ref.local_backend()
    if not env.get(BACKEND):
        raise CommandError(f"{BACKEND} is not set.", "set it to the gs:// URL of the state.")
    parts = urlsplit(env[BACKEND])
    host = parts.netloc.rpartition("@")[2]
    return redact(urlunsplit((parts.scheme, host, parts.path, parts.query, "")))


def _secrets_provider(file: Mapping[str, Any]) -> str:
    """``gcpkms://… key 0123456789abcdef``: the key is stored encrypted, and may be replaced."""
    name = str(file.get("secretsprovider") or "")
    key = str(file.get("encryptedkey") or file.get("encryptionsalt") or "")
    return f"{redact(name)} key {_short_digest(key)}".strip() if key else redact(name)


def _provider_settings(config: object, project: str) -> dict[str, str]:
    """Config of other namespaces than the program's own."""
    items = config.items() if isinstance(config, Mapping) else ()
    own = (f"{project}:", f"{SCHEMA.namespace}:")
    return {
        str(key): _recorded(value)
        for key, value in sorted(items, key=lambda item: str(item[0]))
        if ":" in str(key) and not str(key).startswith(own)
    }


def _redirects(env: Mapping[str, str]) -> dict[str, str]:
    found = {name: _recorded(env[name]) for name in sorted(env) if _REDIRECTS.fullmatch(name)}
    held = {name: "[set]" for name in sorted(env) if _CREDENTIALS.fullmatch(name)}
    return {**found, **held}


def _recorded(value: object) -> str:
    """A value as a record has it: redacted, on one line, and not long."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    shown = redact(text)
    if shown != text or len(text) > _LONGEST or not text.isprintable():
        return f"[sha256:{_short_digest(text)}]"
    return text


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def signed_in(env: Mapping[str, str] | None = None) -> tuple[str, str]:
    """(Account, identity provider) of the credentials file in ``env``; empty where it names none.

    https://google.aip.dev/auth/4117 has the file of a federated account.
    """
    env = os.environ if env is None else env
    try:
        text = Path(env["GOOGLE_APPLICATION_CREDENTIALS"]).read_text(encoding="utf-8")
        found = json.loads(text)
    except (KeyError, OSError, ValueError):
        return "", ""
    if not isinstance(found, dict):
        return "", ""
    impersonated = _IMPERSONATED.search(str(found.get("service_account_impersonation_url")))
    account = impersonated[1] if impersonated else str(found.get("client_email", ""))
    return account, str(found.get("audience", "")).removeprefix(_AUDIENCE)
