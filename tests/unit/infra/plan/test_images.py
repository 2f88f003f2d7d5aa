"""An image that is known by what it is built from."""

import pytest

from infra.plan import images as image_context
from infra.stack import read_settings, with_packages


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "jobs" / "flash"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("# syntax\nARG V=3\nFROM python:$V\nCOPY train.py /app/\n")
    (folder / "train.py").write_text("print(1)\n")
    return tmp_path


def settings(checkout, **image):
    raw = {
        "stack": "dev",
        "project": "acme-ml-dev",
        "region": "us-central1",
        "projectNumber": "210987654321",
        "images": {"flash": image},
    }
    return read_settings(raw, checkout)


def reference(checkout, **image):
    return with_packages(settings(checkout, **image), checkout).references["images.flash"]


def test_the_tag_follows_from_the_files_alone(checkout):
    first = reference(checkout, context="jobs/flash")
    prefix = "us-central1-docker.pkg.dev/acme-ml-dev/training-dev/flash:src-"
    assert first.startswith(prefix)
    (checkout / "jobs" / "flash" / "__pycache__").mkdir()
    (checkout / "jobs" / "flash" / "__pycache__" / "x.pyc").touch()
    assert reference(checkout, context="jobs/flash") == first
    (checkout / "jobs" / "flash" / "train.py").write_text("print(2)\n")
    assert reference(checkout, context="jobs/flash") != first


def test_moving_bytes_between_name_and_content_is_another_image(tmp_path):
    tags = set()
    for name, content in (("ab", "c"), ("a", "bc")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text(content)
        tags.add(image_context.tag(folder))
    assert len(tags) == 2


def test_a_digest_or_tag_beside_the_context_is_what_counts(checkout):
    assert reference(checkout, context="jobs/flash", tag="v1").endswith("/flash:v1")


def test_a_dockerfile_without_a_base_is_a_mistake(checkout):
    (checkout / "jobs" / "flash" / "Dockerfile").write_text("RUN true\n# FROM x\n")
    [(what, _)] = image_context.problems(checkout / "jobs" / "flash")
    assert what == "its Dockerfile has no FROM"


def test_what_a_dockerfile_copies_must_be_in_its_folder(checkout):
    folder = checkout / "jobs" / "flash"
    (folder / "Dockerfile").write_text(
        "FROM python:3.11 AS base\n"
        "COPY --chown=1:1 train.py \\\n  missing.py /app/\n"
        "COPY --from=base /usr/bin/x /usr/bin/\n"
        "COPY *.txt $HERE /app/\n"
        "ADD https://example.com/x.tar /app/\n"
        "COPY . /app\n"
    )
    assert [what for what, _ in image_context.problems(folder)] == [
        "its Dockerfile copies missing.py, which is not there"
    ]
