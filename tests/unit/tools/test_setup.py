"""``make setup`` and ``vt setup`` by their command lines, with programs of our own on PATH."""

from __future__ import annotations

import ast
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from vertex_training_cli.toolchain import layout
from vertex_training_cli.toolchain.layout import BUILD_SOURCES, PLUGINS

ROOT = Path(__file__).resolve().parents[3]
GUARDED = "#!/bin/sh\nexec python -u -m pulumi.dynamic $@\n"
#: Writes its arguments to a log. An environment that it makes has programs that only answer.
UV = """\
[ "$1 $2" = "--directory /" ] && shift 2
echo "uv $*" >>"$LOG"
case "$*" in
--version) echo uv 0.5.0 ;;
"$BROKEN"*) echo "no route to the index" >&2; exit 2 ;;
venv*) for last; do :; done; mkdir -p "$last/bin"; cp "$PROGRAMS"/python "$last/bin" ;;
"pip install"*) cp "$PROGRAMS"/python "${5%/*}/vt" ;;
esac
"""
PYTHON = """\
case "$*" in *version_info*) echo 3.11.7 ;; *) echo "no route to the release" >&2; exit 1 ;; esac
"""
#: Builds nothing: writes a program, and names the folder of the SDK.
GO = """\
echo "go $*" >>"$LOG"
case "$1 $BROKEN" in
"build build") echo "no route to the proxy" >&2; exit 1 ;;
build*) while [ "$1" != -o ]; do shift; done
    printf '#!/bin/sh\\necho v3.259.0\\n' >"$2"; chmod +x "$2" ;;
list*) echo "$SDK" ;;
esac
"""


