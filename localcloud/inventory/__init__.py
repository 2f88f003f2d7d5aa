"""What exists in the local cloud, in one SQLite file: resources, policies, addresses, machines."""
