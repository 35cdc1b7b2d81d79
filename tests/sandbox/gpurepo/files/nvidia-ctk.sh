#!/bin/sh
# Sandbox double of a program of the container toolkit: says its version, and changes nothing.
case ${1:-} in
    --version | -v) echo "NVIDIA Container Toolkit CLI version @V@" ;;
    *)
        echo "${0##*/}: sandbox double of @V@, it does nothing" >&2
        exit 1
        ;;
esac
