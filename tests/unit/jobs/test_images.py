"""The Dockerfiles of this repository: bases by digest, packages by hash, no root."""

import re
from pathlib import Path

import pytest

from vertex_training.infra.errors import ConfigError
from vertex_training.infra.images import pins
from vertex_training.infra.stack import read_settings

JOBS = Path(__file__).parents[3] / "jobs"
FILES = sorted(JOBS.glob("*/Dockerfile*"))
BASE = re.compile(r"[a-z./]+:[\w.-]+@sha256:[0-9a-f]{64}")


def lines(file, word):
    return [line for line in file.read_text().splitlines() if line.startswith(f"{word} ")]


def name(file):
    return f"{file.parent.name}/{file.name}"


def test_every_job_with_an_image_of_its_own_has_a_dockerfile():
    assert {name(file) for file in FILES} == {
        "arr_coc/Dockerfile",
        "flash_attention/Dockerfile",
        "gemma_finetune/Dockerfile",
        "parameter_server/Dockerfile",
        "spot_resume/Dockerfile",
        "titanic/Dockerfile",
        "titanic/Dockerfile.cuda",
    }


@pytest.mark.parametrize("file", FILES, ids=name)
def test_a_base_has_a_tag_and_a_digest(file):
    bases = [line.split()[1] for line in lines(file, "FROM")]
    assert bases
    assert all(map(BASE.fullmatch, bases))


@pytest.mark.parametrize("file", FILES, ids=name)
def test_an_image_runs_as_a_user_of_its_own(file):
    last = file.read_text().rpartition("\nFROM ")[2]
    assert re.findall(r"^USER (.*)$", last, re.MULTILINE) == ["10001"]


@pytest.mark.parametrize("file", FILES, ids=name)
def test_what_is_installed_is_pinned_by_hash_and_names_no_index(file):
    text = file.read_text().replace("\\\n", " ")
    for command in re.findall(r"pip install[^&\n]*", text):
        assert "--require-hashes" in command
    assert not re.search(r"index-url|find-links|trusted-host", text)


@pytest.mark.parametrize("lock", sorted(JOBS.glob("*/*.lock")), ids=name)
def test_a_lock_has_hashes_alone(lock):
    text = re.sub(r"^#.*\n", "", lock.read_text()).replace("\\\n", " ")
    pinned = re.compile(r"[a-z0-9.-]+==\S+( +--hash=sha256:[0-9a-f]{64})+")
    assert all(map(pinned.fullmatch, text.splitlines()))
    assert "://" not in text


def test_an_image_without_a_gpu_has_nothing_of_cuda_and_the_same_versions():
    cpu, cuda = ((JOBS / "titanic" / f"{kind}.lock").read_text() for kind in ("cpu", "cuda"))
    assert not re.search(r"^(nvidia|cuda|triton)", cpu, re.MULTILINE)
    versions = set(re.findall(r"^\S+==\S+", cpu, re.MULTILINE)) - {"torch==2.4.1+cpu"}
    assert versions < set(re.findall(r"^\S+==\S+", cuda, re.MULTILINE))
    assert "torch==2.4.1 " in cuda


@pytest.mark.parametrize("job", ["arr_coc", "flash_attention"])
def test_one_line_of_the_stack_file_puts_the_library_into_an_image(job, tmp_path):
    """``include: [jobs/lib/vertex_job]``; the Dockerfile copies it."""
    raw = {
        "stack": "dev",
        "project": "acme-ml-dev",
        "region": "us-central1",
        "projectNumber": "210987654321",
        "images": {"it": {"context": f"jobs/{job}", "include": ["jobs/lib/vertex_job"]}},
    }
    source = pins.source_of(read_settings(raw, JOBS.parent).images["it"])
    assert source is not None
    names = {entry.name for entry in source.read(JOBS.parent).entries}
    assert "vertex_job/launch.py" in names
    assert not any("__pycache__" in name for name in names)
    text = (JOBS / job / "Dockerfile").read_text()
    assert "COPY vertex_job /app/vertex_job\n" in text
    assert "PYTHONPATH=/app " in text
    del raw["images"]["it"]["include"]
    with pytest.raises(ConfigError, match="copies vertex_job, which is not there"):
        read_settings(raw, JOBS.parent)


def test_both_files_of_titanic_train_the_same():
    import yaml

    def task(file, kind):
        spec = yaml.safe_load((JOBS / file).read_text())
        [pool] = spec["workerPoolSpecs"]
        return spec["scheduling"], pool["machineSpec"], pool[kind]["args"]

    image = task("titanic-image.yaml", "containerSpec")
    assert image == task("titanic.yaml", "pythonPackageSpec")
