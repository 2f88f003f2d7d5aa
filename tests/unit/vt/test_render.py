"""`vt render`: the exact request, equal bytes for equal input."""

import hashlib
import io
import json
from types import SimpleNamespace

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from vertex_training.customjob import provider
from vertex_training.errors import CheckUnavailableError
from vertex_training.stack import load
from vertex_training_cli import render


def test_json_is_the_text_the_digest_is_of(project, vt):
    done = vt("render", "train", "--stack", "dev")
    assert done.exit_code == 0
    _, _, verdict = render.check_job(load(project, "dev"), "train")
    text = done.stdout.removesuffix("\n")
    assert hashlib.sha256(text.encode()).hexdigest() == verdict.request.digest
    assert verdict.request.request_id in text
    assert "${" not in text


def test_equal_input_gives_equal_bytes(project, vt):
    first = [vt("render", "train", "-s", "dev", "-f", f).stdout for f in ("json", "yaml")]
    job = project / "jobs" / "train.yaml"
    lines = job.read_text().splitlines(keepends=True)
    job.write_text("# a comment\n" + "".join(lines[2:] + lines[:2]))
    assert [vt("render", "train", "-s", "dev", "-f", f).stdout for f in ("json", "yaml")] == first


def test_yaml_and_json_say_the_same(project, vt):
    as_json = vt("render", "train", "-s", "dev").stdout
    as_yaml = vt("render", "train", "-s", "dev", "-f", "yaml").stdout
    assert yaml.safe_load(as_yaml) == json.loads(as_json)


def test_a_rendered_request_is_a_job_file(project, vt):
    rendered = vt("render", "train", "-s", "dev", "-f", "yaml").stdout
    (project / "again.yaml").write_text(rendered)
    again = vt("render", "again.yaml", "-s", "dev", "-f", "yaml")
    assert again.stdout == rendered


def test_a_file_means_the_job_that_has_it(project, vt):
    by_name = vt("render", "train", "-s", "dev").stdout
    assert vt("render", "jobs/train.yaml", "-s", "dev").stdout == by_name


def test_as_sent_has_the_labels_the_provider_sends(project, vt):
    done = vt("render", "train", "-s", "dev", "--as-sent")
    stack = load(project, "dev")
    _, _, verdict = render.check_job(stack, "train")
    props = {
        "options": {"labels": stack.settings.labels},
        "requestId": verdict.request.request_id,
        "request": verdict.request.body,
        "submission": {"stack": "dev", "job": "train", "run": 1.0},
    }
    assert json.loads(done.stdout)["labels"] == provider._labels(props)


def test_mistakes_exit_1_and_nothing_is_printed_as_a_request(project, vt):
    job = project / "jobs" / "train.yaml"
    job.write_text(job.read_text() + "useSpot: true\n")
    done = vt("render", "train", "-s", "dev")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "jobs/train.yaml:9:1: useSpot" in done.stderr


def test_an_unknown_job_or_stack_exits_2(project, vt):
    done = vt("render", "trian", "-s", "dev")
    assert done.exit_code == 2
    assert "did you mean 'train'?" in done.stderr
    assert vt("render", "train", "-s", "prod").exit_code == 2


def test_a_file_of_several_jobs_must_be_named(project, vt):
    stack = project / "Pulumi.dev.yaml"
    stack.write_text(stack.read_text() + "    again: {file: jobs/train.yaml, run: 2}\n")
    assert "name one: train, again" in vt("render", "jobs/train.yaml", "-s", "dev").stderr
    assert vt("render", "again", "-s", "dev").exit_code == 0


