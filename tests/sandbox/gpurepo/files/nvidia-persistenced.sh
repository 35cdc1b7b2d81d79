#!/bin/sh
# Sandbox double of nvidia-persistenced: the simulator answers, told which version this package carries.
exec python3 /usr/lib/gpulab/bin/nvidia-persistenced --lab-version @V@ "$@"
