"""The table of commands: what each verb runs, and the examples at the end of each help.

To add a verb, write its function and add a row here. A test parses every example.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Group(NamedTuple):
    """A group of verbs."""

    help: str
    examples: tuple[str, ...]


class VerbRow(NamedTuple):
    """A verb: a function, ``module:name``, whose docstring is its help."""

    function: str
    examples: tuple[str, ...]


def _group(text: str, *examples: str) -> Group:
    return Group(text, examples)


def _verb(function: str, *examples: str) -> VerbRow:
    return VerbRow(f"vertex_training_cli.{function}", examples)


#: Path of a group -> its help, and lines for a shell, the most usual first. The first is ``vt``.
GROUPS: Final[Mapping[str, Group]] = {
    "": _group("", "vt check jobs/train.yaml", "vt review --stack dev", "vt up --stack local"),
    "new": _group("New jobs from a template, shown as a diff first.", "vt new job train"),
    "jobs": _group(
        "Jobs and tuning jobs of a stack, in Vertex AI or in the local cloud.",
        "vt jobs list",
        "vt jobs logs titanic --follow",
    ),
    "images": _group(
        "Images of a stack: build, pin, list, check.",
        "vt images build titanic",
        "vt images list --stack dev",
    ),
    "models": _group(
        "Models of a stack in the registry, and the runs behind their versions.",
        "vt models list",
        "vt models compare titanic",
    ),
    "endpoints": _group(
        "Endpoints of a stack: what they serve, and predictions.",
        "vt endpoints list",
        "vt endpoints predict titanic --input rows.jsonl",
    ),
    "data": _group(
        "Folders of data, to and from a bucket of the stack.",
        "vt data push data/titanic jobs/data/titanic",
        "vt data ls artifacts",
    ),
    "data snapshots": _group(
        "Results of queries in BigQuery that the stack keeps: list, compare, delete.",
        "vt data snapshots list",
        "vt data snapshots diff clicks",
    ),
    "github": _group(
        "For workflows: comments, approvals and issues, through GitHub's command gh.",
        "vt github comment --stack dev -o kept.json",
    ),
    "local": _group(
        "Google Cloud on this machine: rehearse a stack with no account and no network.\n\n"
        "Files lie in VT_LOCAL_HOME (default: .vt-local in the checkout).",
        "vt local up",
        "vt local shell",
        "vt local down --clean",
    ),
    "local fault": _group(
        "Let something go wrong on purpose: lost answers, refusals, stock-outs, preemptions.",
        "vt local fault add jobs preempt",
        "vt local fault clear",
    ),
    "local secret": _group(
        "Values of secrets in the local cloud.", "vt local secret set wandb-api-key"
    ),
}
#: Path of a verb -> what it runs.
VERBS: Final[Mapping[str, VerbRow]] = {
    "setup": _verb("setup:setup", "vt setup", "VT_PULUMI_SOURCE=path vt setup"),
    "check": _verb(
        "check.command:check",
        "vt check",
        "vt check jobs/train.yaml --stack dev",
        "vt check --fix --dry-run",
        "vt check jobs/train.yaml --watch",
        "vt check --stack dev --format sarif",
        "kustomize build jobs | vt check -",
    ),
    "render": _verb(
        "render:render",
        "vt render titanic --stack local",
        "vt render jobs/train.yaml -s dev --format json",
    ),
    "import": _verb(
        "importing.command:import_",
        "vt import vertex_config.yaml",
        "vt import train.ipynb --stack dev --write",
        "vt import batch-job.json --write",
        "vt import --job 1234567890 --stack dev",
        "vt import tutorial.md --fix --up",
        "vt import --state --stack dev --write",
    ),
    "init": _verb(
        "init.command:init",
        "vt init acme --project acme-ml-dev --number 210987654321",
        "vt init --environment staging",
        "vt init --environment qa --before prod",
    ),
    "upgrade": _verb("init.upgrading:upgrade", "vt upgrade"),
    "catalogue": _verb(
        "catalogue:catalogue",
        "vt catalogue --accelerator L4",
        "vt catalogue --region europe-west4 --format json",
    ),
    "review": _verb(
        "review.command:review",
        "vt review --stack dev",
        "vt review --stack dev --offline",
        "vt review --stack dev -o plan.md -o plan.html",
    ),
    "up": _verb("up.command:up", "vt up --stack local", "vt up --stack dev --yes"),
    "run": _verb(
        "run.command:run",
        "vt run titanic -- --epochs=3",
        "vt run jobs/train.yaml --stack dev",
        "vt run train.py -- --learning-rate=0.1",
    ),
    "tensorboard": _verb(
        "jobs.tensorboard:tensorboard",
        "vt tensorboard",
        "vt tensorboard titanic 1234567890 --port 7007",
        "vt tensorboard --install",
    ),
    "destroy": _verb(
        "up.destroy:destroy",
        "vt destroy --stack dev",
        "vt destroy --stack dev --yes --name dev",
    ),
    "verify": _verb(
        "verify.command:verify",
        "vt verify --stack first --max-usd 5",
        "vt verify --stack first --max-usd 1 --yes --keep",
    ),
    "promote": _verb("images.command:promote", "vt promote titanic --from dev --to prod"),
    "approval": _verb(
        "deploy.command:approval", "vt approval --stack dev plan.json -o approval.json"
    ),
    "deploy": _verb("deploy.command:deploy", "vt deploy --stack dev --approval approval.json"),
    "diff": _verb("diff:diff", "vt diff dev prod", "vt diff dev prod --format json"),
    "drift": _verb(
        "drift.command:drift", "vt drift --stack dev", "vt drift --stack dev --output drift"
    ),
    "preflight": _verb(
        "preflight.command:preflight",
        "vt preflight --stack dev",
        "vt preflight --stack prod --format markdown",
    ),
    "iam": _verb("iam:iam", "vt iam", "vt iam dev --format json"),
    "new job": _verb(
        "new_job:job",
        "vt new job train",
        "vt new job tune --image trainer --write",
    ),
    "jobs list": _verb(
        "jobs.command:list_",
        "vt jobs list --stack dev",
        "vt jobs list --state running --label team=ml",
        "vt jobs list --all --format json",
    ),
    "jobs show": _verb(
        "jobs.command:show_", "vt jobs show titanic", "vt jobs show 1234567890 --format json"
    ),
    "jobs compare": _verb(
        "jobs.command:compare_",
        "vt jobs compare 1234567890 1234567891",
        "vt jobs compare titanic run_titanic --format json",
    ),
    "jobs logs": _verb(
        "jobs.command:logs",
        "vt jobs logs titanic --follow",
        "vt jobs logs titanic --replica workerpool1-0",
        "vt jobs logs titanic --tail 20",
    ),
    "jobs artifacts": _verb(
        "jobs.command:artifacts",
        "vt jobs artifacts titanic",
        "vt jobs artifacts titanic ./results --stack dev",
    ),
    "jobs wait": _verb(
        "jobs.command:wait",
        "vt jobs wait titanic --deadline 2h",
        "vt jobs wait titanic other --for running",
    ),
    "jobs cancel": _verb(
        "jobs.command:cancel", "vt jobs cancel titanic", "vt jobs cancel 1234567890 --yes"
    ),
    "jobs advance": _verb(
        "advance.command:advance", "vt jobs advance --stack dev", "vt jobs advance --dry-run"
    ),
    "jobs rerun": _verb(
        "rerun:rerun",
        "vt jobs rerun titanic",
        "vt jobs rerun titanic --args '--epochs=300' --write",
    ),
    "images build": _verb(
        "images.command:build",
        "vt images build",
        "vt images build titanic --stack dev --timeout 30m",
        "vt images build titanic --engine podman --log",
    ),
    "images list": _verb(
        "images.command:list_", "vt images list", "vt images list --stack dev --format json"
    ),
    "images check": _verb("images.command:check", "vt images check --stack dev"),
    "models list": _verb(
        "serving.models:list_", "vt models list", "vt models list --stack dev --format json"
    ),
    "models show": _verb("serving.models:show_", "vt models show titanic"),
    "models compare": _verb(
        "serving.models:compare_", "vt models compare titanic", "vt models compare titanic 3 4"
    ),
    "endpoints list": _verb(
        "serving.endpoints:list_", "vt endpoints list", "vt endpoints list --format json"
    ),
    "endpoints wait": _verb(
        "serving.endpoints:wait",
        "vt endpoints wait titanic",
        "vt endpoints wait titanic --stack dev --deadline 1h",
    ),
    "endpoints predict": _verb(
        "serving.endpoints:predict",
        "vt endpoints predict titanic --input rows.jsonl",
        "vt endpoints predict titanic -i - < rows.jsonl",
    ),
    "data push": _verb(
        "data.command:push",
        "vt data push data/titanic jobs/data/titanic",
        "vt data push data DIR --exclude '*.tmp' --dry-run",
    ),
    "data pull": _verb("data.command:pull", "vt data pull artifacts/titanic ./results"),
    "data ls": _verb("data.command:ls", "vt data ls artifacts/titanic --stack dev"),
    "data snapshots list": _verb(
        "data.snapshots:list_", "vt data snapshots list", "vt data snapshots list --format json"
    ),
    "data snapshots diff": _verb(
        "data.snapshots:diff",
        "vt data snapshots diff clicks",
        "vt data snapshots diff clicks 1 2 --stack dev",
    ),
    "data snapshots delete": _verb(
        "data.snapshots:delete", "vt data snapshots delete clicks 1 --stack dev"
    ),
    "github comment": _verb("github.command:comment", "vt github comment --stack dev -o kept.json"),
    "github approval": _verb(
        "github.command:approval", "vt github approval --stack dev -o approval.json"
    ),
    "github drift": _verb("github.command:drift", "vt github drift --stack dev drift.md"),
    "local up": _verb("local.up:up", "vt local up", "vt local up --stack local --no-wait"),
    "local start": _verb("local.commands:start", "vt local start"),
    "local stop": _verb("local.commands:stop", "vt local stop"),
    "local down": _verb("local.commands:down", "vt local down", "vt local down --clean"),
    "local status": _verb("local.status:status", "vt local status"),
    "local shell": _verb(
        "local.commands:shell", "vt local shell", "vt local shell -c 'pulumi preview -s local'"
    ),
    "local logs": _verb(
        "local.joblogs:logs",
        "vt local logs titanic --follow",
        "vt local logs titanic-search --trial 3",
    ),
    "local bigquery": _verb(
        "local.commands:bigquery", "vt local bigquery --install", "vt local bigquery"
    ),
    "local fault add": _verb(
        "local.fault_commands:add",
        "vt local fault add jobs preempt --match titanic",
        "vt local fault add jobs error --code UNAVAILABLE",
        "vt local fault add storage error --code 503",
    ),
    "local fault list": _verb("local.fault_commands:show", "vt local fault list --json"),
    "local fault clear": _verb(
        "local.fault_commands:clear", "vt local fault clear", "vt local fault clear 1"
    ),
    "local fault release": _verb("local.fault_commands:release", "vt local fault release 1"),
    "local fault wait": _verb("local.fault_commands:wait", "vt local fault wait 1 --timeout 30"),
    "local secret set": _verb(
        "local.commands:set_value",
        "vt local secret set wandb-api-key",
        "vt local secret set wandb-api-key < key.txt",
    ),
}
