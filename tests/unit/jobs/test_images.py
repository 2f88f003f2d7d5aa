"""The Dockerfiles and job files of this repository: bases by digest, packages by hash, no root."""

import re

import pytest

from tests.fixture_project import SAMPLE_JOBS, sample
from tests.fixture_project import SAMPLES as JOBS

#: Those of samples: what a company builds itself is its own.
FILES = (
    *("arr_coc/Dockerfile", "gemma_finetune/Dockerfile", "transformer/Dockerfile"),
    *("parameter_server/Dockerfile", "spot_resume/Dockerfile"),
    *("titanic/Dockerfile", "titanic/Dockerfile.cuda", "titanic/serve/Dockerfile"),
)
LOCKS = (
    *("arr_coc/image.lock", "gemma_finetune/image.lock", "parameter_server/image.lock"),
    *("spot_resume/image.lock", "titanic/cpu.lock", "titanic/cuda.lock"),
    *("titanic/installer.lock", "titanic/serve/image.lock", "transformer/image.lock"),
)
BASE = re.compile(r"[a-z./]+:[\w.-]+@sha256:[0-9a-f]{64}")


def lines(file, word):
    return [line for line in file.read_text().splitlines() if line.startswith(f"{word} ")]


@pytest.fixture(params=FILES)
def file(request):
    return sample(request.param)


def test_every_image_and_lock_of_a_sample_is_in_the_lists():
    folders = {JOBS / name.partition("/")[0] for name in FILES}
    kept = {
        file.relative_to(JOBS).as_posix()
        for folder in folders
        for kind in ("Dockerfile*", "*.lock")
        for file in folder.rglob(kind)
    }
    assert kept <= {*FILES, *LOCKS}


def test_a_base_has_a_tag_and_a_digest(file):
    bases = [line.split()[1] for line in lines(file, "FROM")]
    assert bases
    assert all(map(BASE.fullmatch, bases))


def test_an_image_runs_as_a_user_of_its_own(file):
    last = file.read_text().rpartition("\nFROM ")[2]
    assert re.findall(r"^USER (.*)$", last, re.MULTILINE) == ["10001"]


def test_what_is_installed_is_pinned_by_hash_and_names_no_index(file):
    text = file.read_text().replace("\\\n", " ")
    for command in re.findall(r"pip install[^&\n]*", text):
        assert "--require-hashes" in command
    assert not re.search(r"index-url|find-links|trusted-host", text)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_hashes_alone(lock):
    text = re.sub(r"^#.*\n", "", sample(lock).read_text()).replace("\\\n", " ")
    pinned = re.compile(r"[a-z0-9.-]+==\S+( +--hash=sha256:[0-9a-f]{64})+")
    assert all(map(pinned.fullmatch, text.splitlines()))
    assert "://" not in text


def test_an_image_without_a_gpu_has_nothing_of_cuda_and_the_same_versions():
    cpu, cuda = (sample(f"titanic/{kind}.lock").read_text() for kind in ("cpu", "cuda"))
    assert not re.search(r"^(nvidia|cuda|triton)", cpu, re.MULTILINE)
    versions = set(re.findall(r"^\S+==\S+", cpu, re.MULTILINE)) - {"torch==2.4.1+cpu"}
    assert versions < set(re.findall(r"^\S+==\S+", cuda, re.MULTILINE))
    assert "torch==2.4.1 " in cuda


def test_both_files_of_titanic_train_the_same():
    import yaml

    def task(file, kind):
        spec = yaml.safe_load(sample(file).read_text())
        [pool] = spec["workerPoolSpecs"]
        return spec["scheduling"], pool["machineSpec"], pool[kind]["args"]

    image = task("titanic-image.yaml", "containerSpec")
    assert image == task("titanic.yaml", "pythonPackageSpec")


@pytest.mark.parametrize("name", SAMPLE_JOBS)
def test_a_job_file_begins_with_the_schema_that_editors_use(name):
    first = sample(f"{name}.yaml").read_text("utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=job.schema.json"
