"""Mutants of a small project: those that a test detects are killed, the others are reported."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.mutants import __main__ as mutants
from tests.mutants.sites import mutants as mutants_of

CODE = '''\
"""A module."""


def is_adult(age):
    """Whether somebody may vote."""
    return age >= 18


def discount(age):
    return 5 if age > 65 else 0


def price(age):
    return 10 - discount(age)


def years_to_come(age):
    while age < 80:
        age += 10
    return age
'''
NOTICES = """\
from product.ages import discount, is_adult, years_to_come


def test_a_person_of_eighteen_is_adult_and_one_of_seventeen_is_not():
    assert is_adult(18) is True
    assert is_adult(17) is False


def test_a_discount_can_be_computed():
    discount(70)
    discount(20)


def test_years_have_an_end():
    assert years_to_come(60) == 80
"""
KILLED, SURVIVED = "product/ages.py:6:15:comparison", "product/ages.py:10:20:comparison"
NOT_COVERED = "product/ages.py:14:14:arithmetic"


def git(root, *arguments):
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *who, *arguments], cwd=root, check=True)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A checkout with lines whose behaviour is asserted, and others."""
    root = tmp_path_factory.mktemp("project")
    for name, text in {
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
        ".gitignore": ".build/\n__pycache__/\n*.json\n",
        "product/ages.py": CODE,
        "tests/unit/test_ages.py": NOTICES,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    return root


def judge(root, *names, options=()):
    """The exit code, and the status of each of the named mutants."""
    only = [f"--only={name}" for name in names]
    written = root / "results.json"
    given = ["--paths=product", "--jobs=1", f"--json={written}", *only, *options]
    code = mutants.main(given, root)
    return code, {found["id"]: found["status"] for found in json.loads(written.read_text())}


def drawn(root, *options):
    """The mutants that would be judged."""
    chosen = mutants.draw(root, ["product"], mutants.parse_options(options))
    return {mutant.id for mutant in chosen}


def changes(source):
    """What each mutant of a source looks like."""
    text = source.encode()
    return {mutant.apply(text).decode() for mutant in mutants_of("a.py", text)}


def test_measured_tests_kill_what_they_detect(project):
    code, statuses = judge(project, KILLED, SURVIVED, NOT_COVERED)
    assert statuses == {KILLED: "killed", SURVIVED: "survived", NOT_COVERED: "not covered"}
    assert code == 1


def test_named_tests_run_without_a_measurement(project):
    name = "tests/unit/test_ages.py"
    runs = set((project / ".build/mutants").glob("*/*"))
    options = (f"--tests={name}::test_a_discount_can_be_computed",)
    found = judge(project, KILLED, SURVIVED, options=options)[1]
    assert found == {KILLED: "survived", SURVIVED: "survived"}
    assert judge(project, KILLED, options=("--tests=tests/unit/",))[1] == {KILLED: "killed"}
    assert set((project / ".build/mutants").glob("*/*")) == runs


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("tests/unit/test_broken.py", "tests/unit/test_broken.py::test_it fails"),
        ("tests/unit/test_ages.py::test_gone", "no test passes"),
    ],
)
def test_named_tests_that_fail_without_a_mutant_are_refused(project, name, why):
    broken = project / "tests/unit/test_broken.py"
    broken.write_text("def test_it():\n    assert False\n")
    try:
        with pytest.raises(SystemExit) as ended:
            judge(project, KILLED, options=(f"--tests={name}",))
    finally:
        broken.unlink()
    assert str(ended.value) == f"{why} without a mutant: {name}"


def test_only_lines_added_since_a_revision_are_mutated(project):
    file = project / "product/young.py"
    file.write_text("def is_child(age):\n    return age < 14\n")
    git(project, "add", "-N", str(file))
    try:
        assert {name.split(":")[0] for name in drawn(project, "--base=HEAD")} == {
            "product/young.py"
        }
    finally:
        git(project, "rm", "-fq", "--cached", str(file))
        file.unlink()


def test_the_same_seed_draws_the_same_mutants(project):
    first, again, other = (drawn(project, "--count=4", f"--seed={seed}") for seed in (7, 7, 8))
    assert first == again != other
    assert len(first) == 4


def test_paths_of_every_set_exist_and_may_be_files():
    root = Path(mutants.__file__).parents[2]
    named = {path for paths in mutants.SETS.values() for path in paths}
    assert not [path for path in named if not (root / path).exists()]
    some = mutants.parse_options(["--count=9"])
    [file] = {m.path for m in mutants.draw(root, ["infra/vertex_training/plugin_callers.py"], some)}
    assert file == "infra/vertex_training/plugin_callers.py"


def test_the_wording_of_messages_docstrings_and_annotations_are_not_mutated():
    assert not changes('"""A docstring."""\nfrom a import b\nx: "int"\n')
    assert not changes('def f(a: Literal["x"]) -> "str":\n    """It says."""\n')
    assert changes('raise ValueError("no")\n') == {"pass\n"}
    assert not changes('x = f"it is {y}"\n')


def test_an_operator_changes_one_place_and_leaves_the_rest():
    assert "a = f( y=2)\n" in changes("a = f(x=1, y=2)\n")
    assert "a = f(x=1, )\n" in changes("a = f(x=1, y=2)\n")
    assert changes("a = b not in c\n") == {"a = b in c\n"}
    assert "a = b or c\n" in changes("a = b and c\n")
    assert changes("a = not b\n") == {"a = (b)\n"}
    assert changes("a = 'ü' if b else c\n") == {
        'a = "mutated" if b else c\n',
        "a = 'ü' if ((b) or True) else c\n",
        "a = 'ü' if ((b) and False) else c\n",
    }


def test_equivalent_programs_are_not_mutants():
    assert not changes("a = zip(b, c, strict=True)\n")
    assert not changes("@lru_cache(maxsize=16)\ndef a():\n    pass\n")
    assert changes('a = ConfigDict(extra="x", frozen=True)\n') == {
        "a = ConfigDict( frozen=True)\n", 'a = ConfigDict(extra="mutated", frozen=True)\n',
    }  # fmt: skip
    assert changes("a = zip(b, c, strict=False)\n") == {"a = zip(b, c, strict=True)\n"}
    assert changes("a = run(b, check=False)\n") == {"a = run(b, check=True)\n"}
    assert changes('a = read(encoding="utf-8")\n') == {'a = read(encoding="mutated")\n'}
    assert changes("def f():\n    return False\n") == {"def f():\n    return True\n"}
    assert changes("def f():\n    return True\n") == {
        "def f():\n    return False\n",
        "def f():\n    return None\n",
    }
