"""``python -m tests.contract``: what of the local cloud was held against Google's descriptions."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.contract import cloud, differences, story


def main() -> int:
    """Print counts, and each difference; exit code 1 for one that is not listed."""
    with tempfile.TemporaryDirectory() as folder, cloud.running(Path(folder)) as running:
        found = differences.compare(running, list(story.tell(running)))
    listed = differences.listed()
    print(f"methods served         {found.methods}")
    print(f"called and answered    {found.answered}")
    print(f"fields of messages     {found.message_fields}")
    print(f"fields of answers      {found.answer_fields}")
    print(f"differences left       {len(found.found)}, listed: {len(listed)}")
    for each in found.found:
        print(f"  {each} ({listed.get(each, 'NEW')})")
    return int(bool({*found.found} - {*listed}))


if __name__ == "__main__":
    sys.exit(main())
