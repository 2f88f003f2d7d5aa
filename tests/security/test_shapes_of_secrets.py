"""Tests that each secret shape of the corpus is redacted completely, and harmless lines stay."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from vertex_training.secret_rules import redaction
from vertex_training.secret_rules.redaction import contains_secret, masked, redacted

CORPUS: Final = Path(__file__).parents[1] / "corpus" / "secrets"
SHAPES: Final[dict[str, Any]] = yaml.safe_load((CORPUS / "shapes.yaml").read_text("utf-8"))
HARMLESS: Final = (CORPUS / "harmless.txt").read_text("utf-8").splitlines()
ALPHABETS: Final = {
    "a": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + "234567",
    "x": "0123456789abcdef",
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "-_",
    "b": string.ascii_letters + string.digits + "+/",
}
#: Values of each shape.
ROUNDS: Final = 20
#: Where a token may stand.
PLACES: Final = (
    "{}",
    "SETTING={}",
    'error: 403 for "{}", see the page',
    '{{"args": ["--hub={}"]}}',
    "client = Client({!r})",
    "https://example.com/x?t={}&page=2",
)


def made(form: str, chance: random.Random) -> tuple[str, list[str]]:
    """Return a text of a shape, and its secret parts."""
    parts: list[str] = []

    def part(match: re.Match[str]) -> str:
        if match[1] == "p":
            word = f"canary-{''.join(chance.choices('aeiou', k=6))}"
        else:
            letters = ALPHABETS[match[1][0]]
            word = "".join(chance.choices(letters, k=int(match[1][2:])))
            word = re.sub(r"^[-_]|[-_]$", "a", word)
        parts.append(word)
        return word

    return re.sub(r"\{(p|[aluxdwb]:\d+)\}", part, form), [p for p in parts if len(p) > 5]


def texts() -> Iterator[tuple[str, str, list[str]]]:
    """Yield shape, text and secret parts of the whole corpus."""
    chance = random.Random(28)
    for shape, form in SHAPES["tokens"].items():
        for count in range(ROUNDS):
            token, parts = made(form, chance)
            yield shape, PLACES[count % len(PLACES)].format(token), parts
    for shape, form in SHAPES["lines"].items():
        for _ in range(ROUNDS):
            yield shape, *made(form, chance)


def test_secret_rule_is_named_after_service_and_kind_of_secret() -> None:
    services = {shape.partition("-")[0] for kind in ("tokens", "lines") for shape in SHAPES[kind]}
    for rule in redaction.TOKENS:
        service, _, secret = rule.partition("-")
        assert service in services
        assert secret.rpartition("-")[2] in ("key", "token", "secret")
    kinds = {"url", "key", "webhook", "signature", "header", "user", "password", "login", "sshpass"}
    assert {rule.rpartition("-")[2] for rule in redaction.PLACES} == kinds


def test_secret_shapes_of_published_scanners_are_redacted_completely() -> None:
    counts: dict[str, list[int]] = {}
    missed: list[str] = []
    for shape, text, parts in texts():
        shown = redacted(text)
        good = contains_secret(text) and not any(part in shown for part in parts)
        good = good and len(masked(text)) == len(text)
        counts.setdefault(shape, []).append(good)
        if not good:
            missed.append(f"{shape}: {text} -> {shown}")
    for shape, each in counts.items():
        print(f"{sum(each)}/{len(each)} {shape}")
    assert len(counts) >= 150
    assert missed == []


def test_harmless_lines_of_logs_and_settings_are_shown_unchanged() -> None:
    assert len(set(HARMLESS)) >= 100
    changed = [f"{line} -> {redacted(line)}" for line in HARMLESS if redacted(line) != line]
    assert changed == []


@pytest.mark.parametrize("shape", SHAPES["lines"])
def test_redacted_text_is_not_changed_again(shape: str) -> None:
    once = redacted(made(SHAPES["lines"][shape], random.Random(3))[0])
    assert redacted(once) == once
