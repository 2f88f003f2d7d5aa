"""Variables in the command line and in the environment that nothing expands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from vertex_training.customjob.rules.job import Job, Pool
from vertex_training.customjob.rules.registry import TYPES, Finding, rule

#: What the service expands in the value of a variable: ``$(NAME)``; ``$$(NAME)`` stays as it is.
REFERENCE: Final = re.compile(r"(?<!\$)\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
#: What a shell expands, without the dot of a reference into the stack.
SHELL_VARIABLE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
#: Variables of the service and of most images: they may be expanded though no file sets them.
GIVEN: Final = re.compile(r"(AIP_|CLOUD_ML_)[A-Z_]+|CLUSTER_SPEC|TF_CONFIG|PATH|HOME|HOSTNAME")
#: Programs that expand ``${NAME}`` themselves, or start one that does.
SHELLS: Final = re.compile(r"(.*/)?(ba|da|z|k|a)?sh|(.*/)?(env|envsubst)")


@rule("env-unresolved", TYPES + "env_var.py", "warning")
def env_unresolved(job: Job) -> Iterator[Finding]:
    """The value of a variable refers only to variables above it: others stay as written."""
    for pool in job.pools:
        known = set[str | None]()
        for index, variable in enumerate(pool.env):
            name = variable.get("name")
            path = (*pool.task_path, "env", index, "value")
            for match in REFERENCE.finditer(str(variable.get("value"))):
                if match[1] in known or GIVEN.fullmatch(match[1]):
                    continue
                what = "is not expanded: no variable above has this name"
                if match[1] == name:
                    what = "is not expanded: the variable refers to itself"
                hint = "move that variable up, or write $$(NAME) for the text itself"
                yield Finding(path, what, match.group(), hint)
            known.add(name)


@rule("shell-variable", TYPES + "custom_job.py", "warning")
def shell_variable(job: Job) -> Iterator[Finding]:
    """``${NAME}`` in a command line is for a shell: the service passes it as it is written."""
    for pool in job.pools:
        if _runs_a_shell(pool):
            continue
        for path, text in pool.words():
            if match := SHELL_VARIABLE.search(text):
                what = "is not expanded: no shell reads this command line"
                hint = "write the value, or command: [bash, -c] with the whole line in args"
                yield Finding(path, what, match.group(), hint)


def _runs_a_shell(pool: Pool) -> bool:
    """Whether a shell reads the words; the image's own entrypoint is not known to be none."""
    command = pool.task.get("command", [])
    if pool.task_name == "containerSpec" and not command:
        return True
    return any(SHELLS.fullmatch(word) for word in command)
