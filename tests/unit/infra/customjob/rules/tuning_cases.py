"""A correct tuning file and edits that each break one rule, from ``tests/corpus/tuning.yaml``."""

from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Case:
    """``old`` of the correct file becomes ``new``; ``at`` is the path that the problem names."""

    name: str
    old: str
    new: str
    rule: str
    at: str = ""
    level: str = "error"


DATA = yaml.safe_load((Path(__file__).parents[4] / "corpus/tuning.yaml").read_text("utf-8"))
RIGHT = DATA["right"]
CASES = [Case(**case) for case in DATA["cases"]]
