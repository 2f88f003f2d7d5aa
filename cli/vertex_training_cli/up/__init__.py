"""``vt up``: ``pulumi up``, with the traces of a killed run cleared before and after it."""
