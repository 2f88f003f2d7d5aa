"""Rules against secrets in requests, which all users with read access to a job can see."""

import re
from typing import Final

from vertex_training.customjob.rules.job import Pool, pools_of
from vertex_training.customjob.rules.registry import Finding, Findings, rule
from vertex_training.naming import SECRET_VALUE
from vertex_training.secret_rules.redaction import is_secret_variable, secret_words

DISCOVERY: Final = "aiplatform.v1 discovery document 20261106: no secretEnv in CustomJob"
#: A reference to a secret without a version, which would be sent as text.
NO_VERSION: Final = re.compile(r"(projects/[^/\s]+/secrets/[\w-]+)#value")
HINT: Final = "pass ${secrets.NAME}, the secret's resource name, and read the secret in the code"
BATCH_SECRETS: Final = "https://docs.cloud.google.com/batch/docs/create-run-job-secret-manager"
CREDENTIALS: Final = (
    "https://docs.cloud.google.com/docs/authentication/application-default-credentials"
)


@rule("secret-in-env", DISCOVERY, of=pools_of)
def secret_in_env(pool: Pool) -> Findings:
    """Check that no environment variable has a secret as its value."""
    for path, name, value in pool.variables():
        if is_secret_variable(name, value):
            what = f"the value of {name} looks like a secret, visible to all readers of the job"
            yield Finding((*path, "value"), what, "", HINT)


@rule("secret-value", BATCH_SECRETS, of=pools_of)
def secret_value(pool: Pool) -> Findings:
    """Check that a secret is the whole value of an environment variable of a job on Batch."""
    for path, text in pool.texts():
        if match := NO_VERSION.search(text):
            hint = f"write ${{secrets.NAME.value}}, or {match[1]}/versions/latest#value"
            what = "the reference to the secret has no version"
            yield Finding(path, what, match[0], hint)
        if not (match := SECRET_VALUE.search(text)):
            continue
        if pool.job.context.backend != "batch":
            if pool.job.context.stack is None:
                continue  # the service is unknown without the stack's entry
            what = "Vertex AI does not pass values of secrets to jobs"
            yield Finding(path, what, match[0], f"use backend: batch, or {HINT}")
        elif "env" not in path or match[0] != text:
            what = "a secret's value must be the whole value of an environment variable"
            hint = "add an item to env, and read the variable in the code or a shell"
            yield Finding(path, what, match[0], hint)


@rule("secret-in-args", DISCOVERY, of=pools_of)
def secret_in_args(pool: Pool) -> Findings:
    """Check that commands and arguments contain no secret."""
    what = "this argument looks like a secret, visible to all readers of the job"
    words = pool.words()
    for index in secret_words([word for _, word in words]):
        yield Finding(words[index][0], what, "", HINT)


@rule("key-file", CREDENTIALS, "warning", of=pools_of)
def key_file(pool: Pool) -> Findings:
    """Check that a job uses its service account instead of a key file."""
    for path, name, _ in pool.variables():
        if name == "GOOGLE_APPLICATION_CREDENTIALS":
            what = "a job needs no key file"
            hint = "remove the variable: client libraries use the job's service account"
            yield Finding((*path, "name"), what, name, hint)
