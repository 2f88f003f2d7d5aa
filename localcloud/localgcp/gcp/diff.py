"""Compare a resource's new inputs with the old outputs, as the official plugin does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from localgcp.gcp.check import DEFAULTS
from localgcp.gcp.codec import Unknown, plain
from localgcp.gcp.plan import LABEL_OUTPUTS, Settings
from localgcp.gcp.schema import Property, Traits, TypeSchema

ADD: Final = "ADD"
DELETE: Final = "DELETE"
UPDATE: Final = "UPDATE"


@dataclass(frozen=True)
class Change:
    """One changed property; its kind is ``ADD``, ``DELETE`` or ``UPDATE``."""

    path: str
    kind: str
    replace: bool = False

    @property
    def step(self) -> str:
        """Return the kind in Pulumi's protocol, such as ``ADD_REPLACE``."""
        return f"{self.kind}_REPLACE" if self.replace else self.kind

    @property
    def top(self) -> str:
        """The top-level property of the path."""
        return self.path.replace("[", ".").partition(".")[0]


# In these properties, a link, a path and a bare name of the same resource are equal.
_REFERENCES: Final = frozenset(
    {
        "bucket",
        "cryptoKeyId",
        "keyRing",
        "network",
        "networkUrl",
        "region",
        "repository",
        "secret",
        "secretId",
        "serviceAccountId",
        "subnetwork",
        "subnetworks",
        "zone",
    }
)


def changes(
    type_: TypeSchema,
    inputs: Mapping[str, Any],
    olds: Mapping[str, Any],
    settings: Settings,
    hook: Callable[[dict[str, Any], dict[str, Any]], list[Change]],
) -> list[Change]:
    """Return all changes, sorted by path. ``hook`` returns additional changes of the type."""
    news, before = plain(dict(inputs)), plain(dict(olds))
    changed: dict[str, Change] = {}
    for name, prop in type_.properties.items():
        if name in type_.traits.left_to_hook:
            continue
        if prop.input:
            for change in _compare(type_.traits, prop, before.get(name), news.get(name), name):
                changed[change.path] = change
        elif name in LABEL_OUTPUTS:
            labels = settings.labels(news.get("labels"))
            for change in _compare(type_.traits, prop, before.get(name) or {}, labels, name):
                changed[change.path] = change
    for change in hook(news, before):
        changed[change.path] = change
    return [changed[path] for path in sorted(changed)]


def delete_first(type_: TypeSchema, inputs: Mapping[str, Any]) -> bool:
    """Return whether a replacement must delete the old resource before creating the new one."""
    defaulted = inputs.get(DEFAULTS) or ()
    named = any(p.auto_name and p.name not in defaulted for p in type_.properties.values())
    return type_.delete_before_replace or named


def _compare(traits: Traits, prop: Property, old: Any, new: Any, path: str) -> Iterator[Change]:
    if new is None:
        if prop.computed or prop.default is None:
            filled_in = prop.computed or (prop.has_unset and old == prop.unset)
            if not filled_in and not _empty(old):
                yield Change(path, DELETE, _replaces(prop))
            return
        new = prop.default
    if isinstance(new, Unknown):
        yield Change(path, ADD if old is None else UPDATE, _replaces(prop))
    elif prop.is_object and isinstance(new, dict):
        yield from _compare_object(traits, prop, old, new, path)
    elif prop.is_collection and isinstance(new, list):
        yield from _compare_collection(traits, prop, old or [], new, path)
    elif prop.type.startswith("map<") and isinstance(new, dict):
        yield from _compare_map(prop, old, new, path)
    elif not _same(traits, prop, old, new):
        yield Change(path, ADD if old is None else UPDATE, prop.force_new)


def _compare_object(
    traits: Traits, prop: Property, old: Any, new: dict[str, Any], path: str
) -> Iterator[Change]:
    if old is None:
        yield Change(path, ADD, _replaces(prop))
        return
    changed = [
        change
        for name, child in prop.children.items()
        for change in _compare(traits, child, old.get(name), new.get(name), f"{path}.{name}")
    ]
    yield from changed
    if changed and prop.name in traits.new_when_changed:
        for name, child in prop.children.items():
            value = old.get(name)
            if new.get(name) is not None or value is None:
                continue
            if child.computed:
                yield Change(f"{path}.{name}", UPDATE, child.force_new)
            elif child.type in ("int", "number", "bool"):
                yield Change(f"{path}.{name}", DELETE, child.force_new)


