"""What Python and bash themselves make of a program, against what is read of it.

No expectation is written by hand: each program runs, and a value that is read is the same, or it is
open and said.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from vertex_training_cli.importing import sources

CALL = """
from google.cloud import aiplatform
aiplatform.CustomContainerTrainingJob("j", "i").run(args=V)
"""
#: Programs that leave a list of texts in V, one a paragraph.
PYTHON = r"""
x = ["b", "a"]; y = x; y += ["z"]; V = x + y[::-1]

x = ["b", "a", "c"]; x.insert(0, "q"); x.extend(("d", "e")); x.pop(); del x[1]; V = x

x = {"a": {"b": ["c"]}}; x["a"]["b"].append("d"); y = dict(x); y["a"]["b"].append("e")
V = x["a"]["b"]

x = {"a": "1"}; x |= {"b": "2"}; x.setdefault("c", "3"); x.pop("a"); V = [*x, x.get("z", "d")]

def f(a=[]): a.append("x"); return a
f(); V = f()

def f(a, *b, c="d", **k): return [a, *b, c, *k.values()]
V = f("1", "2", c="4", e="5") + f(*["3"], **{"c": "6"})

def outer():
    n = "0"
    def inner():
        nonlocal n
        n = "1"
    inner()
    return [n]
V = outer()

G = "0"
def put():
    global G
    G = "1"
put(); V = [G]

V = []
for i in range(4):
    if i == 1: continue
    if i == 3: break
    V.append(str(i))
else:
    V.append("else")

V = []
for i in range(70): V.append(f"{i:02d}")

V = ["%s-%d" % ("a", 3), "{0}{1}{0}".format("a", "b"), "{x!r}".format(x="q"), f"{3.14159:.2f}"]

V = [*"ab", *["c"], *("d",), f"{(224, 224)}", str((1,)), str([1, (2, 3)])]

import os
V = [os.path.join("gs://b", "c", "d"), os.path.join("a", "/b")]

from pathlib import Path
p = Path("a/b.py"); V = [p.name, p.stem, str(p / "c"), str(Path("a") / "/b")]

from enum import Enum
class E(Enum):
    X = "x1"
V = [E.X.value, E.X.name, E("x1").name]

class A:
    def f(self): return "A"
class B(A):
    a = "1"
    def __init__(self, b): self.b = b
    def m(self, z): self.b += z; return self
    @property
    def p(self): return self.a + "p"
b = B("x").m("y"); V = [b.a, b.b, b.f(), b.p]

def deco(fn):
    def w(*a): return "w" + fn(*a)
    return w
@deco
def f(a): return a
V = [f("x")]

try:
    v = int("x")
except ValueError:
    v = 3
V = [str(v)]

def f(n):
    if n > 1:
        return "big"
    return "small"
V = [f(2), f(1), "lo" if 5 < 3 else "mid" if 5 < 10 else "hi", "" or "e"]

x = "abc"
V = [x.find("c") > 1 and "y" or "n", x[1:], x.removeprefix("a"), x.replace("b", "_") + "c" * 2]

V = [str(x) for x in (3 // 2, 7 % 3, -3 + 1, 1 / 4, round(2.567, 1), True, None, 1e-5, 1 < 2 < 3)]
"""
#: Scripts for bash that call gcloud once, one a paragraph.
BASH = r"""
A=1; gcloud ai custom-jobs create --a=$A --b="$A x" --c='$A'"$A"

A=(--a=1 "--b=2 3"); A+=(--c)
gcloud ai custom-jobs create "${A[@]}" end --first=$A

A=a; A+=b
A+=",c d"
gcloud ai custom-jobs create --x=$A "--y=$A"

A=a
A+=b
A+=",c d"
gcloud ai custom-jobs create --x=$A "--y=$A"

gcloud ai custom-jobs create --args="a,b\"c\"",'d e' --x=a\ b --y="\$HOME \`x\`" --z='a"b'

gcloud ai custom-jobs create \
  --a=1 --b="x\
y" \
  # --c \
  --d

A="l1
l2"
gcloud ai custom-jobs create --a="$A" # --b

gcloud ai custom-jobs create --a=1 2>/dev/null --b=2 > out 2>&1 || exit

A=${B:-dflt}
gcloud ai custom-jobs create --a=${A} --b=${C-q} --d="${D:=z z}" --e=${A%t} --f=${#A}

RUN="python -c \"import a; a.b('$PWD')\" && done"
gcloud ai custom-jobs create --args="$RUN"

A=1
unset A
gcloud ai custom-jobs create --a=$A --b="#x" --c=d#e

A=1
if false; then A=2; fi
gcloud ai custom-jobs create --a=$A

X=$(gcloud ai custom-jobs create --a=1 --format="value(name)")
"""
#: What is open: a placeholder within a text.
OPEN = re.compile(r"<[A-Z0-9_]+>")


def paragraphs(text: str) -> list[str]:
    return text.strip("\n").split("\n\n")


def is_read(read: list[str], real: list[str]) -> bool:
    """Whether each text that is read is the real one, or matches it but for what is open."""
    pairs = zip(read, real, strict=False)
    return len(read) == len(real) and all(
        re.fullmatch(OPEN.sub(".*", re.escape(one)), other, re.DOTALL) for one, other in pairs
    )


@pytest.mark.parametrize("program", paragraphs(PYTHON))
def test_a_value_of_python_is_the_real_one_or_open(tmp_path: Path, program: str) -> None:
    names: dict[str, list[str]] = {}
    exec(program, names)
    (tmp_path / "s.py").write_text(program + CALL)
    [job] = sources.read(tmp_path / "s.py").jobs
    read = job.spec["workerPoolSpecs"][0]["containerSpec"].get("args", [])
    said = [note for note in job.notes if not note.guessed]
    assert said or is_read(read, names["V"]), (read, names["V"])


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not here")
@pytest.mark.parametrize("program", paragraphs(BASH))
def test_the_words_of_a_command_are_those_that_bash_makes(
    tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vertex_training_cli.importing import command_lines

    fake = f'gcloud() {{ shift 3; printf "%s\\x1f" "$@" > {tmp_path}/got; }}\n'
    subprocess.run(["bash", "-c", fake + program], cwd=tmp_path, capture_output=True, check=False)
    read, options_of = list[str](), command_lines.options_of

    def keep(kind: str, words: list[str], place: str) -> dict[str, object]:
        read.extend(words)
        return options_of(kind, words, place)

    monkeypatch.setattr(command_lines, "options_of", keep)
    command_lines.Script("s.sh", command_lines.NO_FILES).visit(program, "j")
    assert is_read(read, (tmp_path / "got").read_text().split("\x1f")[:-1]), read
