"""Tests that contexts, packages, objects and data contain no secret unless the stack file allows
it.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
import yaml
from google.cloud import aiplatform_v1 as vertex
from typer.testing import CliRunner, Result

from tests.unit.localcloud.conftest import command_job
from tests.unit.vt.data.test_data import bucket, front, home
from tests.unit.vt.images.conftest import programs, registry, root, vt, write_stack
from vertex_training.customjob.google.logs import LogLine
from vertex_training.errors import CommandError, ConfigError
from vertex_training.secret_rules import files
from vertex_training.stack import load
from vertex_training_cli.cli import app
from vertex_training_cli.jobs import log as job_log
from vertex_training_cli.run import script

__all__ = ["bucket", "front", "home", "programs", "registry", "root", "vt"]
TOKEN: Final = "hf_" + "canaryCANARY7" * 3
#: A token on the last of its lines.
TEXT: Final = f"# settings\nLOG=info\nHF_TOKEN={TOKEN}"
KEY: Final = (
    "-----BEGIN " + "PRIVATE KEY-----\n" + "MIIcanary" * 8 + "\n-----END PRIVATE KEY-----\n"
)
#: File -> (content, line and rule of its secret).
LEAKS: Final = {
    ".env": ("# settings\nLOG=info\nDB_PASS=canary-two\n", 3, "secret-by-name"),
    "id_rsa": (KEY, 0, "key-file"),
    "deploy.pem": (KEY, 1, "private-key"),
    "key.json": (json.dumps({"type": "service_account", "private_key": KEY}), 1, "private-key"),
    "settings.json": ('{\n"password": "canary two"}', 2, "secret-by-name"),
    "report.py": (f"import os\nTOKEN = {TOKEN!r}\n", 2, "hugging-face-token"),
    "run.sh": ("set -e\nmysql -u me -pcanary2x runs\n", 2, "database-password"),
    "pip.conf": ("index-url = https://me:canary2@pypi.acme/simple\n", 1, "password-in-url"),
    "conf.yaml": ("a: 1\n  password: canary two  # why\n", 2, "secret-by-name"),
    "store.p12": ("\0canary", 0, "key-file"),
}  # fmt: skip
HARMLESS: Final = {
    "train.py": "password = getpass()\napi_key = settings.api_key\ntoken = 'pad'\nkey = keys[0]\n"
    "if line.startswith('-----BEGIN PRIVATE KEY-----'): pass\n",
    "README.md": "Set `HF_TOKEN=<your token>`, `postgresql://user:password@localhost/db`.\n",
    "vocab.json": '{"password": 21456, "token": 3, "secret": 77}',
    "tokenizer_config.json": '{"pad_token": "<pad>", "eos_token": "</s>"}',
    "conf.yaml": "api_key: ${oc.env:WANDB_API_KEY}\nsecret: hf-token-prod\npassword: null\n",
    "image.bin": "\0" + "hf_tokenizer \0\1\2 password: \0 secret=\0\7",
}


def place(file: str) -> str:
    """Return ``file`` or ``file:line``, as in messages."""
    line = LEAKS[Path(file).name][1]
    return f"{file}:{line}" if line else file


def configure(root: Path, **sections: Any) -> None:
    """Write sections into the file of stack ``one``."""
    file = root / "Pulumi.one.yaml"
    content = yaml.safe_load(file.read_text())
    content["config"] |= {f"vertex-training:{key}": value for key, value in sections.items()}
    file.write_text(yaml.safe_dump(content))


def checked() -> Result:
    return CliRunner().invoke(app, ["check", "--stack", "one"])


@pytest.mark.parametrize("name", LEAKS)
def test_secret_is_reported_with_line_and_rule(name: str) -> None:
    text, line, rule = LEAKS[name]
    file = files.File(f"jobs/{name}", len(text), text.encode)
    (problem,) = files.scan([file], {}).problems
    assert (problem.location.file, problem.location.line) == (f"jobs/{name}", line)
    assert f"({rule})" in problem.what
    assert "canary" not in str(problem).lower()
    for allowed in ({f"jobs/{name}": "why"}, {str(problem.location): "why"}):
        assert files.scan([file], allowed).problems == ()


def test_code_and_settings_without_secrets_pass() -> None:
    found = files.scan([files.File(n, len(t), t.encode) for n, t in HARMLESS.items()], {})
    assert found.problems == ()


@pytest.mark.parametrize(
    "data",
    [
        b"\0" + TEXT.encode(),
        TEXT.encode() + b"\0",
        TEXT.replace("=", "=\0").encode(),
        TEXT.replace("hf_", "h\0f_").encode(),
        b"\x89PNG\r\n" + bytes(range(256)) * 9 + b"\nx\0" + TEXT.encode(),
        *(TEXT.encode(form) for form in ("utf-16", "utf-16-le", "utf-16-be", "utf-32")),
    ],
)
def test_nul_bytes_hide_no_secret(data: bytes) -> None:
    file = files.File("jobs/notes.env", len(data), lambda: data)
    found = files.scan([file], {})
    assert [each.location.line for each in found.problems][:1] == [data.count(b"\n") + 1]
    assert "canary" not in str(found).lower()


@pytest.mark.parametrize("begin", files.COMPRESSED)
def test_compressed_file_is_reported_as_not_scanned(begin: bytes) -> None:
    data = begin + b"\0\1\2"
    found = files.scan([files.File("jobs/data.x", len(data), lambda: data)], {})
    assert found.unscanned == ("jobs/data.x",)
    assert "compressed" in found.note
    assert "jobs/data.x" in found.note


def test_files_too_large_to_scan_are_reported_in_one_line() -> None:
    def read() -> bytes:
        return b"x" * files.MAX_FILE

    many = [files.File(f"{number}.txt", files.MAX_FILE, read) for number in range(18)]
    large = files.File("large.txt", files.MAX_FILE + 1, read)
    found = files.scan([large, *many], {})
    assert found.unscanned == ("large.txt", "16.txt", "17.txt")
    assert found.note == (
        "skipped by the secret scan (compressed, larger than 1 MiB, or above 16 MiB in total): "
        "large.txt and 2 more"
    )


@pytest.mark.parametrize("name", ["key.json", "report.py"])
def test_package_with_a_secret_is_refused_by_check_and_preview(root: Path, name: str) -> None:
    (root / "jobs/lib").mkdir()
    (root / "jobs/lib/__init__.py").touch()
    (root / "jobs/lib" / name).write_text(LEAKS[name][0])
    configure(root, packages={"lib": {"path": "jobs/lib"}})
    with pytest.raises(ConfigError) as refused:
        load(root, "one")  # what a preview begins with
    assert place(f"jobs/lib/{name}") in str(refused.value)
    done = checked()
    assert done.exit_code == 1
    assert "allowedSecrets" in done.output
    assert "canary" not in done.output.lower()
    configure(root, allowedSecrets={place(f"jobs/lib/{name}"): "made up for the tests"})
    assert load(root, "one").packages


def test_requirements_beside_a_script_are_scanned(root: Path) -> None:
    (root / "jobs/a.py").write_text("print(1)\n")
    (root / "jobs/a.requirements.txt").write_text(f"x @ git+https://{TOKEN}@git.acme/x.git\n")
    configure(root, packages={"a": {"path": "jobs/a.py"}})
    with pytest.raises(ConfigError, match=r"jobs/a\.requirements\.txt:1"):
        load(root, "one")


def test_object_with_a_secret_is_refused_before_any_upload(root: Path) -> None:
    (root / "data").mkdir()
    (root / "data/settings.json").write_text(LEAKS["settings.json"][0])
    (root / "data/large.bin").write_bytes(b"x" * (files.MAX_FILE + 1))
    configure(root, buckets={"artifacts": {"objects": {"c": "data"}}})
    with pytest.raises(ConfigError, match=r"data/settings\.json:2"):
        load(root, "one")
    configure(root, allowedSecrets={"data/settings.json:2": "made up for the tests"})
    notes = [each.what for each in load(root, "one").warnings({})]
    assert any(
        note.startswith("skipped by the secret scan (compressed, larger than 1 MiB")
        for note in notes
    )


@pytest.mark.parametrize("name", [".env", "id_rsa", "key.json", "report.py"])
def test_build_context_with_a_secret_is_reported_and_never_built(
    vt: Any, root: Path, registry: Any, programs: Path, name: str
) -> None:
    (root / "jobs/train" / name).write_text(LEAKS[name][0])
    assert place(f"jobs/train/{name}") in "\n".join(map(str, load(root, "one").warnings({})))
    build = ("images", "build", "--stack", "one", "--engine", "buildah")
    refused = vt(*build)
    assert refused.exit_code == 1
    assert place(f"jobs/train/{name}") in refused.output
    assert "canary" not in refused.output.lower()
    assert not (programs / "calls").exists()
    (root / "jobs/train/.dockerignore").write_text(f"{name}\n")
    assert vt(*build).exit_code == 0


def test_secret_in_a_build_argument_is_refused(
    vt: Any, root: Path, registry: Any, programs: Path
) -> None:
    image = f"{{context: jobs/train, buildArgs: {{PIP_INDEX_URL: 'https://me:{TOKEN}@pypi.acme'}}}}"
    write_stack(root, "one", "local-one", image)
    refused = vt("images", "build", "--stack", "one", "--engine", "buildah")
    assert refused.exit_code == 1
    assert "buildArgs.PIP_INDEX_URL" in refused.output
    assert "canary" not in refused.output.lower()
    assert not (programs / "calls").exists()


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_log_of_a_job_is_shown_without_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    said = [f"login with {TOKEN}", "--password=canary-two", *KEY.splitlines(), "loss 0.1"]
    lines = [LogLine("2026-11-21T10:00:00Z", "workerpool0-0", "INFO", each) for each in said]
    reader = SimpleNamespace(lines=lambda *_: lines)
    monkeypatch.setattr("vertex_training_cli.jobs.log.logs.connect", lambda _project: reader)
    job_log.show(
        SimpleNamespace(ref=SimpleNamespace(project="p", is_local=False), log_id=lambda _job: "1"),  # pyright: ignore[reportArgumentType]
        vertex.CustomJob(command_job("true")),
        replica=None, follow=False, tail=None, as_json=as_json,
    )  # fmt: skip
    shown = capsys.readouterr().out
    assert "canary" not in shown.lower()
    assert "login with [secret]" in shown
    assert shown.rstrip().endswith('"loss 0.1"}' if as_json else "loss 0.1")


RANDOM: Final = "k3yQ9xT7p2Lm4"


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("train.py", f"password = '{RANDOM}'\n", {1: "secret-by-name"}),
        ("train.py", f"password = {RANDOM}\n", {}),
        ("train.py", "password = 'correct horse'\n", {}),
        ("a.json", '{"password": "correct horse"}', {1: "secret-by-name"}),
        *((name, "DB_PASS=canary-two\n", {1: "secret-by-name"}) for name in (
            ".env", "env", ".env.prod", "prod.env", "a.ini", "a.cfg", "a.conf", "a.toml",
            "a.properties", "a.yaml", "a.yml", "a.sh", "a.bash", "Dockerfile", "Dockerfile.gpu",
        )),
        ("notes.md", "DB_PASS=canary-two\n", {}),
        *((".env", f"DB_PASS={value}\n", {}) for value in (
            "changeme", "change-me", "your-password", "xxxx", "example1", "dummy", "fake1",
            "test123", "todo", "{{ password }}", "%(password)s",
        )),
        (".env", "\nA=1\n\nDB_PASS=canary-two\nAPI_KEY=canary-2x\n",
         {4: "secret-by-name", 5: "secret-by-name"}),
        (".env", f"X={TOKEN}\nDB_PASS={TOKEN}\n", {1: "hugging-face-token",
                                                  2: "hugging-face-token"}),
        ("a.py", "url = 'postgres://me:canary2@localhost/db'", {}),
        ("a.py", "url = 'postgres://me:canary2@127.0.0.1/db'", {}),
        ("a.py", "url = 'postgres://me:canary2@db.acme/x'", {1: "password-in-url"}),
        ("a.py", "KEY = '-----BEGIN " + "PRIVATE KEY-----'\n", {}),
        ("a.py", f'KEY = """{KEY}"""\n', {1: "private-key"}),
    ],
)  # fmt: skip
def test_secret_lines_by_kind_of_file(name: str, text: str, found: dict[int, str]) -> None:
    assert files.secret_lines(f"jobs/{name}", text.encode()) == found


@pytest.mark.parametrize(
    "name",
    [
        "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".netrc", ".pgpass", ".pypirc",
        ".git-credentials", ".vault-token", "a.p12", "a.pfx", "a.jks", "a.keystore", "a.kdbx",
        "a.ppk",
    ],
)  # fmt: skip
def test_key_file_is_detected_by_its_name(name: str) -> None:
    for kept in (f"jobs/{name}", f"{name}x"):
        found = files.scan([files.File(kept, 1, lambda: b"x")], {}).problems
        assert [str(each.location) for each in found] == ([kept] if "/" in kept else [])


def test_files_up_to_the_size_limits_are_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILE", 10)
    monkeypatch.setattr(files, "MAX_TOTAL", 25)
    read: list[str] = []

    def sized(name: str, size: int) -> files.File:
        return files.File(name, size, lambda: (read.append(name), b"")[1])

    given = [sized("a", 10), sized("b", 11), sized("c", 10), sized("d", 6), sized("e", 5)]
    found = files.scan(given, {"skipped": ""})
    assert read == ["a", "c", "e"]
    assert found.unscanned == ("b", "d")
    assert found.problems == ()


def test_code_of_a_script_contains_only_regular_files_of_its_folder(tmp_path: Path) -> None:
    """Links out of the folder, devices, ignored and large files, keys and caches are not
    uploaded.
    """
    folder, outside = tmp_path / "checkout" / "job", tmp_path / "outside"
    outside.mkdir()
    (outside / "other.txt").write_text("x")
    texts = {
        "../.git/HEAD": "", "../.gitignore": "*.ckpt\n", ".gitignore": "data/\n!data.py\n",
        ".vtignore": "big/*\n!big/kept.txt\n", "train.py": LEAKS["report.py"][0],
        "data.py": "", "data/x.csv": "", "sub/deep/er/y.csv": "1", "a.ckpt": "", "big/kept.txt": "",
        "big/z": "", "id_rsa": "", "key.json": LEAKS["key.json"][0],
        ".env": "A=1", ".hidden/x": "", "__pycache__/m.pyc": "", "env/pyvenv.cfg": "",
    }  # fmt: skip
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    os.truncate(folder / "data.py", script.MAX_FILE)
    with (folder / "huge.bin").open("wb") as huge:
        huge.truncate(1 << 40)
    os.mkfifo(folder / "pipe")
    for name, target in {
        "out": outside, "out.txt": outside / "other.txt", "zero": "/dev/zero", "loop": "loop",
        "within.csv": "sub/deep/er/y.csv", "folder": "sub", "none": "missing",
    }.items():  # fmt: skip
        (folder / name).symlink_to(target)
    found = script.collect(folder / "train.py", [])
    expected = {"train.py", "data.py", "sub/deep/er/y.csv", "within.csv", "big/kept.txt"}
    assert {*found.files} == expected
    assert {*found.left_out} == {
        *("out", "out.txt", "zero", "loop", "none", "folder", "pipe", "huge.bin", ".env"),
        *("a.ckpt", "data/", "big/z", "id_rsa", "key.json"),
    }
    assert "\n" not in found.note
    with tarfile.open(fileobj=io.BytesIO(found.archive())) as archive:
        assert {entry.name for entry in archive if entry.isreg()} == expected
    added = script.collect(folder / "train.py", [folder / "data", folder / ".env", outside])
    assert {*added.files} - expected == {"data/x.csv", ".env", "outside/other.txt"}
    assert not {"data/", ".env"} & {*added.left_out}
    (folder / "requirements.txt").touch()
    alone = script.collect(folder / "train.py", [], alone=True)
    assert {*alone.files} == {"train.py", "requirements.txt"}
    for path, told in {folder / "pipe": "a device or a pipe", tmp_path / "no": "not exist"}.items():
        with pytest.raises(CommandError, match=told):
            script.collect(folder / "train.py", [path])


def test_script_in_a_folder_with_too_many_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    for number in range(1 + script.MAX_TOTAL // script.MAX_FILE):
        (tmp_path / f"{number}.bin").touch()
        os.truncate(tmp_path / f"{number}.bin", script.MAX_FILE)
    with pytest.raises(CommandError, match=r"at most .* and 100 MiB.*\.vtignore.*--no-code"):
        script.collect(tmp_path / "train.py", [])
