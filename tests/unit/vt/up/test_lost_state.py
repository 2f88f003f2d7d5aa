"""Which id each resource is imported by, and which of them are left to ``up``."""

from __future__ import annotations
