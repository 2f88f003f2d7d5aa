"""Rules about what a worker pool runs: image, environment, storage, secrets."""
