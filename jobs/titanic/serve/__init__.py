"""The model behind an endpoint: ``python -m titanic.serve``, in an image of its own."""
