"""Rules of teams, TPUs of endpoints, numbers of projects, defaults and ladders: whole reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import rows as told
from tests.unit.infra.stacks import unjudged as settings
from vertex_training.settings.serving import Endpoint
from vertex_training.stack_rules import job_rules, project_numbers, serving_tpus, teams

OWNED = {
    "buckets": {"theirs": {"team": "vision"}, "all": {}},
    "secrets": {"token": {"team": "vision"}},
    "teams": {"vision": {}, "speech": {}},
}


@pytest.mark.parametrize("team", [None, "speech"])
def test_what_a_team_owns_is_named_by_its_own_accounts_alone(team: str | None) -> None:
    account: dict[str, Any] = {
        "reads": ["all", "theirs"], "writes": ["theirs"], "secrets": ["token"]
    }  # fmt: skip
    account |= {"team": team} if team else {}
    found = told(teams.problems(settings(**OWNED, serviceAccounts={"trainer": account})))
    assert found == [
        (
            f"serviceAccounts.trainer.{place}",
            "belongs to team vision",
            name,
            f"give the account team: vision, or share {name}: remove its team",
        )
        for place, name in (("reads.1", "theirs"), ("writes.0", "theirs"), ("secrets.0", "token"))
    ]
    own = {"trainer": account | {"team": "vision"}}
    assert told(teams.problems(settings(**OWNED, serviceAccounts=own))) == []


def test_a_team_that_is_not_there_is_told_at_every_owner() -> None:
    given = {
        "teams": {"vision": {}},
        "buckets": {"a": {"team": "vison"}},
        "secrets": {"b": {"team": "audio"}},
        "serviceAccounts": {"c": {"team": "vison"}},
    }
    what = "this stack has no such team"
    assert told(teams.problems(settings(**given))) == [
        ("serviceAccounts.c.team", what, "vison", "did you mean 'vision'?"),
        ("buckets.a.team", what, "vison", "did you mean 'vision'?"),
        ("secrets.b.team", what, "audio", "known here: vision"),
    ]
    alone = settings(buckets={"a": {"team": "x"}})
    assert told(teams.problems(alone)) == [("buckets.a.team", what, "x", "add it to teams")]


def test_labels_and_machine_types_of_a_team_are_judged() -> None:
    labels = {"team": "x", "vt-run": "1", "stack": "x", "cost": "Ä", "fine": "yes"}
    limits = {"machineTypes": ["n1-*", "x9-*"]}
    found = told(teams.problems(settings(teams={"vision": {"labels": labels, "limits": limits}})))
    own = "the stack sets this label itself"
    assert found[:2] == [
        ("teams.vision.labels.team", own, "x", "remove it"),
        ("teams.vision.labels.vt-run", own, "1", "remove it"),
    ]
    assert [row[0] for row in found[2:]] == [
        *(f"teams.vision.labels.{name}" for name in ("stack", "cost")),
        "teams.vision.limits.machineTypes.1",
    ]
    assert found[-1][1:] == (
        *("no machine type for training is called that", "x9-*", "vt catalogue lists all"),
    )


PATH = ("endpoints", "x")
V5E, V6E = "ct5lp-hightpu-4t", "ct6e-standard-4t"


def endpoint(machine: str, **more: Any) -> Endpoint:
    return Endpoint.model_validate({"machine": machine, "split": {"run 1": 100}, **more})


@pytest.mark.parametrize(
    ("machine", "region", "more", "found"),
    [
        (V5E, "europe-west4", {}, []),
        ("n1-standard-4", "africa-south1", {}, []),
        (V5E, "us-central1", {}, [
            ("endpoints.x.machine", "endpoints have no machines like this in us-central1", V5E,
             "regions: europe-west4, us-south1, us-west1, us-west4")]),
        (V6E, "us-east1", {}, []),
        (V5E, "europe-west4", {"accelerator": {"type": "NVIDIA_L4"}}, [
            ("endpoints.x.accelerator.type", f"{V5E} has TPUs built in, and nothing else",
             "NVIDIA_L4", "remove it")]),
        (V5E, "europe-west4", {"accelerator": {"type": "TPU_V5_LITEPOD"}}, []),
    ],
)  # fmt: skip
def test_endpoints_on_tpus_are_where_google_has_them(
    machine: str, region: str, more: dict[str, Any], found: Any
) -> None:
    assert told(serving_tpus.problems(endpoint(machine, **more), region, PATH)) == found


@pytest.mark.parametrize("machine", ["cloud-tpu", "ct4p-hightpu-4t", "ct5p-hightpu-4t"])
def test_endpoints_do_not_run_on_tpus_of_other_generations(machine: str) -> None:
    [row] = told(serving_tpus.problems(endpoint(machine), "us-central1", PATH))
    what = "endpoints do not run on TPUs of this generation"
    assert row[:3] == ("endpoints.x.machine", what, machine)
    assert V5E in row[3]
    assert "n1-" not in row[3]


@pytest.mark.parametrize(
    ("machine", "region", "more", "found"),
    [
        (V6E, "us-central1", {}, []),
        ("n1-standard-4", "us-east1", {"replicas": {"min": 1, "max": 2}}, []),
        (V6E, "us-east1", {}, [
            ("endpoints.x.machine",
             "endpoints have it in us-east1 for projects on Google's allowlist alone", V6E,
             "ask Google, or regions: asia-northeast1, europe-west4, us-central1, us-east5")]),
        (V6E, "us-central1", {"accelerator": {"type": "TPU_V6E"}}, [
            ("endpoints.x.accelerator",
             f"{V6E} has its TPUs built in: whether the service takes a type is not known",
             "TPU_V6E", "remove it")]),
        (V6E, "us-central1", {"accelerator": {"type": "NVIDIA_L4"}}, []),
        (V6E, "us-central1", {"replicas": {"min": 2, "max": 3}}, [
            ("endpoints.x.replicas.max",
             "is ignored: endpoints on TPUs always have the least replicas", "3",
             "set min to what you need, or remove max: there will be 2")]),
    ],
)  # fmt: skip
def test_what_is_ignored_or_unknown_of_endpoints_on_tpus_is_told(
    machine: str, region: str, more: dict[str, Any], found: Any
) -> None:
    assert told(serving_tpus.warnings(endpoint(machine, **more), region, PATH)) == found


def numbers(root: Path, **changes: Any) -> list[tuple[str, str, str, str]]:
    return told(project_numbers.problems(settings(**changes), root))


def test_two_files_that_give_a_project_two_numbers_are_told(tmp_path: Path) -> None:
    (tmp_path / "bootstrap").mkdir()
    other = "config: {gcp:project: acme-ml-prod, vertex-training:projectNumber: '1000001'}\n"
    (tmp_path / "Pulumi.prod.yaml").write_text(other)  # its own
    (tmp_path / "Pulumi.broken.yaml").write_text("config: [")
    (tmp_path / "Pulumi.list.yaml").write_text("config: [1]")
    assert numbers(tmp_path) == []
    (tmp_path / "bootstrap" / "Pulumi.prod.yaml").write_text(other)
    what = "gives acme-ml-prod the number 1000001: one of them is wrong"
    hint = "gcloud projects describe acme-ml-prod --format='value(projectNumber)'"
    row = ("projectNumber", f"bootstrap/Pulumi.prod.yaml {what}", "109876543210", hint)
    assert numbers(tmp_path) == [row]
    (tmp_path / "Pulumi.dev.yaml").write_text(other)  # only the first one is told
    assert numbers(tmp_path) == [(row[0], f"Pulumi.dev.yaml {what}", *row[2:])]
    assert numbers(tmp_path, project="acme-ml-other") == []
    assert numbers(tmp_path, projectNumber="1000001") == []
    assert numbers(tmp_path, projectNumber="100000000000") == []  # nobody gave one


def test_the_number_of_a_local_project_is_known(tmp_path: Path) -> None:
    local = {"project": "local-training", "projectNumber": "971240389164"}
    assert numbers(tmp_path, **local) == []
    assert numbers(tmp_path, **local | {"projectNumber": "1000001"}) == [
        (
            "projectNumber",
            "is not the number of local-training in the local cloud",
            "1000001",
            'write "971240389164"',
        )
    ]


def test_levels_of_rules_are_of_rules_that_are_there_and_no_error_becomes_less() -> None:
    given = {"image-pinned": "error", "image-pined": "note", "machine-type": "warning"}
    found = told(job_rules.problems(settings(rules={**given, "disk-type": "error"})))
    hint = "what Google documents stays an error; `# vt: ignore[rule] reason` is for a file"
    assert found == [
        ("rules.image-pined", "no such rule", "image-pined", "did you mean 'image-pinned'?"),
        ("rules.machine-type", "an error cannot become less", "warning", hint),
    ]


def test_a_tuning_job_runs_on_vertex_ai() -> None:
    given = settings(tuning={"a": {"file": "x", "backend": "batch"}, "b": {"file": "x"}})
    assert told(job_rules.backend_problems(given)) == [
        (
            "tuning.a.backend",
            "a tuning job runs on Vertex AI alone",
            "batch",
            "leave it out: only Vertex AI has trials",
        )
    ]
