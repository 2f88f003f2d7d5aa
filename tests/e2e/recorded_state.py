"""States of one stack, by the version that wrote them: ``tests/fixtures/state/recorded``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

from tests.conftest import ROOT, Checkout

STACK: Final = ROOT / "tests" / "fixtures" / "state"
FOLDER: Final = STACK / "recorded"
#: What the next deployment writes anew, and where the code was.
_LEFT_OUT: Final = frozenset({"stackTrace", "sourcePosition", "created", "modified"})


def lay_over(checkout: Checkout) -> None:
    """Write the recorded stack into a checkout."""
    shutil.copytree(
        STACK, checkout.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(FOLDER.name)
    )


def record(checkout: Checkout, version: str) -> None:
    """Deploy the stack, and record its state for this version."""
    lay_over(checkout)
    checkout.shell("pulumi stack select -s local --create")
    checkout.shell("pulumi up -s local --yes --skip-preview")
    # Labels are secrets to the engine, and its key is the stack's own.
    told = checkout.shell("pulumi stack export -s local --show-secrets").stdout
    exported: dict[str, Any] = json.loads(told)
    del exported["deployment"]["secrets_providers"]
    file = FOLDER / f"{version}.json"
    file.write_text(json.dumps(_kept(exported), indent=1, sort_keys=True) + "\n")


def bring_back(checkout: Checkout, file: Path) -> None:
    """Restore a recorded state in the stack, under its own key."""
    checkout.shell("pulumi stack select -s local --create")
    own = json.loads(checkout.shell("pulumi stack export -s local").stdout)["deployment"]
    state = json.loads(file.read_text())
    state["deployment"]["secrets_providers"] = own["secrets_providers"]
    (checkout.path / "state.json").write_text(json.dumps(state))
    checkout.shell("pulumi stack import -s local --file state.json")


def resources(file: Path) -> list[dict[str, Any]]:
    """Return the resources of a recorded state."""
    return json.loads(file.read_text())["deployment"]["resources"]


def _kept(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _kept(each) for key, each in value.items() if key not in _LEFT_OUT}
    return [_kept(each) for each in value] if isinstance(value, list) else value
