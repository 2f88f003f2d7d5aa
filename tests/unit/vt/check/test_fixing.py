"""`vt check --fix` mends what is certain, shows it, and leaves the rest as it was written."""

import os

import pytest

from vertex_training.customjob.request.job_file import check_job_file
from vertex_training_cli.check import fixing, placeholders

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
RIGHT = """\
# how it is trained
serviceAccount: trainer@acme-ml.iam.gserviceaccount.com
scheduling: {timeout: 86400s, strategy: SPOT}  # by night
workerPoolSpecs:
  - machineSpec:
      machineType: g2-standard-8
      acceleratorType: NVIDIA_L4
      acceleratorCount: 1
    replicaCount: 1
    diskSpec: {bootDiskSizeGb: 200}
    containerSpec:
      imageUri: us-docker.pkg.dev/acme-ml/images/x@sha256:%s
      env: [{name: SEED, value: "7"}]
""" % ("a" * 64)


def written(file):
    """What a write changes; to read a file changes the rest of its status."""
    status = file.stat()
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def test_what_is_certain_is_mended_and_comments_and_order_stay(project, vt):
    (project / "wrong.yaml").write_text(WRONG)
    done = vt("check", "wrong.yaml", "--fix")
    assert (project / "wrong.yaml").read_text() == RIGHT
    assert "-schedulling: {timeout: 24h, strategy: spot}  # by night" in done.stdout
    assert "+scheduling: {timeout: 86400s, strategy: SPOT}  # by night" in done.stdout
    assert done.exit_code == 0, done.stdout


def test_a_second_time_there_is_nothing_to_mend(project, vt):
    (project / "right.yaml").write_text(RIGHT)
    before = written(project / "right.yaml")
    assert "@@" not in vt("check", "right.yaml", "--fix").stdout
    assert written(project / "right.yaml") == before


def test_a_dry_run_shows_the_same_and_writes_nothing(project, vt):
    (project / "wrong.yaml").write_text(WRONG)
    done = vt("check", "wrong.yaml", "--fix", "--dry-run")
    assert "+scheduling: {timeout: 86400s, strategy: SPOT}  # by night" in done.stdout
    assert (project / "wrong.yaml").read_text() == WRONG
    assert done.exit_code == 1
    assert "Nothing is written" in done.stderr


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("acceleratorType: NVIDIA_L40", "a neighbour of a value is no certain one"),
        ("acceleratorType: NVIDIA_A100", "the machine has the other A100"),
        ("replicas: 1", "no field is near enough"),
        ("network: x", "it belongs elsewhere"),
    ],
)
def test_what_is_not_certain_is_left(project, vt, wrong, why):
    text = RIGHT.replace("machineType: g2-standard-8", "machineType: a2-ultragpu-1g")
    text = text.replace("acceleratorType: NVIDIA_L4", wrong)
    (project / "wrong.yaml").write_text(text)
    assert vt("check", "wrong.yaml", "--fix").exit_code == 1, why
    assert (project / "wrong.yaml").read_text() == text, why


def test_a_value_that_people_often_write_is_mended_where_it_fits(project, vt):
    text = RIGHT.replace("g2-standard-8", "a2-highgpu-1g").replace("NVIDIA_L4", "NVIDIA_A100")
    (project / "wrong.yaml").write_text(text)
    vt("check", "wrong.yaml", "--fix")
    assert "acceleratorType: NVIDIA_TESLA_A100" in (project / "wrong.yaml").read_text()


def test_a_link_stays_a_link_and_rights_stay(project, vt):
    (project / "real.yaml").write_text(WRONG)
    (project / "real.yaml").chmod(0o640)
    (project / "link.yaml").symlink_to("real.yaml")
    vt("check", "link.yaml", "--fix")
    assert (project / "link.yaml").is_symlink()
    assert (project / "real.yaml").read_text() == RIGHT
    assert (project / "real.yaml").stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in project.glob("*.yaml"))[-2:] == ["link.yaml", "real.yaml"]


def test_line_ends_and_a_byte_order_mark_stay(project, vt):
    data = b"\xef\xbb\xbf" + WRONG.replace("\n", "\r\n").encode()
    (project / "wrong.yaml").write_bytes(data)
    vt("check", "wrong.yaml", "--fix")
    expected = b"\xef\xbb\xbf" + RIGHT.replace("\n", "\r\n").encode()
    assert (project / "wrong.yaml").read_bytes() == expected


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


def test_of_two_pools_nobody_knows_where_the_others_belong(project, vt):
    before = f"workerPoolSpecs:\n- replicaCount: 4\n{POOL}- replicaCount: 2\n{POOL}"
    done, text = fixed(project, vt, before)
    assert done.exit_code == 1
    assert text == before


def test_what_is_for_the_whole_job_moves_out_of_the_pool_before_that_is_doubled(project, vt):
    account = "service_account: trainer@acme-ml.iam.gserviceaccount.com\n"
    before = f"worker_pool_specs:\n- replicaCount: 2\n  {account}{POOL}"
    done, text = fixed(project, vt, before)
    assert done.exit_code == 0, done.stderr
    half = f"- replicaCount: 1\n{POOL}"
    assert text == f"worker_pool_specs:\n{half}{half}{account}"


def test_a_mistake_that_stays_is_not_doubled(project, vt):
    before = f"workerPoolSpecs:\n- replicaCount: 2\n  useSpot: true\n{POOL}"
    done, text = fixed(project, vt, before)
    assert done.exit_code == 1
    assert text == before


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("  env: [{name: A, value: b}]\n", "    env: [{name: A, value: b}]\n"),
        ("  args: [--epochs=3]\n", "    args: [--epochs=3]\n"),
    ],
)
def test_what_belongs_to_the_task_that_is_there_moves_into_it(project, vt, wrong, right):
    done, text = fixed(project, vt, f"workerPoolSpecs:\n- replicaCount: 1\n{wrong}{POOL}")
    assert done.exit_code == 0, done.stderr
    assert text == f"workerPoolSpecs:\n- replicaCount: 1\n{POOL}{right}"


def test_what_two_pools_say_differently_stays(project, vt):
    pools = "".join(
        f"- network: projects/1{n}/global/networks/n\n  replicaCount: 1\n{POOL}" for n in (1, 2)
    )
    done, text = fixed(project, vt, f"workerPoolSpecs:\n{pools}")
    assert done.exit_code == 1
    assert "network: projects/12/global/networks/n\n  replicaCount" in text


def test_a_pool_is_mended_before_it_is_there_twice():
    wrong = POOL.replace("machineType", "machineTyp")
    text = f"workerPoolSpecs:\n- replicaCount: 4\n{wrong}"
    who, table = placeholders.submission("train"), placeholders.table(text.encode())
    found = fixing.fix(
        "x.yaml", text.encode(), lambda data: check_job_file(data, "x.yaml", who, table).problems
    )
    after = f"workerPoolSpecs:\n- replicaCount: 1\n{POOL}- replicaCount: 3\n{POOL}"
    assert (found.after.decode(), found.count) == (after, 2)
