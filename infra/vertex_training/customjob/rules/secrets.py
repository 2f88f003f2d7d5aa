"""Rules against secrets in requests: everyone who can read a job can read its environment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import Finding, rule
from vertex_training.naming import SECRET_VALUE
from vertex_training.secret_rules.redaction import is_secret_variable, secret_words

DISCOVERY: Final = "aiplatform.v1 discovery document 20261106: no secretEnv in CustomJob"
#: What was meant to be the value, and would be sent as text.
NO_VERSION: Final = re.compile(r"(projects/[^/\s]+/secrets/[\w-]+)#value")
HINT: Final = "pass ${secrets.NAME}, the secret's resource name, and read its value in the code"


@rule("secret-in-env", DISCOVERY)
def secret_in_env(job: Job) -> Iterator[Finding]:
    """No secret stands in an environment variable."""
    for pool in job.pools:
        for path, name, value in pool.variables():
            if is_secret_variable(name, value):
                what = f"{name} looks like a secret, and everybody who sees the job can read it"
                yield Finding((*path, "value"), what, "", HINT)


@rule("secret-value", "https://docs.cloud.google.com/batch/docs/create-run-job-secret-manager")
def secret_value(job: Job) -> Iterator[Finding]:
    """A secret's value is that of a whole variable, and of a job on Batch."""
    for pool in job.pools:
        for path, text in pool.texts():
            if match := NO_VERSION.search(text):
                hint = f"${{secrets.NAME.value}}, or {match[1]}/versions/latest#value"
                yield Finding(path, "a secret has a value in each version", match[0], hint)
            if not (match := SECRET_VALUE.search(text)):
                continue
            if job.context.backend != "batch":
                if job.context.stack is None:
                    continue  # the stack's entry says which service it is
                what = "Vertex AI gives no job the value of a secret"
                yield Finding(path, what, match[0], f"backend: batch does; or {HINT}")
            elif "env" not in path or match[0] != text:
                what = "the value of a secret is that of a whole variable"
                hint = "an env entry of its own, which the code or a shell reads"
                yield Finding(path, what, match[0], hint)


@rule("secret-in-args", DISCOVERY)
def secret_in_args(job: Job) -> Iterator[Finding]:
    """No secret stands in a command or in its arguments."""
    what = "holds what looks like a secret; everybody who sees the job can read it"
    for pool in job.pools:
        words = pool.words()
        for index in secret_words([word for _, word in words]):
            yield Finding(words[index][0], what, "", HINT)


@rule(
    "key-file",
    "https://docs.cloud.google.com/docs/authentication/application-default-credentials",
    "warning",
)
def key_file(job: Job) -> Iterator[Finding]:
    """A job uses the account it runs as, not a key file."""
    for pool in job.pools:
        for path, name, _ in pool.variables():
            if name == "GOOGLE_APPLICATION_CREDENTIALS":
                what = "the job's account needs no key file"
                hint = "remove it; client libraries find the account that the job runs as"
                yield Finding((*path, "name"), what, name, hint)
