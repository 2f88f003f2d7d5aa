import gzip
import io
import os
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


def test_the_same_files_make_the_same_bytes_whenever_they_were_written(folder):
    first = packaging.build("titanic", folder)
    for file in folder.rglob("*"):
        os.utime(file, (1, 1))
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "task.pyc").write_bytes(b"x")
    (folder / ".hidden").write_text("x")
    assert packaging.build("titanic", folder) == first


def test_new_code_is_another_file(folder):
    first = packaging.build("titanic", folder)
    (folder / "task.py").write_text("print('bye')\n")
    assert packaging.build("titanic", folder).file != first.file


def test_a_folder_with_a_dockerfile_of_its_own_is_another_program(folder):
    first = packaging.build("titanic", folder)
    serve = folder / "serve"
    (serve / "parts").mkdir(parents=True)
    for name in ("Dockerfile", "__main__.py", "parts/__init__.py"):
        (serve / name).write_text("x = 1\n")
    (folder / "Dockerfile").write_text("FROM scratch\n")
    assert packaging.build("titanic", folder) == first


def test_a_folder_becomes_an_importable_distribution(folder):
    package = packaging.build("titanic", folder)
    inside = members(package)
    assert package.file.startswith("titanic-")
    assert inside["titanic-0.0.0/titanic/task.py"] == b"print('hello')\n"
    assert inside["titanic-0.0.0/titanic/words.json"] == b"{}"
    setup = inside["titanic-0.0.0/setup.py"].decode()
    assert "packages=['titanic', 'titanic.nested']" in setup
    assert "install_requires=['numpy']" in setup


def test_a_script_becomes_a_module_with_the_requirements_beside_it(tmp_path):
    (tmp_path / "train.py").write_text("x = 1\n")
    (tmp_path / "train.requirements.txt").write_text("scipy\n")
    setup = members(packaging.build("train", tmp_path / "train.py"))[
        "train-0.0.0/setup.py"
    ].decode()
    assert "py_modules=['train']" in setup
    assert "install_requires=['scipy']" in setup


def test_a_place_without_code_is_refused_by_its_name_in_the_stack_file(tmp_path):
    with pytest.raises(ConfigError, match="jobs/none: has no Python files"):
        packaging.build("none", tmp_path, "jobs/none")


def test_a_comment_ends_a_requirement_and_a_fragment_does_not(folder):
    wheel = "task @ https://example.com/task.whl#sha256=00"
    (folder / "requirements.txt").write_text(f"# all of it\nnumpy  # arrays\n{wheel}\n")
    setup = members(packaging.build("titanic", folder))["titanic-0.0.0/setup.py"].decode()
    assert f"install_requires={['numpy', wheel]!r}" in setup


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


@pytest.mark.parametrize(
    "line",
    [
        "https://oauth2:ghp_hunter2@github.com/x.whl",
        "--extra-index-url=https://user:ghp_hunter2@example.com/simple",
        "demo @ https://user:ghp_hunter2@example.com/demo.zip ; nonsense",
    ],
)
def test_a_password_in_a_line_of_requirements_is_never_shown(folder, line):
    (folder / "requirements.txt").write_text(f"{line}\n")
    with pytest.raises(ConfigError) as refused:
        packaging.build("titanic", folder, "jobs/titanic")
    assert "hunter2" not in refused.value.report()
    assert "hunter2" not in repr(refused.value.problems)


def test_requirements_may_begin_with_a_byte_order_mark_and_must_be_utf_8(folder):
    (folder / "requirements.txt").write_bytes(b"\xef\xbb\xbfnumpy>=1\n")
    assert packaging.build("titanic", folder)
    (folder / "requirements.txt").write_bytes(b"caf\xe9>=1\n")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        packaging.build("titanic", folder, "jobs/titanic")


def test_requirements_with_markers_extras_and_addresses_are_taken_as_they_are(folder):
    lines = ["torch[opt]>=2 ; python_version > '3.8'", "demo @ https://example.com/demo-1.0.zip"]
    (folder / "requirements.txt").write_text("\n".join(lines))
    setup = members(packaging.build("titanic", folder))["titanic-0.0.0/setup.py"].decode()
    assert all(repr(line) in setup for line in lines)


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


def test_what_signing_in_leaves_in_a_checkout_is_never_packed(folder):
    first = packaging.build("titanic", folder)
    (folder / "gha-creds-0123456789abcdef.json").write_text("{}")
    assert packaging.build("titanic", folder) == first


def test_what_an_image_is_built_from_is_no_part_of_a_package(folder):
    first = packaging.build("titanic", folder)
    for name in ("Dockerfile", "Dockerfile.cuda", "cpu.lock", "image.in", ".dockerignore"):
        (folder / name).write_text("changed")
    assert packaging.build("titanic", folder) == first
    (folder / "Dockerfiles.py").write_text("")
    assert packaging.build("titanic", folder) != first


def test_an_archive_is_a_plain_ustar_that_tells_nothing_of_who_made_it(folder):
    package = packaging.build("titanic", folder)
    plain = gzip.decompress(package.content)
    # Neither a name nor a time stand in the header of gzip; the magic of USTAR in that of tar.
    assert package.content[3:8] == bytes(5)
    assert plain[257:265] == b"ustar\x0000"
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        entries = tar.getmembers()
    told = {(e.mode, e.mtime, e.uid, e.gid, e.uname, e.gname, e.isfile()) for e in entries}
    assert told == {(0o644, 0, 0, 0, "", "", True)}
    names = [entry.name for entry in entries]
    assert names == sorted(names)


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


def test_the_files_of_a_package_are_those_below_its_folder_or_a_script_and_its_requirements(
    folder, tmp_path
):
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "task.pyc").write_bytes(b"x")
    assert list(packaging.sources(folder, "jobs/titanic")) == [
        "jobs/titanic/__init__.py",
        "jobs/titanic/nested/__init__.py",
        "jobs/titanic/requirements.txt",
        "jobs/titanic/task.py",
        "jobs/titanic/words.json",
    ]
    script = tmp_path / "train.py"
    assert list(packaging.sources(script, "jobs/train.py")) == [
        "jobs/train.py",
        "jobs/train.requirements.txt",
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