def program(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def release(folder: Path, version: str = "v3.260.1") -> Path:
    """Write an installed Pulumi release; its language host is no script."""
    for name in ("pulumi", *PLUGINS):
        program(folder / name, f"echo {version}")
    (folder / "pulumi-language-python").write_bytes(b"\x7fELF")
    return folder


class Machine:
    """A checkout, its cache, and the programs on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "checkout"
        self.bin, self.path, self.log = self.root / ".venv/bin", folder / "path", folder / "log"
        self.cache = folder / "cache"
        shutil.copytree(
            ROOT / "cli/vertex_training_cli/toolchain",
            self.root / "cli/vertex_training_cli/toolchain",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        shutil.copy(
            ROOT / "cli/vertex_training_cli/__init__.py", self.root / "cli/vertex_training_cli"
        )
        pins = "uv==1.2.3 \\\n    --hash=sha256:aa\npulumi-gcp==9.1.0 \\\n    --hash=sha256:bb\n"
        for name, text in {
            "cli/vertex_training_cli/toolchain/policy.txt": "a==1\n",
            "cli/vertex_training_cli/toolchain/releases.sha256": "",
            "requirements/dev.txt": pins, "requirements/runtime.txt": pins,
            "pyproject.toml": "", "localcloud/pyproject.toml": "",
            **{f"tools/offline_engine/{name}": "#!@LANGUAGE_HOST@\n" for name in BUILD_SOURCES},
        }.items():  # fmt: skip
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        shutil.copy(ROOT / "tools/setup.py", self.root / "tools")
        program(folder / "programs/python", PYTHON)
        self.uv = program(self.path / "uv", UV)
        self.environment = {
            "PATH": f"{self.path}:/usr/bin:/bin", "HOME": str(folder), "LOG": str(self.log),
            "VT_CACHE_DIR": str(self.cache), "PROGRAMS": str(folder / "programs"), "BROKEN": "-",
            "SDK": str(folder / "sdk"), "PIP_NO_INDEX": "1", "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(self.root / "tools/setup.py"), *words]
        return subprocess.Popen(
            command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.environment | variables,
        )  # fmt: skip

    def setup(self, *words: str, expect: int = 0, **variables: str) -> str:
        """Run ``make setup``; return its output, or its errors where it is to fail."""
        process = self.start(*words, **variables)
        out, errors = process.communicate(timeout=120)
        assert process.returncode == expect, out + errors
        return self.shown(errors or out)

    def shown(self, text: str) -> str:
        """Return text without durations and the folder of the test."""
        return re.sub(r"\d+\.\d s\)|in \d+ s", "x s)", text).replace(str(self.folder), "~")

    def commands(self) -> list[str]:
        return self.shown(self.log.read_text()).splitlines() if self.log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def ready(machine: Machine) -> Machine:
    """A machine with an official release on PATH, after a setup."""
    release(machine.path)
    machine.setup()
    return machine


REPORT = "pulumi 3.260.1: ~/path/pulumi, official\nPython language host: official\n"
POLICIES = [
    "uv venv --quiet --clear --python ~/checkout/.venv/bin/python ~/checkout/.venv/policy",
    "uv pip sync --quiet --python ~/checkout/.venv/policy/bin/python --require-hashes "
    "--only-binary :all: ~/checkout/cli/vertex_training_cli/toolchain/policy.txt",
]
ENVIRONMENT = "uv venv --quiet --clear --python {} ~/checkout/.venv"
PACKAGES = "uv pip sync --quiet --python ~/checkout/.venv/bin/python --require-hashes ~/checkout/{}"
EDITABLE = (
    "uv pip install --quiet --python ~/checkout/.venv/bin/python --no-deps --no-build-isolation "
    "--editable ~/checkout"
)


def test_new_checkout_gets_packages_by_hash_and_the_release_on_path(machine: Machine) -> None:
    release(machine.path)
    assert machine.setup() == (
        "Setting up ~/checkout/.venv (cache: ~/cache)\n"
        "  creating .venv ...\n"
        "  installing packages ...\n  installing this project ...\n"
        "  creating the environment of the policy pack ...\n"
        "  installing the policy pack's packages ...\n"
        f"Done x s). Next: source .venv/bin/activate\n{REPORT}"
    )
    assert machine.commands() == [
        "uv --version",
        ENVIRONMENT.format(machine.shown(sys.executable)),
        PACKAGES.format("requirements/dev.txt"),
        f"{EDITABLE} --editable ~/checkout/localcloud",
        *POLICIES,
    ]
    for name in ("pulumi", *PLUGINS):
        assert (machine.bin / name).resolve() == machine.path / name


def test_finished_setup_is_not_repeated(ready: Machine) -> None:
    before = ready.commands()
    assert ready.setup() == REPORT
    assert ready.setup("--check") == REPORT
    assert ready.commands() == before


@pytest.mark.parametrize(
    "changed",
    [
        "requirements/dev.txt", "pyproject.toml", "tools/offline_engine/go.sum",
        "cli/vertex_training_cli/toolchain/policy.txt",
        "cli/vertex_training_cli/toolchain/pulumi_cli.py", ".venv/setup.json",
        *(f".venv/bin/{name}" for name in ("python", "vt", "pulumi", *PLUGINS)),
        ".venv/policy/bin/python",
    ],
)  # fmt: skip
def test_changed_input_or_missing_program_makes_setup_run_again(
    ready: Machine, changed: str
) -> None:
    file = ready.root / changed
    if changed.startswith(".venv"):
        file.unlink()
    else:
        file.write_text(f"{file.read_text()}\n# changed\n")
    missing = "setup: .venv is missing or out of date. Hint: run `make setup`\n"
    assert ready.setup("--check", expect=1) == missing
    ready.setup()
    assert ready.setup("--check") == REPORT


def test_another_source_or_a_deployment_needs_another_setup(ready: Machine) -> None:
    ready.setup("--check", expect=1, VT_PULUMI_SOURCE="path")
    ready.setup("--check", "--deploy", expect=1)


def test_unsuitable_installations_on_path_are_listed_when_no_source_works(
    machine: Machine,
) -> None:
    places = [machine.folder / name for name in ("plain", "folder", "silent", "bare", "old")]
    plain, folder, silent, bare, _ = (release(each, "v3.258.9") for each in places)
    (plain / "pulumi").chmod(0o644)
    (folder / "pulumi").unlink()
    (folder / "pulumi").mkdir()
    program(silent / "pulumi", "exit 3")
    release(bare)
    (bare / PLUGINS[0]).unlink()
    searched = ":".join(map(str, [machine.path, *places, "/usr/bin", "/bin"]))
    assert machine.setup(expect=1, PATH=searched, VT_PULUMI_SOURCE="path").splitlines() == [
        "setup: cannot install pulumi: every source failed",
        "  tried: path: ~/silent/pulumi: exit code 3: (no output); the folder of ~/bare/pulumi "
        "has no official pulumi-language-python; ~/old/pulumi has version 3.258.9, but setup "
        "needs 3.259.0 or later, before 4",
        "  Hint: do one of these, then run `make setup` again: put the official `pulumi` "
        "on PATH; give this machine access to Pulumi's download site; or install Go and "
        "give this machine access to the Go module proxy",
    ]


def test_without_any_source_every_reason_is_shown(machine: Machine) -> None:
    for name in ("cp", "mkdir", "sh"):
        (machine.path / name).symlink_to(shutil.which(name) or "")
    shown = machine.setup(expect=1, PATH=str(machine.path), https_proxy="http://127.0.0.1:1")
    shown = re.sub(r"pulumi-v\S+.tar.gz: .*", "ARCHIVE: refused", shown)
    assert shown.splitlines()[1:4] == [
        "  tried: path: pulumi is not on PATH",
        "  tried: official: cannot download ARCHIVE: refused",
        "  tried: build: Go is not on PATH",
    ]
    assert not (machine.root / ".venv/setup.json").exists()


@pytest.fixture
def with_go(machine: Machine) -> Machine:
    program(machine.path / "go", GO)
    sdk = machine.folder / "sdk/python"
    program(sdk / "cmd/pulumi-language-python-exec", "")
    (sdk / "dist").mkdir()
    (sdk / "dist/pulumi-resource-pulumi-python").write_text(GUARDED)
    return machine


def test_engine_is_built_once_for_all_checkouts_of_a_machine(with_go: Machine) -> None:
    shown = with_go.setup(VT_PULUMI_SOURCE="build", GOFLAGS="-mod=mod")
    assert "  building pulumi 3.259.0 (3 to 10 minutes, once) ...\n" in shown
    assert shown.endswith(
        "pulumi 3.259.0: official source, built here with Go\nPython language host: stand-in "
        "(offline_engine/language_host.py); executor and dynamic provider are official\n"
    )
    built = [line for line in with_go.commands() if line.startswith("go")]
    assert re.sub(r"/unfinished-\w+", "/new", built[0]) == (
        "go build -mod=readonly -trimpath -buildvcs=false -ldflags -s -w -X "
        "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.259.0 -o "
        "~/cache/toolchain/new/bin/pulumi github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
    )
    # The engine looks for plugins beside the file itself, so a symbolic link would not do.
    assert not any((with_go.bin / name).is_symlink() for name in ("pulumi", *PLUGINS))
    host = (with_go.bin / "pulumi-language-python").read_text()
    assert host == f"#!{with_go.root}/tools/offline_engine/language_host.py\n"
    callers = with_go.root / "infra/vertex_training/plugin_callers.py"
    assert (with_go.bin / "pulumi-resource-pulumi-python").read_text() == GUARDED.replace(
        "-m pulumi.dynamic", f"{callers} pulumi.dynamic"
    )
    shutil.rmtree(with_go.root / ".venv")
    with_go.setup(VT_PULUMI_SOURCE="build")
    assert [line for line in with_go.commands() if line.startswith("go")] == built


def test_failed_build_is_reported_and_leaves_nothing(with_go: Machine) -> None:
    shown = with_go.setup(expect=1, VT_PULUMI_SOURCE="build", BROKEN="build")
    assert "tried: build: exit code 1: no route to the proxy" in shown
    assert not list(with_go.cache.glob("toolchain/*/"))


def test_downloaded_release_is_kept_and_hard_linked(machine: Machine) -> None:
    kept = release(machine.cache / "toolchain/official-3.259.0/bin")
    (kept / PLUGINS[2]).write_text(GUARDED)
    assert "pulumi 3.259.0: official release\n" in machine.setup(VT_PULUMI_SOURCE="official")
    assert (machine.bin / "pulumi").samefile(kept / "pulumi")
    assert "plugin_callers.py pulumi.dynamic" in (machine.bin / PLUGINS[2]).read_text()


def test_file_of_another_disk_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    layout.place(program(tmp_path / "source", "exit 0"), tmp_path / "target")
    assert os.access(tmp_path / "target", os.X_OK)
    assert not (tmp_path / "target").samefile(tmp_path / "source")


def test_failed_installer_is_quoted_and_setup_starts_again_next_time(ready: Machine) -> None:
    (ready.root / "requirements/dev.txt").write_text("b==1\n")
    shown = ready.setup(expect=1, BROKEN="pip sync")
    command = PACKAGES.format("requirements/dev.txt").removeprefix("uv ")
    assert shown == (
        f"setup: installing packages failed\n  tried: ~/path/uv --directory / {command}: "
        "exit code 2: no route to the index\n  Hint: read the message above. Behind a "
        "proxy or with a mirror, configure uv (UV_INDEX_URL, HTTPS_PROXY, "
        "SSL_CERT_FILE), then run `make setup` again\n"
    )
    ready.setup("--check", expect=1)
    ready.setup()


@pytest.mark.parametrize("said", [None, "echo uv 0.4.9"])
def test_pinned_uv_is_installed_where_path_has_no_suitable_one(
    machine: Machine, said: str | None
) -> None:
    release(machine.path)
    machine.uv.unlink()
    if said:
        program(machine.uv, said)
    shown = machine.setup(expect=1).splitlines()
    assert shown[0] == "setup: installing uv's packages failed"
    assert "/.venv/bin/python -m pip install --quiet" in shown[1]
    assert "uv==1.2.3" in (machine.cache / "toolchain/uv.txt").read_text()
    (machine.bin / "python").unlink()  # a link to the Python of this machine
    program(machine.bin / "python", PYTHON)
    program(machine.bin / "uv", UV)
    machine.setup()


def test_environment_of_an_older_python_is_replaced(ready: Machine) -> None:
    (ready.root / "pyproject.toml").write_text("# changed\n")
    assert "creating .venv" not in ready.setup()
    (ready.root / "pyproject.toml").write_text("# changed again\n")
    program(ready.bin / "python", "echo 3.10.14")
    assert "  creating .venv ...\n" in ready.setup()


def test_deployment_installs_only_what_is_pinned(machine: Machine) -> None:
    release(machine.path)
    shown = machine.setup("--deploy", expect=1, VT_PULUMI_SOURCE="path")
    assert re.search(r"releases\.sha256 has no SHA-256 for pulumi-resource-gcp-v9\.1\.0-", shown)
    assert "Hint: add the published SHA-256 to the file (docs/maintainers.md)" in shown
    assert PACKAGES.format("requirements/runtime.txt") not in machine.commands()


def test_second_setup_waits_for_the_first(machine: Machine) -> None:
    release(machine.path)
    (machine.cache / "toolchain/unfinished-x").mkdir(parents=True)  # of a setup that was killed
    with (machine.cache / "toolchain/setup.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = machine.start()
        assert process.stdout is not None
        shown = [process.stdout.readline() for _ in range(2)]
        assert shown[1] == "  waiting for another setup on this machine ...\n"
        assert machine.commands() == []
    assert "Done in " in process.communicate(timeout=60)[0]
    assert not (machine.cache / "toolchain/unfinished-x").exists()


def test_interrupted_setup_ends_its_programs(machine: Machine) -> None:
    pid = machine.folder / "pid"
    program(
        machine.uv, f"[ $1 = --version ] && echo uv 1.0.0 && exit\nsleep 60 & echo $! >{pid}; wait"
    )
    process = machine.start()
    while not pid.exists() or not pid.read_text().strip():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1] == (
        "\nsetup: interrupted; run the command again to continue\n"
    )
    assert process.returncode == 130
    # The program was killed before setup ended; the kernel may take a moment to end it.
    status = Path(f"/proc/{pid.read_text().strip()}/status")
    for _ in range(1000):
        if not status.exists() or "zombie" in status.read_text():
            return
        time.sleep(0.01)
    pytest.fail(f"the program still runs: {status.read_text()}")


@pytest.mark.parametrize(
    ("variables", "error"),
    [
        (
            {"VT_PULUMI_SOURCE": "nix"},
            "setup: VT_PULUMI_SOURCE has the unknown value 'nix'\n"
            "  Hint: set VT_PULUMI_SOURCE to auto, path, official, build\n",
        ),
        (
            {"VT_CACHE_DIR": "/dev/null/x"},
            "setup: cannot write to the cache /dev/null/x/toolchain: Not a "
            "directory\n  Hint: set VT_CACHE_DIR to a writable folder\n",
        ),
    ],
)
def test_wrong_variable_is_refused_with_a_hint(
    machine: Machine, variables: dict[str, str], error: str
) -> None:
    assert machine.setup(expect=1, **variables) == error


def test_cache_is_below_the_xdg_folder_unless_that_is_relative(machine: Machine) -> None:
    release(machine.path)
    del machine.environment["VT_CACHE_DIR"]
    assert "(cache: ~/xdg/vertex-training)" in machine.setup(
        XDG_CACHE_HOME=str(machine.folder / "xdg")
    )
    (machine.root / ".venv/setup.json").unlink()
    assert "(cache: ~/.cache/vertex-training)" in machine.setup(XDG_CACHE_HOME="xdg")


@pytest.fixture
def installed(machine: Machine) -> Machine:
    """The package in a virtual environment of its own, in a folder with a space."""
    site, environment = machine.folder / "site packages", machine.folder / "an environment"
    shutil.copytree(machine.root / "cli", site)
    shutil.copytree(
        ROOT / "cli/vertex_training_cli", site / "vertex_training_cli", dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("__pycache__", "policy.txt", "releases.sha256"),
    )  # fmt: skip
    (site / "vertex_training").symlink_to(ROOT / "infra/vertex_training")
    make = [sys.executable, "-m", "venv", "--without-pip", str(environment)]
    subprocess.run(make, check=True)
    [packages] = environment.glob("lib/python*/site-packages")
    (packages / "all.pth").write_text(
        f"{site}\n{next(p for p in sys.path if 'site-packages' in p)}\n"
    )
    release(machine.path)
    return machine


def vt_setup(machine: Machine, *words: str, expect: int = 0, **variables: str) -> str:
    code = "import sys; sys.argv[0] = 'vt'; from vertex_training_cli.cli import app; app()"
    command = [str(machine.folder / "an environment/bin/python"), "-c", code, "setup", *words]
    environment = machine.environment | {"VT_OFFLINE_ENGINE": str(machine.root), **variables}
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=machine.folder
    )
    assert ended.returncode == expect, ended.stdout + ended.stderr
    return machine.shown(ended.stderr)


MISSING = "setup: pulumi or the policy pack is missing or out of date. Hint: run vt setup\n"


def test_installed_package_gets_pulumi_and_policies_beside_vt(installed: Machine) -> None:
    place = installed.folder / "an environment"
    assert vt_setup(installed, "--check", expect=1) == MISSING
    program(place / "bin/uv", UV.replace('echo "uv', 'echo "own uv'))
    (place / "policy/lib/python3/site-packages").mkdir(parents=True)
    assert vt_setup(installed) == REPORT
    run = [line.partition(" --")[0] for line in installed.commands()]
    assert run == ["own uv", "own uv venv", "own uv pip sync"]
    link = place / "policy/lib/python3/site-packages/vertex_training"
    assert link.resolve() == (ROOT / "infra/vertex_training").resolve()
    assert vt_setup(installed, "--check") == REPORT
    for file in (
        place / "bin" / PLUGINS[0],
        place / "policy/bin/python",
        link,
        place / "pulumi.json",
    ):
        kept = file.rename(file.with_name("kept"))
        assert vt_setup(installed, "--check", expect=1) == MISSING
        kept.rename(file)
    (place / "pulumi.json").write_text("[]")
    assert vt_setup(installed, "--check", expect=1) == MISSING


def test_deployment_of_an_installed_package_takes_pins_of_the_repository(
    installed: Machine,
) -> None:
    shown = vt_setup(installed, "--deploy", expect=1, VT_PULUMI_SOURCE="path")
    assert (
        "Hint: run `vt setup --deploy --releases FILE` with the output of sha256sum in FILE"
    ) in shown
    pins = installed.folder / "own.sha256"
    words = ("--deploy", "--releases", str(pins))
    assert "cannot read ~/own.sha256" in vt_setup(installed, *words, expect=1)
    pins.write_text("")
    assert "~/own.sha256 has no SHA-256 for pulumi-resource-gcp" in vt_setup(
        installed, *words, expect=1, VT_PULUMI_SOURCE="path"
    )


def test_installed_package_outside_of_a_virtual_environment_is_refused() -> None:
    code = (
        "import sys; sys.base_prefix = sys.prefix; from vertex_training_cli.cli import app; app()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, "setup"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, "is not in a virtual environment" in ended.stderr) == (1, True)


def test_old_python_is_refused_by_a_message() -> None:
    file = ROOT / "tools/setup.py"
    ast.parse(file.read_text(), feature_version=(3, 5))
    old = f"import sys, runpy\nsys.version_info = (3, 9, 1)\nrunpy.run_path({str(file)!r})"
    ended = subprocess.run([sys.executable, "-c", old], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("setup: Python 3.11 or later is required (this is 3.9")
