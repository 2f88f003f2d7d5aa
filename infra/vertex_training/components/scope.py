"""Where a component is declared, and under which name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi

from vertex_training import naming
from vertex_training.customjob.protocol.ports import PROGRAM_LABEL, program_label


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


def program_labels() -> dict[str, str]:
    """By which programs of several repositories, or environments of one, tell their own apart.

    Empty where the names of project and stack make no value of a label.
    """
    program = program_label(pulumi.get_project(), pulumi.get_stack())
    return {PROGRAM_LABEL: program} if naming.LABEL_VALUE.match(program) else {}
