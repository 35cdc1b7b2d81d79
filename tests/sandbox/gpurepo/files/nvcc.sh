#!/bin/sh
# Sandbox double of nvcc: says which toolkit it belongs to, and compiles nothing.
case ${1:-} in
    --version | -V)
        echo "nvcc: NVIDIA (R) Cuda compiler driver"
        echo "Cuda compilation tools, release @XY@, V@FULL@"
        ;;
    *)
        echo "nvcc: sandbox double of @XY@, it compiles nothing" >&2
        exit 1
        ;;
esac
