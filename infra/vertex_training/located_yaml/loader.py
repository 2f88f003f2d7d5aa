"""The YAML loader of this project."""

from __future__ import annotations

from typing import Final

import yaml

# The safe loader in C is ten times as fast; not every build of PyYAML has it.
Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
