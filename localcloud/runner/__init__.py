"""Runs the replicas of custom jobs as processes of this machine."""
