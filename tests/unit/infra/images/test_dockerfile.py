"""A Dockerfile that cannot be built, and what a stack file says of images."""

import pytest

from vertex_training.images import pins


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "jobs" / "flash"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("# syntax\nARG V=3\nFROM python:$V\nCOPY train.py /app/\n")
    (folder / "train.py").write_text("print(1)\n")
    return tmp_path


BASE = "FROM x\n"
NONE = ("Dockerfile has no FROM", "begin the Dockerfile with FROM and a base image")


def absent(name: str) -> tuple[str, str]:
    hint = "write a path relative to the folder, or add other folders with include"
    return f"Dockerfile copies {name}, which does not exist in the folder", hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("FROM x", []),
        ("ARG V\n  from x:$V", []),
        ("", [NONE]),
        (f"{BASE}COPY a b train.py /x\nadd c /x", [absent("a"), absent("b"), absent("c")]),
        (f"{BASE}COPY lib/a /lib /x\nCOPY libs/a sub/lib /x", [absent("libs/a"),
                                                              absent("sub/lib")]),
        (f"{BASE}COPY --from=base a /x\n# COPY a /x\nRUN COPY a /x\nCOPY a", []),
    ],
)  # fmt: skip
def test_all_problems_of_a_dockerfile_are_reported_together(checkout, text, said):
    folder = checkout / "jobs" / "flash"
    (folder / "Dockerfile").write_text(text)
    assert list(pins.problems(folder, "Dockerfile", ["lib"])) == said


def test_a_dockerfile_may_have_bytes_that_are_no_text(checkout):
    folder = checkout / "jobs" / "flash"
    (folder / "Dockerfile").write_bytes(b"# \xff\nFROM x\nCOPY a /x\n")
    assert list(pins.problems(folder, "Dockerfile")) == [absent("a")]


def test_a_dockerfile_is_a_file_of_its_folder(checkout):
    folder = checkout / "jobs" / "flash"
    (folder / "Other").mkdir()
    (folder / "Link").symlink_to("Dockerfile")
    (checkout / "Dockerfile").write_text("FROM x\n")
    (folder / "Out").symlink_to("../../Dockerfile")
    hint = "use the folder of the Dockerfile, or set dockerfile"
    told = {name: list(pins.problems(folder, name)) for name in ("Other", "None", "Link", "Out")}
    assert told == {
        "Other": [("the folder has no Other", hint)],
        "None": [("the folder has no None", hint)],
        "Link": [],
        "Out": [
            ("Out links to a file outside of the folder", "copy the linked file into the folder")
        ],
    }
    names = ("Dockerfile", "Other", "None", "Link", "Out")
    assert [name for name in names if pins.is_inside(folder, name)] == ["Dockerfile", "Link"]
