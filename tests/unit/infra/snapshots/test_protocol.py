"""One request, one query, one export, one manifest: whatever dies in between."""

import contextlib
import itertools
import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.unit.infra.snapshots.fakes import CLICKS, ROWS, Cloud, Killed, Process, request
from vertex_training.errors import (
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
)
from vertex_training.snapshots import manifest as manifests
from vertex_training.snapshots.protocol import query_configuration, take_snapshot
from vertex_training.snapshots.request import MANIFEST


def take(cloud, wanted=None, **more):
    process = Process(cloud, wanted or request(), **more)
    made = take_snapshot(process.wanted, process.ports, environment=process.environment)
    return made, process


def test_a_process_that_dies_at_any_call_leaves_a_snapshot_that_the_next_one_finishes():
    whole = take(Cloud())[1].calls
    kills = list(itertools.product(range(1, whole + 1), ("before", "after")))
    assert len(kills) > 20
    for kill in kills:
        cloud = Cloud()
        with pytest.raises(Killed):
            take(cloud, dies_at=kill)
        cloud.changed_at = cloud.now  # a source that changed meanwhile is not another export
        cloud.tick(60)
        made, _ = take(cloud)
        assert len(cloud.sent) == 2, kill
        assert made.manifest["rows"] == ROWS


class Kills(RuleBasedStateMachine):
    """Processes of one request that die anywhere, one after another, while time passes."""

    def __init__(self):
        super().__init__()
        self.cloud, self.made = Cloud(), []

    @rule(at=st.integers(1, 30), when=st.sampled_from(["before", "after"]))
    def a_process_dies(self, at, when):
        with contextlib.suppress(Killed):
            self.made.append(take(self.cloud, dies_at=(at, when))[0])

    @rule()
    def a_process_ends(self):
        self.made.append(take(self.cloud)[0])

    @rule(seconds=st.sampled_from([0.1, 1, 5, 90_000]))
    def time_passes(self, seconds):
        self.cloud.tick(seconds)

    @rule()
    def the_source_changes(self):
        self.cloud.changed_at = self.cloud.now

    @invariant()
    def all_see_one_snapshot(self):
        assert len({json.dumps(made.manifest, sort_keys=True) for made in self.made}) <= 1

    @invariant()
    def nothing_is_sent_twice(self):
        # A result that expired after a day is asked for once more, and only then.
        days = 1 + int((self.cloud.now - 1_000) // 86_400)
        queries = [stage for stage in self.cloud.stages() if "query" in stage]
        assert len(queries) <= days
        assert len(self.cloud.sent) <= 2 * len(queries)

    @invariant()
    def a_manifest_names_what_is_there(self):
        found = self.cloud.objects.get(f"{request().prefix}/{MANIFEST}")
        if found:
            for each in manifests.parse(found[0])["objects"]:
                _, generation = self.cloud.objects[f"{request().prefix}/{each['name']}"]
                assert str(generation) == each["generation"]


TestKills = Kills.TestCase
TestKills.settings = settings(max_examples=150, stateful_step_count=12, deadline=None)


def test_query_over_its_bound_is_refused_and_sent_by_the_next_up():
    message = "Query exceeded limit for bytes billed"
    with_failure = FailingCloud({"reason": "bytesBilledLimitExceeded", "message": message})
    with pytest.raises(NotSubmittedError, match=r"the query had no cost; raise maxBytesBilled"):
        take(with_failure)
    with_failure.failure = None
    made, _ = take(with_failure)
    assert made.manifest["query"]["jobId"].endswith("query-2")
    assert [each["name"][:10] for each in made.manifest["objects"]] == ["export-2-1"] * 2


class FailingCloud(Cloud):
    """Every query that is sent fails while ``failure`` is set."""

    def __init__(self, failure):
        super().__init__()
        self.failure: dict[str, str] | None = failure

    def end(self, job):
        job["fails"] = self.failure
        super().end(job)


def test_an_export_that_failed_leaves_files_that_no_manifest_names():
    class HalfExport(Cloud):
        halves = 1

        def end(self, job):
            if "extract" in job["configuration"] and self.halves:
                self.halves -= 1
                job["fails"] = {"reason": "backendError", "message": "try again"}
                self.write_part(job, 1)
            super().end(job)

    cloud = HalfExport()
    with pytest.raises(NotSubmittedError, match="refused the export"):
        take(cloud)
    made, _ = take(cloud)
    assert len(cloud.sent) == 3
    assert {each["name"].split("/")[0] for each in made.manifest["objects"]} == {"export-1-2"}


def test_a_result_that_cannot_be_read_right_after_its_query_is_no_reason_to_ask_again():
    class Unreadable(Cloud):
        def end(self, job):
            super().end(job)
            self.tables.clear()

    cloud = Unreadable()
    with pytest.raises(OperatorError, match="the query ran, but its result could not be read"):
        take(cloud)
    assert cloud.stages() == ["query-1"]


def test_a_source_that_must_not_be_read_is_named_without_its_state():
    cloud = Cloud()
    process = Process(cloud, request())
    table = process.table

    def denied(reference):
        if reference == CLICKS:
            raise PermissionDeniedError("BigQuery: policyViolation")
        return table(reference)

    process.table = denied
    made = take_snapshot(process.wanted, process.ports, environment=process.environment)
    source = {"table": "acme.web.clicks", "lastChanged": None, "rows": None}
    assert made.manifest["sources"] == [source]


def test_provider_without_its_engine_sends_nothing():
    cloud = Cloud()
    with pytest.raises(OperatorError, match="Run `pulumi up` to continue"):
        take(cloud, alive=lambda: False)
    assert cloud.sent == []


def forged(**changes):
    cloud = Cloud()
    made, _ = take(cloud)
    content = {**made.manifest, **changes}
    content[manifests.CONTENT_DIGEST] = manifests.content_digest(content)
    return json.dumps(content).encode()


def test_a_manifest_that_was_forged_before_the_first_up_is_refused():
    cloud = Cloud()
    cloud.put(f"{request().prefix}/{MANIFEST}", forged(rows=1))
    with pytest.raises(JobRefusedError, match=r"another user wrote .*run: 2"):
        take(cloud)
    assert [stored.record.state for stored in cloud.records.values()] == ["SENDING"]


def test_a_manifest_that_was_replaced_after_it_was_recorded_is_refused():
    cloud = Cloud()
    take(cloud)
    cloud.put(f"{request().prefix}/{MANIFEST}", forged(rows=1))
    with pytest.raises(JobRefusedError, match="was overwritten by another user"):
        take(cloud)


@pytest.mark.parametrize(
    "theirs",
    [
        {"query": "SELECT 'poison'"},
        {"destinationTable": {"projectId": "p", "datasetId": "theirs", "tableId": "t"}},
        {"queryParameters": []},
        {"defaultDataset": {"projectId": "p", "datasetId": "theirs"}},
        {"tableDefinitions": {"t": {"sourceUris": ["gs://theirs/t.csv"]}}},
        {"userDefinedFunctionResources": [{"inlineCode": "theirs"}]},
    ],
)
def test_foreign_job_with_our_id_is_not_adopted(theirs):
    cloud = Cloud()
    process = Process(cloud, request())
    job_id = f"vt-snapshot-{request().request_id}-query-1"
    process.insert(job_id, query_configuration(request()))
    cloud.jobs[job_id]["configuration"]["query"] |= theirs
    with pytest.raises(JobRefusedError, match="another user created the BigQuery job"):
        take(cloud)
    assert len(cloud.sent) == 1


@pytest.mark.parametrize("changes", [{"sources": None}, {"sources": [1]}, {"query": []}])
def test_a_manifest_of_our_identity_in_another_form_is_refused(changes):
    cloud = Cloud()
    cloud.put(f"{request().prefix}/{MANIFEST}", forged(**changes))
    with pytest.raises(JobRefusedError, match="another user wrote"):
        take(cloud)


def test_objects_deleted_before_the_manifest_are_exported_again():
    def killed(folder):
        raise Killed

    cloud = Cloud()
    process = Process(cloud, request())
    process.objects = killed
    with pytest.raises(Killed):
        take_snapshot(process.wanted, process.ports, environment=process.environment)
    assert cloud.stages() == ["query-1", "export-1-1"]
    cloud.objects.clear()
    made, _ = take(cloud)
    assert cloud.stages() == ["query-1", "export-1-1", "export-1-2"]
    assert made.manifest["bytes"] == 72


def test_foreign_object_beside_an_export_is_refused():
    cloud = Cloud()
    cloud.put(f"{request().prefix}/export-1-1/part-999.parquet", b"poison")
    with pytest.raises(JobRefusedError, match="the export wrote 2 objects"):
        take(cloud)
    assert f"{request().prefix}/{MANIFEST}" not in cloud.objects


def test_another_stacks_manifest_is_refused():
    theirs = Cloud()
    take(theirs, request(stack="other"))
    [text] = [c for name, (c, _) in theirs.objects.items() if name.endswith(MANIFEST)]
    cloud = Cloud()
    cloud.put(f"{request().prefix}/{MANIFEST}", text)
    with pytest.raises(JobRefusedError, match="another user wrote"):
        take(cloud)
    assert request(stack="other").prefix != request().prefix
