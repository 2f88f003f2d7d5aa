"""Expressions that are read without being run: what is known is what Python gives, else a name."""

from __future__ import annotations

import copy
import json
import os
import textwrap
from pathlib import PurePosixPath
from typing import Any

import pytest

from tests.unit.vt.importing.expressions import NAMES, evaluated


def as_lists(value: Any) -> Any:
    """Whatever can be iterated, as a list: JSON has nothing else."""
    if isinstance(value, dict):
        return {key: as_lists(item) for key, item in value.items()}
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, PurePosixPath):
        return str(value)
    return [as_lists(item) for item in value]


KNOWN = """\
1 + 2
5 - 7
3 * 4
7 / 2
7 // 2
7 % 4
-n
+n
n + 0.5
not n
not 0
not lst
'a' + 'b'
lst + ['c']
('a',) + ('b',)
'x' * 3
['x'] * 2
'x' * 1000
1 < 2
2 < 2
2 <= 2
2 > 2
3 >= 3
2 >= 3
'a' == 'a'
'a' == 'b'
'a' != 'a'
1 < 2 < 3
1 < 3 < 2
3 < 2 < 1
'a' in lst
'z' in lst
'a' not in lst
'z' not in lst
'b' in 'abc'
'k' in m
'z' in m
None is None
n is None
n is not None
none is None
lst is None
lst is not None
m == None
m != None
1 and 2
0 and 2
1 and 0 or 3
0 or 'x'
'a' or 'b'
e or 'b'
[] or ['x']
{} or 'y'
lst or 'y'
none or 'z'
e and 'b'
'a' if n > 3 else 'b'
'a' if not n else 'b'
'a' if lst else 'b'
'a' if [] else 'b'
lst[0]
lst[-1]
lst[-2]
lst[1:]
lst[:1]
lst[::-1]
'abc'[1:]
'abc'[:-1]
m['k']
m['n']
{'a': {'b': 1}}['a']['b']
[['a'], ['b']][1][0]
f'{n}'
f'{n:03d}'
f'{n:d}'
f'{s!r}'
f'a{n}b{s}'
f'{0.5:.2f}'
f'{1234567:,}'
f'{0.25:.0%}'
f'{none}'
'{}-{}'.format(1, 2)
'{1}{0}'.format('a', 'b')
'{a}'.format(a=3)
'{:03d}'.format(7)
'{!r}'.format('x')
'{!s}'.format('x')
'{{}}{}'.format(1)
'{0:.1f}'.format(0.25)
'%s' % 'a'
'%d' % 3
'%i' % 3
'%03d' % 3
'%03i' % 3
'%.1f' % 0.25
'%(a)s-%(b)03d' % {'a': 1, 'b': 2}
'%s-%s' % ('a', 'b')
'100%%-%s' % 'a'
s.upper()
'AB'.lower()
'a b'.title()
'ab'.capitalize()
' a '.strip()
'xxa'.lstrip('x')
'axx'.rstrip('x')
s.removeprefix('gs://')
s.removesuffix('.txt')
s.replace('b', 'c')
'aaa'.replace('a', 'b', 1)
'{k}-{z}'.format(z=1, **m)
'{a}'.format(a=(1, 2))
'{a:03d} {b!r}'.format(a=2, b='c')
json.dumps({'b': 1, 'a': 2}, sort_keys=True)
json.dumps([1, 2], separators=(',', ':'))
list(enumerate(lst, start=3))
','.join([w.append('b') or x for w in [lst] for x in w[:1]] + lst)
s.split('/')
'a b'.split()
'a,b,c'.rsplit(',', 1)
'a\\nb'.splitlines()
s.startswith('gs')
s.endswith('gs')
s.find('b')
'a=b=c'.partition('=')
'a=b=c'.rpartition('=')
'12'.isdigit()
'aba'.count('a')
'/'.join(lst)
','.join(str(x) for x in [1, 2])
'-'.join(['a'])
''.join([])
abs(-3)
all([1, 0])
any([0, 1])
float('1.5')
int('3')
int(2.9)
len(lst)
len('abc')
len(m)
list('ab')
list(m)
max(1, 2)
min([3, 1])
list(range(3))
list(range(1, 7, 2))
list(range(1000))
repr('a')
round(2.567, 1)
sorted(['b', 'a'])
sorted([1, 2], reverse=True)
sum([1, 2])
tuple([1, 2])
json.dumps({'a': [1, None]})
json.loads('{"a": [1]}')
json.dumps([1, 'a'])
repr({'a': 1})
sorted({'b': 1, 'a': 2})
max({'a': 1, 'b': 2})
textwrap.dedent('  a')
list(enumerate(lst))
list(enumerate(lst, 1))
list(zip(lst, [1, 2]))
list(reversed([1, 2]))
dict(a=1)
dict({'a': 1}, b=2)
dict([('a', 1), ('b', 2)])
dict(zip(lst, [1, 2]))
str(n)
str(0.5)
str(lst)
str((1, 'a'))
str([1, 'a'])
bool(n)
bool(e)
copy.deepcopy(m)
copy.copy(lst)
m.keys()
m.values()
m.items()
m.get('k')
m.get('z')
m.get('z', 'd')
m.copy()
m.pop('k')
[m.get('k'), m]
[m.pop('k'), m.pop('z', 'd'), m]
[m.setdefault('k', 'd'), m]
m.pop('z', 'd')
m.setdefault('k', 'd')
m.setdefault('z', 'd')
{**m, 'x': 1}
{'k': 1, **m}
m | {'n': 4}
lst.index('b')
lst.count('a')
lst.copy()
lst.pop()
lst.pop(0)
[*lst, 'c']
(*lst, 'c')
[*'ab']
[x for x in lst]
[x + y for x in lst for y in ['1', '2']]
[x for x in lst if x != 'a']
[x for x in lst if x != 'a' if x != 'b']
[y for x in [[1], [2]] for y in x]
[k + str(v) for k, v in {'a': 1}.items()]
[i for i, _ in enumerate(lst)]
[first for first, *rest in [(1, 2)]]
{k: v for k, v in m.items()}
{k: 1 for k in lst if k == 'b'}
{x for x in ['a']}
sum(x for x in [1, 2])
(q := 3) + q
999999999 - 1
'3' != 3
lst == None
None != lst
None == m
'k' not in m
'd' not in 'abc'
none and 'a'
m and 'a'
[z for z in range(1000)]
[q := [['a']], w := copy.copy(q), w[0].append('b'), q][3]
[q := [['a']], w := copy.deepcopy(q), w[0].append('b'), q][3]
[q := m.copy(), q.update(z=1), m][2]
max(*[1, 2])
'{}-{}-{}'.format(*lst, *['c'])
list(zip(m, lst))
','.join(m)
f'{n!s}'
repr((1, 'a'))
str('a=b'.partition('='))
str(list(zip(lst, [1, 2])))
str(list(enumerate(lst)))
str(list(enumerate(lst, 1)))
str([x for x in [(1, 2)]])
'%s' % m
'%d%%' % 3
'%f' % 0.25
'%r' % 'a'
'%r-%s' % ('a', 1)
'%d' % True
'%s' % 0.5
'%s' % none
'{0:d}{0:.1f}'.format(2)
lst[:]
lst[0:2:1]
'abc'[::-1]
'abc'[-2:]
(q := lst)[0] + q[1]
os.path.join('a')
os.path.join('a', 'b')
os.path.join('a/', 'b', 'c')
os.path.join('a', '/b')
Path('a') / 'b' / 'c'
True
None
1.5
""".splitlines()


