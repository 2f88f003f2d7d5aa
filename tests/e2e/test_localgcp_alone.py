"""Tests ``localgcp`` alone: installed from its wheel, it runs a job of Google's SDK."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.structure.tree import ROOT
from tests.unit.tools.test_wheel import build

pytestmark = pytest.mark.e2e
README = ROOT / "localcloud" / "README.md"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run a program of the new environment in an empty folder."""
    folder = tmp_path_factory.mktemp("alone")
    wheel, environment, work = build(folder, "localcloud"), folder / "env", folder / "work"
    work.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    [packages] = environment.glob("lib/python3.*/site-packages")
    zipfile.ZipFile(wheel).extractall(packages)
    # Dependencies are those of this environment. Its own .pth files, which name the sources of
    # this checkout, have no effect in a folder that is on the path by a .pth file itself.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    [script] = re.findall(r"^localgcp = (.*):main$", _entry_points(wheel), re.MULTILINE)
    command = environment / "bin" / "localgcp"
    command.write_text(
        f"#!{environment}/bin/python\nimport sys\nfrom {script} import main\nsys.exit(main())\n"
    )
    command.chmod(0o755)

    def run(program: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        env = {"PATH": f"{environment / 'bin'}:/usr/bin:/bin", "HOME": str(folder)}
        done = subprocess.run(
            [environment / "bin" / program, *arguments],
            cwd=work, env=env, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    yield run
    run("localgcp", "remove", check=False)


def _entry_points(wheel: Path) -> str:
    archive = zipfile.ZipFile(wheel)
    [name] = [each for each in archive.namelist() if each.endswith("/entry_points.txt")]
    return archive.read(name).decode()


def test_localgcp_runs_without_the_other_packages(run: Run) -> None:
    find = "import importlib.util as u; print(*(bool(u.find_spec(n)) for n in {}))"
    names = ("localgcp", "vertex_training", "vertex_training_cli", "google.cloud.aiplatform")
    assert run("python", "-c", find.format(names)).stdout.split() == [
        *("True", "False", "False", "True")
    ]


def test_localgcp_runs_the_job_of_its_readme(run: Run) -> None:
    refused = run("localgcp", "status", check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    run("localgcp", "start")
    run("localgcp", "project", "local-demo", "demo-bucket")
    assert run("localgcp", "project", "acme-ml", check=False).returncode == 1
    [program] = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    done = run("localgcp", "shell", "-c", f"python - <<'END'\n{program}\nEND")
    assert done.stdout.splitlines()[-1] == "JOB_STATE_SUCCEEDED"
    assert "vertex: 127.0.0.1:" in run("localgcp", "status").stdout
    assert "VERTEX_EMULATOR_HOST=127.0.0.1:" in run("localgcp", "env").stdout
    run("localgcp", "stop")
    assert run("localgcp", "status", check=False).returncode == 1
    run("localgcp", "remove")
