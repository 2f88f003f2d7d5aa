"""Stand-in for Cloud Storage: the emulator process, and features that the emulator lacks.

============  ==========================================================
``emulator``  starts and stops the emulator
``requests``  refuses requests that the emulator would answer wrongly
``uploads``   sessions of resumable uploads
``proxy``     what clients see: passes requests to the emulator, but for faults
============  ==========================================================
"""
