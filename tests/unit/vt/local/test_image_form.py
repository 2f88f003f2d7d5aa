"""Which stack `vt local up --images` brings up, and what it says of it."""

from dataclasses import replace

import pytest
import yaml

from localgcp import lifecycle
from localgcp.containers import host
from localgcp.containers import registry as registry_program
from localgcp.containers.requests import REPOSITORY
from localgcp.home.server_info import ServerInfo
from localgcp.inventory.store import Store
from tests.unit.vt.images import stand_in
from vertex_training.errors import CommandError, ImageBuildError
from vertex_training_cli.images import building
from vertex_training_cli.local import image_form

STACK = """\
config:
  gcp:project: local-training
  gcp:region: us-central1
  vertex-training:projectNumber: "971240389164"
  vertex-training:buckets: {artifacts: {}}
  vertex-training:packages: {train: {path: jobs/train}}
  vertex-training:jobs:
    train: {file: jobs/train.yaml}
"""
POOL = "workerPoolSpecs: [{containerSpec: {imageUri: %s}}]\n"
PATH = "local-training/training-local-image/train"


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """Of this test alone; the home is this cache's."""
    monkeypatch.setenv("VT_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def project(cache, home):
    """A home whose checkout has a job in both forms."""
    root = home.root / "checkout"
    (root / "jobs" / "train").mkdir(parents=True)
    (root / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (root / "Pulumi.local.yaml").write_text(STACK)
    (root / "jobs" / "train.yaml").write_text("args: ['${packages.train}']\n")
    (root / "jobs" / "train-image.yaml").write_text(POOL % "${images.train}")
    (root / "jobs" / "train" / "Dockerfile").write_text("FROM scratch\n")
    return replace(home, repo=root)


@pytest.fixture
def machine(project, monkeypatch, tmp_path):
    """A machine with a registry and an engine."""
    registry = stand_in.Registry()
    monkeypatch.setenv("ARTIFACT_REGISTRY_EMULATOR_HOST", registry.address)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", "127.0.0.1:1")
    monkeypatch.setattr(lifecycle, "start", lambda *_: ServerInfo(4242, 2, 3, "now"))
    monkeypatch.setattr(registry_program, "find_program", lambda: "/bin/registry")
    monkeypatch.setattr(host, "find_engine", lambda _: object())
    monkeypatch.setattr(image_form.sys, "platform", "linux")
    programs = tmp_path / "programs"
    programs.mkdir()
    stand_in.install_buildah(programs)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    yield registry
    registry.stop()


class Ups:
    """`pulumi up`: what each stack's file had when it was brought up."""

    def __init__(self, home, code=0):
        self.home, self.code, self.seen = home, code, []

    def __call__(self, stack):
        self.seen.append((stack, config(self.home, stack)))
        repository = {"repositoryId": f"training-{stack}"}
        Store(self.home.database).put(REPOSITORY, stack, "local-training", repository, {})
        return self.code


def config(home, stack="local-image"):
    return yaml.safe_load((home.repo / f"Pulumi.{stack}.yaml").read_text())["config"]


def choose(home, ups=None):
    lines = []
    stack = image_form.choose(home, "local", ups or Ups(home), lines.append)
    return stack, "\n".join(lines)


def test_an_edit_of_the_stack_reaches_the_one_with_images(project, machine):
    choose(project)
    file = project.repo / "Pulumi.local.yaml"
    file.write_text(STACK.replace("artifacts: {}", "artifacts: {}, more: {}"))
    choose(project)
    assert "more" in config(project)["vertex-training:buckets"]
    assert "digest" in config(project)["vertex-training:images"]["train"]


INSTALL = "(`make containers` installs missing programs, or lists the programs to install)"


@pytest.mark.parametrize(
    ("lacking", "line"),
    [
        ("registry", f"no container registry is installed {INSTALL}"),
        ("builder", f"no program that builds images is installed {INSTALL}"),
        ("runner", f"no program that runs containers is installed {INSTALL}"),
        ("linux", "containers can use the network of this machine only on Linux"),
    ],
)
def test_what_the_machine_lacks_is_one_line_and_the_job_is_a_package(
    project, machine, monkeypatch, lacking, line
):
    if lacking == "registry":
        monkeypatch.setattr(registry_program, "find_program", lambda: None)
    elif lacking == "linux":
        monkeypatch.setattr(image_form.sys, "platform", "darwin")
    elif lacking == "builder":
        monkeypatch.setenv("PATH", "/nowhere")
    else:
        monkeypatch.setattr(host, "find_engine", lambda _: None)
    assert choose(project) == (
        "local",
        f"train will run as a Python package, not as an image: {line}",
    )
    assert not (project.repo / "Pulumi.local-image.yaml").exists()


def test_an_index_that_does_not_answer_is_found_before_anything_is_made(
    project, machine, monkeypatch
):
    file = project.repo / "jobs" / "train" / "Dockerfile"
    file.write_text("FROM scratch\nRUN uv pip install --torch-backend cpu torch\n")
    monkeypatch.setattr(image_form, "_reaches_cpu_wheels", lambda: False)
    ups = Ups(project)
    stack, told = choose(project, ups)
    assert (stack, ups.seen) == ("local", [])
    assert told == (
        "train will run as a Python package, not as an image: cannot reach PyTorch's index of CPU "
        "wheels, which the image needs"
    )
    assert not (project.repo / "Pulumi.local-image.yaml").exists()


def test_uv_that_asks_an_index_in_vain_is_no_answer(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("no_proxy", "")
    assert image_form._reaches_cpu_wheels() is False


def test_a_build_that_fails_shows_its_end_and_the_job_is_a_package(project, machine, monkeypatch):
    def fail(*_):
        raise ImageBuildError("train: it ended with exit code 9.", ["RUN pip", "no such package"])

    monkeypatch.setattr(building, "build_image", fail)
    first = "creating the repository of stack local-image first, then the image, then the job\n"
    for before in (first, ""):  # the repository stays
        assert choose(project) == ("local", (
            f"{before}  | RUN pip\n  | no such package\n"
            "train will run as a Python package, not as an image: train: it ended with exit code 9."
        ))  # fmt: skip
        assert "vertex-training:jobs" not in config(project)  # they have no image yet


def test_a_stack_that_cannot_be_brought_up_is_a_failure_and_no_package(project, machine):
    with pytest.raises(CommandError) as failed:
        choose(project, Ups(project, code=255))
    assert str(failed.value) == "stack local-image: `pulumi up` ended with exit code 255."


def test_a_stack_file_of_somebody_else_is_not_overwritten(project, machine):
    file = project.repo / "Pulumi.local-image.yaml"
    file.write_text("# mine\n")
    with pytest.raises(CommandError) as refused:
        choose(project)
    assert str(refused.value) == (
        "Pulumi.local-image.yaml exists and was not written by this command. Hint: "
        "rename the file, or deploy it by `vt local up --stack local-image`"
    )
    assert file.read_text() == "# mine\n"


@pytest.mark.parametrize("broken", ["", "config: [", f"{image_form.MARK}local.yaml\n"])
def test_a_broken_file_of_an_earlier_run_is_written_anew(project, machine, broken):
    (project.repo / "Pulumi.local-image.yaml").write_text(f"{image_form.MARK}\n{broken}")
    assert choose(project)[0] == "local-image"
    assert "digest" in config(project)["vertex-training:images"]["train"]


@pytest.mark.parametrize(
    ("old", "new", "jobs", "images", "packages"),
    [
        ("packages: {train: {path: jobs/train}}", "packages: 1", None, None, None),
        ("    train: {file: jobs/train.yaml}", "    train: jobs/train.yaml", None, None, None),
        ("    train: {file: jobs/train.yaml}", "    train: {file: 1}", None, None, None),
        ("{path: jobs/train}", "jobs/train", None, None, None),
        # a package of another job stays one
        (
            "{train: {path: jobs/train}}", "{train: {path: jobs/train}, more: {path: x}}",
            ("train",), {"train": {"context": "jobs/train"}}, {"more": {"path": "x"}},
        ),
        (
            "    train: {file: jobs/train.yaml}",
            "    train: {file: jobs/train.yaml}\n    same: {file: jobs/same.yaml}\n    odd: 1",
            ("train",), {"train": {"context": "jobs/train"}}, {"train": {"path": "jobs/train"}},
        ),
    ],
)  # fmt: skip
def test_a_job_is_an_image_where_all_of_its_packages_can_be(
    project, old, new, jobs, images, packages
):
    (project.repo / "jobs" / "same.yaml").write_text("args: ['${packages.train}']\n")
    assert old in STACK
    (project.repo / "Pulumi.local.yaml").write_text(STACK.replace(old, new))
    form = image_form.find_form(project.repo, "local")
    if jobs is None:
        assert form is None
        return
    made = form.config
    assert (form.jobs, made["vertex-training:images"], made["vertex-training:packages"]) == (
        jobs, images, packages,
    )  # fmt: skip


def test_a_stack_of_google_is_never_written_anew(project, machine):
    text = STACK.replace("local-training", "acme-training")
    (project.repo / "Pulumi.local.yaml").write_text(text)
    assert choose(project) == ("local", "")
