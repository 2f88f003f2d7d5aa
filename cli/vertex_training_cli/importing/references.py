"""Replace buckets, accounts and secrets of an imported job by entries of the stack."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.naming import CONTROL, STAGING
from vertex_training.secret_rules.redaction import (
    contains_secret,
    is_secret_value,
    is_secret_variable,
    redacted,
    secret_words,
)
from vertex_training.settings.model import Settings
from vertex_training_cli.importing.imported import ImportedJob, free_key, key_of

#: Name of a bucket, possibly with placeholders, variables and template fields.
_NAME: Final = (
    r"(?=<|[a-z0-9][a-z0-9._<${-])"
    r"(?:<[A-Z0-9_]{1,80}>|\$?\{[\w.]{1,80}\}|\$[A-Za-z_]\w{0,80}|[a-z0-9._-]){1,220}+"
)
#: A placeholder, variable or template field in a bucket's name.
OPEN_PART: Final = re.compile(r"<[A-Z0-9_]+>|\$?\{[\w.]+\}|\$\w+")
#: A bucket in a text: as a URI, or as a mounted folder (``/gcs/BUCKET``).
BUCKET: Final = re.compile(rf"(gs://|/gcs/)({_NAME})(?![A-Za-z0-9])")
#: An object in a text whose name ends with a file extension.
OBJECT: Final = re.compile(BUCKET.pattern + r"/([\w./=+-]*[\w=+-]\.\w+)")
#: A variable that a text uses as the name of a bucket.
BUCKET_VARIABLE: Final = re.compile(r"(?:gs://|/gcs/)\$[{(]?([A-Za-z_]\w*)[})]?+(?![\w.$<-])")
BUCKET_NAME: Final = re.compile(rf"{_NAME}(?<![._-])")
#: Words in the names of flags and variables for buckets that the job writes to.
WRITTEN: Final = re.compile(
    r"out|save|model|checkpoint|ckpt|artifact|log|result|export|(job|work|root|run|exp).?dir", re.I
)
SECRET_NAME: Final = re.compile(r"(^|_)(TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIALS)$")
PLACEHOLDER: Final = re.compile(r"<[^<>]*>|\$\{?[A-Za-z_]+\}?|YOUR_[A-Z_]+")
REMOVED: Final = "<REMOVED_SECRET>"


@dataclass(slots=True)
class StackEntries:
    """New entries for a stack file: path below ``config`` -> value."""

    added: dict[tuple[str, ...], Any] = field(default_factory=dict)
    buckets: dict[str, str] = field(default_factory=dict)
    """Added buckets: key -> name in the source."""

    def add(self, section: str, key: str, value: Any) -> None:
        """Add an entry to a section of the stack file."""
        self.added[(f"vertex-training:{section}", key)] = value

    def add_object(self, bucket: str, name: str, file: str) -> None:
        """Add an object to an added bucket."""
        value = self.added[("vertex-training:buckets", bucket)]
        value["objects"] = {**value.get("objects", {}), name: file}

    def object_files(self) -> list[str]:
        """Return the files that become objects of added buckets."""
        buckets = [value for path, value in self.added.items() if path[0].endswith(":buckets")]
        return [file for value in buckets for file in value.get("objects", {}).values()]

    def keys(self, section: str) -> set[str]:
        """Return the keys added to a section."""
        return {path[1] for path in self.added if path[0] == f"vertex-training:{section}"}


class Adoption:
    """Adapts one job to the stack. Without a stack, only secrets are removed."""

    def __init__(self, job: ImportedJob, settings: Settings | None, entries: StackEntries) -> None:
        self.job, self._stack, self.entries = job, settings, entries
        self.reads = set[str]()
        self.writes = set[str]()
        self.secrets = set[str]()
        self.objects = dict[str, set[str]]()
        """Names of objects that the job reads, by the key of their new bucket."""
        self._bucket_variables = set[str]()

    @property
    def settings(self) -> Settings:
        """Return the settings of the stack."""
        assert self._stack is not None
        return self._stack

    def apply(self) -> None:
        """Rewrite the job's message, and add entries that the stack lacks."""
        for task in self.job.tasks("containerSpec", "pythonPackageSpec"):
            self._task(task)
        output = self.job.spec.get("baseOutputDirectory")
        if isinstance(output, dict) and isinstance(output.get("outputUriPrefix"), str):
            output["outputUriPrefix"] = self._buckets(output["outputUriPrefix"], written=True)
        self.job.spec, self.job.study = self._safe(self.job.spec), self._safe(self.job.study)
        self.job.labels = self._safe(self.job.labels)
        self._account()

    def _safe(self, value: Any, name: str = "") -> Any:
        if isinstance(value, list):
            return [self._safe(item, name) for item in value]
        if isinstance(value, dict):
            names = [str(item) for key, item in value.items() if str(key).lower() == "name"]
            of = {key: (names[0] if names and str(key).lower() == "value" else str(key))
                  for key in value}  # fmt: skip
            return {key: self._safe(item, of[key]) for key, item in value.items()}
        if not isinstance(value, str) or not (
            contains_secret(value) or is_secret_value(name, value)
        ):
            return value
        self.job.remarks.append(f"a secret in {name} is not imported")
        return REMOVED if is_secret_value(name, value) else redacted(value, REMOVED)

    def _task(self, task: dict[str, Any]) -> None:
        for name in ("command", "args"):
            words = task.get(name)
            words = words if isinstance(words, list) or words is None else [words]
            if words and all(isinstance(word, str) for word in words):
                self._bucket_variables |= set(BUCKET_VARIABLE.findall("\n".join(words)))
                task[name] = self._words(words)
        uris = task.get("packageUris")
        if isinstance(uris, list):
            task["packageUris"] = [self._package(str(uri)) for uri in uris]
        env = task.get("env")
        for variable in env if isinstance(env, list) else [env]:
            if isinstance(variable, dict) and isinstance(variable.get("value"), str | None):
                self._variable(variable)

    def _words(self, words: list[str]) -> list[str]:
        hidden = set(secret_words(words))
        if hidden:
            self.job.remarks.append(
                "a secret on the job's command line is not imported: read the secret from "
                "Secret Manager in the code"
            )
        cleaned, flag = list[str](), ""
        for index, word in enumerate(words):
            if index in hidden:
                flag_of, equals, _ = word.partition("=")
                named = equals and flag_of.startswith("-")
                cleaned.append(f"{flag_of}={REMOVED}" if named else REMOVED)
                continue
            name = word if "=" in word else flag
            cleaned.append(
                self._buckets(word, written=bool(WRITTEN.search(name.partition("=")[0])))
            )
            flag = word if word.startswith("-") and "=" not in word else ""
        return cleaned

    def _variable(self, variable: dict[str, Any]) -> None:
        name, value = str(variable.get("name") or ""), variable.get("value") or ""
        to_fill_in = SECRET_NAME.search(name) and (PLACEHOLDER.fullmatch(value) or not value)
        if self._stack is None and is_secret_variable(name, value):
            variable["value"] = REMOVED
            self.job.remarks.append(f"the value of variable {name} is a secret and is not imported")
        elif self._stack and (is_secret_variable(name, value) or to_fill_in):
            key = key_of(name)
            self.secrets.add(key)
            if key not in self.settings.secrets:
                self.entries.add("secrets", key, {"description": f"{name} of an imported job"})
            variable["value"] = f"${{secrets.{key}}}"
            self.job.remarks.append(
                f"variable {name} contains a secret that all readers of the job could read. The "
                f"imported value is the name of secret '{key}' in Secret Manager, which the code "
                "must read (docs/job-files.md)"
            )
        elif self._stack and name in self._bucket_variables and BUCKET_NAME.fullmatch(value):
            key = self._bucket_key(value)
            self.writes.add(key)  # The script may read or write.
            variable["value"] = f"${{buckets.{key}.name}}"
        else:
            buckets = self._buckets(value, written=bool(WRITTEN.search(name)))
            if buckets != value:  # Numbers are not texts.
                variable["value"] = buckets

    def _buckets(self, text: str, *, written: bool) -> str:
        if self._stack is None:
            return text
        for match in () if written else OBJECT.finditer(text):
            if match[2] in [self.settings.names.bucket(key) for key in (STAGING, CONTROL)]:
                continue
            key = self._bucket_key(match[2])
            if key in self.entries.keys("buckets"):
                self.objects.setdefault(key, set()).add(match[3])

        def reference(match: re.Match[str]) -> str:
            name = match[2]
            if name in [self.settings.names.bucket(key) for key in (STAGING, CONTROL)]:
                return match[0]  # Job files do not name these two buckets of the stack.
            key = self._bucket_key(name, written=written)
            (self.writes if written else self.reads).add(key)
            suffix = ".mount" if match[1] == "/gcs/" else ""
            return f"${{buckets.{key}{suffix}}}"

        return BUCKET.sub(reference, text)

    def _package(self, uri: str) -> str:
        if self._stack is None:
            return uri
        folder = f"gs://{self.settings.names.bucket(STAGING)}/packages/"
        key = re.sub(r"-[0-9a-f]+\.tar\.gz\Z", "", uri.removeprefix(folder))
        own = uri.startswith(folder) and key in self.settings.packages
        return f"${{packages.{key}}}" if own else uri

    def _bucket_key(self, name: str, *, written: bool = False) -> str:
        names = self.settings.names
        own = {names.bucket(key): key for key in self.settings.buckets}
        if name in own:
            return own[name]
        known = OPEN_PART.sub("", name)
        if not re.search("[a-z0-9]", known):
            known = name.strip("<>").removeprefix("YOUR_")
        key = key_of(known, "bucket")
        if key in (STAGING, CONTROL):
            key = f"{key}-data"
        source = name.replace("<YOUR_", "<")
        key = free_key(key, {k for k, of in self.entries.buckets.items() if of != source})
        if key not in self.settings.buckets and key not in self.entries.buckets:
            self.entries.add(
                "buckets", key, {"forceDestroy": True} if self.settings.is_local else {}
            )
            self.entries.buckets[key] = source
            where = f"the bucket {name}" if OPEN_PART.search(name) else f"gs://{name}"
            what = f"a new, empty bucket '{key}' of the stack replaces {where}"
            self.job.remarks.append(what if written else f"{what}: copy the job's data to it")
        return key

    def _account(self) -> None:
        if self._stack is None:
            return
        email = str(self.job.spec.get("serviceAccount") or "")
        names = self.settings.names
        own = {names.account_email(k): k for k in self.settings.service_accounts}
        preferred = own.get(email) or (key_of(email.partition("@")[0], "") if "@" in email else "")
        right = [key for key in self.settings.service_accounts if self._may(key)]
        key = next((role for role in right if role == preferred), right[0] if right else "")
        if not key:
            taken = {*self.settings.service_accounts, *self.entries.keys("serviceAccounts")}
            key = free_key((preferred or self.job.name)[:20].strip("-"), taken)
            reads = self.reads - self.writes
            rights = {"reads": reads, "writes": self.writes, "secrets": self.secrets}
            grants = {name: sorted(roles) for name, roles in rights.items() if roles}
            self.entries.add("serviceAccounts", key, grants)
        self.job.spec["serviceAccount"] = f"${{serviceAccounts.{key}}}"

    def _may(self, key: str) -> bool:
        account = self.settings.service_accounts[key]
        return (
            self.writes <= set(account.writes)
            and self.reads <= {*account.reads, *account.writes}
            and self.secrets <= set(account.secrets)
        )
