"""What a stack adds to the checking of its job files. Imported only where a stack is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infra.customjob.request import job_file as spec
from infra.customjob.request.job_file import Verdict
from infra.errors import Problem
from infra.plan import jobs as job_files
from infra.plan import packages as packaging
from infra.plan.packages import Package
from infra.settings import stack_yaml
from infra.settings.model import Settings
from infra.stack_rules import limits
from vt.engine.paths import from_here


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack whose file is in order."""

    root: Path
    settings: Settings
    packages: Mapping[str, Package]

    def shown(self, file: str) -> str:
        """A file named in the config, as messages show it: from the current folder."""
        return from_here(self.root / file)

    def judge_jobs(self) -> dict[str, Verdict]:
        """All jobs of the stack, by name."""
        return job_files.judge(self.settings, self.packages, self.root, self.shown)

    def over_limits(self, verdicts: Mapping[str, Verdict]) -> list[Problem]:
        """What is over the stack's limits in the stack as a whole."""
        return limits.problems(self.settings, verdicts, self.root)

    def jobs_of(self, file: Path) -> list[str]:
        """Names of the jobs that this file is for; a file may serve several."""
        wanted = file.resolve()
        jobs = self.settings.jobs.items()
        return [key for key, job in jobs if (self.root / job.file).resolve() == wanted]

    def judge_other(self, data: bytes, file: str, job: str) -> Verdict:
        """A file that no job of the stack names, as if one did."""
        return spec.judge(
            data,
            file,
            job_files.submission(self.settings, job),
            job_files.table(self.settings, self.packages, self.root),
            job_files.context(self.settings),
        )


def load(root: Path, name: str) -> Stack:
    """Read and check a stack's file, and build its packages in memory.

    Raises:
        infra.settings.project_files.NoSuchStack: it has no file.
        ConfigError: with every mistake in it.
    """
    settings = stack_yaml.read(root, name)
    paths = {key: package.path for key, package in settings.packages.items()}
    return Stack(root, settings, packaging.build_all(paths, root))


def file_of(root: Path, name: str) -> str:
    """The stack's file, as messages show it."""
    return from_here(root / f"Pulumi.{name}.yaml")
