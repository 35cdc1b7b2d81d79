#!/bin/sh
# Sandbox double of a DKMS build: nvidia-dkms-build [KERNEL…], all kernels by default.
# Like the real one it builds for the kernels whose headers are there, warns about the others, and succeeds.
set -eu

version=@V@
source_dir=/usr/src/nvidia-$version
if [ $# -eq 0 ]; then
    for directory in /lib/modules/*/; do
        if [ -d "$directory" ]; then
            directory=${directory%/}
            set -- "$@" "${directory##*/}"
        fi
    done
fi
echo "Loading new nvidia-$version DKMS files..."
for kernel in "$@"; do
    if [ ! -d "/lib/modules/$kernel/build" ]; then
        echo "Module build for kernel $kernel was skipped since the" >&2
        echo "kernel headers for this kernel do not seem to be installed." >&2
        continue
    fi
    echo "Building for $kernel"
    # A real build takes minutes; a test that wants to be in the middle of one asks for some seconds here.
    if [ -r /run/gpulab/dkms-seconds ]; then sleep "$(cat /run/gpulab/dkms-seconds)"; fi
    target=/lib/modules/$kernel/updates/dkms
    mkdir -p "$target"
    for module in "$source_dir"/*.ko; do
        cp "$module" "$target/.${module##*/}.new"
        mv "$target/.${module##*/}.new" "$target/${module##*/}"
    done
    if command -v depmod >/dev/null; then depmod -a "$kernel"; fi
done
