"""What a repository may be made from: each mistake with its option, value and hint."""

from __future__ import annotations
