"""Set, rename, remove or move entries of a YAML text without changes to the rest of the text.

Each edit is parsed again. An edit that would change other entries is refused.
"""

from __future__ import annotations

import copy
import functools
import json
import operator
import re
from typing import Any, Final

import yaml

from vertex_training.errors import ConfigError, Location, Mend, Path, Problem
from vertex_training.located_yaml import document

_BY_HAND: Final = "edit the file by hand"
#: Line breaks of YAML 1.1 that block scalars do not preserve.
_OTHER_BREAKS: Final = re.compile("[\x85\u2028\u2029]")


def set_value(data: bytes, path: tuple[str, ...], value: Any, file: str) -> bytes:
    """Return the text with ``value`` set at ``path``, a sequence of keys. Adds missing keys.

    Mappings and lists are written in YAML's flow style, and replace only scalars. Raises
    ConfigError if the file is not valid YAML, or if an edit would change other entries.
    """
    document.parse(data, file)  # raises errors about size and duplicate keys
    text = data.decode("utf-8-sig")
    before = yaml.safe_load(text)
    expected = _with_value(before, path, value)
    if is_same(expected, before):
        return data
    edited = _edited(text, _compose(text), path, value)
    if edited is not None and is_same(_parsed(edited), expected):
        mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
        return mark + edited.encode()
    what = "an alias, an anchor or the form of the YAML prevents editing this entry"
    hint = f"{_BY_HAND}: {value}"
    raise ConfigError([Problem(what, hint=hint, path=path[1:], location=Location(file))])


def block_style(text: str, otherwise: str | None) -> str | None:
    """Return the YAML style of a scalar; block style if this keeps text of several lines."""
    if _OTHER_BREAKS.search(text):
        return '"'
    return "|" if "\n" in text else otherwise


def is_same(one: Any, other: Any) -> bool:
    """Return True if documents are equal in value, key order and type (1 is not true)."""
    return repr(one) == repr(other)


