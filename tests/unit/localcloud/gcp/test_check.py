"""Inputs of a resource: names and defaults that are filled in, and every mistake in its words."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.gcp import check
from localgcp.gcp.check import CheckedInputs
from localgcp.gcp.codec import UNKNOWN, Secret
from localgcp.gcp.names import Naming, auto_name
from localgcp.gcp.schema import Property, Traits, TypeSchema

SEED = Naming(b"seed")
#: The first seven hex digits of SHA-256 of "seed".
RANDOM = "19b25856"[:7]


def prop(name: str, type_: str = "string", tf: str = "", **flags: Any) -> Property:
    children = {each.name: each for each in flags.pop("children", ())}
    flags = {"optional": not flags.get("required") and not flags.get("computed"), **flags}
    return Property(name, tf or name, type_, **flags, children=children)


def schema(*props: Property, traits: Traits | None = None) -> TypeSchema:
    named = {each.name: each for each in props}
    return TypeSchema("gcp:x:X", named, None, (), False, None, traits or Traits())


def checked(type_: TypeSchema, news: Any, olds: Any = None, naming: Naming = SEED) -> CheckedInputs:
    return check.check(type_, "res", olds or {}, news, naming)


def problems(type_: TypeSchema, news: Any) -> list[tuple[str, str]]:
    """Place and text of each mistake."""
    found = [each.removesuffix("'.").partition(". Examine values at 'res.")
             for each in checked(type_, news).failures]  # fmt: skip
    return [(where, text) for text, _, where in found]


NAMED = schema(prop("name", auto_name=True), prop("size", "int", default=10))


def test_a_stack_may_forbid_names_that_nobody_gave() -> None:
    found = checked(NAMED, {}, naming=Naming(mode="disabled"))
    assert found == CheckedInputs({"size": 10, "__defaults": ["size"]}, [])


class AsGiven(Traits):
    name_as_given = True


@pytest.mark.parametrize(
    ("traits", "name", "naming", "made"),
    [
        (Traits(), "Res", SEED, f"res-{RANDOM}"),
        (AsGiven(), "Res", SEED, f"Res-{RANDOM}"),
        (Traits(), "Res", Naming(b"seed", "Prod-Res", "propose"), "prod-res"),
        (AsGiven(), "Res", Naming(b"seed", "Prod-Res", "propose"), "Prod-Res"),
        (Traits(), "Res", Naming(b"seed", "Prod-Res", "enforce"), "Prod-Res"),
        (Traits(), "Res", Naming(b"seed", "Prod-Res", "disabled"), None),
    ],
)
def test_a_name_is_made_as_type_and_stack_have_it(
    traits: Traits, name: str, naming: Naming, made: str | None
) -> None:
    assert auto_name(schema(traits=traits), name, naming) == made


def test_without_a_seed_each_name_is_another() -> None:
    names = {auto_name(schema(), "a", Naming()) or "" for _ in range(3)}
    assert len(names) == 3
    assert {len(each) for each in names} == {9}


MISSING = 'Missing required argument. The argument "%s" is required, but no definition was found.'
REQUIRED = prop("theName", tf="the_name", required=True)
ROWS = prop("rowList", "list<object>", tf="row", children=[REQUIRED])


@pytest.mark.parametrize(
    ("given", "news", "wanted"),
    [
        (REQUIRED, {}, [("theName", MISSING % "the_name")]),
        (REQUIRED, {"theName": ""}, []),
        (REQUIRED, {"theName": UNKNOWN}, []),
        (prop("a"), {"b": 1, "a": "x"}, [("b", "Invalid or unknown key")]),
        (prop("a", computed=True), {"a": "x"},
         [("a", 'Value for unconfigurable attribute. Can\'t configure a value for "a": its value '
                "will be decided automatically based on the result of applying this "
                "configuration")]),
        (prop("a", computed=True), {}, []),
        (prop("block", "object", tf="the_block", children=[REQUIRED]), {"block": {"x": 1}},
         [("block.x", "Invalid or unknown key"),
          ("block.theName", MISSING % "the_block.0.the_name")]),
        (ROWS, {"rowList": [{"theName": "a"}, {}]},
         [("rowList[1].theName", MISSING % "row.1.the_name")]),
        (prop("set", "set<object>", children=[REQUIRED, ROWS]), {"set": [{"rowList": [{}]}]},
         [("set", MISSING % "set.0.the_name"), ("set", MISSING % "set.0.row.0.the_name")]),
        (prop("block", "object", children=[REQUIRED], open=True), {"block": {"x": 1}}, []),
        (prop("block", "object"), {"block": {"x": 1}}, []),
        (prop("block", "object", children=[REQUIRED]), {"block": UNKNOWN}, []),
        (prop("rows", "list<object>", children=[REQUIRED]), {"rows": [UNKNOWN]}, []),
        # What is no list of blocks is the service's to refuse.
        *((prop("rows", "list<object>", children=[REQUIRED]), {"rows": each}, [])
          for each in (5, "x", True)),
        (prop("map", "map<string>"), {"map": {"any": "x"}}, []),
        (REQUIRED, {"theName": Secret("x"), "__defaults": []}, []),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(given: Property, news: Any, wanted: Any) -> None:
    assert problems(schema(given), news) == wanted


def no_x(value: Any) -> str | None:
    return f"bad {value}" if value in ("x", {"x": "1"}, 7) else None


class Ruled(Traits):
    rules = {key: no_x for key in ("a", "n", "map", "rows.a", "list")}  # noqa: RUF012


@pytest.mark.parametrize(
    ("given", "value", "wanted"),
    [
        (prop("a"), "x", [("a", "bad x")]),
        (prop("n", "int"), 7, [("n", "bad 7")]),
        (prop("n", "int"), UNKNOWN, []),
        (prop("map", "map<string>"), {"x": "1"}, [("map", "bad {'x': '1'}")]),
        (prop("map", "map<string>"), {"x": UNKNOWN}, []),
        (prop("rows", "list<object>", children=[prop("a")]), [{"a": "y"}, {"a": "x"}],
         [("rows[1].a", "bad x")]),
    ],
)  # fmt: skip
def test_rules_of_a_type_judge_values_of_their_kind(given: Any, value: Any, wanted: Any) -> None:
    assert problems(schema(given, traits=Ruled()), {given.name: value}) == wanted


ONE_OF = tuple(
    prop(name, tf=name, exactly_one_of=("block.0.a", "block.0.b"), optional=True)
    for name in ("a", "b")
)
RULE = 'Invalid combination of arguments. "block.0.%s": '
BOTH = (
    "only one of `block.0.a,block.0.b` can be specified, but `block.0.a,block.0.b` were specified"
)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"a": "x"}, []),
        ({"b": UNKNOWN}, []),
        ({}, [(f"block.{name}", RULE % name + "one of `block.0.a,block.0.b` must be specified")
              for name in "ab"]),
        ({"a": "x", "b": "y"},
         [(f"block.{name}", RULE % name + BOTH) for name in "ab"]),
    ],
)  # fmt: skip
def test_exactly_one_is_given_where_the_schema_says_so(given: Any, wanted: Any) -> None:
    found = problems(schema(prop("block", "object", children=ONE_OF)), {"block": given})
    # The plugin ends the text of two with a full stop of its own.
    assert [(where, text.removesuffix(".")) for where, text in found] == wanted


def test_arguments_of_one_block_exclude_each_other() -> None:
    inner = [prop("c", tf="c", conflicts_with=("block.0.d", "d")), prop("d", tf="d")]
    type_ = schema(prop("block", "object", tf="block", children=inner), prop("d", tf="d"))
    text = 'Conflicting configuration arguments. "block.0.c": conflicts with block.0.d'
    assert problems(type_, {"block": {"c": "x", "d": "y"}}) == [("block.c", text)]
    assert problems(type_, {"block": {"c": "x"}, "d": "y"}) == []


def test_all_mistakes_are_told_in_the_plugins_sentence() -> None:
    type_ = schema(REQUIRED, prop("mode", values=("A",)))
    assert checked(type_, {"mode": "B"}).failures == [
        'Missing required argument. The argument "the_name" is required, but no definition was '
        "found.. Examine values at 'res.theName'.",
        'expected mode to be one of ["A" ""], got B. Examine values at \'res.mode\'.',
    ]
