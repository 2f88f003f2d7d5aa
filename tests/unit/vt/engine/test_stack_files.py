"""Which stack a command means, and what it says of a file that is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localgcp import environment, lifecycle
from localgcp.errors import LocalCloudError
from localgcp.home import BIGQUERY, REGISTRY, Home, Ports
from localgcp.server_info import ServerInfo
from vertex_training.errors import CommandError, UnknownStackError
from vertex_training_cli.engine import paths, stacks
from vertex_training_cli.engine.pulumi_cli import BACKEND
from vertex_training_cli.engine.stacks import PreviewTarget, StackRef
from vertex_training_cli.images.registry import connect

CONFIG = "config: {gcp:project: acme-ml, gcp:region: us-central1}\n"
REF = StackRef(Path("/srv"), "p", "dev", "acme-ml", "us-central1")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with stacks `dev` and `local`, and no pulumi."""
    (tmp_path / "Pulumi.yaml").write_text("name: training\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(CONFIG)
    (tmp_path / "Pulumi.local.yaml").write_text(CONFIG.replace("acme-ml", "local-ml"))
    monkeypatch.delenv("PULUMI_STACK", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_stack_is_named_selected_or_local(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dev = StackRef(root, "training", "dev", "acme-ml", "us-central1")
    assert stacks.find("dev") == dev
    assert stacks.find("acme/training/dev", root) == dev
    assert stacks.find(None).stack == "local"
    monkeypatch.setenv("PULUMI_STACK", "org/dev")
    assert stacks.find(None) == dev
    assert stacks.find("local").is_local
    (root / "jobs").mkdir()
    assert stacks.find("dev", root / "jobs") == dev


def test_without_a_project_there_is_no_stack(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as refused:
        stacks.find("dev", tmp_path)
    assert str(refused.value) == "there is no Pulumi.yaml here or above. Hint: go to the checkout."


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("config: {gcp:project: x}\n", "Pulumi.dev.yaml: gcp:region must be set."),
        ("", "Pulumi.dev.yaml: gcp:project and gcp:region must be set."),
        ("config: [1]\n", "Pulumi.dev.yaml: gcp:project and gcp:region must be set."),
        ("config: [\n", "Pulumi.dev.yaml is no stack file. Hint: `vt check --stack dev`"),
        ("- 1\n", "Pulumi.dev.yaml is no stack file. Hint: `vt check --stack dev`"),
        (b"\xff\xfe", "Pulumi.dev.yaml is no stack file: it is not UTF-8."),
    ],
)
def test_a_file_that_is_none_is_told(root: Path, text: str | bytes, told: str) -> None:
    file = root / "Pulumi.dev.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CommandError) as refused:
        stacks.find("dev")
    assert str(refused.value) == told


def test_a_file_that_the_engine_does_not_read_is_no_stacks(root: Path) -> None:
    (root / "Pulumi.yaml").write_text("name: p\nruntime: python\nstackConfigDir: elsewhere\n")
    with pytest.raises(UnknownStackError, match=r"\(got elsewhere\)"):
        stacks.find("dev")


def test_a_file_that_cannot_be_read_is_told_with_the_systems_reason(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied", "/srv/secret")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(CommandError) as refused:
        stacks.read_stack_file(root, "dev")
    assert str(refused.value) == "Pulumi.dev.yaml cannot be read: Permission denied."


@pytest.mark.parametrize(
    ("text", "project", "region"),
    [
        (CONFIG, "acme-ml", "us-central1"),
        ("config: {gcp:project: acme-ml}\n", "acme-ml", ""),
        ("config: {gcp:region: us-central1}\n", "", ""),
        ("config: [\n", "", ""),
        ("- 1\n", "", ""),
        ("", "", ""),
    ],
)
def test_an_unchecked_stack_has_what_its_file_says(
    root: Path, text: str, project: str, region: str
) -> None:
    (root / "Pulumi.dev.yaml").write_text(text)
    assert stacks.find_unchecked(root, "dev") == StackRef(root, "", "dev", project, region)
    assert stacks.find_unchecked(root, "gone") == StackRef(root, "", "gone", "", "")


def test_a_local_stack_that_is_connected_already_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    local = StackRef(Path("/srv"), "p", "local", "local-ml", "us-central1")
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", "127.0.0.1:1")
    assert local.environment(print) is os.environ
    assert local.running_environment() is os.environ
    assert local.deployment_environment(print) == dict(os.environ)
    before = dict(os.environ)
    local.connect_clients()
    assert dict(os.environ) == before
    monkeypatch.delenv("VERTEX_EMULATOR_HOST")
    assert REF.running_environment() is os.environ


def test_a_local_stack_is_reached_in_the_local_cloud(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = ServerInfo(4242, 1001, 1002, "now", 1003)
    monkeypatch.setattr(lifecycle, "start", lambda _home, log: log("starts") or info)
    monkeypatch.setattr(lifecycle, "running", lambda _: info)
    monkeypatch.delenv("VERTEX_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("VT_LOCAL_HOME", str(root / "home"))
    local, said = stacks.find("local"), list[str]()
    wanted = environment.environment(Home.find(cwd=root), Ports(1001, 1002, 1003))
    assert wanted["VERTEX_EMULATOR_HOST"] == "127.0.0.1:1001"
    assert local.environment(said.append) == wanted
    assert local.deployment_environment(said.append) == wanted
    assert local.running_environment() == wanted
    assert said == ["starts", "starts"]
    assert local.local_backend() == f"file://{root}/home/pulumi"
    source = "Previewed against the local stack's state"
    without = environment.environment(Home.find(cwd=root), None)
    # a refresh reads what the cloud has, so it is started; else its records are read if it runs
    for refresh in (True, False):
        found = local.preview_target(offline=False, refresh=refresh)
        assert found == PreviewTarget(wanted, source)
    for name in ("VERTEX_EMULATOR_HOST", "STORAGE_EMULATOR_HOST"):  # in `vt local shell`
        monkeypatch.setenv(name, "127.0.0.1:1")
        assert name not in without
    assert local.preview_target(offline=True) == PreviewTarget(without, source)
    monkeypatch.setattr(lifecycle, "running", lambda _: None)
    assert local.preview_target(offline=False) == PreviewTarget(without, source)


def test_what_needs_the_local_cloud_says_that_it_does_not_run(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise LocalCloudError("no port is free.", "stop something.")

    monkeypatch.setattr(lifecycle, "running", lambda _: None)
    monkeypatch.setattr(lifecycle, "start", refuse)
    monkeypatch.delenv("VERTEX_EMULATOR_HOST", raising=False)
    local = stacks.find("local")
    for ask in (local.running_environment, local.connect_clients):
        with pytest.raises(CommandError) as refused:
            ask()
        assert str(refused.value) == "the local cloud does not run. Hint: `vt local start`"
    with pytest.raises(CommandError) as refused:
        local.environment(print)
    assert str(refused.value) == "no port is free. Hint: stop something."


@pytest.mark.parametrize("registry", [0, 1003])
def test_clients_in_this_process_are_connected_to_the_local_cloud_alone(
    root: Path, monkeypatch: pytest.MonkeyPatch, registry: int
) -> None:
    info = ServerInfo(4242, 1001, 1002, "now", registry)
    monkeypatch.setattr(lifecycle, "running", lambda _: info)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    os.environ.pop("VERTEX_EMULATOR_HOST", None)
    before = dict(os.environ)
    stacks.find("dev").connect_clients()
    assert os.environ == before
    stacks.find("local").connect_clients()
    assert os.environ == before | {
        "VERTEX_EMULATOR_HOST": "127.0.0.1:1001",
        "STORAGE_EMULATOR_HOST": "http://127.0.0.1:1002",
        BIGQUERY: "http://127.0.0.1:1001",
    } | ({REGISTRY: "127.0.0.1:1003"} if registry else {})
    if registry:  # a look at images after that finds the same local cloud
        connect(stacks.find("local"), lambda _: None, start=False)
        assert os.environ[REGISTRY] == "127.0.0.1:1003"


def test_files_are_named_from_the_current_folder_or_in_full(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert paths.stack_file(root, "dev") == "Pulumi.dev.yaml"
    assert paths.from_here(Path("jobs/a.yaml")) == "jobs/a.yaml"
    (root / "jobs").mkdir()
    monkeypatch.chdir(root / "jobs")
    assert paths.stack_file(root, "dev") == f"{root}/Pulumi.dev.yaml"


def test_a_deployment_needs_a_named_state_and_takes_the_tools_of_this_python(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(BACKEND, raising=False)
    found = stacks.find("dev", root)
    with pytest.raises(CommandError, match="PULUMI_BACKEND_URL is not set"):
        found.deployment_environment(print)
    monkeypatch.setenv(BACKEND, "gs://acme-state")
    monkeypatch.setenv("PATH", "/bin")
    path = found.deployment_environment(print)["PATH"]
    assert path == f"{Path(stacks.sys.executable).parent}:/bin"


def test_a_renamed_job_is_found_by_the_name_in_its_labels(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(
        "config:\n  vertex-training:jobs:\n    fit: {file: x.yaml, formerly: titanic}\n    odd: 1\n"
    )
    ref = StackRef(tmp_path, "p", "dev", "acme-ml-dev", "us-central1")
    assert [ref.first_key(key, "jobs", "tuning") for key in ("fit", "odd", "new")] == [
        "titanic",
        "odd",
        "new",
    ]
