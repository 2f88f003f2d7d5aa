"""Each command of a setup, whole: of uv, of environments, of the policy pack and of a build."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from vertex_training_cli.toolchain import build, policy_env, pulumi_cli, python_env
from vertex_training_cli.toolchain.console import SetupError, SubprocessError
from vertex_training_cli.toolchain.layout import Layout
from vertex_training_cli.toolchain.pulumi_cli import SourceUnavailableError

UV = Path("/opt/uv")


class Programs:
    """``run`` and ``read_output``: what was run, and what programs answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ran: list[tuple[list[str], dict[str, Any]]] = []
        self.asked: list[list[str]] = []
        self.answers: dict[str, str | Exception] = {}
        self.fails: Exception | None = None
        for module in (build, policy_env, pulumi_cli, python_env):
            if hasattr(module, "run"):
                monkeypatch.setattr(module, "run", self.run)
            if hasattr(module, "read_output"):
                monkeypatch.setattr(module, "read_output", self.read)

    def run(self, command: list[Any], **options: Any) -> None:
        self.ran.append((list(map(str, command)), options))
        if self.fails:
            raise self.fails
        if "list" in command:
            options["log"].write_text(f"{self.answers['sdk']}\n")

    def read(self, command: list[Any], **_: Any) -> str:
        self.asked.append(list(map(str, command)))
        found = self.answers[str(command[0])]
        if isinstance(found, Exception):
            raise found
        return found

    @property
    def commands(self) -> list[list[str]]:
        return [command for command, _ in self.ran]


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Programs:
    return Programs(monkeypatch)


@pytest.mark.parametrize(
    ("version", "note"),
    [("uv 0.5.0", "uv 0.5.0, on PATH"), ("uv 1.0.0 (x)", "uv 1.0.0 (x), on PATH")],
)
def test_a_uv_on_path_that_is_new_enough_is_used(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, checkout: Layout, version: str, note: str
) -> None:
    monkeypatch.setattr(python_env.shutil, "which", lambda _: str(UV))
    programs.answers[str(UV)] = version
    assert python_env.ensure_uv(checkout) == (UV, note)
    assert (programs.ran, programs.asked) == ([], [[str(UV), "--version"]])


