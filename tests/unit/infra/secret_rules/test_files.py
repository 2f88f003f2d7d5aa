"""Secrets in files that leave: what is looked at, what counts in which file, and what is said."""

from __future__ import annotations

import pytest

from vertex_training.secret_rules import files as module
from vertex_training.secret_rules.files import File, Scan, scan, secret_lines

MIB = 2**20
PASSWORD = b"password=hunter2hunter2\n"
TOKEN = "hf_" + "a1B2" * 8
BEGIN, END = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"


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


def test_each_secret_is_told_at_its_file_and_line() -> None:
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
def test_compressed_files_are_named_and_what_can_be_seen_is_told(begin: bytes) -> None:
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


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        # Settings have values without quotes, code has not.
        *((name, "password=hunter2hunter2", {1: "secret-by-name"}) for name in (
            ".env", "env", ".env.prod", "a.env", "a.ini", "a.cfg", "a.conf", "a.toml",
            "a.properties", "a.yml", "x/a.yaml", "a.sh", "a.bash", "Dockerfile",
            "Dockerfile.gpu")),
        ("a.env", "\npassword=hunter2hunter2\n\npwd=hunter3",
         {2: "secret-by-name", 4: "secret-by-name"}),
        ("a.py", "password=hunter2hunter2", {}),
        ("README.md", "password: hunter2hunter2", {}),
        ("yaml.py", "password=hunter2hunter2", {}),
        # In code a value has quotes and looks random, in JSON it has quotes.
        ("a.py", 'password = "a1b2c3d4"', {1: "secret-by-name"}),
        ("a.py", "password = 'a1b2c3d4'", {1: "secret-by-name"}),
        ("a.py", 'password = "correct horse"', {}),
        ("a.py", 'password = "a1b2 c3d4"', {}),
        ("a.py", 'password = "hunter"', {}),
        ("a.json", '{"password": "hunter"}', {1: "secret-by-name"}),
        ("a.json", '{"password": "x", "b": 1}', {1: "secret-by-name"}),
        # What examples have in its place.
        *(("a.env", f"password={value}", {}) for value in (
            "my-password", "your_password", "changeme", "change-me", "example123", "dummy",
            "fake_one", "a-password",
            "the_token1", "mypassword", "some key", "test1", "placeholder", "todo",
            "password", "xxxx", "...", "secret",
            "token", "username", "foo", "bar", "string", "{password}", "%s", "<password>",
            '"[a1b2c3d4]"', '"%a1b2c3d4"', '"{a1b2c3d4"')),
        # A secret may begin like one of them.
        *(("a.env", f"password={value}", {1: "secret-by-name"}) for value in (
            "foobar1", "a1b2c3d4e5f6", "aardvark", "my1b2c3d4e5f6", "the8K2x")),
        # Forms count in every file.
        ("a.py", f"x\n\nhub({TOKEN!r})", {3: "hugging-face-token"}),
        ("a.py", "https://me:hunter2@db.acme/x", {1: "password-in-url"}),
        *(("a.py", f"https://me:hunter2@{host}/x", {}) for host in (
            "localhost", "127.0.0.1", "example.com", "host")),
        # Code that writes or reads a key has its first line alone.
        ("a.pem", f"{BEGIN}\n{BODY}\n{END}\n", {1: "private-key"}),
        ("a.py", f'begins = "{BEGIN}"', {}),
        ("a.py", f'"{BEGIN}\\n..."', {}),
    ],
)  # fmt: skip
def test_what_counts_as_a_secret_in_which_file(name: str, text: str, lines: dict[int, str]) -> None:
    assert secret_lines(name, text.encode()) == lines


def test_of_several_secrets_on_a_line_the_first_is_told() -> None:
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
