"""The table of commands: the function of each command, and the help text of each group.

The docstring of a function is its help. To add a verb, write its function and add a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Titles of the panels of ``vt --help``, with their commands and groups.
PANELS: Final[Mapping[str, tuple[str, ...]]] = {
    "Jobs": (
        *("check", "run", "jobs", "new", "import", "render", "catalogue"),
        *("models", "endpoints", "data"),
    ),
    "Review and deploy": (
        *("review", "preflight", "up", "images", "promote", "diff", "drift", "iam"),
        *("approval", "deploy", "destroy"),
    ),
    "Local cloud": ("local",),
    "Repository and setup": ("setup", "init", "upgrade", "github"),
}
#: Help texts of groups by path. The first group is ``vt`` itself.
GROUPS: Final[Mapping[str, str]] = {
    "": "",
    "new": "Create a job from a template. Shows the diff first.",
    "jobs": "List, show, compare, follow and cancel jobs, in Vertex AI or in the local cloud.",
    "images": "Build, pin, list and check the container images of a stack.",
    "models": "List models in the registry, and their versions.",
    "endpoints": "List endpoints, wait for a deployment, and send predictions.",
    "data": "Manage the stack's snapshots of BigQuery queries.",
    "data snapshots": "List, compare and delete the stack's snapshots of BigQuery queries.",
    "github": "Write comments, approvals and issues on GitHub from workflows, through `gh`.",
    "local": (
        "Run a local cloud on this machine: test a stack without an account or a network.\n\n"
        "The local cloud's files are in VT_LOCAL_HOME (default: .vt-local in the checkout)."
    ),
    "local fault": "Inject faults: lost responses, refusals, stock-outs, preemptions.",
    "local secret": "Set values of secrets in the local cloud.",
}
#: Functions of commands in this package, by the path of the command.
VERBS: Final[Mapping[str, str]] = {
    "setup": "setup:setup",
    "check": "check.command:check",
    "render": "render:render",
    "import": "importing.command:import_",
    "init": "init.command:init",
    "upgrade": "init.command:upgrade",
    "catalogue": "catalogue:catalogue",
    "review": "review.command:review",
    "up": "up.command:up",
    "run": "run.command:run",
    "destroy": "up.destroy:destroy",
    "promote": "images.command:promote",
    "approval": "deploy.command:approval",
    "deploy": "deploy.command:deploy",
    "diff": "diff:diff",
    "drift": "drift.command:drift",
    "preflight": "preflight.command:preflight",
    "iam": "iam:iam",
    "new job": "job_files:new_job",
    "jobs list": "jobs.command:list_",
    "jobs show": "jobs.command:show_",
    "jobs compare": "jobs.command:compare_",
    "jobs logs": "jobs.command:logs",
    "jobs artifacts": "jobs.command:artifacts",
    "jobs wait": "jobs.command:wait",
    "jobs cancel": "jobs.command:cancel",
    "jobs advance": "jobs.advance:advance",
    "jobs rerun": "job_files:rerun",
    "images build": "images.command:build",
    "images list": "images.command:list_",
    "images check": "images.command:check",
    "models list": "serving.models:list_",
    "models show": "serving.models:show_",
    "endpoints list": "serving.endpoints:list_",
    "endpoints wait": "serving.endpoints:wait",
    "endpoints predict": "serving.endpoints:predict",
    "data snapshots list": "data.snapshots:list_",
    "data snapshots diff": "data.snapshots:diff",
    "data snapshots delete": "data.snapshots:delete",
    "github comment": "github.command:comment",
    "github approval": "github.command:approval",
    "github drift": "github.command:drift",
    "local up": "local.up:up",
    "local start": "local.commands:start",
    "local stop": "local.commands:stop",
    "local down": "local.commands:down",
    "local status": "local.status:status",
    "local shell": "local.commands:shell",
    "local bigquery": "local.commands:bigquery",
    "local fault add": "local.fault_commands:add",
    "local fault list": "local.fault_commands:show",
    "local fault clear": "local.fault_commands:clear",
    "local fault release": "local.fault_commands:release",
    "local fault wait": "local.fault_commands:wait",
    "local secret set": "local.commands:set_value",
}
