"""`vt new job --code` takes code that is there: nothing of it changes, what is unclear is named."""

import os
import subprocess
import sys

import pytest
import yaml

from tests.unit.vt.new.test_new import files, job_of, project, vt
from vertex_training.plan import packages

__all__ = ["project"]  # a fixture

MAIN = 'if __name__ == "__main__":\n    print("trained")\n'


def put(root, contents):
    for name, text in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def take(root, path, *more):
    """The entry of the package and the task of a new job; what was there is as it was."""
    before = files(root)
    vt("new", "job", "train", "--code", path, "--write", *more)
    after = files(root)
    assert {name: after[name] for name in before if name != "Pulumi.local.yaml"} == {
        name: text for name, text in before.items() if name != "Pulumi.local.yaml"
    }
    assert vt("check", "--stack", "local").exit_code == 0
    config = yaml.safe_load((root / "Pulumi.local.yaml").read_text())["config"]
    [entry] = config["vertex-training:packages"].values()
    [pool] = job_of(root, "train")["workerPoolSpecs"]
    return entry["path"], pool["pythonPackageSpec"], set(after) - set(before)


def test_a_script_and_its_requirements_become_a_job_with_the_arguments_of_the_user(project):
    put(project, {"jobs/fit.py": "import os\n", "jobs/requirements.txt": "numpy==1.26.4\n"})
    path, task, new = take(project, "jobs/fit.py", "--", "--epochs=3", "--out", "/gcs/x")
    assert (path, task["pythonModule"]) == ("jobs/fit.py", "fit")
    assert task["args"] == ["--epochs=3", "--out", "/gcs/x"]
    assert task["packageUris"] == ["${packages.train}"]
    assert new == {"jobs/train.yaml", "jobs/fit.requirements.txt"}
    assert (project / "jobs/fit.requirements.txt").read_text() == "numpy==1.26.4\n"


def test_no_argument_is_made_up(project):
    put(project, {"jobs/fit.py": "import os\n"})
    _, task, _ = take(project, "jobs/fit.py")
    assert "args" not in task


@pytest.mark.parametrize(
    ("given", "more", "module"),
    [
        ({"mine/__main__.py": "", "mine/a.py": MAIN}, (), "mine"),
        ({"mine/a.py": "", "mine/b.py": MAIN}, (), "mine.b"),
        ({"mine/deep/__init__.py": "", "mine/deep/b.py": MAIN}, (), "mine.deep.b"),
        ({"mine/a.py": MAIN, "mine/b.py": MAIN}, ("--module", "mine.a"), "mine.a"),
    ],
)
def test_a_package_runs_its_main_or_the_one_module_that_can_run(project, given, more, module):
    put(project, {f"jobs/{name}": text for name, text in given.items()})
    put(project, {"jobs/mine/__init__.py": ""})
    path, task, new = take(project, "jobs/mine", *more)
    assert (path, task["pythonModule"], new) == ("jobs/mine", module, {"jobs/train.yaml"})


def test_a_module_of_a_package_is_taken_with_its_package(project):
    put(project, {"lib/mine/__init__.py": "", "lib/mine/a.py": MAIN, "lib/mine/b.py": MAIN})
    path, task, _ = take(project, "lib/mine/b.py")
    assert (path, task["pythonModule"]) == ("lib/mine", "mine.b")


@pytest.mark.parametrize(
    "project_file",
    [
        {"pyproject.toml": '[project]\nname = "x"\ndependencies = ["numpy==1.26.4"]\n'},
        {"setup.py": "from setuptools import setup\nsetup(install_requires=['numpy==1.26.4'])\n"},
        {"setup.py": "raise SystemExit('run')\n", "requirements.txt": "numpy==1.26.4\n"},
        {"setup.cfg": "[options]\ninstall_requires =\n    numpy==1.26.4\n"},
        {"setup.cfg": "[options]\ninstall_requires = numpy==1.26.4;\n"},
        {
            "pyproject.toml": "project = {dynamic = ['dependencies']}\n",
            "setup.py": "from setuptools import setup\nsetup(install_requires=['numpy==1.26.4'])\n",
        },
        {
            "pyproject.toml": "[tool.poetry.dependencies]\npython = '^3.11'\n",
            "setup.cfg": "[options]\ninstall_requires = numpy==1.26.4\n",
        },
    ],
)
@pytest.mark.parametrize("layout", ["", "src/"])
def test_a_project_gives_its_package_and_its_requirements(project, project_file, layout):
    code = {f"{layout}mine/__init__.py": "", f"{layout}mine/task.py": MAIN, "tests/__init__.py": ""}
    put(project, {f"a-project/{name}": text for name, text in (project_file | code).items()})
    path, task, new = take(project, "a-project")
    assert (path, task["pythonModule"]) == (f"a-project/{layout}mine", "mine.task")
    assert new == {"jobs/train.yaml", f"a-project/{layout}mine/requirements.txt"}
    made = project / f"a-project/{layout}mine/requirements.txt"
    assert made.read_text() == "numpy==1.26.4\n"


