"""`vt github` as a workflow runs it: its variables, and a stand-in for gh on PATH."""

import io
import json
import os
import shlex
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.unit.vt.review.plans import create, lines
from vertex_training_cli.cli import app
from vertex_training_cli.deploy.approval import make_approval
from vertex_training_cli.engine import events, plan_file
from vertex_training_cli.review.report import plan_digest

STAND_IN = Path(__file__).with_name("stand_in.py")


HEAD, MERGE, TREE = "e" * 40, "c" * 40, "a" * 40
BUCKET = "gcp:storage/bucket:Bucket"
STATE_OF = "Previewed against the state in gs://acme-state"


def plan_text(bucket="data", source=STATE_OF):
    """The file of a plan that creates one bucket."""
    return plan_file.write(events.parse(lines(create(BUCKET, bucket)), "dev"), source)


def digest_of(text):
    return plan_digest(plan_file.parse(text.encode(), "dev").plan)


def approval_of(text, **changed):
    fields = {"stack": "dev", "commit": MERGE, "tree": TREE, "report": digest_of(text)}
    fields |= {"target": {"backend": "gs://acme-state"}}
    return make_approval(fields | changed).as_json()


class GitHub:
    """What the repository holds, and what is asked of it."""

    def __init__(self, file):
        self.file = file
        kinds = ("comments", "issues", "pulls", "calls", "artifacts", "open_pulls", "commits")
        kinds = (*kinds, "runs")
        file.write_text(json.dumps({kind: [] for kind in kinds}))
        self.add("commits", sha=MERGE, tree={"sha": TREE}, parents=[{"sha": "b"}, {"sha": HEAD}])
        self.open_pull()

    @property
    def state(self):
        return json.loads(self.file.read_text())

    def add(self, kind, **entry):
        state = self.state
        state[kind].append(entry)
        self.file.write_text(json.dumps(state))

    def open_pull(
        self, number=7, repository="acme/training", base="main", sha=HEAD, branch="topic"
    ):
        source = {"sha": sha, "ref": branch, "repo": {"full_name": repository}}
        entry = {"head": source, "base": {"ref": base}, "merge_commit_sha": MERGE}
        self.add("open_pulls", number=number, **entry)

    def uploaded(self, archive, name="report-dev", **changed):
        """The preview has run, and uploaded these bytes. ``changed`` is in the event."""
        number = 1 + len(self.state["artifacts"])
        file = self.file.with_name(f"{number}.zip")
        file.write_bytes(archive)
        about = {"name": name, "expired": False, "size_in_bytes": len(archive)}
        self.add("artifacts", id=number, file=str(file), workflow_run={"id": number}, **about)
        run = {
            "id": number, "event": "pull_request", "path": ".github/workflows/preview.yml",
            "head_sha": HEAD, "head_branch": "topic", "actor": {"login": "ann"},
            "head_repository": {"full_name": "acme/training"}, **changed,
        }  # fmt: skip
        event = {"workflow_run": run, "repository": {"default_branch": "main"}}
        self.file.with_name("event.json").write_text(json.dumps(event))

    def previewed(self, plan=None, approval=None, **changed):
        """The preview has run, and uploaded a plan and, with ``True`` its own, an approval."""
        plan = plan_text() if plan is None else plan
        files = {"dev.md": "never read", "dev.plan": plan}
        if approval:
            files["dev.approval.json"] = approval_of(plan) if approval is True else approval
        self.uploaded(archive_of(files), **changed)

    def told(self, *words, expect=0, **changed):
        """The comment after a preview; ``changed`` as for ``previewed``."""
        self.previewed(**changed)
        return self.tell(*words, expect=expect)

    def tell(self, *words, expect=0):
        """The job that comments; its workflow keeps what it wrote as an artifact of its run."""
        kept, outputs = self.file.with_name("kept.json"), self.file.with_name("outputs")
        outputs.unlink(missing_ok=True)
        said = self.vt("comment", "-s", "dev", "-o", kept, *words, expect=expect)
        if outputs.exists():
            name = outputs.read_text().strip().removeprefix("kept=")
            self.keep(name, kept.read_text())
        return said

    def keep(self, name, content, **run):
        """A run has kept ``content``: one that reports, but for ``run``."""
        number = 1 + len(self.state["artifacts"])
        file = self.file.with_name(f"{number}.zip")
        file.write_bytes(archive_of({"approval.json": content}))
        about = {"name": name, "expired": False, "size_in_bytes": 1, "file": str(file)}
        self.add("artifacts", id=number, workflow_run={"id": 1000 + number}, **about)
        own = {"full_name": "acme/training"}
        self.add("runs", **{
            "id": 1000 + number, "path": ".github/workflows/report.yml", "event": "workflow_run",
            "head_branch": "main", "repository": own, "head_repository": own, **run,
        })  # fmt: skip

    def kept(self):
        """What the newest report kept."""
        return json.loads(self.file.with_name("kept.json").read_text())

    def comments(self):
        return [each["body"] for each in self.state["comments"]]

    def vt(self, *words, expect=0):
        done = CliRunner().invoke(app, ["github", *map(str, words)])
        assert done.exit_code == expect, done.stderr
        return done.stderr


def archive_of(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, text in files.items():
            opened.writestr(name, text)
    return content.getvalue()


@pytest.fixture
def hub(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    command = shlex.join([sys.executable, str(STAND_IN)])
    (folder / "gh").write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    (folder / "gh").chmod(0o755)
    variables = {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "GH_STATE": str(tmp_path / "state.json"),
        "GH_TOKEN": "t",
        "GITHUB_REPOSITORY": "acme/training",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_SHA": "d" * 40,
        "GITHUB_OUTPUT": str(tmp_path / "outputs"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_RUN_ID": "42",
        "PULUMI_BACKEND_URL": "gs://acme-state",
        "VT_DEPLOY_ACCOUNT": "deploy@acme",
        "VT_IDENTITY_PROVIDER": "projects/1/x",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return GitHub(tmp_path / "state.json")
