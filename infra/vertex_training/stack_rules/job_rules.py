"""The sections ``jobDefaults`` and ``rules``: references and rules that are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_training.customjob import rules
from vertex_training.customjob.request import references
from vertex_training.errors import Problem, UnknownReferenceError, did_you_mean
from vertex_training.settings.model import Settings

#: References that only a job has; a default may use them.
OF_A_JOB = {"job.name": "name", "job.run": "1", "job.requestId": "id"}


def problems(settings: Settings) -> Iterator[Problem]:
    """Rules that do not exist, or whose level a stack cannot set."""
    known = {rule.id: rule for rule in rules.ALL}
    for name, level in settings.rules.items():
        rule = known.get(name)
        path = ("rules", name)
        if rule is None:
            yield Problem("no such rule", name, did_you_mean(name, list(known)), path)
        elif rule.level == "error" and level != "error":
            hint = "what Google documents stays an error; `# vt: ignore[rule] reason` is for a file"
            yield Problem("an error cannot become less", level, hint, path)


def backend_problems(settings: Settings) -> Iterator[Problem]:
    """Tuning jobs that another service than Vertex AI is to run."""
    for name, job in settings.tuning.items():
        if job.backend != "vertex":
            hint = "leave it out: only Vertex AI has trials"
            path = ("tuning", name, "backend")
            yield Problem("a tuning job runs on Vertex AI alone", job.backend, hint, path)


def unknown_references(settings: Settings, table: Mapping[str, Any]) -> Iterator[Problem]:
    """References of ``jobDefaults`` that this stack does not have."""
    defaults = settings.job_defaults
    texts = {
        "serviceAccount": defaults.service_account,
        "outputDirectory": defaults.output_directory,
    }
    for key, text in texts.items():
        try:
            references.resolve(text or "", {**table, **OF_A_JOB})
        except UnknownReferenceError as unknown:
            what, shown = "names what this stack does not have", "${" + unknown.name + "}"
            yield Problem(what, shown, unknown.hint, ("jobDefaults", key))