@pytest.mark.parametrize("expression", KNOWN)
def test_what_is_known_is_what_python_gives(expression: str) -> None:
    given = {"copy": copy, "json": json, "os": os, "textwrap": textwrap, "Path": PurePosixPath}
    python = eval(expression, given | copy.deepcopy(NAMES))
    assert evaluated(expression) == (as_lists(python), [])


#: ``x``, ``y`` and ``f`` are not known.
OPEN = {
    "x": "<YOUR_X>",
    "some_name": "<SOME_NAME>",
    "obj.name": "<OBJ_NAME>",
    "obj.uri": "<OBJ_URI>",
    **{f"obj.{name}": f"<OBJ_{name.upper()}>" for name in ("value", "id", "path")},
    "obj.resource_name": "<OBJ_RESOURCE_NAME>",
    "obj.append": "<OBJ_APPEND>",
    "obj.bucket": "<YOUR_BUCKET>",
    "f(x)(1)": "<YOUR_F>",
    "f(x)[0](1)[2]": "<YOUR_F>",
    "m.k": "v",
    "m.zz": "<YOUR_ZZ>",
    "m[x]": "<YOUR_X>",
    "s.value": "gs://b/x.txt",
    "s.name": "<YOUR_NAME>",
    "m.k.name": "k",
    "m.k.value": "v",
    "...": "<YOUR_VALUE>",
    "1j": "<YOUR_VALUE>",
    "-x": "<YOUR_VALUE>",
    "-s": "<YOUR_VALUE>",
    "+x": "<YOUR_X>",
    "n < none": "<YOUR_VALUE>",
    "1 in 'abc'": "<YOUR_VALUE>",
    "x in 'abc'": "<YOUR_VALUE>",
    "x == none": "<YOUR_VALUE>",
    "'a' / x": "a/<YOUR_X>",
    "f'{x}' or 'b'": "<YOUR_VALUE>",
    "f'a{x}' or 'b'": "a<YOUR_X>",
    "1 and x": "<YOUR_VALUE>",
    "e and x": "",
    "x or y": "<YOUR_X>",
    "('a' + x)[1:]": "<YOUR_VALUE>",
    "x[1:]": "<YOUR_X>",
    "lst[x:]": "<YOUR_LST>",
    "lst[:x]": "<YOUR_LST>",
    "lst[::x]": "<YOUR_LST>",
    "lst[2]": "<YOUR_LST>",
    "lst['a']": "<YOUR_A>",
    "x[0]": "<YOUR_X>",
    "[[z for z in lst], z]": [["a", "b"], "<YOUR_Z>"],
    "[z for z in lst if z == 'b' or x]": "<YOUR_VALUE>",
    "[*('a' + x)]": ["a<YOUR_X>"],
    "max(*x)": "<YOUR_MAX>",
    "str()": "<YOUR_STR>",
    "bool()": "<YOUR_BOOL>",
    "str([x])": "['<YOUR_X>']",
    "Path(x)": "<YOUR_X>",
    "PurePosixPath('a') / 'b'": "a/b",
    "cast('str', x)": "<YOUR_X>",
    "float(x)": "<YOUR_X>",
    "list(reversed([x, 'a']))": ["a", "<YOUR_X>"],
    "list(enumerate([x]))": [[0, "<YOUR_X>"]],
    "tuple([x])": ["<YOUR_X>"],
    "list(x)": "<YOUR_LIST>",
    "x.join(['a'])": "<YOUR_JOIN>",
    "Path('a').resolve()": "a",
    "Path('a').expanduser()": "a",
    "('a' + x).startswith('a')": "<YOUR_STARTSWITH>",
    "('a' + x).strip('a')": "<YOUR_X>",
    "[x].index('a')": "<YOUR_INDEX>",
    "[x].count('a')": "<YOUR_COUNT>",
    "[*lst.extend(x), lst][-1]": ["a", "b", "<YOUR_X>"],
    "lst.insert(0)": "<YOUR_VALUE>",
    "m.get()": "<YOUR_GET>",
    "f'{s:03d}'": "<YOUR_VALUE>",
    "f'{s:5}'": "<YOUR_VALUE>",
    "f'{n!r:5}'": "<YOUR_VALUE>",
    "f'{0.5:d}'": "<YOUR_VALUE>",
    "'%5s' % 'a'": "<YOUR_VALUE>",
    "'%-5s|' % 'a'": "<YOUR_VALUE>|",
    "'%x-%s' % (255, 'a')": "<YOUR_VALUE>-a",
    "'%+d %e %c' % (5, 1.5, 65)": "<YOUR_VALUE> <YOUR_VALUE> <YOUR_VALUE>",
    "'%*d-%s' % (5, 3, 'a')": "<YOUR_VALUE>-a",
    "'%123d' % 5": "<YOUR_VALUE>",
    "'%.12f' % 0.5": "<YOUR_VALUE>",
    "'%(a b)s %(k)x' % {'a b': 1, 'k': 2}": "1 <YOUR_K>",
    "'%.2f' % x": "<YOUR_X>",
    "'{a.b}'.format(a=1)": "<A_B>",
    "'{} {0}'.format(1)": "{} {0}",
    "f(x)": "<YOUR_F>",
    "obj.make(x)": "<YOUR_MAKE>",
    "f(x)[0]": "<YOUR_F>",
    "x['key']": "<YOUR_KEY>",
    "m['zz']": "<YOUR_ZZ>",
    "__name__": "__main__",
    "datetime.now()": "${job.requestId}",
    "time.time()": "${job.requestId}",
    "uuid.uuid4().hex[:8]": "${job.requestId}",
    "f'{datetime.now():%Y}-{time.time()}'": "${job.requestId}",
    "datetime.now() - timedelta(days=1)": "<YOUR_VALUE>",
    "'abc'[1]": "<YOUR_VALUE>",
    "'x' * 1001": "<YOUR_VALUE>",
    "['x'] * 1001": "<YOUR_VALUE>",
    "1000000000 + 1": "<YOUR_VALUE>",
    "2 ** 3": "<YOUR_VALUE>",
    "~n": "<YOUR_VALUE>",
    "range(1001)": "<YOUR_RANGE>",
    "1 / 0": "<YOUR_VALUE>",
    "int('a')": "<YOUR_INT>",
    "b'x'": "<YOUR_VALUE>",
    "lambda: 1": "<YOUR_VALUE>",
    "await x": "<YOUR_X>",
    "'%s %s' % 'a'": "a <YOUR_VALUE>",
    "'%s' % x": "<YOUR_X>",
    "'%03d' % x": "<YOUR_X>",
    "'%(z)s' % {}": "<YOUR_Z>",
    "'%(z)s' % 'a'": "<YOUR_Z>",
    "'{z} {0}'.format()": "<YOUR_Z> <YOUR_0>",
    "'{:03d}'.format(x)": "<YOUR_X>",
    "'{!r}'.format(x)": "<YOUR_X>",
    "'{'.format()": "{",
    "'{:>5}'.format(1)": "<YOUR_VALUE>",
    "f'{n:>5}'": "<YOUR_VALUE>",
    "f'{x:03d}'": "<YOUR_X>",
    "f'{x!r}'": "<YOUR_X>",
    "x or 'b'": "<YOUR_X>",
    "x and 'b'": "<YOUR_VALUE>",
    "0 or x": "<YOUR_X>",
    "'a' or x": "a",
    "0 and x": 0,
    "not x": "<YOUR_VALUE>",
    "x == 1": "<YOUR_VALUE>",
    "x is None": "<YOUR_VALUE>",
    "1 < x": "<YOUR_VALUE>",
    "2 < 1 < x": False,
    "'a' in [x]": "<YOUR_VALUE>",
    "x in lst": "<YOUR_VALUE>",
    "'a' in x": "<YOUR_VALUE>",
    "'a' + x": "a<YOUR_X>",
    "x + 'a'": "<YOUR_X>a",
    "x + 1": "<YOUR_VALUE>",
    "[x] + ['a']": ["<YOUR_X>", "a"],
    "['a'] + x": ["a", "<YOUR_X>"],
    "[*x, 'a']": ["<YOUR_X>", "a"],
    "x.strip()": "<YOUR_X>",
    "x.replace('a', 'b')": "<YOUR_X>",
    "x.upper()": "<YOUR_X>",
    "x.as_posix()": "<YOUR_X>",
    "x.unheard_of()": "<UNHEARD_OF>",
    "('a' + x).upper()": "a<YOUR_X>",
    "('A' + x).lower()": "A<YOUR_X>",
    "('a' + x).title()": "a<YOUR_X>",
    "('a' + x).capitalize()": "a<YOUR_X>",
    "('gs://' + x).removeprefix('gs://')": "<YOUR_X>",
    "('a/' + x).split('/')": "<YOUR_SPLIT>",
    "'ab'.replace('b', x)": "a<YOUR_X>",
    "'ab'.strip(x)": "<YOUR_STRIP>",
    "'ab'.encode()": "ab",
    "'/'.join(x)": "<YOUR_X>",
    "'/'.join(['a', x])": "a/<YOUR_X>",
    "os.path.join('a', x)": "a/<YOUR_X>",
    "Path(x) / 'b'": "<YOUR_VALUE>",
    "Path('a').as_posix()": "a",
    "cast('str', 'a')": "a",
    "str(x)": "<YOUR_X>",
    "int(x)": "<YOUR_X>",
    "round(x, 2)": "<YOUR_X>",
    "len(x)": "<YOUR_LEN>",
    "len([x])": 1,
    "max(x, 1)": "<YOUR_MAX>",
    "sorted([x, 'a'])": "<YOUR_SORTED>",
    "sorted(lst, key=x)": "<YOUR_SORTED>",
    "sorted(lst, **x)": "<YOUR_SORTED>",
    "list(enumerate(lst, start=x))": "<YOUR_LIST>",
    "os.pathsep.join(lst)": "<YOUR_JOIN>",
    "'ab'.replace()": "<YOUR_REPLACE>",
    "json.dumps(m, sort_keys=x)": "<YOUR_DUMPS>",
    "list(zip([x], ['a']))": [["<YOUR_X>", "a"]],
    "np.max([1, 2])": "<YOUR_MAX>",
    "bool(x)": "<YOUR_BOOL>",
    "set(['a', 'b', 'a'])": ["a", "b"],
    "Strategy.SPOT": "SPOT",
    "types.CustomJob.Type.X": "X",
    "Color.RED.value": "<RED_VALUE>",
    "(x, 'a')[1]": "a",
    "lst[5]": "<YOUR_LST>",
    "lst[-3]": "<YOUR_LST>",
    "lst[x]": "<YOUR_LST>",
    "lst[::0]": "<YOUR_LST>",
    "lst.index('z')": "<YOUR_INDEX>",
    "lst.pop(9)": "<YOUR_VALUE>",
    "[x for x in y]": "<YOUR_VALUE>",
    "[z for z in lst if x]": "<YOUR_VALUE>",
    "[z for z in range(1001)]": "<YOUR_VALUE>",
    "{z: 1 for z in y}": "<YOUR_VALUE>",
    "{x: 1}": {"<YOUR_X>": 1},
    "m.get(x)": None,
    "'a' if x else 'a'": "a",
}


