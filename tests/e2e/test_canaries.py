"""Tests with known secrets in every input, and a search for them in all outputs."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from tests.e2e import only_jobs
from tests.e2e.only_jobs import ROOT, Project
from tests.fixture_project import source_path

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

CONFIG = "canary-config-4c1f09d7e2"
PASSPHRASE = "canary-passphrase-98ab77"
ENVIRONMENT = {
    name: f"canary-{name.lower().replace('_', '-')}-51d3"
    for name in (
        "WANDB_API_KEY", "HF_TOKEN", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD",
        "PULUMI_ACCESS_TOKEN",
    )
}  # fmt: skip
CANARIES = (CONFIG, PASSPHRASE, *ENVIRONMENT.values())
#: A job that shows all it is given, and then fails.
NOSY = {"script": "env; set; cat /proc/self/environ; exit 3", "wait": "succeeded"}


@pytest.fixture(scope="module")
def env(project: Project) -> dict[str, str]:
    """Return a user's shell with passphrase, state and secrets; Google Cloud is the local cloud."""
    wanted = ("VERTEX_EMULATOR_HOST", "STORAGE_EMULATOR_HOST", "VT_LOCAL_HOME", "PATH")
    shown = project.vt("local", "shell", "-c", "env").splitlines()
    local = {line.partition("=")[0]: line.partition("=")[2] for line in shown}
    shim = str(project.home.bin)
    tools = project.path / "tools"  # the stand-in for the gcp plugin, not the shim for pulumi
    tools.mkdir()
    (tools / "pulumi-resource-gcp").symlink_to(project.home.bin / "pulumi-resource-gcp")
    path = [str(tools), *(part for part in local["PATH"].split(os.pathsep) if part != shim)]
    state = project.path / "state"
    state.mkdir()
    return {
        **{key: local[key] for key in wanted},
        **ENVIRONMENT,
        "PATH": os.pathsep.join(path),
        "HOME": str(project.path),
        "PYTHONPATH": source_path(ROOT),
        "PULUMI_HOME": str(project.path / "pulumi-home"),
        "PULUMI_BACKEND_URL": f"file://{state}",
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_EXPERIMENTAL": "true",
        "PULUMI_DEBUG_COMMANDS": "true",
    }


@pytest.fixture(scope="module")
def service_of_nothing() -> Iterator[str]:
    """Yield a service that answers UNIMPLEMENTED: an error in the provider without retries."""
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait(10)


@pytest.fixture(scope="module")
def told(project: Project, env: dict[str, str], service_of_nothing: str) -> dict[str, str]:
    """Return the output of each command by name; files are below the project's folder."""

    def pulumi(*arguments: str, **more: str) -> str:
        done = subprocess.run(
            ["pulumi", *arguments, "--non-interactive"], cwd=project.path, env={**env, **more},
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=300,
        )  # fmt: skip
        return done.stdout

    project.want(nosy=NOSY)
    pulumi("stack", "init", "canary")
    (project.path / "Pulumi.canary.yaml").open("a").write(only_jobs.STACK_FILE)
    pulumi("config", "set", "--secret", "token", CONFIG, "-s", "canary")
    assert pulumi("config", "get", "token", "-s", "canary").strip() == CONFIG
    stack = ("-s", "canary")
    up = ("up", *stack, "--yes", "--skip-preview")
    return {
        "preview": pulumi("preview", *stack, "--diff", "--save-plan", "plan.json"),
        "preview as JSON": pulumi("preview", *stack, "--json"),
        "events of the preview": pulumi(
            "preview", *stack, "--json", PULUMI_ENABLE_STREAMING_JSON_PREVIEW="true"
        ),
        "up that cannot submit": pulumi(*up, VERTEX_EMULATOR_HOST=service_of_nothing),
        "up": pulumi(*up, "--event-log", "events.json"),
        "refresh": pulumi("refresh", *stack, "--yes", "--skip-preview"),
        "export": pulumi("stack", "export", *stack),
        "outputs": pulumi("stack", "output", *stack, "--json"),
        "history": pulumi("stack", "history", *stack, "--json"),
    }


def leaks(data: bytes) -> list[str]:
    """Return the canaries in the bytes, also encoded as pickles, tokens or headers."""
    forms = {
        canary: [
            canary.encode(),
            base64.b64encode(canary.encode())[:-4],
            canary.encode().hex().encode(),
        ]
        for canary in CANARIES
    }
    return [canary for canary, wanted in forms.items() if any(form in data for form in wanted)]


def test_canary_commands_ran_as_expected(told: dict[str, str], project: Project) -> None:
    assert "training-nosy" in told["preview"]
    assert json.loads(told["preview as JSON"])["steps"]
    assert "error" in told["up that cannot submit"]
    assert "job 'nosy' is FAILED" in told["up"]
    assert "CLOUD_ML_JOB_ID" in told["up"] or "AIP_" in told["up"]  # the log of its `env`
    assert "customJobs" in told["export"]
    assert "[secret]" in told["history"] or '"secret": true' in told["history"]
    for written in ("plan.json", "events.json"):
        assert (project.path / written).stat().st_size > 100


def test_printed_output_contains_no_secret(told: dict[str, str]) -> None:
    assert {name: found for name, text in told.items() if (found := leaks(text.encode()))} == {}


def test_written_files_contain_no_secret(told: dict[str, str], project: Project) -> None:
    files = [path for path in project.path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert {str(path): found for path in files if (found := leaks(path.read_bytes()))} == {}
    searched = {str(path.relative_to(project.path)) for path in files}
    for kind in ("state/.pulumi/stacks", "state/.pulumi/history", "state/.pulumi/backups",
                 ".vt-local/cloud.sqlite", f".vt-local/storage/{only_jobs.CONTROL}/submissions",
                 ".vt-local/jobs", ".vt-local/server.log", "plan.json", "events.json"):  # fmt: skip
        assert any(name.startswith(kind) for name in searched), kind


def test_search_detects_an_existing_secret() -> None:
    assert leaks(b"x" + CONFIG.encode()) == [CONFIG]
    assert leaks(base64.b64encode(PASSPHRASE.encode())) == [PASSPHRASE]