def _compare_collection(
    traits: Traits, prop: Property, old: list[Any], new: list[Any], path: str
) -> Iterator[Change]:
    if not new or not old:
        if new or (old and not prop.computed):
            yield Change(path, ADD if new else DELETE, _replaces(prop))
        return
    if prop.is_set:
        yield from _compare_set(traits, prop, old, new, path)
        return
    for index in range(max(len(old), len(new))):
        here = f"{path}[{index}]"
        if index >= len(new):
            yield Change(here, DELETE, _replaces(prop))
        elif index >= len(old):
            yield Change(here, ADD, _replaces(prop))
        else:
            yield from _compare_element(traits, prop, old[index], new[index], here)


def _compare_set(
    traits: Traits, prop: Property, old: list[Any], new: list[Any], path: str
) -> Iterator[Change]:
    gone = dict(enumerate(old))
    come: dict[int, Any] = {}
    for index, element in enumerate(new):
        twin = next(
            (i for i, e in gone.items() if not any(_compare_element(traits, prop, e, element, ""))),
            None,
        )
        if twin is None:
            come[index] = element
        else:
            del gone[twin]
    for index in sorted({*gone, *come}):
        here = f"{path}[{index}]"
        if index in gone and index in come:
            yield from _compare_element(traits, prop, gone[index], come[index], here)
        else:
            yield Change(here, ADD if index in come else DELETE, _replaces(prop))


def _compare_element(
    traits: Traits, prop: Property, old: Any, new: Any, path: str
) -> Iterator[Change]:
    if isinstance(new, Unknown):
        yield Change(path, UPDATE, _replaces(prop))
    elif isinstance(new, dict) and isinstance(old, dict):
        names = prop.children or {k: _leaf(traits, prop, k) for k in new if k != DEFAULTS}
        for name, child in names.items():
            yield from _compare(traits, child, old.get(name), new.get(name), f"{path}.{name}")
    elif not _same(traits, prop, old, new):
        yield Change(path, UPDATE, prop.force_new)


def _compare_map(prop: Property, old: Any, new: dict[str, Any], path: str) -> Iterator[Change]:
    if old is None:
        yield Change(path, ADD, prop.force_new)
        return
    for key in sorted({*old, *new} - {DEFAULTS}):
        here = f'{path}["{key}"]' if "." in key else f"{path}.{key}"
        if key not in new:
            yield Change(here, DELETE, prop.force_new)
        elif key not in old:
            yield Change(here, ADD, prop.force_new)
        elif old[key] != new[key]:
            yield Change(here, UPDATE, prop.force_new)


def _same(traits: Traits, prop: Property, old: Any, new: Any) -> bool:
    if old == new or (old is None and _empty(new) and not prop.required):
        return True
    if prop.name in traits.ignored_case:
        return str(old).lower() == str(new).lower()
    if prop.name in _REFERENCES and isinstance(old, str) and isinstance(new, str):
        return _same_reference(old, new)
    if isinstance(old, bool) or isinstance(new, bool):
        return str(old).lower() == str(new).lower()
    return prop.type in ("int", "number", "string") and str(old) == str(new)


def _same_reference(old: str, new: str) -> bool:
    left, right = (
        value[value.find("projects/") :] if "projects/" in value else value for value in (old, new)
    )
    if left.startswith("projects/") and right.startswith("projects/"):
        return left == right
    return left.rpartition("/")[2] == right.rpartition("/")[2]


def _leaf(traits: Traits, block: Property, name: str) -> Property:
    # A field that schema.json does not list replaces the resource if its block does, as declared
    # in resource_compute_reservation.go and resource_secret_manager_secret.go.
    replaces = block.force_new and name not in traits.updated_in_place
    return Property(
        name=name, tf=name, type="string", optional=True, computed=True, force_new=replaces
    )


def _replaces(prop: Property) -> bool:
    return prop.force_new or any(_replaces(child) for child in prop.children.values())


def _empty(value: Any) -> bool:
    # Terraform does not distinguish a missing value from a zero value.
    return value in (None, "", 0, False, [], {})
