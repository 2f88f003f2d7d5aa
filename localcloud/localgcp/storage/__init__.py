"""Stand-in for Cloud Storage: the emulator process, and features that the emulator lacks.

============  ==========================================================
``emulator``  runs the emulator, and completes the emulator's answers
``requests``  checks requests and rewrites requests for the emulator
``uploads``   sessions of resumable uploads
``proxy``     forwards requests to the emulator, and applies faults
============  ==========================================================
"""
