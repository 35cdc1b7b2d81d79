#!/bin/sh
# Sandbox double of nvidia-smi: the simulator answers, told which version this package carries.
exec python3 /usr/lib/gpulab/bin/nvidia-smi --lab-version @V@ "$@"
