"""Serving container of the model: ``python -m titanic.serve``, in its own image."""
