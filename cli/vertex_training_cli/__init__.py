"""``vt``: the command beside ``pulumi``. It imports ``infra``, and ``infra`` never imports it."""
