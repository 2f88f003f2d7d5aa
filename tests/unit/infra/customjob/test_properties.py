"""Properties of the checker, over generated jobs and over any bytes.

Jobs are tested twice: with the same examples every time, and with a few fresh ones.
"""

import copy
import json
from pathlib import Path

import pytest
import yaml
from google.cloud import aiplatform_v1
from google.protobuf import json_format
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from vertex_training.catalog import machines
from vertex_training.customjob import rules
from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.request.job_file import Submission
from vertex_training.located_yaml import document

CORPUS = Path(__file__).parents[3] / "corpus"
WHO = Submission("acme-ml-dev", "us-central1", "dev", "job", run=1)
TABLE = {"buckets.data": "gs://acme-ml-dev-data-dev", "reservations.any": {}}
ACCOUNT = "trainer-dev@acme-ml-dev.iam.gserviceaccount.com"
IMAGE = f"us-central1-docker.pkg.dev/acme/train/x@sha256:{'0' * 64}"
#: Rules that compare places far from one another: the error may stand at the other one.
BETWEEN_PLACES = {
    "chief-replicas", "first-pool", "flex-start-gpu", "flex-start-same-machines",
    "flex-start-timeout", "max-wait-unused", "mount-network", "output-variables",
    "peering-accelerator", "pool-count", "ranges-without-network", "reduction-bandwidth",
    "reservation-flex-start", "reservation-persistent", "tpu-alone", "tpu-pod-spot",
    "tensorboard-or-experiment",
}  # fmt: skip
CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much]
SAME = settings(derandomize=True, max_examples=150, deadline=None, suppress_health_check=CHECKS)
FRESH = settings(max_examples=40, deadline=None, suppress_health_check=CHECKS)

#: Characters that JSON takes as they are and YAML does not.
NOT_IN_YAML = ["Cc", "Cs", "Cn", "Zl", "Zp"]
words = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=12)
texts = st.text(st.characters(codec="utf-8", exclude_categories=NOT_IN_YAML), max_size=30)
plain = texts.filter(lambda text: "${" not in text and "AIP_" not in text and "/gcs/" not in text)


def check(data, who=WHO):
    return spec.check_job_file(data, "x.yaml", who, TABLE)


def parsed(message):
    """The message as the official parser has it, or None if it takes it for no CustomJob."""
    job = aiplatform_v1.CustomJob.pb(aiplatform_v1.CustomJob())
    try:
        return json_format.ParseDict(message, job)
    except json_format.ParseError:
        return None


@st.composite
def machine_specs(draw):
    """A machine type of the catalogue, with an accelerator and a count it allows."""
    shape = draw(st.sampled_from(sorted(machines.machine_types().values(), key=lambda m: m.name)))
    spec = {"machineType": shape.name}
    kinds = [kind for kind in sorted(shape.accelerators) if kind != "NVIDIA_TESLA_P100"]
    if kinds and (shape.accelerator_required or draw(st.booleans())):
        kind = draw(st.sampled_from(kinds))
        count = draw(st.sampled_from(shape.accelerators[kind]))
        spec |= {"acceleratorType": kind, "acceleratorCount": count}
    if shape.topologies:
        spec["tpuTopology"] = draw(st.sampled_from(shape.topologies))
    if shape.reservation_required or (not shape.tpu and draw(st.integers(0, 4)) == 0):
        spec["reservationAffinity"] = {"reservationAffinityType": "ANY_RESERVATION"}
    return spec


@st.composite
def containers(draw):
    container = {"imageUri": IMAGE}
    if args := draw(st.lists(plain, max_size=4)):
        container["args"] = args
    names = draw(st.lists(words.map(lambda word: f"V_{word}_X"), max_size=3, unique=True))
    if names:
        container["env"] = [{"name": name, "value": draw(words)} for name in names]
    return container


@st.composite
def jobs(draw):
    """A valid job, in gcloud's form or in REST's."""
    machine = draw(machine_specs())
    shape = machines.machine_types()[machine["machineType"]]
    pool = {"replicaCount": 1, "machineSpec": machine, "containerSpec": draw(containers())}
    if draw(st.booleans()):
        pool["diskSpec"] = {"bootDiskSizeGb": draw(st.integers(100, 64_000))}
    pools = [pool]
    if not shape.tpu and draw(st.booleans()):
        pools.append({**copy.deepcopy(pool), "replicaCount": draw(st.integers(1, 64))})
    spec = {"serviceAccount": ACCOUNT, "workerPoolSpecs": pools}
    if draw(st.booleans()):
        spec["baseOutputDirectory"] = {"outputUriPrefix": f"gs://bucket/{draw(words)}"}
    spec["scheduling"] = {"timeout": f"{draw(st.integers(1, 604_800))}s"}
    reserved = "reservationAffinity" in machine
    if shape.flex_start and not reserved and draw(st.booleans()):
        spec["scheduling"] |= {"strategy": "FLEX_START", "maxWaitDuration": "60s"}
    if draw(st.booleans()):
        return spec
    labels = draw(st.dictionaries(words.map(lambda word: f"l{word}"), words, max_size=3))
    return {"displayName": draw(words), "labels": labels, "jobSpec": spec}


