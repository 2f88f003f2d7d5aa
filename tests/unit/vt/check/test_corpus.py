"""The corpus through the command line: every expected rule id and nothing else, file by file."""

import json
import re
from pathlib import Path

from google.cloud import aiplatform_v1
from google.protobuf import json_format

from tests.fixture_project import ROOT, SAMPLE_JOBS, SAMPLES, sample
from vertex_training.customjob.request import job_file
from vertex_training_cli import render
from vertex_training_cli.check.checking import placeholder_submission, placeholders

CORPUS = ROOT / "tests" / "corpus"


def found(vt, *arguments):
    done = vt("check", "--all", "--format", "json", *arguments)
    files = json.loads(done.stdout)["files"]
    return done.exit_code, {
        Path(file["file"]).name: {finding["rule"] for finding in file["findings"]} for file in files
    }


def expected(file):
    first = file.read_bytes().split(b"\n", 1)[0].decode("utf-8", errors="replace")
    return set(re.findall(r"[a-z0-9-]+", first.split("expect:")[1]))


def test_wrong_files_break_the_rules_they_name_and_no_other(vt):
    files = sorted((CORPUS / "wrong").glob("*.yaml"))
    exit_code, rules = found(vt, *files)
    assert exit_code == 1
    assert len(files) >= 150
    assert rules == {file.name: expected(file) for file in files}


def test_right_files_break_none(vt):
    files = sorted((CORPUS / "right").glob("*.yaml"))
    exit_code, rules = found(vt, *files)
    assert exit_code == 0
    assert len(files) >= 60
    assert rules == {file.name: set() for file in files}


def test_notes_are_shown_to_who_asks(vt):
    file = CORPUS / "wrong" / "pools-without-list.yaml"
    assert vt("check", file).stdout == "1 file, no mistakes.\n"
    told = vt("check", "--all", file)
    assert told.exit_code == 0
    assert "note: workerPoolSpecs: workerPoolSpecs should be a list" in told.stdout
    assert told.stdout.endswith("1 file: no errors, 1 note.\n")
    assert "::notice file=" in vt("check", "-a", "--format", "github", file).stdout
    assert json.loads(vt("check", "--all", "--format", "json", file).stdout)["notes"] == 1


def test_the_jobs_of_this_repository_have_no_error(vt):
    files = [SAMPLES / f"{name}.yaml" for name in SAMPLE_JOBS]
    here = [file for file in files if file.exists()] or [sample(files[0].name)]
    exit_code, _ = found(vt, *here)
    assert exit_code == 0


def test_what_is_rendered_of_a_right_file_is_the_official_clients_message():
    for file in sorted((CORPUS / "right").glob("*.yaml")):
        data = file.read_bytes()
        who = placeholder_submission(file.stem)
        request = job_file.check_job_file(data, file.name, who, placeholders(data)).request
        assert request is not None, file.name
        from_json = parsed(json.loads(render.as_json(request.message)))
        again = json_format.MessageToDict(from_json)
        assert parsed(again) == from_json


def parsed(message):
    return json_format.ParseDict(message, aiplatform_v1.CustomJob.pb()())
