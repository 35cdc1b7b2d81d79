#!/bin/sh
# Sandbox double of nv-fabricmanager: the simulator answers, told which version this package carries.
exec python3 /usr/lib/gpulab/bin/nv-fabricmanager --lab-version @V@ "$@"
