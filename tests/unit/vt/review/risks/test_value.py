"""What of value changes and is not destroyed is in the headline: keys, shells, costs, names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine import events
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.review import headline, json_report, renames, report

SECRET = "gcp:secretmanager/secret:Secret"
API = "gcp:projects/service:Service"
RING = "projects/acme-keys/locations/us-central1/keyRings/ml/cryptoKeys"


def bucket(key: str = "", storage: str = "STANDARD", name: str = "acme-data-dev") -> dict[str, Any]:
    sealed = {"encryption": {"defaultKmsKeyName": f"{RING}/{key}"}} if key else {}
    return {"name": name, "storageClass": storage, **sealed}


def update(name: str, old: dict[str, Any], new: dict[str, Any], type_: str = "") -> plans.Event:
    return plans.step("update", type_ or plans.BUCKET, name, old=old, new=new)


def replaced(old: dict[str, Any], new: dict[str, Any]) -> plans.Event:
    return plans.step("replace", plans.JOB, "training-train", old=old, new=new)


def planned(*told: plans.Event, outputs: Any = None, **sections: Any) -> Plan:
    deployed = {"outputs": outputs or {}}
    stack = plans.step("same", "pulumi:pulumi:Stack", "vt-dev", {}, {}, **deployed)
    config = {f"vertex-training:{name}": json.dumps(value) for name, value in sections.items()}
    return events.parse(plans.lines(stack, *told, config=config), "dev")


def verdict(*told: plans.Event, **more: Any) -> str:
    return headline.verdict(report.build(planned(*told, **more), source="here"))


def answer(question: str, *told: plans.Event, **more: Any) -> str:
    found = report.build(planned(*told, **more), source="here")
    [text] = [
        each.text
        for each in headline.answers(found, lambda text, _=0: text)
        if each.question == question
    ]
    return text


def encrypted(key: str) -> dict[str, Any]:
    made = plans.job("train")
    message = json.loads(made["request"]) | {"encryptionSpec": {"kmsKeyName": f"{RING}/{key}"}}
    return made | {"request": json.dumps(message if key else json.loads(made["request"]))}


class TestKeys:
    def test_another_key_is_named_old_and_new_with_all_that_it_encrypts(self) -> None:
        told = verdict(
            update("storage-data", bucket("one"), bucket("two")),
            update("storage-raw", bucket("one"), bucket("two")),
            replaced(encrypted("one"), encrypted("two")),
        )
        assert (
            "encrypted with another key: one → two (storage-data, storage-raw, training-train)"
            in told
        )

    def test_one_name_in_two_rings_is_told_in_full(self) -> None:
        other = bucket("one")["encryption"]["defaultKmsKeyName"].replace("/ml/", "/eu/")
        new = bucket() | {"encryption": {"defaultKmsKeyName": other}}
        assert f"{RING}/one → {other}" in verdict(update("storage-data", bucket("one"), new))

    def test_a_key_of_ones_own_that_is_taken_away_is_a_loss(self) -> None:
        gone = update("storage-data", bucket("one"), bucket())
        said = "no longer encrypted with your key: one (storage-data)"
        assert said in verdict(gone)
        assert answer("what is lost", gone) == said

    def test_a_first_key_alarms_nobody(self) -> None:
        assert "encrypted" not in verdict(update("storage-data", bucket(), bucket("one")))

    def test_an_api_that_stays_on_is_not_destroyed(self) -> None:
        api = plans.delete(API, "apis-cloudkms", service="x", disableOnDestroy=False)
        found = report.build(planned(api), source="here")
        assert "nothing destroyed" in headline.verdict(found)
        assert [(each.op, each.name) for each in found.changes] == [("forget", "apis-cloudkms")]
        off = plans.delete(API, "extra-api", service="x", disableOnDestroy=True)
        assert "1 resource destroyed" in verdict(off)


class TestJobs:
    def test_a_shell_into_the_machines_is_told(self) -> None:
        opened = replaced(plans.job("train"), plans.job("train", enableWebAccess=True, run=2))
        assert "a shell into the machines of: train" in verdict(opened)
        assert "a shell into the machines of: train" in answer("who gains a right", opened)
        closed = replaced(plans.job("train", enableWebAccess=True), plans.job("train", run=2))
        assert "shell" not in verdict(closed)

    def test_what_a_job_costs_is_told_before_and_after(self) -> None:
        spot = {"scheduling": {"timeout": "36000s", "strategy": "SPOT"}}
        old = plans.job("train") | {
            "request": json.dumps({"jobSpec": {"workerPoolSpecs": [plans.pool()], **spot}})
        }
        change = replaced(old, plans.job("train", plans.pool("n1-standard-8"), timeout="36000s"))
        found = report.build(planned(change), source="here")
        [job] = found.jobs
        assert job.cost_before is not None
        before, after = job.cost_before.worst_case, job.cost.worst_case
        assert before is not None
        assert after is not None
        assert before < after
        assert f"at most ${before:.2f} → ${after:.2f}" in headline.verdict(found)
        assert answer("what it can cost", change) == f"at most ${before:.2f} → ${after:.2f}"
        assert answer("what runs", change) == (
            "train on 1 x n1-standard-4 → 1 x n1-standard-8, SPOT → STANDARD"
        )
        [written] = json.loads(json_report.render(found))["jobs"]
        assert written["worstCaseUsdBefore"] == before

    def test_a_cost_that_stays_and_the_first_one_are_told_once(self) -> None:
        assert "→" not in verdict(replaced(plans.job("train"), plans.job("train", run=2)))
        assert verdict(
            replaced(
                plans.job("train"),
                plans.job("train", plans.pool("x1", image="example/n1-standard-4:v1"), run=2),
            )
        ) == ("1 job replaced; no price is known, at most $0.22 before; nothing destroyed.")
        assert "→" not in verdict(plans.create(plans.JOB, "training-a", **plans.job("a")))

    def test_an_image_is_told_by_its_digests(self) -> None:
        old, new = (plans.pool(image=f"eu.example/x/fit@sha256:{c * 64}") for c in "ab")
        told = verdict(replaced(plans.job("train", old), plans.job("train", new, run=2)))
        assert "image fit: sha256:aaaaaaaaaaaa → sha256:bbbbbbbbbbbb" in told


class TestStorageClasses:
    READER = plans.step(
        "same", plans.MEMBER, "reads", plans.member("acme-data-dev"), plans.member("acme-data-dev")
    )

    @pytest.mark.parametrize("cold", ["NEARLINE", "COLDLINE", "ARCHIVE"])
    def test_a_class_whose_reads_cost_is_told_where_accounts_read(self, cold: str) -> None:
        change = update("storage-data", bucket(), bucket(storage=cold))
        assert f"reads are paid for: storage-data (STANDARD → {cold}" in verdict(
            change, self.READER
        )
        assert "reads are paid for" in answer("what it can cost", change, self.READER)
        assert "reads are paid for" not in verdict(change)

    def test_a_way_back_to_cheaper_reads_is_fine(self) -> None:
        change = update("storage-data", bucket(storage="ARCHIVE"), bucket(storage="COLDLINE"))
        assert "reads are paid for" not in verdict(change, self.READER)


class TestNames:
    def test_existing_that_is_dropped_means_an_empty_bucket(self) -> None:
        made = plans.create(plans.BUCKET, "storage-data", **bucket())
        outputs = {"buckets": {"data": "gs://others-data"}}
        said = "new and empty in place of another: storage-data (until now others-data)"
        assert said in verdict(made, outputs=outputs)
        assert said in answer("what is lost", made, outputs=outputs)

    def test_a_secret_that_existed_elsewhere_is_new_and_empty_too(self) -> None:
        made = plans.create(SECRET, "secrets-key", secretId="wandb", project="acme")
        outputs = {"secrets": {"key": "projects/others/secrets/wandb"}}
        assert "secrets-key (until now wandb)" in verdict(made, outputs=outputs)

    def test_a_new_key_of_the_stack_file_takes_nothings_place(self) -> None:
        made = plans.create(plans.BUCKET, "storage-new", **bucket(name="acme-new-dev"))
        assert "in place of" not in verdict(made, outputs={"buckets": {"data": "gs://x"}})

    def test_a_job_that_only_has_another_name_is_told_of_formerly(self) -> None:
        gone = plans.delete(plans.JOB, "training-train", **plans.job("train"))
        made = plans.create(plans.JOB, "training-fit", **plans.job("fit"))
        jobs = {"fit": {"file": "x"}}
        assert "renamed without formerly: train → fit" in verdict(gone, made, jobs=jobs)
        assert "(formerly: train in jobs.fit keeps what is there)" in answer(
            "what is lost", gone, made, jobs=jobs
        )

    def test_a_bucket_that_only_has_another_name_is_told_of_formerly(self) -> None:
        gone = plans.delete(plans.BUCKET, "storage-raw", **bucket(name="acme-raw-dev"))
        made = plans.create(plans.BUCKET, "storage-crude", **bucket(name="acme-crude-dev"))
        buckets = {"crude": {}}
        assert "renamed without formerly: raw → crude" in verdict(gone, made, buckets=buckets)

    def test_a_plan_of_thousands_is_compared_within_bounds(self, monkeypatch: Any) -> None:
        compared = list[str]()
        monkeypatch.setattr(renames, "_differ_by_name", lambda *each: compared.append(each[3]))
        gone = [plans.delete(plans.BUCKET, f"storage-a{n}", name=f"a{n}") for n in range(300)]
        made = [plans.create(plans.BUCKET, f"storage-b{n}", name=f"b{n}") for n in range(300)]
        verdict(*gone, *made, buckets={f"b{n}": {} for n in range(300)})
        assert len(compared) == renames.COMPARED < 300 * 300

    def test_another_job_is_no_renamed_one(self) -> None:
        gone = plans.delete(plans.JOB, "training-train", **plans.job("train"))
        other = plans.job("fit", plans.pool("n1-standard-8"))
        made = plans.create(plans.JOB, "training-fit", **other)
        assert "renamed" not in verdict(gone, made, jobs={"fit": {"file": "x"}})


def test_a_headline_has_at_most_a_dozen_parts_and_the_strongest_first() -> None:
    cold = [
        update(f"storage-{n}", bucket("one", name=f"b{n}"), bucket("", "ARCHIVE", f"b{n}"))
        for n in range(3)
    ]
    readers = [plans.create(plans.MEMBER, f"reads-{n}", **plans.member(f"b{n}")) for n in range(3)]
    admin = plans.create(
        plans.MEMBER, "extra", **plans.member("b1", "roles/storage.admin", "user:kim@gmail.com")
    )
    web = replaced(plans.job("train"), plans.job("train", enableWebAccess=True, run=2))
    gone = plans.delete(plans.BUCKET, "storage-raw", **bucket(name="raw"))
    bare = plans.step("update", plans.BUCKET, "storage-p", {}, {}, protect=(True, False))
    public = plans.create(plans.MEMBER, "everybody", **plans.member("b2", who="allUsers"))
    limits = {"limits": {"limits": {"maxUsdPerJob": 1}}}
    drift = {"allowed": {"a": {"member": "group:a@x.com", "role": "r", "policy": "b/*"}}}
    told = verdict(
        *(*cold, *readers, admin, web, gone, bare, public),
        outputs=limits,
        drift=drift,
        rules={"scarce-accelerator": "note"},
        policyLevels={"bucket-versioned": "advisory"},
    )
    parts = told.removesuffix(".").split("; ")
    assert len(parts) == headline.PARTS + 1 == 13
    assert parts[-1].startswith("and ")
    heads = [part.partition(":")[0] for part in parts]
    strong = ("data is lost", "protection removed", "no longer encrypted with your key")
    weak = ("limits raised", "policies lowered", "a shell into the machines of")
    assert max(map(heads.index, strong)) < min(heads.index(e) for e in weak if e in heads)
