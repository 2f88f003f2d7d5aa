"""Any bytes are checked in linear time and 200 MB, and reported in a bounded number of lines."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vertex_training.customjob.request import job_file as spec
from vertex_training.customjob.request.job_file import Submission
from vertex_training.located_yaml import document

#: Seconds of processor time: far above what any input takes (0.1 to 0.6), far below the minutes
#: that it took with a pattern or a search that goes back over what it has read.
QUADRATIC = 15.0
WHO = Submission("acme-ml-dev", "us-central1", "dev", "job", run=1)
SIZE = document.MAX_BYTES - 1000
POOL = """serviceAccount: a@b.iam.gserviceaccount.com
workerPoolSpecs:
- machineSpec: {machineType: n1-standard-4}
  containerSpec:
    imageUri: a/b:v1
"""


def filled(text):
    return (text * (SIZE // len(text) + 1))[: SIZE - 1000]


INPUTS = {
    "the same key": "a: 1\n" * (SIZE // 5),
    "the same key, few enough": "a: 1\n" * 9_900,
    "unknown fields": "\n".join(f"machineTyp{n}: 1" for n in range(9_900)),
    "a long value": "a: " + "x" * SIZE,
    "a long key": "x" * 900 + ": 1",
    "a long number": POOL + "  replicaCount: 0x" + "f" * 400_000,
    "a number in base 60": POOL + "  replicaCount: " + "1:" * 200_000 + "1",
    "a fraction in base 60": POOL + "  replicaCount: " + "1:" * 20_000 + "1.5",
    "half a token": POOL + f"    args: ['{filled('eyJ-')[:450_000]}']",
    "references": POOL + f"    args: ['{filled('${a.b}')[:450_000]}']",
    "half a reference": POOL + f"    args: ['${{a{filled('.a')[:450_000]}']",
    "a long script": POOL + f'    command: [sh]\n    args: ["{filled("a | ")[:450_000]}"]',
    "bad variables": POOL + "    env:\n" + "    - {name: A-, value: x}\n" * 3000,
    "many arguments": POOL + "    args:\n" + "    - x\n" * 19_000,
    "many pools": "workerPoolSpecs:\n" + "- machineSpec: {machineType: nope}\n" * 3000,
    "many labels": "labels: {" + ", ".join(f"A{n}: b" for n in range(9000)) + "}\njobSpec: {}",
    "a long topology": POOL.replace(
        "n1-standard-4", f"ct5lp-hightpu-4t, tpuTopology: '{'9' * 5000}'"
    ),
    "one value often": "a: &a " + "x" * 100_000 + "\nb: [" + "*a, " * 1000 + "]",
    "one merge often": "a: &a {b: 1}\nc: {<<: [" + ", ".join(["*a"] * 9000) + "]}",
    "brackets": "[" * SIZE,
    "question marks": "? " * 100_000,
    "ten megabytes": "x" * 10_000_000,
}


@pytest.mark.parametrize("name", INPUTS)
def test_no_input_takes_time_that_grows_with_its_square(name):
    data = INPUTS[name].encode()
    began = time.process_time()
    result = spec.check_job_file(data, "x.yaml", WHO, {})
    lines = [str(problem) for problem in (*result.errors, *result.warnings)]
    assert time.process_time() - began < QUADRATIC
    assert len(lines) <= 3 * document.MAX_PROBLEMS
    assert all(len(line) < 2_000 for line in lines)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
def test_all_of_them_take_less_than_200_megabytes():
    # Not getrusage: its peak of a child begins with what the parent had.
    script = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "from vertex_training.customjob.request import job_file as spec\n"
        "who = spec.Submission('p', 'us-central1', 'dev', 'job', 1)\n"
        "for line in sys.stdin: spec.check_job_file(json.loads(line).encode(), 'x.yaml', who, {})\n"
        "print(Path('/proc/self/status').read_text())\n"
    )
    inputs = "".join(json.dumps(text) + "\n" for text in INPUTS.values())
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, input=inputs, text=True, capture_output=True, check=True)
    peak = next(line for line in done.stdout.splitlines() if line.startswith("VmHWM:"))
    assert int(peak.split()[1]) < 200 * 1024
