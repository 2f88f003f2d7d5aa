"""A file that a stack file names is there, is a file, and lies inside of the checkout."""

import pytest

from tests.unit.infra.stacks import BASE
from vertex_training.errors import ConfigError
from vertex_training.stack import read_settings


def refused(root, **changes):
    """The end of the message for every mistake, without the stack file's name."""
    with pytest.raises(ConfigError) as failed:
        read_settings(BASE | changes, root)
    prefix = "Pulumi.prod.yaml: vertex-training:"
    return [str(problem).removeprefix(prefix) for problem in failed.value.problems]


@pytest.fixture
def checkout(tmp_path):
    """A checkout with a folder, a file in it, and a file beside the checkout."""
    root = tmp_path / "checkout"
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "file").write_text("x")
    (tmp_path / "outside").write_text("x")
    return root


@pytest.mark.parametrize(
    ("changes", "path"),
    [({"jobs": {"train": {"file": "folder"}}}, "jobs.train.file")],
)
def test_a_folder_is_no_job_file(checkout, changes, path):
    [problem] = refused(checkout, **changes)
    assert problem.startswith(f"{path}: no such file (got folder)")


def test_a_package_may_be_a_folder(checkout):
    (checkout / "folder" / "train.py").write_text("")
    read_settings(BASE | {"packages": {"code": {"path": "folder"}}}, checkout)


@pytest.mark.parametrize(
    "changes",
    [
        {"jobs": {"train": {"file": "../outside"}}},
        {"buckets": {"data": {"objects": {"a": "../outside"}}}},
        {"packages": {"code": {"path": ".."}}},
    ],
)
def test_a_file_that_is_there_but_outside_of_the_checkout_is_refused_for_that_alone(
    checkout, changes
):
    [problem] = refused(checkout, **changes)
    assert "lies outside of the checkout" in problem
    assert "no such file" not in problem


def test_a_link_out_of_the_checkout_is_refused(checkout):
    (checkout / "link").symlink_to(checkout.parent / "outside")
    [problem] = refused(checkout, buckets={"data": {"objects": {"a": "link"}}})
    assert "lies outside of the checkout" in problem
