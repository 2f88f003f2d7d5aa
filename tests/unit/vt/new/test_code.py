"""`vt new job --code` takes code that is there: nothing of it changes, what is unclear is named."""

import os

import pytest
import yaml

from tests.unit.vt.new.test_new import files, job_of, project, vt

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


def test_requirements_that_are_a_link_are_not_copied(project):
    (project.parent / "netrc").write_text("password==1\n")
    put(project, {"jobs/fit.py": ""})
    os.symlink(project.parent / "netrc", project / "jobs/requirements.txt")
    done = vt("new", "job", "x", "--code", "jobs/fit.py", "--write", code=2)
    assert "jobs/requirements.txt is a link" in done.stderr
    assert "password" not in done.output
