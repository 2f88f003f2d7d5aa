"""The ``pulumi`` command: found in one way, started in one way, its JSON read in one way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vertex_training.errors import CommandError
from vertex_training_cli.engine import foreground
from vertex_training_cli.engine.values import redact

#: Names the state backend.
BACKEND: Final = "PULUMI_BACKEND_URL"


def find_pulumi(env: Mapping[str, str]) -> str | None:
    """Path of ``pulumi``: on the PATH of ``env``, else beside this Python; else None."""
    path = env.get("PATH", os.defpath) + os.pathsep + str(Path(sys.executable).parent)
    return shutil.which("pulumi", path=path)


@dataclass(frozen=True, slots=True)
class PulumiCli:
    """``pulumi`` in the project ``root``, with the environment ``env``."""

    root: Path
    env: Mapping[str, str]

    def command(self, *arguments: str) -> list[str]:
        """The command line with these arguments.

        Raises:
            CommandError: there is no ``pulumi``.
        """
        found = find_pulumi(self.env)
        if found is None:
            raise CommandError("there is no pulumi on PATH.", "run `vt setup`.")
        return [found, *arguments]

    def with_variables(self, **variables: str) -> PulumiCli:
        """The same with more environment variables."""
        return PulumiCli(self.root, {**self.env, **variables})

    def run_in_foreground(self, *arguments: str) -> int:
        """Run ``pulumi`` at this terminal and return its exit code.

        Raises:
            CommandError: there is no ``pulumi``.
        """
        return foreground.run(self.command(*arguments), self.root, self.env)

    def capture(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``pulumi`` without a terminal and return what it printed.

        Raises:
            CommandError: there is no ``pulumi``, or it cannot be started.
        """
        try:
            return subprocess.run(
                [*self.command(*arguments), "--non-interactive"],
                cwd=self.root, env=dict(self.env), check=False, capture_output=True,
                text=True, encoding="utf-8", errors="replace",
            )  # fmt: skip
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}.", "`vt setup`") from None

    def read_json(self, *arguments: str) -> Any:
        """Run a ``pulumi`` command that prints JSON, and return that.

        Raises:
            CommandError: there is no ``pulumi``, or the command failed.
        """
        done = self.capture(*arguments)
        if done.returncode != 0:
            errors = error_diagnostics(done.stdout)
            output = "\n".join(each["message"].strip() for each in errors)
            output = output or done.stderr.strip() or done.stdout.strip()
            raise CommandError(f"`pulumi {' '.join(arguments)}` failed: {redact(output)}")
        return json.loads(done.stdout)

    def backend_url(self) -> str:
        """URL of the state backend.

        Raises:
            CommandError: it is not in the environment, and ``pulumi whoami`` failed.
        """
        return self.env.get(BACKEND) or self.read_json("whoami", "--json")["url"]

    def export_deployment(self, stack: str) -> Mapping[str, Any]:
        """The deployment in the stack's state; empty if there was none yet.

        Raises:
            CommandError: ``pulumi stack export`` failed.
        """
        return self.read_json("stack", "export", "--stack", stack).get("deployment") or {}


def error_diagnostics(output: str) -> list[dict[str, Any]]:
    """The errors in the JSON that a preview or an import printed; none if it is no such JSON."""
    try:
        document = json.loads(output)
    except (ValueError, RecursionError):
        return []
    found = document.get("diagnostics") if isinstance(document, dict) else None
    return [each for each in found or () if each.get("severity") == "error" and each.get("message")]
