"""Tests that a job's output cannot control a terminal: it is shown as text."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.home import Home
from localgcp.vertex.job_logs import log_path
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.conftest import command_job
from vertex_training.customjob.google.logs import LogLine
from vertex_training_cli.console import json_text, plain, print_line
from vertex_training_cli.jobs import log as job_log
from vertex_training_cli.local.up import tail
from vertex_training_cli.review.parts import visible

#: What each line does to a terminal that shows it as it is.
ATTACKS = {
    "OSC 52 fills the clipboard": "\x1b]52;c;cm0gLXJmIH4K\x07",
    "OSC 8 makes a link of another address": "\x1b]8;;https://evil.example\x1b\\docs\x1b]8;;\x1b\\",
    "CSI clears the screen": "\x1b[2J\x1b[H",
    "CSI hides what follows": "\x1b[8mhidden",
    "C1 CSI clears the screen": "\x9b2J",
    "C1 OSC sets the title": "\x9d0;title\x9c",
    "DCS asks the terminal": "\x1bP$q m\x1b\\",
    "a carriage return overwrites the line": "error: stolen\rall is well   ",
    "a backspace overwrites a word": "no\x08\x08ok",
    "a bidi override reverses the line": "\u202egnp.exe\u202c",
    "a bidi isolate reverses a word": "\u2066\u202etxt\u2069",
    "a zero width space hides a difference": "pay\u200bpal",
    "NUL ends the line for C": "a\x00b",
    "a line separator": "a\u2028b",
    "a form feed": "a\x0cb",
}


#: Ranges that Unicode calls default ignorable (DerivedCoreProperties.txt), and blanks beside them.
UNSEEN = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5)),
    *((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3)),
    *((0x1D173, 0x1D17A), (0xE0000, 0xE0FFF), (0x2800, 0x2800), (0x1D159, 0x1D159)),
    *((0x0, 0x8), (0xE, 0x1B), (0x7F, 0x84), (0x86, 0x9F), (0xD800, 0xDFFF), (0xE000, 0xF8FF)),
    (0x16FE4, 0x16FE4),
)


@pytest.mark.parametrize(("first", "last"), UNSEEN, ids=lambda code: f"{code:X}")
def test_invisible_characters_are_escaped(first: int, last: int) -> None:
    for code in range(first, last + 1):
        assert chr(code) not in plain(f"pay{chr(code)}pal"), hex(code)
        assert chr(code) not in json_text(f"pay{chr(code)}pal"), hex(code)
        assert visible(f"pay{chr(code)}pal") in (
            f"pay\\u{code:04x}pal",
            f"pay\\U{code:08x}pal",
        ), hex(code)


def test_stderr_lines_contain_no_terminal_sequence(
    attack: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_line(f"vt: {attack}")
    assert acts(capsys.readouterr().err) == []


@pytest.mark.parametrize(
    "text",
    ["Größe: 3 €", "学習の結果", "Обучение модели", "मॉडल का प्रशिक्षण", "naïve — “ok” …", "déjà vu"],
)
def test_ordinary_text_is_shown_unchanged(text: str) -> None:
    assert (plain(text), visible(text)) == (text, text)


@pytest.mark.parametrize(
    "name",
    [
        "user:kim@ex\u0430mple.com",
        "group:\u0430dmins@example.com",
        "roles/st\u043erage.admin",
        "serviceAccount:a@\u0435vil.iam.gserviceaccount.com",
        "\u0430\u0441\u0441\u0435\u0441\u0441",
        "buckets-\u0432",
        "\uff41dmin",
        "\U0001d41admin",
        "ro\u03bft",
        "adm\u0131n",
        "e\u0301",
        "the role r\u043eles/owner",
        "of b\u0430nk",
        "\u0391dmin of all",
    ],
)
def test_name_is_shown_in_ascii(name: str) -> None:
    shown = visible(name)
    assert shown.isascii()
    assert shown == "".join(c if c.isascii() else c.encode("unicode_escape").decode() for c in name)


def acts(text: str) -> list[str]:
    """Return the characters of a text that control a terminal."""
    return [char for char in text if not char.isprintable() and char != "\n"]


@pytest.fixture(params=ATTACKS.values(), ids=ATTACKS.keys())
def attack(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def job(home: Home) -> JobRecord:
    """Return an ended job with an empty log."""
    now = "2026-11-21T10:00:00.000000Z"
    made = JobRecord("1", "local-x", "1", "us-central1", "train", {}, {}, JobState.FAILED, now,
                     None, None, now, None, None)  # fmt: skip
    JobTable(home.database).insert(made)
    log_path(home, made.job_id, "workerpool0-0").parent.mkdir(parents=True)
    return made


def test_end_of_log_after_vt_local_up_is_text(home: Home, job: JobRecord, attack: str) -> None:
    file = log_path(home, job.job_id, "workerpool0-0")
    file.write_text(f"before\n{attack}\nafter\n", newline="")
    assert acts("\n".join(tail(home, job, 20))) == []


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("several", [False, True], ids=["one replica", "two replicas"])
def test_vt_jobs_logs_shows_a_jobs_output_as_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    attack: str, as_json: bool, several: bool,
) -> None:  # fmt: skip
    body: dict[str, Any] = command_job("true")
    body["job_spec"]["worker_pool_specs"] *= 2 if several else 1
    line = LogLine("2026-11-21T10:00:00Z", "workerpool0-0", "ERROR", f"{attack} ü")
    reader = SimpleNamespace(lines=lambda *_: [line])
    monkeypatch.setattr("vertex_training_cli.jobs.log.logs.connect", lambda _project: reader)
    job_log.show(
        SimpleNamespace(ref=SimpleNamespace(project="p", is_local=False), log_id=lambda _job: "1"),  # pyright: ignore[reportArgumentType]
        vertex.CustomJob(body),
        replica=None, follow=False, tail=None, as_json=as_json,
    )  # fmt: skip
    shown = capsys.readouterr().out
    assert acts(shown) == []
    assert shown.endswith(' ü"}\n' if as_json else " ü\n")
    assert shown.count("\n") == 1
    if as_json:
        assert json.loads(shown)["text"] == f"{attack} ü"