def dumped(job):
    return yaml.safe_dump(job, sort_keys=False, allow_unicode=True).encode()


def valid_job(job):
    result = check(dumped(job))
    assert result.errors == ()
    message = result.request.message
    given = job if "jobSpec" in job else {"jobSpec": job}
    expected = parsed({"displayName": "dev-job", **given})
    assert parsed(message) == expected
    assert parsed(json.loads(json_format.MessageToJson(expected))) == expected
    assert check(dumped(job)).request.body == result.request.body
    assert (
        check(json.dumps(message, ensure_ascii=False).encode()).request.body == result.request.body
    )


@pytest.mark.parametrize("examples", [SAME, FRESH], ids=["same", "fresh"])
def test_a_valid_job_is_the_same_request_to_the_official_client(examples):
    examples(given(jobs())(valid_job))()


def places(value, path=()):
    """All places of a job but the whole of it."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


others = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 70_000), st.floats(allow_nan=False), plain,
    st.sampled_from(["SPOT", "ANY", "NVIDIA_L4", "n1-standard-2", "24h", "${buckts.data}", "no"]),
    st.just([]), st.just({}), st.just([{}]), st.dictionaries(words, words, min_size=1, max_size=2),
)  # fmt: skip


@st.composite
def mutations(draw):
    """A valid job with one place removed, renamed or replaced; the changed job and that place."""
    job = copy.deepcopy(draw(jobs()))
    path = draw(st.sampled_from(list(places(job))))
    parent = job
    for part in path[:-1]:
        parent = parent[part]
    how = draw(st.sampled_from(["remove", "replace", "replace", "rename"]))
    if how == "remove":
        del parent[path[-1]]
    elif how == "rename" and isinstance(parent, dict):
        new = draw(words)
        parent[new] = parent.pop(path[-1])
        path = (*path[:-1], new)
    else:
        parent[path[-1]] = draw(others)
    return job, path


def related(result, data, path):
    """Whether an error stands at the place, around it, inside of it, or beside it."""
    file = document.read(data, "x.yaml")
    near = {
        file.location(path[:end], key=key) for end in range(len(path) + 1) for key in (False, True)
    }
    value = file.root
    for part in path[:-1]:
        value = value.content[part]
    parts = value.content if isinstance(value.content, dict) else range(len(value.content))
    for part in parts:
        beside = (*path[:-1], part)
        near |= {file.location(beside), file.location(beside, key=True)}
        near |= {file.location((*beside, *inner)) for inner in _inside(value.content[part])}
    return any(error.location in near or error.rule in BETWEEN_PLACES for error in result.errors)


def _inside(value, path=()):
    content = value.content
    if isinstance(content, dict | list):
        for key, item in content.items() if isinstance(content, dict) else enumerate(content):
            yield (*path, key)
            yield from _inside(item, (*path, key))


def mutated_job(mutation):
    job, path = mutation
    data = dumped(job)
    result = check(data)
    if result.request is not None:
        assert parsed(result.request.message) is not None
    else:
        assert result.errors
        assert all(error.rule for error in result.errors)
        if result.errors[0].rule != "not-a-mapping":
            assert related(result, data, path)


@pytest.mark.parametrize("examples", [SAME, FRESH], ids=["same", "fresh"])
def test_a_changed_job_is_valid_or_its_error_is_near_the_change(examples):
    examples(given(mutations())(mutated_job))()


seeds = [path.read_bytes() for path in sorted(CORPUS.glob("*/*.yaml"))[::9]]
MARKS = [*"{}[]:,-&*!|>'\"%@`?#~<=\t\n 01x.", "<<: ", "!!int ", "a: ", "- ", "*a", "&a "]
yamlish = st.lists(st.sampled_from(MARKS), max_size=60).map("".join)


@st.composite
def damaged_files(draw):
    """A file of the corpus with some bytes replaced."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 9))] = draw(st.binary(max_size=9))
    return bytes(data)


anything = st.one_of(
    st.binary(), st.text().map(str.encode), yamlish.map(str.encode), damaged_files(),
    yamlish.map(lambda text: f"workerPoolSpecs: {text}".encode()),
)  # fmt: skip


@settings(SAME, max_examples=400)
@given(anything)
@example(b"a: !!int ''")
@example(b"a: !!bool x")
@example(b"a: !!float ''")
@example(b"? {a: b}\n: c")
@example(b"a: 1:1:1:1.5")
@example(b"workerPoolSpecs: [{replicaCount: 0x" + b"f" * 5000 + b"}]")
def test_any_bytes_are_checked_without_a_traceback(data):
    result = check(data)
    assert (result.request is None) == bool(result.errors)
    known = {rule.id for rule in rules.ALL}
    for problem in (*result.errors, *result.warnings):
        assert problem.rule in known
        assert "\n" not in str(problem)
