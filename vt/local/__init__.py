"""``vt local``: the commands about the local cloud (package ``localcloud``)."""
