#!/bin/sh
# Runs as root inside a sandbox host, started by gpulab/hostile.py: SCRIPT on VALUE, SCRIPT off.
set -eu
# /boot is a small file system of its own with VALUE KiB left. What is written there is gone when the condition ends.
case $1 in
on)
    mkdir -p /run/gpulab-boot
    cp -a /boot/. /run/gpulab-boot/
    mount -t tmpfs -o "size=$(($(du -sk /boot | cut -f1) + $2 + 64))k" gpulab-boot /boot
    cp -a /run/gpulab-boot/. /boot/
    rm -r /run/gpulab-boot
    left=$(($(df -k --output=avail /boot | tail -n 1) - $2))
    if [ "$left" -gt 0 ]; then
        head -c "${left}k" /dev/zero > /boot/gpulab-filler
    fi
    ;;
off)
    while [ "$(findmnt -n -o SOURCE --mountpoint /boot || true)" = gpulab-boot ]; do umount /boot; done
    ;;
esac
