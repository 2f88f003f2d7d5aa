"""A package, so that the one a dependency installs under the same name is not found first."""
