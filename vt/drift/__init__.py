"""``vt drift``: where the cloud is no longer what the stack declares."""
