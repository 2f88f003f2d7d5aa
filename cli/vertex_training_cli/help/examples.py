"""Examples of each command, shown at the end of its ``--help``. A test parses every one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

#: Command -> lines for a shell, the most usual first.
EXAMPLES: Final[Mapping[str, Sequence[str]]] = {
    "": ("vt check jobs/train.yaml", "vt review --stack dev", "vt up --stack local"),
    "setup": ("vt setup", "VT_PULUMI_SOURCE=path vt setup"),
    "check": (
        "vt check",
        "vt check jobs/train.yaml --stack dev",
        "vt check --fix --dry-run",
        "vt check jobs/train.yaml --watch",
        "vt check --stack dev --format sarif",
        "kustomize build jobs | vt check -",
    ),
    "render": (
        "vt render titanic --stack local",
        "vt render jobs/train.yaml -s dev --format json",
    ),
    "import": (
        "vt import vertex_config.yaml",
        "vt import train.ipynb --stack dev --write",
        "vt import --job 1234567890 --stack dev",
        "vt import tutorial.md --fix --up",
        "vt import --state --stack dev --write",
    ),
    "init": (
        "vt init acme --project acme-ml-dev --number 210987654321",
        "vt init --environment staging",
        "vt init --environment prod --project acme-prod --write",
    ),
    "upgrade": ("vt upgrade", "vt upgrade --write"),
    "new": ("vt new job train --package",),
    "new job": (
        "vt new job train --package --machine n1-standard-8",
        "vt new job tune --image trainer --write",
        "vt new job big --package --spot --timeout 4h",
    ),
    "catalogue": (
        "vt catalogue --accelerator L4",
        "vt catalogue --region europe-west4 --format json",
    ),
    "review": (
        "vt review --stack dev",
        "vt review --stack dev --offline",
        "vt review --stack dev -o plan.md -o plan.html",
    ),
    "up": ("vt up --stack local", "vt up --stack dev --yes"),
    "run": (
        "vt run titanic -- --epochs=3",
        "vt run jobs/train.yaml --stack dev",
        "vt run train.py -- --learning-rate=0.1",
    ),
    "destroy": ("vt destroy --stack dev", "vt destroy --stack dev --yes --name dev"),
    "promote": ("vt promote titanic --from dev --to prod",),
    "approval": ("vt approval --stack dev plan.json -o approval.json",),
    "deploy": ("vt deploy --stack dev --approval approval.json",),
    "diff": ("vt diff dev prod", "vt diff dev prod --format json"),
    "drift": ("vt drift --stack dev", "vt drift --stack dev --output drift"),
    "iam": ("vt iam", "vt iam dev --format json"),
    "jobs": ("vt jobs list", "vt jobs logs titanic --follow"),
    "jobs list": (
        "vt jobs list --stack dev",
        "vt jobs list --state running --label team=ml",
        "vt jobs list --all --format json",
    ),
    "jobs compare": (
        "vt jobs compare 1234567890 1234567891",
        "vt jobs compare titanic run_titanic --format json",
    ),
    "jobs show": ("vt jobs show titanic", "vt jobs show 1234567890 --format json"),
    "jobs logs": (
        "vt jobs logs titanic --follow",
        "vt jobs logs titanic --replica workerpool1-0",
        "vt jobs logs titanic --tail 20",
    ),
    "jobs wait": (
        "vt jobs wait titanic --deadline 2h",
        "vt jobs wait titanic other --for running",
    ),
    "jobs cancel": ("vt jobs cancel titanic", "vt jobs cancel 1234567890 --yes"),
    "jobs rerun": (
        "vt jobs rerun titanic",
        "vt jobs rerun titanic --args '--epochs=300' --write",
    ),
    "jobs artifacts": (
        "vt jobs artifacts titanic",
        "vt jobs artifacts titanic ./results --stack dev",
    ),
    "images": ("vt images build titanic", "vt images list --stack dev"),
    "images build": (
        "vt images build",
        "vt images build titanic --stack dev --timeout 30m",
        "vt images build titanic --engine podman --log",
    ),
    "images list": ("vt images list", "vt images list --stack dev --format json"),
    "images check": ("vt images check --stack dev",),
    "data": ("vt data push data/titanic jobs/data/titanic", "vt data ls artifacts"),
    "data push": (
        "vt data push data/titanic jobs/data/titanic",
        "vt data push data DIR --exclude '*.tmp' --dry-run",
    ),
    "data pull": ("vt data pull artifacts/titanic ./results",),
    "data ls": ("vt data ls artifacts/titanic --stack dev",),
    "github": ("vt github doctor --repository acme/training",),
    "github comment": ("vt github comment --stack dev -o kept.json",),
    "github approval": ("vt github approval --stack dev -o approval.json",),
    "github drift": ("vt github drift --stack dev drift.md",),
    "github doctor": (
        "vt github doctor --repository acme/training",
        "vt github doctor --format json",
    ),
    "local": ("vt local up", "vt local shell", "vt local down --clean"),
    "local up": ("vt local up", "vt local up --stack local --no-wait"),
    "local start": ("vt local start",),
    "local stop": ("vt local stop",),
    "local down": ("vt local down", "vt local down --clean"),
    "local status": ("vt local status",),
    "local shell": (
        "vt local shell",
        "vt local shell -c 'pulumi preview -s local'",
    ),
    "local secret": ("vt local secret set wandb-api-key",),
    "local secret set": (
        "vt local secret set wandb-api-key",
        "vt local secret set wandb-api-key < key.txt",
    ),
    "local logs": ("vt local logs titanic --follow", "vt local logs titanic-search --trial 3"),
    "local fault": ("vt local fault add jobs preempt", "vt local fault clear"),
    "local fault add": (
        "vt local fault add jobs preempt --match titanic",
        "vt local fault add jobs error --code UNAVAILABLE",
        "vt local fault add storage error --code 503",
    ),
    "local fault list": ("vt local fault list --json",),
    "local fault clear": ("vt local fault clear", "vt local fault clear 1"),
    "local fault release": ("vt local fault release 1",),
    "local fault wait": ("vt local fault wait 1 --timeout 30",),
}


def epilog(path: str) -> str | None:
    """The examples of a command, as the end of its help."""
    lines = EXAMPLES.get(path)
    return "\n".join(("Examples:", "", "```", *lines, "```")) if lines else None
