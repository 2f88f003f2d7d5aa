"""`vt check --fix` mends what is certain, shows it, and leaves the rest as it was written."""

import os

import pytest

WRONG = """\
# how it is trained
serviceAccount: trainer@acme-ml.iam.gserviceaccount.com
schedulling: {timeout: 24h, strategy: spot}  # by night
enableWebAccess:
workerPoolSpecs:
  - machineSpec:
      machineTyp: g2-standard-8
      acceleratorType: nvidia_l4
      acceleratorCount: 1.0
    replicaCount: 1
    diskSpec: {bootDiskSize_gb: 200}
    containerSpec:
      imageURI: us-docker.pkg.dev/acme-ml/images/x@sha256:%s
      env: [{name: SEED, value: 7}]
""" % ("a" * 64)


def written(file):
    """What a write changes; to read a file changes the rest of its status."""
    status = file.stat()
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def test_a_dry_run_shows_the_same_and_writes_nothing(project, vt):
    (project / "wrong.yaml").write_text(WRONG)
    done = vt("check", "wrong.yaml", "--fix", "--dry-run")
    assert "+scheduling: {timeout: 86400s, strategy: SPOT}  # by night" in done.stdout
    assert (project / "wrong.yaml").read_text() == WRONG
    assert done.exit_code == 1
    assert "Nothing is written" in done.stderr


def test_what_no_parser_reads_is_left_and_told(project, vt):
    for data in (b"\xff\xfe", b"a: [", b"", b"- 1\n"):
        (project / "wrong.yaml").write_bytes(data)
        assert vt("check", "wrong.yaml", "--fix").exit_code == 1
        assert (project / "wrong.yaml").read_bytes() == data


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes to every file")
def test_a_file_that_cannot_be_written_is_told(project, vt):
    (project / "closed").mkdir()
    (project / "closed" / "wrong.yaml").write_text(WRONG)
    (project / "closed").chmod(0o500)
    done = vt("check", "closed/wrong.yaml", "--fix")
    assert done.exit_code == 2
    assert "Permission denied" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [("-", "--fix"), ("--fix", "--format", "json"), ("--dry-run",), ("--fix", "--watch")],
)
def test_what_cannot_be_combined_is_told(project, vt, arguments):
    done = vt("check", *arguments, input="")
    assert done.exit_code == 2
    assert done.stderr.startswith("vt check: ")


def test_jobs_of_a_stack_are_mended_too(project, vt):
    file = project / "jobs" / "train.yaml"
    right = file.read_text()
    file.write_text(right.replace("replicaCount", "replicacount"))
    done = vt("check", "--stack", "dev", "--fix")
    assert file.read_text() == right
    assert "+++ jobs/train.yaml" in done.stdout


POOL = """\
  machineSpec: {machineType: n1-standard-4}
  containerSpec:
    imageUri: us-docker.pkg.dev/acme-ml/images/x:1
"""


def fixed(project, vt, text):
    (project / "wrong.yaml").write_text(text)
    done = vt("check", "wrong.yaml", "--fix")
    return done, (project / "wrong.yaml").read_text()


def test_the_first_pool_keeps_one_replica_and_the_others_get_a_pool(project, vt):
    done, text = fixed(project, vt, f"workerPoolSpecs:\n- replicaCount: 4\n{POOL}")
    assert done.exit_code == 0, done.stderr
    assert text == f"workerPoolSpecs:\n- replicaCount: 1\n{POOL}- replicaCount: 3\n{POOL}"
