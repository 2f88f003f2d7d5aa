"""What takes protection away: the hint names the file where the value stands."""

from __future__ import annotations

from pathlib import Path

from vertex_training_cli.up.destroy import protection_hints

STACK = """\
config:
  gcp:project: acme-ml
  gcp:region: europe-west4
  vertex-training:projectNumber: "210987654321"
  vertex-training:include: [stacks/teams.yaml]
  vertex-training:buckets: {own: {protect: true}}
"""
TEAMS = """\
config:
  vertex-training:buckets:
    vision: {protect: true}
    named: {protect: true, name: acme-named}
    free: {}
  vertex-training:secrets: {wandb: {protect: true}}
  vertex-training:registry: {protect: true}
  vertex-training:reservations:
    gpus: {machineType: g2-standard-12, count: 1, zone: europe-west4-a, protect: true}
"""


def hints(root: Path, more: str = "") -> dict[str, str]:
    (root / "stacks").mkdir()
    (root / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (root / "Pulumi.eu.yaml").write_text(STACK + more)
    (root / "stacks/teams.yaml").write_text(TEAMS)
    return protection_hints(root, "eu")


def test_an_exception_that_is_not_deployed_yet_is_no_longer_asked_for(tmp_path: Path) -> None:
    more = "  vertex-training:overrides: {buckets.vision.protect: false}\n"
    assert hints(tmp_path, more)["acme-ml-vision-eu"] == (
        "Pulumi.eu.yaml no longer protects the resource, but the deployed stack still does: "
        "deploy the stack first"
    )
