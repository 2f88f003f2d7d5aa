"""What a stack previews as, as YAML a reviewer can read.

Digests are replaced by a word, so that new training code does not change the inventory.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

HIDDEN = ("__provider", "__defaults", "__internal")
DIGEST = re.compile(r"\b[0-9a-f]{16,64}\b")
ASSET = "4dabf18193072939515e22adb298388d"


def inventory(preview: dict[str, Any]) -> dict[str, Any]:
    """Counts by type, and every resource's inputs, from ``pulumi preview --json``."""
    states = [step["newState"] for step in preview["steps"]]
    resources = {
        _name(state): {"type": state["type"], **_clean(state.get("inputs", {}))}
        for state in states
        if state.get("custom") and not state["type"].startswith("pulumi:providers:")
    }
    return {
        "counts": dict(sorted(Counter(r["type"] for r in resources.values()).items())),
        "resources": dict(sorted(resources.items())),
    }


def waits_for(preview: dict[str, Any]) -> dict[str, set[str]]:
    """Resource name -> names of everything that is there before it is created."""
    states = {step["newState"]["urn"]: step["newState"] for step in preview["steps"]}

    def ancestors(urn: str, seen: set[str]) -> set[str]:
        state = states[urn]
        for dependency in (*state.get("dependencies", []), state.get("parent")):
            if dependency in states and dependency not in seen:
                seen.add(dependency)
                ancestors(dependency, seen)
        return seen

    return {
        _name(state): {_name(states[found]) for found in ancestors(urn, set())}
        for urn, state in states.items()
    }


def goes_before(preview: dict[str, Any]) -> dict[str, set[str]]:
    """Resource name -> names of everything that the engine deletes only after it.

    That is what it names itself, and what is inside of components among it.
    """
    states = {step["newState"]["urn"]: step["newState"] for step in preview["steps"]}

    def inside(urn: str) -> set[str]:
        children = [each for each, state in states.items() if state.get("parent") == urn]
        return {urn}.union(*(inside(child) for child in children))

    return {
        _name(state): {
            _name(states[found])
            for dependency in state.get("dependencies", [])
            for found in inside(dependency)
        }
        for state in states.values()
    }


def _name(state: dict[str, Any]) -> str:
    return state["urn"].rsplit("::", 1)[-1]


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        if ASSET in value:
            return "(a file)"
        return {key: _clean(item) for key, item in sorted(value.items()) if key not in HIDDEN}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, str):
        if value.startswith("{"):
            return _clean(json.loads(value))  # the request, readable
        return DIGEST.sub("(digest)", value)
    return value
