"""``vt models`` and ``vt endpoints``: models and endpoints of a stack."""
