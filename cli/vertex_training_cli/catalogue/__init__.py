"""``vt catalogue``: machine types and accelerators with regions and list prices."""
