"""Specs that others published, in shape: none is refused without a source, and few are warned.

Each file of ``tests/corpus/public`` is the shape of one or more public specs, with values of our
own; its head names them by repository and path, or by ``text N`` where only the text is known.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from vertex_training.customjob import rules
from vertex_training.customjob.rules.registry import OURS

ROOT = Path(__file__).parents[4]
PUBLIC = ROOT / "tests" / "corpus" / "public"
SOURCES = {rule.id: rule.source for rule in rules.ALL}


@dataclass(frozen=True)
class Spec:
    """The shape of some public specs."""

    sources: tuple[str, ...]
    refused_by: frozenset[str]


def spec_of(file):
    head = file.read_text()
    verdict = re.match(r"# (taken|refused: (.+))\n", head)
    assert verdict, file.name
    sources = re.findall(r"^# source: (.+)$", head, re.MULTILINE)
    assert sources, file.name
    return Spec(tuple(sources), frozenset(verdict[2].split(", ") if verdict[2] else ()))


SPECS = {file.name: spec_of(file) for file in sorted(PUBLIC.glob("*.yaml"))}


def findings(vt):
    done = vt("check", "--format", "json", PUBLIC)
    assert done.exit_code == 1, done.stderr
    return {Path(f["file"]).name: f["findings"] for f in json.loads(done.stdout)["files"]}


def test_at_least_sixty_specs_of_others_are_known_by_their_source():
    sources = [source for spec in SPECS.values() for source in spec.sources]
    assert len(sources) == len(set(sources)) >= 60


def test_only_what_service_or_client_refuses_is_refused(vt):
    for name, found in findings(vt).items():
        refused_by = {finding["rule"] for finding in found if finding["level"] == "error"}
        assert refused_by == SPECS[name].refused_by, name
        assert all(SOURCES[rule] != OURS for rule in refused_by), name


def test_a_spec_of_others_has_at_most_six_warnings_in_ten_files(vt):
    warnings = 0
    for name, found in findings(vt).items():
        told = [finding for finding in found if finding["level"] == "warning"]
        warnings += len(told) * len(SPECS[name].sources)
    assert warnings / sum(len(spec.sources) for spec in SPECS.values()) <= 0.6


def test_what_an_image_is_called_is_told_once(vt):
    named = {"image-name", "image-registry", "image-pinned", "executor-image", "prebuilt-name"}
    for name, found in findings(vt).items():
        places = Counter((f["line"], f["column"]) for f in found if f["rule"] in named)
        assert all(count == 1 for count in places.values()), name
