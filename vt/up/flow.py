"""The steps of `vt up`: clear what is dead, `pulumi up`, clear what it settled."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infra.errors import CommandError
from vt.engine import (
    attributes_file as sidecar,
)
from vt.engine import (
    foreground as child,
)
from vt.engine import (
    locks,
)
from vt.engine import (
    pending_creates as pending,
)
from vt.engine.stacks import Place
from vt.up import orphaned_jobs as unseen

Say = Callable[[str], None]


@dataclass(frozen=True)
class Target:
    """A stack, and the environment in which `pulumi` finds it."""

    where: Place
    env: Mapping[str, str]

    @property
    def pulumi(self) -> str:
        """Path of the command. Raises CommandError if there is none."""
        found = shutil.which("pulumi", path=self.env.get("PATH"))
        if found is None:
            raise CommandError("there is no pulumi on PATH.", "run `make setup`.")
        return found

    def ask(self, *arguments: str) -> Any:
        """What a `pulumi` command that prints JSON says. Raises CommandError if it fails."""
        done = subprocess.run(
            [self.pulumi, *arguments, "--non-interactive"],
            cwd=self.where.root, env=dict(self.env), capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            told = done.stderr.strip() or done.stdout.strip()
            raise CommandError(f"`pulumi {' '.join(arguments)}` failed: {told}")
        return json.loads(done.stdout)

    def backend(self) -> str:
        """URL of the state backend, as `pulumi` sees it."""
        return self.env.get("PULUMI_BACKEND_URL") or self.ask("whoami", "--json")["url"]


def bring_up(
    target: Target, arguments: Sequence[str], say: Say, *, cleared: Callable[[], object]
) -> int:
    """The exit code of `pulumi up ARGUMENTS`, or of the refresh that cleared after it.

    `cleared` is called when a dead lock was removed, before anything is run.

    Raises CommandError if the stack is in use, or `pulumi` cannot be asked.
    """
    where, backend = target.where, target.backend()
    if locks.clear_dead(backend, where.pulumi_project, where.stack, say):
        cleared()
    sidecar.mend(backend, where.pulumi_project, where.stack, say)
    command = [target.pulumi, "up", "--stack", where.stack, *arguments]
    if code := child.run(command, where.root, target.env):
        say(f"pulumi up ended with exit code {code}")
        return code
    deployment = target.ask("stack", "export", "--stack", where.stack).get("deployment") or {}
    code = clear_settled(target, arguments, deployment, say)
    unseen.tell(where, deployment, say)
    return code


def clear_settled(
    target: Target, arguments: Sequence[str], deployment: Mapping[str, Any], say: Say
) -> int:
    """After an `up` that ended well: clear pending creations that it settled, explain the others.

    Returns the exit code of `pulumi refresh`, which clears them; 0 if there was nothing to clear.
    """
    stack, found = target.where.stack, pending.judge(deployment)
    if found.open:
        say(pending.explanation(found, stack))
    if not found.clearable:
        return 0
    names = ", ".join(urn.rpartition("::")[2] for urn in found.settled)
    say(f"a killed run had begun to create {names}, which is there now: clearing its note")
    command = [target.pulumi, "refresh", "--stack", stack, "--yes", "--skip-preview"]
    command += ["--non-interactive", "--clear-pending-creates", *_config_file(arguments)]
    for urn in found.settled:
        command += ["--target", urn]  # the others need not be read again
    return child.run(command, target.where.root, target.env)


def _config_file(arguments: Sequence[str]) -> list[str]:
    """`--config-file` of the `up`, which a refresh needs as well."""
    for index, argument in enumerate(arguments):
        if argument == "--config-file":
            return list(arguments[index : index + 2])
        if argument.startswith("--config-file="):
            return [argument]
    return []
