"""From an edit to a run of the new code: the story of an image, on the local stack.

The tests of this file are one story and run in order: each starts where the one before it ended.
Titanic is trained by numpy here, since PyTorch's image has gigabytes; Dockerfile, locks, data, job
file and commands are the job's own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from localgcp.home import Home
from localgcp.vertex.records import JobRecord, JobTable
from tests.conftest import Checkout, copy_checkout
from tests.fixture_project import sample

for _name in ("titanic", "data/titanic", "titanic-image.yaml"):
    sample(_name)
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

HERE = Path(__file__).parent
#: Packages of the CUDA lock that the small training does without, with what only they need.
LEFT_OUT = re.compile(
    r"(torch|triton|nvidia|sympy|mpmath|networkx|fsspec|filelock|jinja2|markupsafe|matplotlib"
    r"|contourpy|cycler|fonttools|kiwisolver|pillow|pyparsing|python-dateutil)\b"
)
STACK = """\
# The stack of the story.
config:
  gcp:project: local-{name}
  gcp:region: us-central1
  vertex-training:projectNumber: "{number}"
  vertex-training:buckets:
    data:
      forceDestroy: true
      objects:
        titanic/train.npz: jobs/data/titanic/train.npz
        titanic/val.npz: jobs/data/titanic/val.npz
        titanic/test.npz: jobs/data/titanic/test.npz
    artifacts: {{forceDestroy: true}}
  vertex-training:serviceAccounts:
    trainer: {{reads: [data], writes: [artifacts]}}
  vertex-training:images:
    titanic: {image}  # what jobs run
"""
JOBS = """\
  vertex-training:jobs:
    titanic: {file: jobs/titanic-image.yaml}
"""
CONTEXT = "{context: jobs/titanic, dockerfile: Dockerfile.cuda}"


def write_stack(checkout: Checkout, name: str, image: str) -> None:
    """A stack without its job: the repository comes first, and then the image."""
    from vertex_training.naming import local_project_number

    number = local_project_number(f"local-{name}")
    text = STACK.format(name=name, number=number, image=image)
    (checkout.path / f"Pulumi.{name}.yaml").write_text(text)


def add_job(checkout: Checkout, name: str) -> None:
    file = checkout.path / f"Pulumi.{name}.yaml"
    file.write_text(file.read_text() + JOBS)


def pin(checkout: Checkout, name: str) -> dict[str, Any]:
    config = yaml.safe_load((checkout.path / f"Pulumi.{name}.yaml").read_text())["config"]
    return config["vertex-training:images"]["titanic"]


def jobs(checkout: Checkout, name: str) -> list[JobRecord]:
    """Jobs of one project, oldest first."""
    from vertex_training.naming import local_project_number

    table = JobTable(Home(checkout.home, checkout.path).database)
    return list(reversed(table.list(local_project_number(f"local-{name}"))))


def metrics(checkout: Checkout, name: str) -> dict[str, Any]:
    """What the newest job of a stack measured."""
    told = json.loads(checkout.shell(f"pulumi stack output jobs -s {name} --json").stdout)
    bucket, _, folder = told["titanic"]["artifacts"].removeprefix("gs://").partition("/")
    return json.loads(
        (checkout.home / "storage" / bucket / folder / "model/metrics.json").read_text()
    )


def log(checkout: Checkout, job: JobRecord) -> str:
    return (checkout.home / "jobs" / job.job_id / "logs" / "workerpool0-0.log").read_text()


def up(checkout: Checkout, name: str) -> str:
    """``vt local up``: also waits for the job."""
    return checkout.run("vt", "local", "up", "--stack", name).stdout


def make_small(checkout: Checkout) -> None:
    """Take PyTorch out of the copy's image."""
    folder = checkout.path / "jobs" / "titanic"
    shutil.copy(HERE / "small_titanic.py", folder / "task.py")
    lock = folder / "cuda.lock"
    pins = re.findall(r"^[^\s#].*(?:\n[ \t].*)*\n?", lock.read_text(), re.MULTILINE)
    lock.write_text("".join(each for each in pins if not LEFT_OUT.match(each)))


def commit(checkout: Checkout) -> None:
    """Make a repository of the copy, so that images say of which commit they are."""
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
    (checkout.path / ".gitignore").write_text(".venv\n.vt-local\n")
    checkout.run("git", "init", "-q")
    checkout.run("git", "add", "-A")
    checkout.run("git", *who, "commit", "-q", "-m", "first")


def unmount_below(folder: Path) -> None:
    """Unmount what the builder keeps mounted: its graph, and layers of a build that was ended."""
    found = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for each in sorted((one for one in found if one.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "--lazy", each], check=False)


@pytest.fixture(scope="module")
def story(
    tmp_path_factory: pytest.TempPathFactory, registry_program: str, buildah: str, base_image: str
) -> Iterator[Checkout]:
    """A copy with a stack whose repository is there, and builders with files of their own."""
    folder = tmp_path_factory.mktemp("story")
    settings = folder / "storage.conf"
    settings.write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
    )
    os.environ["CONTAINERS_STORAGE_CONF"] = str(settings)
    checkout = copy_checkout(folder / "checkout")
    make_small(checkout)
    commit(checkout)
    for name, image in (("one", CONTEXT), ("two", f'{{digest: "sha256:{"0" * 64}"}}')):
        write_stack(checkout, name, image)
    try:
        up(checkout, "one")
        yield checkout
    finally:
        del os.environ["CONTAINERS_STORAGE_CONF"]
        checkout.run("vt", "local", "down", "--clean")
        unmount_below(folder)