@pytest.mark.parametrize(("expression", "value"), OPEN.items())
def test_what_is_not_known_has_the_name_that_the_code_has_for_it(
    expression: str, value: Any
) -> None:
    assert evaluated(expression)[0] == value


@pytest.mark.parametrize(
    ("expression", "value", "said"),
    [
        ("'a' if x else 'b'", "<THE_VALUE>",
         ["the value is 'a' or 'b': `x`, which cannot be decided"]),
        ("'{a}-{b}'.format(b=1, **x)", "<YOUR_A>-1", ["`**x` is not read"]),
        ("m | x", {"k": "v", "n": 3}, ["`|` is not read"]),
        ("[m, m.unheard_of(1)][0]", {"k": "v", "n": 3}, ["`m.unheard_of(1)` is not read"]),
        ("{**none, 'a': 1}", {"a": 1}, []),
        ("dict([('a', 1, 2)])", {}, ["`it` is not read"]),
        ("[m, m.k(1)][0]", {"k": "v", "n": 3}, []),
        (f"[lst, lst.unheard_of('{'a' * 80}')][0]", ["a", "b"],
         [f"`lst.unheard_of('{'a' * 64}` is not read"]),
        ("[lst, change(lst)][0]", ["a", "b"], ["`change(…)` gets it, and is not read"]),
        ("[lst, change(it=lst)][0]", ["a", "b"], ["`change(…)` gets it, and is not read"]),
        ("[lst, print(lst)][0]", ["a", "b"], []),
        ("[lst, lst.extend(['c'])][0]", ["a", "b", "c"], []),
        ("[lst, lst.append('c')][0]", ["a", "b", "c"], []),
        ("[lst, lst.insert(0, 'c')][0]", ["c", "a", "b"], []),
        ("[m, m.update({'k': 1}, z=2)][0]", {"k": 1, "n": 3, "z": 2}, []),
        ("[m, m.setdefault('z', 1)][0]", {"k": "v", "n": 3, "z": 1}, []),
        ("[m, m.pop('k')][0]", {"n": 3}, []),
    ],
)  # fmt: skip
def test_what_is_not_read_is_said_where_it_counts(
    expression: str, value: Any, said: list[str]
) -> None:
    expected = [each.replace("`x`, which", "`x`") for each in said]
    found, notes = evaluated(expression)
    assert (found, notes) == (value, [f"{each} (code, line 1)" for each in expected])


def test_what_would_be_longer_than_any_job_is_left_open() -> None:
    long = "a" * 150_000
    assert evaluated("w + w", w=long)[0] == "<LONG_VALUE>"
    assert evaluated("w.replace('a', 'bb')", w=long)[0] == "<LONG_VALUE>"
    assert evaluated("w", w=long)[0] == long
