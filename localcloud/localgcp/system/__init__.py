"""Calls of the operating system.

==================  ===============================================================
``processes``       child processes with their records; daemon threads
``root_directory``  files below a folder, opened without following links; folders
``git``             runs git without the settings of a user
``namespaces``      namespaces and mounts of Linux
``gpus``            GPUs of this machine, and locks on them
==================  ===============================================================
"""
