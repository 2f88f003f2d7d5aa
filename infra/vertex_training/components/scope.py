"""Where a component is declared, and under which name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi


@dataclass(frozen=True, slots=True)
class Scope:
    """A component's name in the state, and the component around it."""

    name: str = ""
    """Begins the names of all that is in it; empty at the top of a stack."""
    parent: pulumi.Resource | None = None

    def child(self, component: str) -> Scope:
        """The scope of a component beside others, ``NAME-COMPONENT``."""
        return Scope(f"{self.name}-{component}" if self.name else component, self.parent)

    @property
    def opts(self) -> pulumi.ResourceOptions | None:
        """Options of the component."""
        return pulumi.ResourceOptions(parent=self.parent) if self.parent else None


#: A stack file's own components, whose names in the state are an interface (docs/state.md).
TOP: Final = Scope()


def child_options(
    component: pulumi.Resource, after: Sequence[pulumi.Resource], *, protect: bool
) -> pulumi.ResourceOptions:
    """Options of a resource in ``component`` that its settings may protect.

    Else it is for the component's options to say: False would beat what a child inherits.
    """
    return pulumi.ResourceOptions(parent=component, depends_on=after, protect=protect or None)
