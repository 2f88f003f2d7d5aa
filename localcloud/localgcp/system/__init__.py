"""Calls of the operating system.

==================  ===============================================================
``processes``       child processes with records; threads; git without user settings
``root_directory``  files below a folder, opened without following links; folders
``namespaces``      namespaces and mounts of Linux
``gpus``            GPUs of this machine, and locks on them
==================  ===============================================================
"""
