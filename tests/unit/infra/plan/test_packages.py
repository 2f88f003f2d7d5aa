import io
import tarfile

import pytest

from vertex_training.errors import ConfigError
from vertex_training.plan import packages as packaging


@pytest.fixture
def folder(tmp_path):
    code = tmp_path / "titanic"
    (code / "nested").mkdir(parents=True)
    (code / "__init__.py").write_text("")
    (code / "task.py").write_text("print('hello')\n")
    (code / "nested" / "__init__.py").write_text("")
    (code / "words.json").write_text("{}")
    (code / "requirements.txt").write_text("numpy  # arrays\n\n# nothing\n")
    return code


def members(package):
    with tarfile.open(fileobj=io.BytesIO(package.content)) as tar:
        return {entry.name: tar.extractfile(entry).read() for entry in tar.getmembers()}


def test_new_code_is_another_file(folder):
    first = packaging.build("titanic", folder)
    (folder / "task.py").write_text("print('bye')\n")
    assert packaging.build("titanic", folder).file != first.file


def test_a_place_without_code_is_refused_by_its_name_in_the_stack_file(tmp_path):
    with pytest.raises(ConfigError, match="jobs/none: has no Python files"):
        packaging.build("none", tmp_path, "jobs/none")


def test_options_of_pip_are_refused_by_their_lines(folder):
    (folder / "requirements.txt").write_text("numpy\n-r more.txt\n\n--index-url https://a.b\n")
    with pytest.raises(ConfigError) as refused:
        packaging.build("titanic", folder, "jobs/titanic")
    told = [f"{problem.location}: {problem.what}" for problem in refused.value.problems]
    assert told == [
        "jobs/titanic/requirements.txt:2: a package takes no -r of pip's",
        "jobs/titanic/requirements.txt:4: a package takes no --index-url of pip's",
    ]


@pytest.mark.parametrize(
    "line", ["./wheels/x.whl", "numpy=1.26", "numpy 1.26", "numpy==1.26 \\", "numpy>=1 --hash=x"]
)
def test_a_line_that_is_no_requirement_is_refused_with_its_place(folder, line):
    (folder / "requirements.txt").write_text(f"scipy>=1 # fine\n{line}\n")
    with pytest.raises(ConfigError) as refused:
        packaging.build("titanic", folder, "jobs/titanic")
    [problem] = refused.value.problems
    assert str(problem.location) == "jobs/titanic/requirements.txt:2"
    assert problem.what.startswith("not a requirement: ")


def test_requirements_may_begin_with_a_byte_order_mark_and_must_be_utf_8(folder):
    (folder / "requirements.txt").write_bytes(b"\xef\xbb\xbfnumpy>=1\n")
    assert packaging.build("titanic", folder)
    (folder / "requirements.txt").write_bytes(b"caf\xe9>=1\n")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        packaging.build("titanic", folder, "jobs/titanic")


def test_links_out_of_the_folder_are_refused_and_those_inside_are_packed(folder, tmp_path):
    (folder / "again.py").symlink_to("task.py")
    inside = members(packaging.build("titanic", folder))
    assert inside["titanic-0.0.0/titanic/again.py"] == inside["titanic-0.0.0/titanic/task.py"]
    (tmp_path / "secret").write_text("x")
    (folder / "notes.txt").symlink_to(tmp_path / "secret")
    (folder / "data").symlink_to(folder / "nested", target_is_directory=True)
    with pytest.raises(ConfigError) as refused:
        packaging.build("titanic", folder, "jobs/titanic")
    assert [(str(p.location), p.what) for p in refused.value.problems] == [
        ("jobs/titanic/data", "is a link to a folder"),
        ("jobs/titanic/notes.txt", "is a link out of the package"),
    ]


def test_requirements_of_a_script_may_be_a_link_beside_it_and_none_to_elsewhere(tmp_path):
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("")
    (code / "common.txt").write_text("numpy\n")
    (code / "train.requirements.txt").symlink_to("common.txt")
    assert b"'numpy'" in members(packaging.build("x", code / "train.py"))["x-0.0.0/setup.py"]
    (tmp_path / "secret.txt").write_text("numpy\n")
    (code / "train.requirements.txt").unlink()
    (code / "train.requirements.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(ConfigError) as refused:
        packaging.build("x", code / "train.py", "jobs/code/train.py")
    assert [str(problem) for problem in refused.value.problems] == [
        "jobs/code/train.requirements.txt: is a link out of the package. Hint: copy what it leads "
        "to"
    ]


def test_every_path_without_code_is_told_at_once(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("")
    paths = {"a": "empty", "titanic": "titanic", "b": "notes.txt"}
    with pytest.raises(ConfigError) as refused:
        packaging.build_all(paths, tmp_path)
    assert [str(problem) for problem in refused.value.problems] == [
        "empty: has no Python files. Hint: name a folder or a script",
        "notes.txt: is no Python file. Hint: name a folder or a script",
    ]
    [(name, package)] = packaging.build_all({"titanic": "titanic"}, tmp_path).items()
    assert (name, package) == ("titanic", packaging.build("titanic", folder))
    assert package.modules == {"titanic.task"}
    inside = members(package)
    assert sorted(inside) == [
        "titanic-0.0.0/PKG-INFO",
        "titanic-0.0.0/setup.py",
        "titanic-0.0.0/titanic/__init__.py",
        "titanic-0.0.0/titanic/nested/__init__.py",
        "titanic-0.0.0/titanic/requirements.txt",
        "titanic-0.0.0/titanic/task.py",
        "titanic-0.0.0/titanic/words.json",
    ]
    assert inside["titanic-0.0.0/PKG-INFO"] == (
        b"Metadata-Version: 2.1\nName: titanic\nVersion: 0.0.0\n"
    )
    assert inside["titanic-0.0.0/setup.py"].decode() == (
        "from setuptools import setup\n\nsetup(\n"
        "    name='titanic',\n"
        '    version="0.0.0",\n'
        "    packages=['titanic', 'titanic.nested'],\n"
        "    py_modules=[],\n"
        '    package_data={"": ["*", "*/*"]},\n'
        "    install_requires=['numpy'],\n"
        ")\n"
    )


def test_a_path_that_an_archive_has_no_room_for_is_told_at_the_file(folder, tmp_path):
    fits, too_long = "x" * 97 + ".py", "x" * 98 + ".py"
    (folder / "nested" / fits).write_text("")
    assert f"titanic-0.0.0/titanic/nested/{fits}" in members(packaging.build("titanic", folder))
    (folder / "nested" / too_long).write_text("")
    with pytest.raises(ConfigError) as failed:
        packaging.build("titanic", folder, "jobs/titanic")
    told = [(str(each.location), each.what, each.hint) for each in failed.value.problems]
    what = "is too long a path for a package"
    assert told == [(f"jobs/titanic/nested/{too_long}", what, "shorten it")]
    (tmp_path / too_long).write_text("")
    with pytest.raises(ConfigError, match=what):
        packaging.build("x", tmp_path / too_long)
