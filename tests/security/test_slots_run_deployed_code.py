"""Tests that the schedule timer runs the deployed commit, with permissions on that stack only.

A merge changes what the next deployment runs, after its approval, and nothing that runs before.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
SCRIPT: Final = "tools/deployed_commit.py"
CHECKOUT, AUTH = "actions/checkout", "google-github-actions/auth"
#: In place of gcloud: ``gs://state`` is a folder.
GCLOUD: Final = """#!{python}
import os, pathlib, sys
storage, verb, url = sys.argv[1:]
folder = pathlib.Path(os.environ["STATE"])
if verb == "ls":
    found = sorted(folder.glob(url.removeprefix("gs://state/")))
    print("".join(f"gs://state/{{each.relative_to(folder)}}\\n" for each in found), end="")
    sys.exit(0 if found else "ERROR: One or more URLs matched no objects.")
sys.stdout.buffer.write((folder / url.removeprefix("gs://state/")).read_bytes())
"""


def timers(root: Path) -> dict[Any, Any]:
    return yaml.safe_load((root / ".github/workflows/advance.yml").read_text())


@pytest.fixture(scope="module", params=["this repository", "one of vt init"])
def repository(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "this repository":
        return ROOT
    root = tmp_path_factory.mktemp("new") / "x"
    vt = Path(sys.executable).with_name("vt")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com"]
    ids = ["--project", "acme-ml-dev", "--number", "210987654321", "--name", "acme"]
    subprocess.run([vt, "init", root, "--no-wheels", *ids], check=True)
    for command in (
        [*git, "init", "-q"], [*git, "add", "-A"], [*git, "commit", "-qm", "first"],
        [vt, "init", "--environment", "prod"], [*git, "cherry-pick", "vt-environment-prod"],
    ):  # fmt: skip
        subprocess.run(command, cwd=root, check=True)
    return root


def test_timer_of_each_stack_runs_the_deployed_commit_without_cache(repository: Path) -> None:
    workflow = timers(repository)
    assert workflow[True].keys() == {"schedule", "workflow_dispatch"}
    assert workflow["jobs"].keys() == {"dev", "prod"}
    for stack, job in workflow["jobs"].items():
        assert job["environment"] == f"{stack}-advance"
        assert job["env"]["STACK"] == stack
        steps = [
            (step.get("uses", "").partition("@")[0] or step["run"], step.get("with", {}))
            for step in job["steps"]
        ]
        provider = f"${{{{ vars.GCP_WORKLOAD_IDENTITY_PROVIDER_{stack.upper()} }}}}"
        sign_in = {"workload_identity_provider": provider, "create_credentials_file": True}
        assert steps == [
            (CHECKOUT, {"persist-credentials": False, "fetch-depth": 0}),
            (AUTH, sign_in),
            ("make deployed", {}),
            (CHECKOUT, {"persist-credentials": False,
                        "ref": "${{ steps.deployed.outputs.commit }}"}),
            ("make setup", {}),
            (AUTH, sign_in),  # the checkout removed the credentials
            ("make advance", {}),
        ]  # fmt: skip
        assert [step["id"] for step in job["steps"] if "id" in step] == ["deployed"]


def test_code_of_main_installs_nothing_and_has_owners(repository: Path) -> None:
    shown = subprocess.run(
        ["make", "-n", "deployed", "STACK=prod"],
        cwd=repository, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert shlex.split(shown) == ["python3", SCRIPT, "prod"]
    assert (repository / SCRIPT).read_bytes() == (ROOT / SCRIPT).read_bytes()
    owned = [line.split()[0] for line in (repository / ".github/CODEOWNERS").read_text().split("\n")
             if line.startswith("/")]  # fmt: skip
    assert {"/.github/", "/Makefile", "/tools/", "/Pulumi.yaml"} <= {*owned}


class Repository:
    """A repository with ``gs://state``, and the program of main that the workflow runs."""

    def __init__(self, folder: Path) -> None:
        self.root, self.state = folder / "checkout", folder / "state"
        self.output = folder / "output"
        for each in (self.root, self.state, folder / "bin"):
            each.mkdir()
        gcloud = folder / "bin" / "gcloud"
        gcloud.write_text(GCLOUD.format(python=sys.executable))
        gcloud.chmod(0o700)
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "STATE": str(self.state),
            "PULUMI_BACKEND_URL": "gs://state",
            "GITHUB_OUTPUT": str(self.output),
        }
        self.git("init", "-q", "-b", "main")
        (self.root / "Pulumi.yaml").write_text("name: acme\n")
        self.git("add", "Pulumi.yaml")

    def git(self, *command: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        done = subprocess.run(
            ["git", *who, *command],
            cwd=self.root, env=self.env, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, text: str = "x") -> str:
        self.git("commit", "-q", "--allow-empty", "-m", text)
        return self.git("rev-parse", "HEAD")

    def update(self, at: int, content: Any) -> None:
        """Write an update like the engine."""
        folder = self.state / ".pulumi/history/acme/prod"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"prod-17958989014884874{at:02}.history.json"
        file.write_text(content if isinstance(content, str) else json.dumps(content))

    def deployed(self) -> tuple[str, str]:
        """Return the commit of the step's output, and what was printed."""
        self.output.write_text("")
        done = subprocess.run(
            [sys.executable, str(ROOT / SCRIPT), "prod"],
            cwd=self.root, env=self.env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        written = self.output.read_text()
        assert (done.returncode == 0) == written.startswith("commit=")
        return written.removeprefix("commit=").strip(), done.stdout + done.stderr


@pytest.fixture
def main(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def of(commit: str, kind: str = "update", result: str = "succeeded") -> dict[str, Any]:
    return {"kind": kind, "environment": {"git.head": commit}, "result": result}


def test_timer_does_not_run_a_merge_before_its_deployment(main: Repository) -> None:
    first, deployed, merged = main.commit("1"), main.commit("2"), main.commit("3")
    main.update(1, of(first))
    main.update(2, of(deployed))
    assert main.deployed()[0] == deployed
    main.update(10, of(merged))
    assert main.deployed()[0] == merged


def test_timer_ignores_updates_of_commits_outside_of_main(main: Repository) -> None:
    deployed = main.commit("1")
    main.git("checkout", "-q", "-b", "topic")
    branch = main.commit("not merged")
    main.git("checkout", "-q", "main")
    later = main.commit("2")
    main.update(1, of(deployed))
    for at, other in enumerate(
        [of(branch), of("f" * 40), of(deployed[:12]), of("main"), of("--help"), of(""),
         of(branch, "refresh"), of(later, result="failed"), of(later, result="in-progress"),
         {"kind": "update"}, [], "{", {"environment": None}], 2,
    ):  # fmt: skip
        main.update(at, other)
    commit, printed = main.deployed()
    assert commit == deployed
    assert (
        "prod-1795898901488487402.history.json is not a successful update from a commit" in printed
    )


@pytest.mark.parametrize("update", [None, of("f" * 40)])
def test_timer_checks_out_nothing_without_a_deployment_of_main(
    main: Repository, update: Any
) -> None:
    main.commit()
    if update:
        main.update(1, update)
    commit, printed = main.deployed()
    assert commit == ""
    assert "deploy" in printed.lower()
    assert "Traceback" not in printed


def test_engine_records_the_commit_of_each_deployment(main: Repository, tmp_path: Path) -> None:
    """The newest commit counts, also with compressed state files."""
    (main.root / "Pulumi.yaml").write_text(
        f"name: acme\nruntime: {{name: python, options: {{virtualenv: {ROOT / '.venv'}}}}}\n"
    )
    (main.root / "__main__.py").write_text("")
    main.git("add", ".")
    first = main.commit()
    tools = f"{ROOT / '.venv/bin'}{os.pathsep}{main.env['PATH']}"
    env = {
        **main.env, "PATH": tools, "PULUMI_BACKEND_URL": f"file://{main.state}",
        "PULUMI_CONFIG_PASSPHRASE": "x", "PULUMI_HOME": str(tmp_path / "home"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }  # fmt: skip

    def pulumi(command: str, *, fails: bool = False, **more: str) -> None:
        words, variables = ["pulumi", *command.split()], {**env, **more}
        done = subprocess.run(words, cwd=main.root, env=variables, capture_output=True, check=False)
        assert bool(done.returncode) == fails, done

    pulumi("stack init prod")
    pulumi("up --yes --skip-preview --stack prod")
    second = main.commit("merged, not deployed")
    assert main.deployed()[0] == first
    pulumi("up --yes --skip-preview --stack prod", PULUMI_DIY_BACKEND_GZIP="true")
    main.commit("merged, not deployed")
    assert main.deployed()[0] == second
    (main.root / "__main__.py").write_text("raise SystemExit(1)\n")
    main.git("add", ".")
    main.commit("deployed in vain")
    pulumi("up --yes --skip-preview --stack prod", fails=True)
    assert main.deployed()[0] == second
