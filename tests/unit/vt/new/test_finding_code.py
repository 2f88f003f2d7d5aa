"""What of a checkout is packaged and run, whole, and what is refused with its hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.new import code
from vertex_training_cli.new.code import Code

MAIN = "if __name__ == '__main__':\n    pass\n"
INIT = {"m/__init__.py": ""}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def put(root: Path, contents: dict[str, str]) -> None:
    for name, text in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


STARTED = """\
import pathlib, runpy, sys

folder = pathlib.Path(__file__).parent
sys.path.insert(0, str(folder))
sys.argv[0] = str(folder / 'fit.py')
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize(
    ("contents", "given", "module", "found"),
    [
        # What it imports itself, relatively, or has no Python in it lies not beside it.
        ({"a/fit.py": "from b.c.d import e", "a/b/c.py": ""}, "a/fit.py", "",
         Code("a", "a", {"a/__main__.py": STARTED})),
        ({"a/fit.py": "import b.c.d", "a/b.py": ""}, "a/fit.py", "",
         Code("a", "a", {"a/__main__.py": STARTED})),
        # One script, or the one that says that it can be run.
        ({"a/fit.py": ""}, "a", "", Code("a/fit.py", "fit")),
        # Packages before scripts in a project, both elsewhere.
        ({"p/m/__init__.py": "", "p/m/b.py": MAIN, "p/setup.py": "", "p/c.py": MAIN}, "p", "",
         Code("p/m", "m.b")),
        ({"p/src/m/__init__.py": "", "p/src/m/__main__.py": "", "p/setup.cfg": "",
          "p/test/__init__.py": ""}, "p", "", Code("p/src/m", "m")),
        # A package runs its own __main__, the one module that can be run, or the one that is named.
        ({**INIT, "m/n/__init__.py": "", "m/n/a.py": ""}, "m/n/a.py", "", Code("m", "m.n.a")),
    ],
)  # fmt: skip
def test_what_is_packaged_and_what_is_run(
    root: Path, contents: dict[str, str], given: str, module: str, found: Code
) -> None:
    put(root, contents)
    assert code.find(root / given, root, module) == found


@pytest.mark.parametrize(
    ("contents", "made"),
    [
        ({"pyproject.toml": "[project]\ndependencies = ['a==1', 'b']\n"}, "a==1\nb\n"),
        ({"setup.py": "setup(name='x', install_requires=['c'], extras_require={})"}, "c\n"),
        ({"setup.py": "setup()", "requirements.txt": "d\n"}, "d\n"),
        ({"setup.py": "setup(install_requires=['c'])", "requirements.txt": ""}, None),
        ({"setup.cfg": ""}, None),
        ({"requirements.txt": "d\n"}, None),
    ],
)
def test_requirements_of_a_project_are_put_where_pip_finds_them(
    root: Path, contents: dict[str, str], made: str | None
) -> None:
    put(root, {f"p/{name}": text for name, text in contents.items()})
    put(root, {"p/m/__init__.py": "", "p/m/__main__.py": ""})
    files = {} if made is None else {"p/m/requirements.txt": made}
    assert code.find(root / "p/m", root) == Code("p/m", "m", files)


SEVERAL = "name one by --code"
RUNS = "a package has an __init__.py, and a script the line if __name__ == '__main__':"


@pytest.mark.parametrize(
    ("contents", "given", "module", "message", "hint"),
    [
        ({}, "none", "", "{given}: no such file or folder.", "name code of this checkout"),
        ({}, ".", "", "{given} is the checkout itself.", "name a folder or a script in it"),
        ({}, "..", "", "{given} lies outside of the checkout.", "copy the code into it"),
        ({"x.sh": ""}, "x.sh", "", "x.sh is no Python file.", "name a folder or a .py file"),
        ({"a/x.py": ""}, "a/x.py", "m", "--module is for a package.", "a/x.py is run itself"),
        ({"x.py": "\0"}, "x.py", "", "x.py:1: this is no Python that can be read.", ""),
        ({"my-x.py": ""}, "my-x.py", "", "my-x is no name that Python imports.",
         "rename it, such as my_x"),
        ({"a/x.py": "", "a/y.py": ""}, "a", "", "a has no code that can be run.", RUNS),
        ({"a/x.py": MAIN, "a/y.py": MAIN}, "a", "", "a has several: a/x.py, a/y.py.", SEVERAL),
        ({**INIT, "m/a.py": ""}, "m", "", "m has no module to run.",
         "give it a __main__.py, or name one by --module"),
        ({**INIT, "m/b.py": MAIN, "m/a.py": MAIN}, "m", "",
         "several modules of m can be run: m.a, m.b.", "--module m.a takes the first"),
        ({**INIT, "m/task.py": ""}, "m", "m.taks", "m has no module 'm.taks' to run.",
         "did you mean 'm.task'?"),
        ({"x.py": "import y", "y.py": ""}, "x.py", "", "x.py imports y, which lies beside it.",
         "put them into a folder of their own, and name that"),
        ({"a/x.py": "import y", "a/y.py": "", "a/__main__.py": ""}, "a/x.py", "",
         "a/x.py imports y, which lies beside it, and a/__main__.py is there already.",
         "name the folder: --code a"),
        ({"my-a/x.py": "import y", "my-a/y.py": ""}, "my-a/x.py", "",
         "my-a is no name that Python imports.", "rename it, such as my_a"),
        ({"p/m/__init__.py": "", "p/m/__main__.py": "",
          "p/setup.py": "\nsetup(install_requires=read())"}, "p", "",
         "p/setup.py:2: install_requires is not written out.",
         "write them into p/requirements.txt"),
    ],
)  # fmt: skip
def test_what_is_not_clear_is_refused_with_what_to_do(
    root: Path, contents: dict[str, str], given: str, module: str, message: str, hint: str
) -> None:
    put(root, contents)
    with pytest.raises(CommandError) as refused:
        code.find(root / given, root, module)
    assert (refused.value.message, refused.value.hint) == (
        message.format(given=root / given), hint,
    )  # fmt: skip


@pytest.mark.parametrize("given", ["link", "link/fit.py", "a/link.py"])
def test_a_link_is_refused_by_its_own_name(root: Path, given: str) -> None:
    put(root, {"a/fit.py": ""})
    link = root / ("a/link.py" if given == "a/link.py" else "link")
    link.symlink_to(root / ("a/fit.py" if given == "a/link.py" else "a"))
    with pytest.raises(CommandError) as refused:
        code.find(root / given, root)
    shown = link.relative_to(root).as_posix()
    assert (refused.value.message, refused.value.hint) == (
        f"{shown} is a link.", "name the place that it leads to",
    )  # fmt: skip


def test_requirements_that_are_no_text_are_told(root: Path) -> None:
    put(root, {"a/fit.py": ""})
    (root / "a" / "requirements.txt").write_bytes(b"\xff")
    with pytest.raises(CommandError) as refused:
        code.find(root / "a/fit.py", root)
    assert (refused.value.message, refused.value.hint) == (
        "a/requirements.txt is not UTF-8.", "put the file itself there",
    )  # fmt: skip
