"""Survival on the Titanic: a small, reproducible PyTorch training job.

Run as ``python -m titanic.task``; the same code runs on Vertex AI (CPU or one GPU) and locally.
"""