@pytest.mark.parametrize(
    "text", ["no", "1e3", "22:22", "0x1F", "012", "null", "", "~", "a\nb", " x"]
)
def test_text_that_yaml_would_take_for_something_else_is_quoted(text):
    written = render.as_yaml({"key": text})
    assert yaml.safe_load(written) == {"key": text}
    assert written[5] in "\"'|"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a/b.c=d@e+f-g:h", "a/b.c=d@e+f-g:h"),
        ("a:", '"a:"'),
        ("two words", '"two words"'),
        ("word " * 60 + "end", '"' + "word " * 60 + 'end"'),
        ("yes", '"yes"'),
        ("a\nb", "|-\n  a\n  b"),
        ("a\nb\n", "|\n  a\n  b"),
        (" a\nb", '" a\\nb"'),
        ("a\nb \n", '"a\\nb \\n"'),
        ("\u00e9", '"\u00e9"'),
    ],
)
def test_a_text_is_written_in_one_way(text, written):
    same = {"c": text}
    assert render.as_yaml({"b": same, "a": [same]}) == (
        f"a:\n- c: {written}\nb:\n  c: {written}\n".replace("\n  a\n  b", "\n    a\n    b")
    )


def test_outside_of_a_project_there_is_no_stack(vt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = vt("render", "train", "-s", "dev")
    assert (done.exit_code, done.stdout, done.stderr) == (
        2, "", "vt render: no Pulumi.yaml here or above: a stack needs a project\n",
    )  # fmt: skip


def test_bytes_are_those_of_utf_8_whatever_the_terminal_speaks(project, monkeypatch):
    job = project / "jobs" / "train.yaml"
    job.write_text(job.read_text().replace("/train", "/größe"))
    streams = {name: io.TextIOWrapper(io.BytesIO(), encoding="ascii") for name in ("out", "err")}
    for name, stream in streams.items():
        monkeypatch.setattr(f"sys.std{name}", stream)
    for format_ in render.RequestFormat:
        render.render("train", "dev", format_)
    streams["out"].flush()
    text = streams["out"].buffer.getvalue().decode()
    assert text.count("/größe") == 2
    assert {(each.encoding, each.errors) for each in streams.values()} == {
        ("utf-8", "backslashreplace")
    }


def test_a_rung_is_that_of_the_ladder_and_named_beside_it(capsys):
    def rung(number, words):
        return SimpleNamespace(words=words, number=number)

    first, second = rung(1, ""), rung(2, "spot in us-east1")
    ladder = SimpleNamespace(rungs=(first, second), ladder=("x",))
    assert [render._rung(ladder, number) for number in (1, 2)] == [first, second]
    assert capsys.readouterr().err == ("rung 1 of 2: the job file\nrung 2 of 2: spot in us-east1\n")
    with pytest.raises(CheckUnavailableError) as refused:
        render._rung(ladder, 3)
    assert str(refused.value) == "the job has no rung 3: it has 2"
    alone = SimpleNamespace(rungs=(first,), ladder=())
    assert render._rung(alone, 1) is first
    assert capsys.readouterr().err == ""


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=60), max_size=4))
@example({"0\n\x850": "a\n\x85b", "\u2028\nx": "x\n\u2028y", "\u2029": "a\n\u2029b\n"})
def test_yaml_reads_back_to_the_same_message(message):
    assert yaml.safe_load(render.as_yaml(message)) == message


def test_what_the_stack_fills_in_is_in_the_request_and_named_beside_it(project, vt):
    job = project / "jobs" / "train.yaml"
    lines = job.read_text().splitlines(keepends=True)
    job.write_text("".join(line for line in lines if not line.startswith("serviceAccount")))
    assert "serviceAccount is missing" in vt("render", "train", "-s", "dev").stderr
    stack_file = project / "Pulumi.dev.yaml"
    given = '  vertex-training:jobDefaults: {serviceAccount: "${serviceAccounts.trainer}"}\n'
    stack_file.write_text(stack_file.read_text() + given)
    done = vt("render", "train", "-s", "dev")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["jobSpec"]["serviceAccount"].startswith("trainer-dev@")
    assert "filled in by jobDefaults: serviceAccount" in done.stderr
