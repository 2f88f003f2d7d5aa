"""Which job a run is, and whether what it left can be a version of a model."""

import pytest

from vertex_training.customjob.protocol.ports import JobSnapshot
from vertex_training.errors import JobRefusedError
from vertex_training.serving.declared import ModelSource
from vertex_training.serving.protocol.ports import RunFolder
from vertex_training.serving.protocol.run_artifacts import find_artifacts, metrics_of

SOURCE = ModelSource("acme", "us-central1", "dev", "titanic", "titanic", 3)


MANY = [f"m{digit}" for digit in "9876543210"] + ["ma", "mb"]


def job(
    state="SUCCEEDED", *, name="customJobs/1", created=1, output="gs://out/titanic/abc/", digest="a"
):
    return JobSnapshot(name, f"JOB_STATE_{state}", created, digest, output=output)


class Runs:
    def __init__(self, *jobs, files=("model.json",), metrics=b'{"accuracy": 0.8}'):
        self.found, self.content, self.asked = jobs, RunFolder(files, metrics), []

    def jobs(self, parent, labels):
        self.asked.append((parent, dict(labels)))
        return list(self.found)

    def folder(self, uri):
        self.asked.append(uri)
        return self.content


def find(runs, files=()):
    return find_artifacts(SOURCE, "model", files, runs)


def test_a_run_is_found_by_its_labels_and_its_folder_is_below_its_output():
    runs = Runs(job())
    found = find(runs, ["model.json"])
    assert found.inputs() == {
        "job": "customJobs/1",
        "state": "SUCCEEDED",
        "artifactUri": "gs://out/titanic/abc/model",
        "metrics": {"accuracy": 0.8},
    }
    labels = {"vt-stack": "dev", "vt-job": "titanic", "vt-run": "3"}
    assert runs.asked == [
        ("projects/acme/locations/us-central1", labels),
        "gs://out/titanic/abc/model/",
    ]


def test_the_latest_job_that_succeeded_counts():
    failed = job("FAILED", name="c", created=9)
    assert find(Runs(job(name="a"), job(name="b", created=2), failed)).job == "b"
    assert find(Runs(job(name="b"), job(name="a"))).job == "b"


@pytest.mark.parametrize(
    "other",
    [job("RUNNING", name="b"), job("FAILED", name="b", digest="b"), job("CANCELLED", digest="b")],
)
def test_the_same_request_once_more_and_what_failed_before_an_edit_are_no_other_weights(other):
    assert find(Runs(job(name="a"), other)).job == "a"


@pytest.mark.parametrize(
    ("runs", "files", "text"),
    [
        (Runs(), (), "run 3 of job 'titanic' is not in acme, us-central1"),
        (Runs(job("RUNNING")), (), r"is RUNNING \(customJobs/1\), not SUCCEEDED. Wait"),
        (Runs(job("FAILED")), (), r"is FAILED .* Set run: 4"),
        (Runs(job("CANCELLING")), (), "not SUCCEEDED. Wait for its end"),
        (Runs(job(), job(name="2", digest="b")), (), "is more than one job .* Hint: raise `run`"),
        (Runs(job(), job("RUNNING", name="2", digest="b")), (), "more than one job"),
        (Runs(job("RUNNING"), job(name="2", digest="b")), (), "more than one job"),
        (Runs(job(output="")), (), "has no output directory"),
        (Runs(job(), files=()), (), "left nothing in gs://out/titanic/abc/model/"),
        (Runs(job(), files=("a", "b")), ("model.json",), "left no model.json .* there is: a, b"),
        (Runs(job(), files=("a",)), ("x", "a", "y"), r"left no x, y in .* there is: a\.$"),
        (Runs(job(), files=MANY), ("x",), "there is: m0, m1, m2, m3, m4, m5, m6, m7, m8, m9\\.$"),
    ],
)
def test_a_run_that_cannot_become_a_version_is_refused(runs, files, text):
    with pytest.raises(JobRefusedError, match=text):
        find(runs, files)


@pytest.mark.parametrize(
    ("content", "metrics"),
    [
        (b"", {}),
        (b"[1]", {}),
        (b"{", {}),
        (b"\xff\xfe", {}),
        (b"[" * 100_000, {}),
        (
            b'{"a": NaN, "b": Infinity, "c": 1e400, "d": true, "e": "1", "f": null, "g": 2}',
            {"g": 2},
        ),
        (b'{"<script>": 1, "a b": 2, "\\u001b[31m": 3, "ok": -0.5}', {"ok": -0.5}),
        (b'{"big": ' + b"9" * 400 + b"}", {}),
        (b'{"a": 1e300, "b": -1e301, "c": -1e299}', {"c": -1e299}),
        (b'{"' + b"m" * 64 + b'": 1, "' + b"m" * 65 + b'": 2}', {"m" * 64: 1}),
    ],
)
def test_metrics_are_finite_numbers_with_plain_names_whatever_the_file_has(content, metrics):
    assert metrics_of(RunFolder((), content)) == metrics


def test_a_file_with_many_metrics_gives_the_first_fifty():
    many = ", ".join(f'"m{number:03}": {number}' for number in range(200))
    found = metrics_of(RunFolder((), f"{{{many}}}".encode()))
    assert len(found) == 50
    assert list(found)[-1] == "m049"
