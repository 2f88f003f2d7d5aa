"""How tests quote what a report quotes: so that it is seen."""


def quote(value: str, _length: int = 0, /) -> str:
    """Shows what was quoted."""
    return f"<{value}>"


def quote_sized(value: str, length: int = 0, /) -> str:
    """As ``quote``, with the length where one is given."""
    return f"<{value}{f'|{length}' if length else ''}>"
