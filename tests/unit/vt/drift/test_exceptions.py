"""What is allowed, and what is listed as not judged, so that silence says nothing."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from vertex_training.settings.model import AllowedMember, AllowedResource, DriftSettings
from vertex_training_cli.drift import command, findings
from vertex_training_cli.drift.findings import ADDED, Drift, DriftOutcome, ResourceDifference
from vertex_training_cli.drift.policies import Declared, Membership
from vertex_training_cli.engine.stacks import StackRef

CLEAN = Drift("dev", DriftOutcome.CLEAN)
IAP = AllowedResource(resource="firewalls/iap-*", reason="the platform team's way in")
AUDIT = AllowedMember(
    member="group:a@example.com", role="roles/x", policy="b/*", reason="read by auditors"
)
ALLOWED = DriftSettings.model_validate(
    {"allowed": {"audit": AUDIT}, "allowedResources": {"iap": IAP}}
)


def rule(name: str) -> ResourceDifference:
    path = f"projects/p/global/firewalls/{name}"
    return ResourceDifference(ADDED, name, "firewall rule", path, resource=f"firewalls/{name}")


def test_exceptions_are_listed_with_their_reasons_whether_something_matches_or_not() -> None:
    assert command.lines_of_exceptions(ALLOWED) == [
        "allowed: group:a@example.com with roles/x on b/* (read by auditors)",
        "allowed: firewalls/iap-* (the platform team's way in)",
    ]


def test_what_exists_and_is_named_alone_is_listed_by_its_kind() -> None:
    def entries(**names: str) -> Any:
        return {key: SimpleNamespace(existing=name) for key, name in names.items()}

    settings: Any = SimpleNamespace(
        buckets=entries(own="", shared="acme-shared"),
        service_accounts=entries(robot="robot@x"),
        secrets=entries(token="acme-token"),
        registry=SimpleNamespace(existing="acme-images"),
        network=SimpleNamespace(existing="acme-net"),
    )
    more = "managed outside the stack, except for the stack's grants"
    assert command.lines_of_existing(settings) == [
        f"bucket acme-shared: {more}",
        f"account robot@x: {more}",
        f"secret acme-token: {more}",
        f"repository acme-images: {more}",
        f"network acme-net: {more}",
    ]


def test_a_difference_of_the_engine_is_never_an_exception() -> None:
    wide = AllowedResource(resource="routes/a*", reason="whatever begins so")
    bucket = ResourceDifference("update", "a", "gcp:storage/bucket:Bucket", "a")
    settings = DriftSettings.model_validate({"allowedResources": {"wide": wide}})
    assert command.apply_exceptions(CLEAN, settings, [bucket]).differences == (bucket,)


def test_the_list_is_folded_below_every_report_and_whole_in_its_json() -> None:
    lines = [f"line {number} " + "|" * 90 for number in range(100)]
    for drift in (CLEAN, CLEAN.with_differences([rule("ssh")])):
        text = findings.markdown(drift.without_looking_at(lines))
        assert "<details><summary>Not checked: 100</summary>" in text
        assert "line 0" in text
        assert "more lines in the JSON of this report" in text
        assert len(text) < findings.ROOM
        document = json.loads(findings.as_json(drift.without_looking_at(lines)))
        assert document["not_looked_at"] == lines


STACK = """\
config:
  gcp:project: {project}
  gcp:region: us-central1
  vertex-training:projectNumber: "{number}"
  vertex-training:serviceAccounts: {{speech: {{callsVertex: true}}}}
"""


def test_what_stacks_of_the_checkout_declare_on_the_project_is_known(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    for name, project in (("us", "acme-ml"), ("eu", "acme-ml"), ("prod", "acme-prod")):
        text = STACK.format(project=project, number=210987654321 + len(project))
        (tmp_path / f"Pulumi.{name}.yaml").write_text(text)
    (tmp_path / "Pulumi.wrong.yaml").write_text("config: {gcp:project: 7}\n")
    found = command.find_neighbours(StackRef(tmp_path, "demo", "us", "acme-ml", "us-central1"))
    assert set(found) == {"eu", "wrong"}
    assert found["wrong"] is None
    speech = "serviceAccount:speech-eu@acme-ml.iam.gserviceaccount.com"
    assert found["eu"] == {
        Membership("projects/acme-ml", "roles/aiplatform.user", speech),
        Membership("projects/acme-ml", "roles/logging.logWriter", speech),
    }


def test_the_policy_of_a_project_is_judged_if_the_stack_says_so() -> None:
    mine = Membership("projects/acme", "roles/a", "user:a@example.com")
    theirs = Membership("projects/acme", "roles/b", "user:b@example.com")
    elsewhere = Membership("projects/other", "roles/b", "user:b@example.com")
    declared = Declared(frozenset({mine}), ("b/data",), ("projects/acme",), frozenset())
    beside = {"eu": frozenset({theirs, elsewhere}), "wrong": None}

    def found(policy: str, drift: Drift) -> Drift:
        settings: Any = SimpleNamespace(
            project="acme", project_number="42", drift=SimpleNamespace(project_policy=policy)
        )
        return command.with_project_policy(drift, settings, beside)

    assert found("judged", CLEAN) == CLEAN
    known = dataclasses.replace(CLEAN, declared=declared)
    assert found("own", known) == dataclasses.replace(
        known, declared=dataclasses.replace(declared, project_number="42")
    )
    assert found("judged", known) == dataclasses.replace(
        known,
        declared=Declared(
            frozenset({mine, theirs}), ("b/data", "projects/acme"), ("projects/acme",),
            frozenset(), "42",
        ),
        not_looked_at=(
            "members that stack wrong declares on the project, because its stack file is not valid",
        ),
    )  # fmt: skip
