"""Secrets in files that leave: what is looked at, what counts in which file, and what is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from vertex_training.secret_rules import files as module
from vertex_training.secret_rules.files import File, Scan, scan, secret_lines

DATA = yaml.safe_load((Path(__file__).parents[3] / "corpus/secret_rules.yaml").read_text("utf-8"))
MIB = 2**20
PASSWORD = b"password=hunter2hunter2\n"
TOKEN = "hf_" + "a1B2" * 8
BEGIN, END = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"


def file(name: str, data: bytes = b"", size: int | None = None) -> File:
    return File(name, len(data) if size is None else size, lambda: data)


def told(name: str, line: int, rule: str) -> str:
    place = f"{name}:{line}" if line else name
    return (
        f"{place}: looks like a secret, and would leave this machine ({rule}). Hint: read it from "
        "Secret Manager, or leave the file out; if it is none, the stack file says so: "
        f'allowedSecrets: {{"{place}": reason}}'
    )


def said(found: Scan) -> list[str]:
    return [str(problem) for problem in found.problems]


def test_each_secret_is_reported_with_its_file_and_line() -> None:
    data = b"# settings\n" + PASSWORD + b"\n" + f"HUB={TOKEN} {TOKEN}\n".encode()
    found = scan([file("jobs/a.env", data), file("jobs/b.py", b"x = 1\n")], ())
    assert said(found) == [
        told("jobs/a.env", 2, "secret-by-name"),
        told("jobs/a.env", 4, "hugging-face-token"),
    ]
    assert (found.unscanned, found.note) == ((), "")


@pytest.mark.parametrize(
    ("allowed", "lines"),
    [
        ((), [1, 2]),
        (("a.env:1",), [2]),
        (("a.env:1", "a.env:2"), []),
        (("a.env",), []),
        (("b.env:1", "b.env"), [1, 2]),
    ],
)
def test_a_file_or_a_line_may_be_allowed(allowed: tuple[str, ...], lines: list[int]) -> None:
    found = scan([file("a.env", PASSWORD * 2)], allowed)
    assert said(found) == [told("a.env", line, "secret-by-name") for line in lines]


@pytest.mark.parametrize(
    ("name", "is_key"),
    [
        *((name, True) for name in (
            "id_rsa", "id_dsa", "id_ecdsa", "keys/id_ed25519", ".netrc", "x/.pgpass", ".pypirc",
            ".git-credentials", ".vault-token", "a.p12", "a.pfx", "a.jks", "a.keystore", "a.kdbx",
            "a.ppk")),
        *((name, False) for name in ("id_rsa.pub", "my_id_rsa", "netrc", "id_rsa/x", "a.p12.md")),
    ],
)  # fmt: skip
def test_some_files_are_keys_whatever_is_in_them(name: str, is_key: bool) -> None:
    assert said(scan([file(name)], ())) == ([told(name, 0, "key-file")] if is_key else [])


@pytest.mark.parametrize(
    ("sizes", "unscanned"),
    [
        ([MIB], []),
        ([MIB + 1], ["0"]),
        ([MIB] * 16, []),
        ([MIB] * 16 + [1, 0], ["16"]),
        ([MIB + 1] + [MIB] * 16, ["0"]),  # what is not looked at costs nothing
    ],
)
def test_large_files_are_named_and_not_read(sizes: list[int], unscanned: list[str]) -> None:
    found = scan([file(f"{n}.env", PASSWORD, size) for n, size in enumerate(sizes)], ())
    assert [name.removesuffix(".env") for name in found.unscanned] == unscanned
    assert len(found.problems) == len(sizes) - len(unscanned)


@pytest.mark.parametrize(
    "begin",
    [b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c",
     b"Rar!\x1a\x07"],
)  # fmt: skip
def test_compressed_files_are_named_and_their_text_is_scanned(begin: bytes) -> None:
    found = scan([file("a.env", begin + b"\n" + PASSWORD), file("b", b"x" + begin)], ())
    assert found.unscanned == ("a.env",)
    assert said(found) == [told("a.env", 2, "secret-by-name")]


@pytest.mark.parametrize(
    ("names", "note"),
    [
        ((), ""),
        (("a",), "a"),
        (("a", "b"), "a and 1 more"),
        (("a", "b", "c"), "a and 2 more"),
    ],
)
def test_one_line_says_what_was_not_looked_at(names: tuple[str, ...], note: str) -> None:
    head = "not scanned for secrets: compressed, larger than 1 MiB, or beyond 16 MiB in all: "
    assert Scan((), names).note == (head + note if note else "")


def test_the_first_secret_of_a_line_is_reported() -> None:
    text = f"a\n{TOKEN} https://me:hunter2@db.acme\nb\nhttps://me:hunter2@db.acme {TOKEN}\n"
    assert secret_lines("a.txt", text.encode()) == {2: "hugging-face-token", 4: "password-in-url"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
def test_a_secret_is_found_in_every_encoding(encoding: str) -> None:
    data = f"größe\nHUB={TOKEN}\n".encode(encoding)
    assert secret_lines("a.env", data) == {2: "hugging-face-token"}


def test_text_in_a_binary_file_is_looked_at() -> None:
    data = b"\x00\xff\xfe\x01short\x00\n\x80\x90" + TOKEN.encode() + b"\x00\xf0\n"
    assert set(secret_lines("model.bin", data).values()) == {"hugging-face-token"}
    assert secret_lines("model.bin", b"\x00\xff" * 50) == {}
    assert (module.MAX_FILE, module.MAX_TOTAL) == (MIB, 16 * MIB)


@pytest.mark.parametrize("row", DATA["files"], ids=lambda row: row["text"])
def test_a_file_has_secrets_in_the_lines_of_the_table(row: dict[str, Any]) -> None:
    text = row["text"].replace("@TOKEN@", TOKEN).replace("@BEGIN@", BEGIN).replace("@END@", END)
    for name in row["names"]:
        assert secret_lines(name, text.encode()) == row.get("lines", {}), name
