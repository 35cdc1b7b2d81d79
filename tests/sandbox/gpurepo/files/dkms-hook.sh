#!/bin/sh
# Run by the postinst of kernel headers with the kernel's release, as the dkms package's hook of this place is.
set -e
if [ -n "${1:-}" ] && [ -x /usr/lib/nvidia/nvidia-dkms-build ]; then
    /usr/lib/nvidia/nvidia-dkms-build "$1"
fi