def images_of_builder() -> list[bytes]:
    """What the builder lists of its images."""
    graph = Path(os.environ["CONTAINERS_STORAGE_CONF"]).parent / "graph"
    return [file.read_bytes() for file in sorted(graph.rglob("images.json"))]


def build(checkout: Checkout) -> tuple[str, str]:
    done = checkout.run("vt", "images", "build", "titanic", "--stack", "one")
    return done.stdout, done.stderr


def test_the_first_build_is_pinned_and_its_code_runs_in_a_container(story: Checkout):
    told, notes = build(story)
    assert "titanic: built sha256:" in told
    assert "the build uses a local base image of Debian packages" in notes
    add_job(story, "one")
    up(story, "one")
    [job] = jobs(story, "one")
    assert "runs in a container, by buildah" in log(story, job)
    assert metrics(story, "one")["run"] == {"code": "first"}


def test_a_promotion_runs_the_same_digest_in_another_project_and_builds_nothing(story: Checkout):
    up(story, "two")
    built = images_of_builder()
    told = story.run("vt", "promote", "titanic", "--from", "one", "--to", "two").stdout
    digest = pin(story, "one")["digest"]
    assert f"titanic: promoted {digest}" in told
    assert pin(story, "two") == {"digest": digest}
    assert images_of_builder() == built
    add_job(story, "two")
    up(story, "two")
    [job] = jobs(story, "two")
    assert digest in json.dumps(job.spec)
    assert metrics(story, "two")["run"] == {"code": "first"}


def test_an_edit_makes_the_image_stale_and_the_check_has_the_command(story: Checkout):
    task = story.path / "jobs" / "titanic" / "task.py"
    task.write_text(task.read_text().replace('CODE = "first"', 'CODE = "second"'))
    told = story.run("vt", "check", "--stack", "one")
    line = "vt images build titanic --stack one"
    assert line in told.stdout + told.stderr
    before = pin(story, "one")
    assert "built" in build(story)[0]
    after = pin(story, "one")
    assert after["digest"] != before["digest"]
    assert after["builtFrom"] != before["builtFrom"]
    story.run("git", "diff", "--exit-code", "--", "jobs/titanic-image.yaml")


def test_the_preview_replaces_that_job_alone_and_names_both_digests(story: Checkout):
    [job] = jobs(story, "one")
    preview = story.preview("one")
    assert preview["changeSummary"].pop("same") > 10
    # The repository's clean-up keeps what is pinned, and names the new digest in place of the old.
    assert preview["changeSummary"] == {"replace": 1, "update": 1}
    [kept] = [step["urn"] for step in preview["steps"] if step["op"] == "update"]
    assert kept.endswith("::registry-docker")
    report = json.loads(story.shell("vt review --stack one --format json").stdout)
    [image] = report["images"]
    old = re.search(r"titanic@(sha256:[0-9a-f]{64})", json.dumps(job.spec))
    assert old
    assert (image["old"], image["new"]) == (old[1], pin(story, "one")["digest"])
    commit_ = story.run("git", "rev-parse", "HEAD").stdout[:12]
    # The edit was not committed.
    assert image["origin"] == f"jobs/titanic at commit {commit_}-dirty"


def test_up_runs_the_new_code_and_it_is_right_about_passengers_it_never_saw(story: Checkout):
    up(story, "one")
    assert len(jobs(story, "one")) == 2
    found = metrics(story, "one")
    assert found["run"] == {"code": "second"}
    assert found["test_accuracy"] >= 0.76


def test_an_unchanged_context_is_not_built(story: Checkout):
    before = (story.path / "Pulumi.one.yaml").read_bytes()
    told, notes = build(story)
    assert "titanic: unchanged sha256:" in told
    assert "vt: 0 builds" in notes
    assert (story.path / "Pulumi.one.yaml").read_bytes() == before
    story.shell("pulumi preview -s one --expect-no-changes")


def test_two_builds_at_once_pin_one_digest_and_only_one_of_them_builds(story: Checkout):
    data = story.path / "jobs" / "titanic" / "data.py"
    good, stack = data.read_text(), story.path / "Pulumi.one.yaml"
    before = stack.read_text()
    data.write_text(f"{good}# edited\n")
    try:
        with ThreadPoolExecutor(2) as threads:
            told = [each.result() for each in [threads.submit(build, story) for _ in range(2)]]
        found = {line for out, _ in told for line in out.split() if line.startswith("sha256:")}
        assert found == {pin(story, "one")["digest"]}
        assert sorted(notes.count("1 build") for _, notes in told) == [0, 1]
    finally:
        data.write_text(good)
    assert "titanic: found sha256:" in build(story)[0]
    assert stack.read_text() == before
