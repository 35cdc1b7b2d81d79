"""A machine with NVIDIA GPUs, pretended by files and small programs.

It runs inside the sandbox hosts with the standard library alone (Python >= 3.9). `GPULAB_ROOT` moves every path below
another folder, so that the whole of it can be tried without a container: files are then written there instead of being
mounted over the machine's own.
"""
