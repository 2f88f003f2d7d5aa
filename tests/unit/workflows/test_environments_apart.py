"""An environment that is not set up yet holds no other one back, in our workflows and in those of
`vt init`: the conditions of their jobs, evaluated as GitHub does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from vertex_training_cli.init import answers

ROOT = Path(__file__).resolve().parents[3]
#: A context of GitHub's expressions: `vars.NAME`, `needs.plan-prod.result`.
CONTEXT = re.compile(r"\b(?:vars|github|inputs|needs)(?:\.[\w-]+)+")
Jobs = dict[str, Any]


def generated(name: str) -> Jobs:
    """The jobs of a workflow of a repository with three environments."""
    environments = [
        {
            "name": each,
            "project": f"acme-{each}",
            "projectNumber": "1" * 12,
            "region": "us-central1",
        }
        for each in ("dev", "staging", "prod")
    ]
    given = answers.parse({"name": "acme", "environments": environments})
    text = answers.render(given, "1.0.0")[f".github/workflows/{name}.yml"].text
    return yaml.safe_load(text)["jobs"]


def ours(name: str) -> Jobs:
    return yaml.safe_load((ROOT / ".github/workflows" / f"{name}.yml").read_text())["jobs"]


def holds(condition: str, contexts: Mapping[str, str]) -> bool:
    """Whether a condition of GitHub's holds; what is in no context is empty, as on GitHub."""
    text = " ".join(condition.removeprefix("${{").removesuffix("}}").split())
    text = CONTEXT.sub(lambda found: repr(contexts.get(found[0], "")), text)
    text = (
        text.replace("!cancelled()", "True")
        .replace("true", "True")
        .replace("false", "False")
        .replace("&&", "and")
        .replace("||", "or")
    )
    return bool(eval(text))


def run(jobs: Jobs, event: str, *ready: str) -> list[str]:
    """The jobs that run, where these environments are set up; each of them succeeds."""
    contexts = {"github.ref": "refs/heads/main", "github.event_name": event}
    contexts |= {f"vars.GCP_WORKLOAD_IDENTITY_PROVIDER_{name.upper()}": "p" for name in ready}
    for key, job in jobs.items():
        condition = job.get("if", "true")
        if holds(condition, contexts):
            contexts[f"needs.{key}.result"] = "success"
        assert set(re.findall(r"needs\.([\w-]+)", condition)) <= {*_list(job.get("needs", []))}
    return [key for key in jobs if f"needs.{key}.result" in contexts]


def _list(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) else given


@pytest.mark.parametrize(
    ("jobs", "names"),
    [(ours("drift"), ("dev", "prod")), (generated("drift"), ("dev", "staging", "prod"))],
    ids=["ours", "generated"],
)
def test_each_environment_is_compared_from_the_day_that_it_is_set_up(
    jobs: Jobs, names: tuple[str, ...]
) -> None:
    for ready in ((), names[:1], names[-1:], names):
        assert run(jobs, "schedule", *ready) == list(ready)
    for name in names:
        assert jobs[name]["environment"] == f"{name}-plan"
        assert jobs[name]["env"]["STACK"] == name
        assert {
            found.rpartition("_")[2] for found in re.findall(r"vars\.(\w+)", str(jobs[name]))
        } == {name.upper()}


def test_an_environment_that_is_not_set_up_is_passed_over_by_a_deployment() -> None:
    jobs = generated("deploy")
    assert run(jobs, "push", "dev", "prod") == ["dev", "plan-prod", "prod"]
    assert run(jobs, "push", "dev", "staging", "prod") == list(jobs)
    assert run(jobs, "push", "dev", "staging") == ["dev", "plan-staging", "staging"]
    assert run(ours("deploy"), "push", "dev", "prod") == ["dev", "plan-prod", "prod"]


def test_a_deployment_that_failed_is_followed_by_none() -> None:
    jobs = generated("deploy")
    for failed in ("dev", "plan-staging", "staging"):
        stopped = {**jobs, failed: {**jobs[failed], "if": "false"}}
        after = run(stopped, "push", "dev", "staging", "prod")
        assert after == list(jobs)[: list(jobs).index(failed)]


def test_no_environment_is_deployed_by_a_merge_before_the_first_one() -> None:
    assert run(generated("deploy"), "push", "staging", "prod") == []