def test_a_script_that_imports_files_beside_it_finds_them_in_the_job(project, tmp_path):
    put(project, {"jobs/mine/fit.py": "import model\nprint(model.SIZE)\n",
                  "jobs/mine/model.py": "SIZE = 3\n"})  # fmt: skip
    path, task, new = take(project, "jobs/mine/fit.py")
    assert (path, task["pythonModule"]) == ("jobs/mine", "mine")
    assert new == {"jobs/train.yaml", "jobs/mine/__main__.py"}
    built = packages.build("train", project / path, path)
    (tmp_path / "train.tar.gz").write_bytes(built.content)
    subprocess.run(["tar", "xzf", "train.tar.gz"], cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, "-m", "mine"], cwd=tmp_path / "train-0.0.0", check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "3\n"


def test_a_package_that_the_stack_has_is_used_and_none_is_made_twice(project):
    put(project, {"jobs/mine/__init__.py": "", "jobs/mine/a.py": MAIN})
    stack = project / "Pulumi.local.yaml"
    stack.write_text(stack.read_text() + "  vertex-training:packages: {own: {path: jobs/mine}}\n")
    _, task, _ = take(project, "jobs/mine")
    assert task["packageUris"] == ["${packages.own}"]


@pytest.mark.parametrize(
    ("given", "code", "told"),
    [
        ({}, "jobs/none", "jobs/none: no such file or folder"),
        ({}, ".", "is the checkout itself"),
        ({"jobs/x.sh": ""}, "jobs/x.sh", "jobs/x.sh is no Python file"),
        ({"jobs/my-fit.py": ""}, "jobs/my-fit.py", "my-fit is no name that Python imports"),
        ({"jobs/my-x/__init__.py": ""}, "jobs/my-x", "my-x is no name that Python imports"),
        ({"jobs/fit.py": "def ("}, "jobs/fit.py", "jobs/fit.py:1: this is no Python"),
        ({"jobs/m/read.md": ""}, "jobs/m", "jobs/m has no code that can be run"),
        ({"jobs/m/__init__.py": "", "jobs/m/a.py": ""}, "jobs/m", "jobs/m has no module to run"),
        ({"jobs/m/a.py": MAIN, "jobs/m/b.py": MAIN}, "jobs/m", "jobs/m/a.py, jobs/m/b.py"),
        ({"p/pyproject.toml": "", "p/a/__init__.py": "", "p/src/b/__init__.py": ""}, "p",
         "p/a, p/src/b"),
        ({"jobs/m/__init__.py": "", "jobs/m/a.py": MAIN, "jobs/m/b.py": MAIN}, "jobs/m",
         "m.a, m.b"),
        ({"p/pyproject.toml": "[", "p/a/__init__.py": "", "p/a/b.py": MAIN}, "p",
         "p/pyproject.toml cannot be read"),
        *(({"p/a/__init__.py": "", "p/a/b.py": MAIN, f"p/{name}": text}, "p", f"p/{name}{told}")
          for name, text, told in (
              ("pyproject.toml", "project = {dynamic = ['dependencies']}",
               ": what makes project.dependencies (dynamic) is not read. Hint: write them into "
               "p/requirements.txt"),
              ("pyproject.toml", "[tool.poetry.dependencies]\npython = '*'\ntorch = '2.4'",
               ": tool.poetry.dependencies is not read. Hint: write them into p/requirements.txt"),
              ("pyproject.toml", "project = {dependencies = 'torch'}",
               ": project.dependencies is no list of texts"),
              ("pyproject.toml", "project = {dependencies = [3]}",
               ": project.dependencies is no list of texts"),
              ("setup.cfg", "[options]\ninstall_requires = file: x.txt",
               ": install_requires is not written out. Hint: write them into p/requirements.txt"),
              ("setup.cfg", "numpy", " cannot be read: File contains no section headers"),
          )),
        ({"jobs/3d-fit.py": ""}, "jobs/3d-fit.py", "rename it, such as _3d_fit"),
        ({"jobs/fit.py": "import model", "jobs/model.py": ""}, "jobs/fit.py",
         "imports model, which lies beside it"),
        ({"jobs/m/fit.py": "import a", "jobs/m/a.py": "", "jobs/m/__main__.py": ""},
         "jobs/m/fit.py", "jobs/m/__main__.py is there already"),
        ({"jobs/m/__init__.py": "", "jobs/m/requirements.txt": "-r x\n", "jobs/m/a.py": MAIN},
         "jobs/m", "a package takes no -r"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_is_named_and_nothing_is_written(project, given, code, told):
    put(project, given)
    before = files(project)
    done = vt("new", "job", "train", "--code", code, "--write", code=2)
    assert told in " ".join(done.stderr.split()).replace("│", "")
    assert files(project) == before


def test_a_module_that_is_not_there_is_named_with_the_nearest(project):
    put(project, {"jobs/m/__init__.py": "", "jobs/m/task.py": ""})
    done = vt("new", "job", "x", "--code", "jobs/m", "--module", "m.taks", code=2)
    assert "did you mean 'm.task'?" in done.stderr


def test_package_names_the_option_for_code_that_is_there(project):
    put(project, {"jobs/my_ddp/task.py": "mine"})
    told = vt("new", "job", "my-ddp", "--package", "--write", code=2).stderr
    assert "jobs/my_ddp is there already" in told
    assert "--code jobs/my_ddp" in told


def test_a_folder_without_code_gets_a_first_file(project):
    put(project, {"jobs/train/readme.md": "mine"})
    vt("new", "job", "train", "--package", "--write")
    assert (project / "jobs/train/task.py").exists()


@pytest.mark.parametrize("way", ["../outside", "jobs/../../outside", "{outside}"])
def test_a_folder_outside_of_the_checkout_is_refused(project, way):
    outside = project.parent / "outside"
    put(outside, {"__init__.py": "", "__main__.py": ""})
    told = vt("new", "job", "x", "--code", way.format(outside=outside), "--write", code=2).stderr
    assert "lies outside of the checkout" in told
    assert not (project / "jobs/x.yaml").exists()


def test_a_project_whose_sources_are_a_link_out_is_refused(project):
    put(project.parent / "outside", {"m/__init__.py": "", "m/a.py": MAIN})
    put(project, {"p/pyproject.toml": ""})
    os.symlink(project.parent / "outside", project / "p/src")
    told = vt("new", "job", "x", "--code", "p", "--write", code=2).stderr
    assert "p/src is a link" in told


@pytest.mark.parametrize("link", ["jobs/m", "jobs", "jobs/m/a.py", "jobs/m/requirements.txt"])
def test_a_link_out_of_the_checkout_is_refused_and_not_read(project, link):
    outside = project.parent / "outside"
    put(outside, {"m/__init__.py": "", "m/a.py": MAIN, "requirements.txt": "secret==1\n"})
    put(project, {"jobs/m/__init__.py": "", "jobs/m/__main__.py": ""})
    if (project / link).is_dir():
        (project / link).rename(project / "away")
    os.symlink({"jobs/m": outside / "m", "jobs": outside, "jobs/m/a.py": outside / "m/a.py"}.get(
        link, outside / "requirements.txt"), project / link)  # fmt: skip
    done = vt("new", "job", "x", "--code", "jobs/m", "--write", code=2)
    assert "link" in done.stderr
    assert "secret" not in done.output
    assert not (project / "jobs/x.yaml").exists()


def test_requirements_that_are_a_link_are_not_copied(project):
    (project.parent / "netrc").write_text("password==1\n")
    put(project, {"jobs/fit.py": ""})
    os.symlink(project.parent / "netrc", project / "jobs/requirements.txt")
    done = vt("new", "job", "x", "--code", "jobs/fit.py", "--write", code=2)
    assert "jobs/requirements.txt is a link" in done.stderr
    assert "password" not in done.output


def test_a_name_that_leads_elsewhere_is_no_name_of_a_job(project):
    put(project, {"jobs/fit.py": ""})
    told = vt("new", "job", "../../x", "--code", "jobs/fit.py", "--write", code=2).stderr
    assert "is no name of a job" in told
