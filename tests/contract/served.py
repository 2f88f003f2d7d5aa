"""What the local cloud serves, by its own tables: services of gRPC, rows of REST.

Nothing is listed here: a service is a class of ``localgcp`` with an ``api``; its document is that
of the host that Google's client of it calls.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from dataclasses import dataclass

import localgcp
from localgcp.apis import discovery
from localgcp.apis.client import Api, HttpRule, Implementation, Method
from tests.contract import description
from tests.contract.description import Described


@dataclass(frozen=True)
class Call:
    """A way to call a method over REST, beside Google's description of it."""

    document: str
    name: str
    """Of gRPC, or the id of the document."""
    verb: str
    template: str
    described: Described | None
    rule: HttpRule | None = None
    """None: the method has no messages of gRPC."""

    @property
    def id(self) -> str:
        return f"{self.name} {self.verb} {description.skeleton(self.template)}"


@functools.cache
def services() -> tuple[type[Implementation], ...]:
    """Every class that serves an API of gRPC; the recorder's are for clients that it refuses."""
    found: dict[str, type[Implementation]] = {}
    for module in pkgutil.walk_packages(localgcp.__path__, "localgcp."):
        if module.name.endswith(("__main__", "host_program", "bigquery.engine")):
            continue
        for each in vars(importlib.import_module(module.name)).values():
            is_own = isinstance(each, type) and each.__module__ == module.name
            if is_own and isinstance(getattr(each, "api", None), Api) and each.__name__[0] != "_":
                found[each.__name__] = each
    return tuple(found.values())


def document_of(api: Api) -> str:
    """``aiplatform.v1``: what the client's host and version are."""
    transport = importlib.import_module(f"{api.package}.services.{api.module}.transports.base")
    [base] = [each for name, each in vars(transport).items() if name.endswith("Transport")]
    version = re.search(r"_(v\d+)$", api.package)
    assert version is not None
    return f"{base.DEFAULT_HOST.partition('.')[0]}.{version[1]}"


@functools.cache
def grpc_methods() -> tuple[tuple[str, Method], ...]:
    """Document and method of everything that is served over gRPC."""
    return tuple(
        (document_of(service.api), method)
        for service in services()
        for method in service.api.methods(service)
    )


@functools.cache
def calls() -> tuple[Call, ...]:
    """Every way to call a method over REST."""
    found = [
        Call(
            name, rule.method.path, rule.verb, rule.template,
            description.find(name, rule.verb, rule.template), rule,
        )
        for name, method in grpc_methods()
        for rule in method.rules()
    ]  # fmt: skip
    for id_, method in discovery.methods().items():
        name = ".".join(id_.split(".")[:2])
        known = {each.id: each for each in description.methods(name)}
        found.append(Call(name, id_, method.verb, method.template, known.get(id_)))
    return tuple({each.id: each for each in found}.values())
