#!/bin/sh
# Runs as root inside a sandbox host, started by gpulab/hostile.py: SCRIPT on VALUE, SCRIPT off.
set -eu
# The host's copy of an archive's key is the one from before its owner prolonged it. VALUE: the keyring file; its old
# content comes from gpulab/hostile.py, as base64 in the variable KEYRING.
case $1 in
on)
    cp -a "$2" /var/lib/gpulab/expired-key.saved
    printf '%s\n' "$2" > /var/lib/gpulab/expired-key.path
    printf '%s' "$KEYRING" | base64 -d > "$2"
    ;;
off)
    mv /var/lib/gpulab/expired-key.saved "$(cat /var/lib/gpulab/expired-key.path)"
    rm /var/lib/gpulab/expired-key.path
    ;;
esac
