"""The parts of a preflight. Each is a function of the context; a row adds one.

They run beside each other: most of their time they wait for an answer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from vertex_training_cli.preflight import (
    identity,
    images,
    names,
    networks,
    organization_policies,
    quotas,
    reservations,
    rights,
)
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.asking import MALFORMED
from vertex_training_cli.preflight.context import PreflightContext

Part = Callable[[PreflightContext], Iterator[Answer]]
#: The heading of a part in a report -> what asks.
PARTS: Final[Mapping[str, Part]] = {
    "project": identity.ask,
    "rights": rights.ask,
    "names": names.ask,
    "images": images.ask,
    "organization policies": organization_policies.ask,
    "quotas": quotas.ask,
    "networks": networks.ask,
    "reservations": reservations.ask,
}
_AT_ONCE: Final = 8


def ask_all(context: PreflightContext) -> list[Answer]:
    """The answers of all parts, in the table's order."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda heading: _answers(heading, context), PARTS)
        return [
            dataclasses.replace(answer, part=heading)
            for heading, answers in zip(PARTS, found, strict=True)
            for answer in answers
        ]


def _answers(heading: str, context: PreflightContext) -> list[Answer]:
    answers = list[Answer]()
    try:
        for answer in PARTS[heading](context):
            answers.append(answer)
    except MALFORMED as error:
        reason = f"could not be read: {type(error).__name__}: {error}"
        answers.append(question(heading, "the rest of this part").unknown(reason))
    return answers