@pytest.mark.parametrize(
    ("found", "answer", "tried"),
    [
        (None, "", "uv on PATH: not found"),
        (str(UV), "uv 0.4.9", f"uv on PATH ({UV}): uv 0.4.9 is too old"),
        (str(UV), SubprocessError("no answer"), "uv on PATH: no answer"),
    ],
)
def test_the_pinned_uv_comes_by_pip_and_its_hash(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, checkout: Layout, found: str | None,
    answer: Any, tried: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(python_env.shutil, "which", lambda _: found)
    programs.answers[str(UV)] = answer
    pins: list[str] = []
    monkeypatch.setattr(
        python_env, "publish",
        lambda target, fill: (target.mkdir(), fill(target), pins.append(
            (target / "requirement.txt").read_text())),
    )  # fmt: skip
    target = checkout.toolchain / "uv-1.2.3"
    assert python_env.ensure_uv(checkout) == (
        target / "bin/uv", f"1.2.3, installed in {target}",
    )  # fmt: skip
    [(command, options)] = programs.ran
    assert command == [
        sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes",
        "--target", str(target), "-r", str(target / "requirement.txt"),
    ]  # fmt: skip
    assert options == {"what": "installing uv", "log": checkout.toolchain / "uv.log"}
    assert pins == ["uv==1.2.3 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"]
    (target / "bin").mkdir()
    (target / "bin/uv").touch()
    python_env.ensure_uv(checkout)
    assert len(programs.ran) == 1  # it is there

    (target / "bin/uv").unlink()
    programs.fails = SubprocessError("exit code 1: no route")
    monkeypatch.setattr(python_env, "publish", lambda target, fill: fill(target))
    with pytest.raises(SetupError) as failed:
        python_env.ensure_uv(checkout)
    assert str(failed.value) == (
        "setup: uv, the installer of everything else, cannot be had\n"
        f"  tried: {tried}\n"
        f"  tried: {sys.executable} -m pip install uv==1.2.3: exit code 1: no route\n"
        "  Hint: install uv or pip for this Python, then run `make setup` again"
    )


@pytest.mark.parametrize(
    ("answer", "kept"),
    [("3.11.0", True), ("3.12.7", True), ("3.10.14", False), (SubprocessError("gone"), False)],
)
def test_an_environment_of_a_python_that_is_too_old_or_gone_is_made_anew(
    programs: Programs, checkout: Layout, answer: Any, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = str(checkout.python)
    checkout.python.touch()
    programs.answers[python] = answer
    made = programs.run

    def run(command: list[Any], **options: Any) -> None:
        made(command, **options)
        programs.answers[python] = "3.13.1"

    monkeypatch.setattr(python_env, "run", run)
    note = python_env.ensure_venv(UV, checkout)
    assert note == (f"Python {answer}" if kept else "Python 3.13.1, new")
    create = [str(UV), "venv", "--quiet", "--clear", "--python", sys.executable, str(checkout.venv)]
    assert programs.commands == ([] if kept else [create])
    ask = [python, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"]
    assert programs.asked == [ask] * (1 if kept else 2)


@pytest.mark.parametrize("deploy", [False, True])
def test_packages_are_synced_by_hash_and_sources_are_editable(
    programs: Programs, checkout: Layout, deploy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/other")
    monkeypatch.setenv("UV_PYTHON", "3.9")
    monkeypatch.setenv("OWN", "kept")
    made = Layout(checkout.root, checkout.cache, deploy)
    made.requirements.write_text("a==1 \\\n    --hash=x\nb-c==2\n# d==3\n    # via e==1\n")
    note = python_env.install_packages(UV, made)
    assert note == "2 packages by hash, and this project (editable)"
    python, root = ["--python", str(made.python)], str(made.root)
    editable = ["--editable", root] + ([] if deploy else ["--editable", f"{root}/localcloud"])
    assert programs.commands == [
        [str(UV), "pip", "sync", "--quiet", *python, "--require-hashes", str(made.requirements)],
        [str(UV), "pip", "install", "--quiet", *python, "--no-deps", "--no-build-isolation",
         *editable],
    ]  # fmt: skip
    options = [given for _, given in programs.ran]
    assert [each["what"] for each in options] == ["installing packages", "installing this project"]
    for each in options:
        assert (each["log"], each["cwd"]) == (made.toolchain / "uv.log", made.root)
        environment = each["env"]
        assert not {"VIRTUAL_ENV", "UV_PYTHON"} & environment.keys()
        own = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "OWN": "kept"}
        assert own.items() <= environment.items()


ONLY = ["--require-hashes", "--only-binary", ":all:"]


@pytest.mark.parametrize("uv", [UV, None])
def test_the_environment_of_the_policy_pack_is_made_anew(
    programs: Programs, checkout: Layout, uv: Path | None
) -> None:
    checkout.policy_requirements.write_text("a==1\nb==2\n")
    note = policy_env.install_policy_packages(checkout, uv)
    assert note == "2 packages by hash, in an environment of their own"
    folder, pins = str(checkout.policy_venv), str(checkout.policy_requirements)
    python, own = str(checkout.python), f"{folder}/bin/python"
    by_uv = [
        [str(UV), "venv", "--quiet", "--clear", "--python", python, folder],
        [str(UV), "pip", "sync", "--quiet", "--python", own, *ONLY, pins],
    ]
    by_pip = [
        [python, "-m", "venv", "--clear", folder],
        [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *ONLY, "-r", pins],
    ]
    assert programs.commands == (by_uv if uv else by_pip)
    assert [given["what"] for _, given in programs.ran] == [
        "creating the environment of the policy pack", "installing the policy pack's packages",
    ]  # fmt: skip


def test_a_build_links_the_version_and_takes_scripts_of_the_sdk(
    programs: Programs, checkout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sdk, folder = tmp_path / "sdk", tmp_path / "work"
    scripts = ("cmd/pulumi-language-python-exec", "dist/pulumi-resource-pulumi-python")
    for name in (f"python/{script}" for script in scripts):
        (sdk / name).parent.mkdir(parents=True)
        (sdk / name).write_text(name)
    folder.mkdir()
    target = folder / "bin"
    programs.answers |= {"sdk": str(sdk), str(target / "pulumi"): "v3.259.0"}
    monkeypatch.setenv("GOFLAGS", "-mod=mod")
    build.build_engine(folder, Path("/opt/go"), checkout)
    (made, options), (listed, listing) = programs.ran
    assert made == [
        "/opt/go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags",
        "-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.259.0", "-o",
        str(target / "pulumi"), "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
    ]  # fmt: skip
    assert options["log"] == checkout.toolchain / "build.log"
    assert (options["limit"], options["cwd"]) == (3600.0, checkout.offline_engine)
    assert (options["env"]["GOFLAGS"], options["env"]["CGO_ENABLED"]) == ("", "0")
    assert listed == [
        "/opt/go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}",
        "github.com/pulumi/pulumi/sdk/v3",
    ]  # fmt: skip
    assert (listing["cwd"], listing["env"]) == (checkout.offline_engine, options["env"])
    assert {each.name: each.stat().st_mode & 0o777 for each in target.iterdir()} == {
        "pulumi-language-python-exec": 0o755, "pulumi-resource-pulumi-python": 0o755,
    }  # fmt: skip
    assert [each.name for each in folder.iterdir()] == ["bin"]


def test_a_deployment_takes_only_a_release_that_is_pinned(
    programs: Programs, checkout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulumi_cli.releases, "engine_archive", lambda version: f"{version}.tar.gz")
    with pytest.raises(SourceUnavailableError) as refused:
        pulumi_cli.install_official(Layout(checkout.root, checkout.cache, deploy=True))
    assert str(refused.value) == "releases.sha256 has no line for 3.259.0.tar.gz"
    programs.fails = SubprocessError("no route")
    monkeypatch.setattr(pulumi_cli, "publish", lambda target, fill: fill(target))
    with pytest.raises(SourceUnavailableError) as refused:
        pulumi_cli.install_official(checkout)
    assert str(refused.value) == "download of 3.259.0: no route"
    [(command, options)] = programs.ran
    target = checkout.toolchain / "official-3.259.0"
    assert command == [
        str(checkout.python), "-c", pulumi_cli.DOWNLOAD, str(target), "3.259.0",
    ]  # fmt: skip
    assert (options["limit"], options["log"]) == (300.0, checkout.toolchain / "official.log")


def test_a_build_needs_its_modules_and_go(
    checkout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulumi_cli.shutil, "which", lambda _: None)
    with pytest.raises(SourceUnavailableError, match=r"^no Go on PATH$"):
        pulumi_cli.install_build(checkout)
    (checkout.offline_engine / "go.mod").unlink()
    with pytest.raises(SourceUnavailableError, match=r"tools/offline_engine has no go\.mod; a"):
        pulumi_cli.install_build(checkout)


def test_a_build_that_fails_is_told_and_leaves_nothing(
    checkout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        built.append(given)
        raise SubprocessError("no route to the proxy")

    built: list[Any] = []
    monkeypatch.setattr(pulumi_cli.shutil, "which", lambda name: f"/opt/{name}")
    monkeypatch.setattr(build, "build_engine", fail)
    with pytest.raises(SourceUnavailableError) as refused:
        pulumi_cli.install_build(checkout)
    assert str(refused.value) == "go build of 3.259.0: no route to the proxy"
    [(_, go, layout)] = built
    assert (go, layout) == (Path("/opt/go"), checkout)
    assert not list(checkout.bin.iterdir())
    assert not list(checkout.toolchain.iterdir())


def test_a_release_without_the_language_host_is_none(
    checkout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unpack(archive: str, sha256: str, folder: Path) -> None:
        unpacked.append((archive, sha256, folder))
        (folder / "bin").mkdir()
        (folder / "bin/pulumi").touch()

    unpacked: list[Any] = []
    monkeypatch.setattr(pulumi_cli.releases, "engine_archive", lambda version: f"{version}.tar.gz")
    monkeypatch.setattr(pulumi_cli.releases, "unpack_engine", unpack)
    monkeypatch.setattr(pulumi_cli, "publish", lambda target, fill: (target.mkdir(), fill(target)))
    checkout.releases.write_text("ab  3.259.0.tar.gz\n")
    with pytest.raises(SourceUnavailableError) as refused:
        pulumi_cli.install_official(checkout)
    assert str(refused.value) == ("download of 3.259.0: the release has no pulumi-language-python")
    target = checkout.toolchain / "official-3.259.0-ab"
    assert unpacked == [("3.259.0.tar.gz", "ab", target)]


@pytest.mark.parametrize("installed", [False, True])
def test_the_gcp_plugin_is_that_of_the_sdk_by_its_hash(
    programs: Programs, checkout: Layout, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    pin = "pulumi-gcp==9.1.0 ; python_version >= '3.9' \\\n    --hash=sha256:cc\n"
    checkout.requirements.write_text(pin)
    monkeypatch.setattr(
        pulumi_cli.importlib.metadata, "version", {"pulumi-gcp": "9.2.0"}.__getitem__
    )
    monkeypatch.setattr(pulumi_cli.releases, "plugin_archive", lambda version: f"{version}.tar.gz")
    environment = checkout.root / ".venv" if installed else None
    place = Layout(checkout.root, checkout.cache, environment=environment)
    place.package.mkdir(parents=True, exist_ok=True)
    place.releases.write_text("aa  9.1.0.tar.gz\nbb  9.2.0.tar.gz\n")
    version, digest = ("9.2.0", "bb") if installed else ("9.1.0", "aa")
    assert pulumi_cli.install_gcp_plugin(place) == f"{version}, by SHA-256"
    [(command, options)] = programs.ran
    assert command == [
        str(checkout.bin / "pulumi"), "plugin", "install", "resource", "gcp", version, "--exact",
        "--checksum", digest,
    ]  # fmt: skip
    assert options == {
        "what": "installing the gcp plugin", "log": checkout.toolchain / "plugin.log",
        "limit": 300.0,
    }  # fmt: skip
    programs.fails = SubprocessError("exit code 1: no route")
    with pytest.raises(SetupError) as failed:
        pulumi_cli.install_gcp_plugin(place)
    assert str(failed.value) == (
        "setup: the gcp plugin cannot be installed\n  tried: exit code 1: no route"
    )


OF_THE_PACKAGE = "add its published SHA-256 (docs/dependencies.md)"


@pytest.mark.parametrize(
    ("installed", "own", "hint"),
    [
        (False, False, OF_THE_PACKAGE),
        (True, True, OF_THE_PACKAGE),
        (True, False, "vt setup --deploy --releases FILE, with a line as sha256sum prints it"),
    ],
)
def test_a_plugin_that_is_not_pinned_is_not_downloaded(
    programs: Programs, checkout: Layout, monkeypatch: pytest.MonkeyPatch, installed: bool,
    own: bool, hint: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(pulumi_cli, "_sdk_version", lambda _: "9.1.0")
    monkeypatch.setattr(pulumi_cli.releases, "plugin_archive", lambda version: f"{version}.tar.gz")
    file = checkout.root / "own.sha256"
    file.write_text("aa  9.2.0.tar.gz\n")
    environment = checkout.root / ".venv" if installed else None
    place = Layout(
        checkout.root, checkout.cache, environment=environment, own_releases=file if own else None
    )
    place.package.mkdir(parents=True, exist_ok=True)
    place.releases.write_text("")
    with pytest.raises(SetupError) as refused:
        pulumi_cli.install_gcp_plugin(place)
    where = file if own else "releases.sha256"
    assert str(refused.value) == f"setup: {where} has no line for 9.1.0.tar.gz\n  Hint: {hint}"
    assert programs.ran == []
