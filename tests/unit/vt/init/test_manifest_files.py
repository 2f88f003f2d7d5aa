"""The file of what was written: its text, and what of it is refused when it is read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.init import manifest
from vertex_training_cli.init.answers import parse
from vertex_training_cli.init.manifest import Manifest
from vertex_training_cli.init.rendering import GeneratedFile, Kind

ANSWERS = {
    "name": "acme",
    "team": "ml",
    "submitters": [],
    "github": "a/b",
    "environments": [{"name": "dev", "project": "acme-dev", "projectNumber": "210987654321",
                      "region": "us-central1"}],
}  # fmt: skip
FILES = [
    GeneratedFile("b.txt", "ü\n"),
    GeneratedFile("a.json", "{}\n", Kind.REPLACED),
    GeneratedFile("jobs/a.yaml", "x: 1\n", Kind.ONCE),
]


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


DOCUMENT: dict[str, Any] = {
    "format": 1,
    "release": "1.2.3",
    "answers": ANSWERS,
    "files": {
        "a.json": {"sha256": sha("{}\n"), "kind": "replaced"},
        "b.txt": {"sha256": sha("ü\n"), "kind": "merged", "text": "ü\n"},
        "jobs/a.yaml": {"sha256": sha("x: 1\n"), "kind": "once"},
    },
}


@pytest.fixture
def made() -> Manifest:
    return manifest.of_files("1.2.3", parse(ANSWERS), FILES)


def put(root: Path, document: Any) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    (root / ".vertex-training.json").write_text(text)


def test_a_manifest_has_release_answers_and_files_by_their_paths(
    made: Manifest, tmp_path: Path
) -> None:
    text = json.dumps(DOCUMENT, indent=1, ensure_ascii=False) + "\n"
    assert made.to_json() == text
    put(tmp_path, text)
    assert manifest.read(tmp_path) == made
    left = made.leaving("b.txt")
    assert (left.left, set(left.digests), left.texts) == (("b.txt",), {"a.json", "jobs/a.yaml"}, {})
    assert json.loads(left.to_json())["left"] == ["b.txt"]
    put(tmp_path, left.to_json())
    assert manifest.read(tmp_path).left == ("b.txt",)


def test_files_of_the_first_day_stay_recorded_as_they_were(made: Manifest) -> None:
    files = [GeneratedFile("jobs/a.yaml", "x: 2\n"), GeneratedFile("c.txt", "c\n")]
    after = manifest.of_files("2", parse(ANSWERS), files).after(made.leaving("b.txt"))
    assert after.digests == {"jobs/a.yaml": sha("x: 1\n"), "c.txt": sha("c\n")}
    assert after.kinds == {"jobs/a.yaml": Kind.ONCE, "c.txt": Kind.MERGED}
    assert (after.texts, after.left, after.release) == ({"c.txt": "c\n"}, ("b.txt",), "2")


HINT = "Hint: take .vertex-training.json back from the last commit in which it was in order"


def entry(**more: Any) -> dict[str, Any]:
    return {**DOCUMENT["files"]["b.txt"], **more}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("{", "is not what `vt` wrote: "),
        ("[]", "is not what `vt` wrote: "),
        ({**DOCUMENT, "format": 2}, "is not what `vt` wrote: "),
        ({**DOCUMENT, "release": "1" * 65}, "is not what `vt` wrote: "),
        ({**DOCUMENT, "more": 1}, "is not what `vt` wrote: "),
        ({**DOCUMENT, "answers": {}}, "is not what `vt` wrote: "),
        ({**DOCUMENT, "files": {"b.txt": entry(sha256="A" * 64)}}, "is not what `vt` wrote: "),
        ({**DOCUMENT, "files": {"b.txt": entry(kind="other")}}, "is not what `vt` wrote: "),
        ({**DOCUMENT, "files": {"b.txt": entry(more=1)}}, "is not what `vt` wrote: "),
        ({**DOCUMENT, "files": {"b.txt": entry(text="u\n")}},
         ": the text of b.txt has another digest. "),
        ({**DOCUMENT, "files": {"../b.txt": entry()}}, ": '../b.txt' is no file of this repo"),
        ({**DOCUMENT, "files": {"/b.txt": entry()}}, ": '/b.txt' is no file of this repository. "),
        ({**DOCUMENT, "files": {".git/config": entry()}}, ": '.git/config' is no file of this"),
    ],
)  # fmt: skip
def test_a_manifest_that_is_not_what_was_written_is_refused(
    tmp_path: Path, document: Any, words: str
) -> None:
    put(tmp_path, document)
    with pytest.raises(CommandError) as refused:
        manifest.read(tmp_path)
    told = str(refused.value)
    assert told.startswith(".vertex-training.json")
    assert words in told
    assert told.endswith(HINT)
    assert len(told) < 400
    assert "\n" not in told


def test_a_folder_without_one_was_not_made_here(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as refused:
        manifest.read(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path} has no .vertex-training.json: `vt init` did not make it. Hint: `vt init DIR` "
        "makes a new repository"
    )


@pytest.mark.parametrize(("size", "words"), [(8_000_000, "is not what"), (8_000_001, "8,000,001")])
def test_a_manifest_is_read_up_to_a_size(tmp_path: Path, size: int, words: str) -> None:
    put(tmp_path, "x" * size)
    with pytest.raises(CommandError, match=words):
        manifest.read(tmp_path)
