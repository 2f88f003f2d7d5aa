"""``vt jobs``: jobs of a stack, in Vertex AI or in the local cloud, through the official client."""
