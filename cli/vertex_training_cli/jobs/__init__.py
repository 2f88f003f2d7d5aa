"""``vt jobs``: the jobs of a stack, in Vertex AI or in the local cloud, by the official client."""