def _parsed(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _with_value(before: Any, path: tuple[str, ...], value: Any) -> Any:
    after = copy.deepcopy(before)
    inner = after
    for key in path[:-1]:
        if not isinstance(inner.get(key), dict):
            inner[key] = {}
        inner = inner[key]
    inner[path[-1]] = value
    return after


def _edited(text: str, node: yaml.Node | None, path: tuple[str, ...], value: Any) -> str | None:
    """Return the text with the value set; None if the text at the path cannot be edited."""
    for depth, key in enumerate(path):
        if not isinstance(node, yaml.MappingNode):
            return None
        pair = next(((k, v) for k, v in node.value if k.value == key), None)
        rest = _nested(path[depth + 1 :], value)
        if pair is None:
            return _with_key(text, node, f"{key}: {rest}")
        name, child = pair
        if child.start_mark.index < name.end_mark.index:
            return None  # the value is an alias of another node
        last = depth == len(path) - 1
        empty = isinstance(child, yaml.ScalarNode) and child.value in ("", "~", "null")
        if last or (empty and not child.style):
            return _with_scalar(text, name, child, rest)
        node = child
    return None


def _nested(keys: tuple[str, ...], value: Any) -> str:
    inner = _flow(value)
    for key in reversed(keys):
        inner = f"{{{key}: {inner}}}"
    return inner


def _flow(value: Any) -> str:
    text = yaml.safe_dump(
        value, default_flow_style=True, width=2**31, allow_unicode=True, sort_keys=False
    )
    plain = text.removesuffix("\n").removesuffix("\n...")
    return json.dumps(value) if isinstance(value, str) else plain


def _with_scalar(text: str, name: yaml.Node, child: yaml.Node, new: str) -> str | None:
    start, end = child.start_mark.index, child.end_mark.index
    if not isinstance(child, yaml.ScalarNode) or text[start : start + 1] in ("&", "!", "|", ">"):
        return None
    if start == end:  # the value is empty, and its mark may be on a later line
        colon = text.index(":", name.end_mark.index) + 1
        return f"{text[:colon]} {new}{text[colon:]}"
    if child.style == "'" and new.startswith('"'):
        new = f"'{json.loads(new)}'"
    elif child.style is None and new.startswith('"'):
        new = json.loads(new)  # no quotes, like the old value; the caller parses the result
    return f"{text[:start]}{new}{text[end:]}"


def _with_key(text: str, node: yaml.MappingNode, entry: str) -> str | None:
    if node.flow_style:
        if not node.value:
            start = text.index("{", node.start_mark.index) + 1
            return f"{text[:start]}{entry}{text[start:]}"
        end = end_of(node.value[-1]).index
        return f"{text[:end]}, {entry}{text[end:]}"
    return with_entry(text, node, entry)


def with_entry(text: str, node: yaml.MappingNode, entry: str) -> str:
    """Return the text with ``entry`` on its own lines at the end of a block mapping."""
    lines = " " * node.value[0][0].start_mark.column + entry
    mark = end_of(node.value[-1])
    newline = "\r\n" if "\r\n" in text else "\n"
    end = text.find("\n", mark.index - (mark.column == 0)) + 1
    return f"{text[:end]}{lines}{newline}{text[end:]}" if end else f"{text}{newline}{lines}"


def end_of(pair: tuple[yaml.Node, yaml.Node]) -> yaml.Mark:
    """Return the end of an entry. Comments and empty lines after the entry are excluded."""
    name, value = pair
    if value.start_mark.index < name.end_mark.index:
        return name.end_mark  # the value is an alias on the same line
    if isinstance(value, yaml.ScalarNode) and value.start_mark.index == value.end_mark.index:
        return name.end_mark
    return end_of_value(value)


def end_of_value(value: yaml.Node) -> yaml.Mark:
    """Return the end of a value. PyYAML instead marks the end of a block at the next value."""
    if isinstance(value, yaml.MappingNode) and not value.flow_style and value.value:
        return end_of(value.value[-1])
    if isinstance(value, yaml.SequenceNode) and not value.flow_style and value.value:
        return end_of_value(value.value[-1])
    return value.end_mark


def _at(inner: Any, path: Path) -> Any:
    return functools.reduce(operator.getitem, path, inner)


def moved(
    text: str, without: str | None, parent: yaml.Node, index: int, target: Path
) -> str | None:
    """Return the text with an entry moved to the end of ``target``; None for flow style."""
    if without is None or not isinstance(parent, yaml.MappingNode) or parent.flow_style:
        return None
    key = parent.value[index][0]
    entry = text[key.start_mark.index : end_of(parent.value[index]).index].rstrip()
    node = _node(_compose(without), target)
    if node.flow_style:
        return None
    shifted = _shifted(entry, node.value[0][0].start_mark.column - key.start_mark.column)
    return None if shifted is None else with_entry(without, node, shifted)


def _compose(text: str) -> Any:
    # The Python parser, since marks of the C parser differ on some systems.
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _node(root: yaml.Node, path: Path) -> Any:
    """Return the node at a path. Raises LookupError or ValueError if it does not exist."""
    return functools.reduce(lambda node, part: _value(node, _index(node, part)), path, root)


def _index(parent: yaml.Node, part: str | int) -> int:
    if isinstance(parent, yaml.MappingNode):
        return [key.value for key, _ in parent.value].index(str(part))
    if isinstance(parent, yaml.SequenceNode) and part in range(len(parent.value)):
        return int(part)
    raise LookupError(part)


def _shifted(entry: str, by: int) -> str | None:
    first, *lines = entry.split("\n")
    shifted = [first]
    for line in lines:
        blank = not line.strip()
        if by < 0 and not blank and line[:-by].strip(" "):
            return None
        shifted.append(line if blank else " " * by + line if by > 0 else line[-by:])
    return "\n".join(shifted)


def split(text: str, path: Path) -> str | None:
    """Split the item whose count is at ``path`` into an item with count 1 and the rest."""
    *_, index, last = path
    items = _node(_compose(text), path[:-2])
    item = items.value[index]
    count = next(value for key, value in item.value if key.value == last)
    start, end = item.start_mark.index, end_of_value(item).index
    counts = 1, int(count.value) - 1
    before, after = text[start : count.start_mark.index], text[count.end_mark.index : end]
    one, rest = (f"{before}{number}{after}" for number in counts)
    dash = re.fullmatch(r" *- +", text[:start].rpartition("\n")[2])
    if items.flow_style:
        joint = ", "
    elif dash is None:
        return None
    else:
        joint = ("" if one.endswith("\n") else "\r\n" if "\r\n" in text else "\n") + dash[0]
    return f"{text[:start]}{one}{joint}{rest}{text[end:]}"


def mended(text: str, path: Path, mend: Mend) -> str | None:
    """Return the text with a fix applied at ``path``; None if other entries would change too."""
    try:
        before = yaml.safe_load(text)
        parent = _node(_compose(text), path[:-1])
        pair = parent, _index(parent, path[-1])
        expected = _expected(before, path, mend)
    except (yaml.YAMLError, LookupError, TypeError, ValueError):
        return None
    if mend.action != "script" and _is_special(text, pair, mend):
        return None
    try:
        edited = _with_fix(text, pair, path, mend)
        same = edited is not None and is_same(yaml.safe_load(edited), expected)
    except (yaml.YAMLError, ValueError):
        return None
    return edited if same else None


def _with_fix(text: str, pair: tuple[yaml.Node, int], path: Path, mend: Mend) -> str | None:
    parent, index = pair
    if mend.action == "move":
        return moved(text, _without(text, parent, index), parent, index, mend.target)
    if mend.action == "split":
        return split(text, path)
    if mend.action == "script":
        return _with_script(text, path[:-2], int(str(mend.to)))
    if mend.action == "remove":
        return _without(text, parent, index)
    if mend.action == "rename":
        return _replaced(text, _key(parent, index), str(mend.to))
    if isinstance(mend.to, tuple):
        is_item = isinstance(path[-1], int)
        return _with_variables(text, _value(parent, index), mend.to, is_item=is_item)
    return _replaced(text, _value(parent, index), mend.to)


def _expected(before: Any, path: Path, mend: Mend) -> Any:
    """Return the document as it must be after the fix; raise an error if data would be lost."""
    after = copy.deepcopy(before)
    last = path[-1]
    if mend.action == "script":
        container = _at(after, path[:-2])
        field, index, items = _script_items(container, int(str(mend.to)))
        container[field] = [*container[field][:index], *items]
        if field == "command":
            container.pop("args", None)
        return after
    inner = _at(after, path[:-1])
    if mend.action == "split":
        items, index, count = _at(after, path[:-2]), path[-2], int(inner[last])
        if count < 2 or not isinstance(items, list) or not isinstance(index, int):
            raise ValueError
        inner[last] = 1
        items.insert(index + 1, {**copy.deepcopy(inner), last: count - 1})
    elif mend.action == "move":
        target = _at(after, mend.target)
        if last in target or len(inner) == 1:
            raise ValueError
        target[last] = inner.pop(last)
    elif isinstance(mend.to, tuple):
        variables = [{"name": name, "value": value} for name, value in mend.to]
        inner[last] = variables[0] if isinstance(last, int) else variables
    elif mend.action == "value":
        inner[last] = mend.to
    elif not isinstance(inner, dict):
        raise TypeError
    elif mend.action == "remove":
        if len(inner) == 1:
            raise ValueError
        del inner[last]
    else:
        if mend.to in inner:
            raise ValueError
        pairs = [(mend.to if key == last else key, value) for key, value in inner.items()]
        inner.clear()
        inner.update(pairs)
    return after


#: Words with the same meaning inside and outside of a script, including ``${kind.name}``.
_PLAIN_WORD: Final = re.compile(r"(?:[\w@%+=:,./-]|\$\{\w+\.[\w.-]+\})+|&&|>>?|2>>?|2>&1")

#: A shell operator without an operand.
_NO_OPERAND: Final = re.compile(r"\A&&|(?:&&|>)(?:\s*\Z|\s+(?:&&|2?>))")


def _script_items(container: dict[str, Any], start: int) -> tuple[str, int, list[str]]:
    """Return the field, the number of its unchanged words, and the words after them.

    Raises ValueError if a word has shell syntax, so that its meaning in a script is uncertain.
    """
    command, args = container["command"], container.get("args", [])
    if not isinstance(command, list) or not isinstance(args, list):
        raise ValueError
    first, *others = [*command, *args][start:]
    if not all(_PLAIN_WORD.fullmatch(word) for word in (*first.split(), *others)):
        raise ValueError
    script = " ".join((first, *others))
    if _NO_OPERAND.search(script):
        raise ValueError
    if start == 0:
        return "command", 0, ["bash", "-c", script]
    if start < len(command):
        return "command", start, [script]
    return "args", start - len(command), [script]


def _with_script(text: str, path: Path, start: int) -> str | None:
    """Return the text with a script as command; None if a comment would be lost."""
    field, index, items = _script_items(_at(yaml.safe_load(text), path), start)
    container = _node(_compose(text), path)
    keys = [key.value for key, _ in container.value]
    if field == "command" and "args" in keys:
        without = _without(text, container, keys.index("args"))
        if without is None:
            return None
        text, container = without, _node(_compose(without), path)
        keys.remove("args")
    words = container.value[keys.index(field)][1]
    begin, end = words.value[index].start_mark.index, end_of_value(words).index
    end = end - 1 if words.flow_style else end
    dash = text[:begin].rpartition("\n")[2]
    if "#" in text[begin:end] or not (words.flow_style or re.fullmatch(r" *- +", dash)):
        return None
    joint = ", " if words.flow_style else "\n" + dash
    return text[:begin] + joint.join(map(json.dumps, items)) + text[end:]


def _key(parent: Any, index: int) -> yaml.Node:
    return parent.value[index][0]


def _value(parent: Any, index: int) -> yaml.Node:
    item = parent.value[index]
    return item[1] if isinstance(parent, yaml.MappingNode) else item


def _is_special(text: str, pair: tuple[yaml.Node, int], mend: Mend) -> bool:
    """Return True if the node has an anchor, alias, tag or block style."""
    node = _key(*pair) if mend.action == "rename" else _value(*pair)
    return text[node.start_mark.index : node.start_mark.index + 1] in ("&", "*", "!", "|", ">")


def _replaced(text: str, node: yaml.Node, to: str | int | bool) -> str | None:
    start, end = node.start_mark.index, node.end_mark.index
    if not isinstance(node, yaml.ScalarNode) or start == end:
        return None
    return f"{text[:start]}{_scalar(text, node, to)}{text[end:]}"


def _scalar(text: str, node: yaml.ScalarNode, to: str | int | bool) -> str:
    if not isinstance(to, str):
        return json.dumps(to)
    is_json = text.lstrip("\ufeff \t\r\n").startswith("{")
    if node.style == '"' or is_json:
        return json.dumps(to, ensure_ascii=False)
    if node.style == "'":
        return "'" + to.replace("'", "''") + "'"
    try:
        plain = yaml.safe_load(to) == to and to == to.strip()
    except yaml.YAMLError:
        plain = False
    return to if plain and not set(to) & set(",[]{}#:&*!|>'\"%@`") else json.dumps(to)


def _with_variables(
    text: str, node: yaml.Node, variables: tuple[tuple[str, str], ...], *, is_item: bool
) -> str | None:
    quote = json.dumps if text.lstrip("\ufeff \t\r\n").startswith("{") else str
    name_key, value_key = quote("name"), quote("value")
    items = [
        f"{{{name_key}: {quote(name)}, {value_key}: {json.dumps(value, ensure_ascii=False)}}}"
        for name, value in variables
    ]
    start, end = node.start_mark.index, end_of_value(node).index
    if is_item or not isinstance(node, yaml.MappingNode):
        if "\n" in text[start:end] and "#" in text[start:end]:  # the edit would remove a comment
            return None
        whole = items[0] if is_item else f"[{', '.join(items)}]"
        return f"{text[:start]}{whole}{text[end:]}"
    if node.flow_style:
        text = f"{text[:start]}[{text[start + 1 : end - 1]}]{text[end:]}"
    for (key, value), item in reversed(list(zip(node.value, items, strict=True))):
        if getattr(value, "style", None) in ("|", ">"):
            return None
        is_empty = value.start_mark.index == value.end_mark.index
        stop = key.end_mark.index + 1 if is_empty else value.end_mark.index
        dash = "" if node.flow_style else "- "
        text = f"{text[: key.start_mark.index]}{dash}{item}{text[stop:]}"
    return text


def _without(text: str, parent: yaml.Node, index: int) -> str | None:
    """Return the text without a mapping's entry; None if a comment would be lost."""
    pairs: list[tuple[yaml.Node, yaml.Node]] = parent.value
    key, value = pairs[index]
    start, end = key.start_mark.index, end_of((key, value)).index
    if value.start_mark.index == value.end_mark.index:  # empty value
        end = key.end_mark.index + 1
    following = pairs[index + 1][0].start_mark.index if index + 1 < len(pairs) else None
    line = text[:start].rfind("\n") + 1
    if isinstance(parent, yaml.MappingNode) and parent.flow_style:
        before = end_of(pairs[index - 1]).index
        cut = (before, end) if following is None else (start, following)
    elif text[line:start].strip() == "":  # remove whole lines
        line_end = text.find("\n", end) + 1
        cut = (line, line_end or len(text))
    elif following is not None:  # move the next entry after the dash
        cut = (start, following)
    else:
        return None
    return None if "#" in text[cut[0] : cut[1]] else text[: cut[0]] + text[cut[1] :]
