#!/bin/sh
# Runs as root inside a sandbox host, started by gpulab/hostile.py: SCRIPT on VALUE, SCRIPT off.
set -eu
# A second source for a repository, with its key in another file. VALUE `archive`: of Ubuntu's archive, beside the
# host's own; `nvidia`: both files that people have for the CUDA repository, the keyring package's and a hand-made one;
# `mixed`: the CUDA repository with another key, in a file that holds the operator's own source as well.
folder=/etc/apt/sources.list.d
cuda=http://repo.lab/compute/cuda/repos/$(. /etc/os-release; echo "$ID$VERSION_ID" | tr -d .)/x86_64/
case $1-${2:-} in
on-archive)
    suite=$(. /etc/os-release; echo "$VERSION_CODENAME")
    echo "deb [signed-by=/etc/apt/keyrings/ubuntu.gpg] http://repo.lab/ubuntu $suite main" > $folder/gpulab-by-hand.list
    ;;
on-nvidia)
    echo "deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] $cuda /" > $folder/gpulab-cuda-keyring.list
    printf 'Types: deb\nURIs: %s\nSuites: /\nSigned-By: /etc/apt/keyrings/nvidia.asc\n' "$cuda" \
        > $folder/gpulab-by-hand.sources
    ;;
on-mixed)
    echo 'deb [trusted=yes] http://repo.lab/operator ./' > $folder/gpulab-mixed.list
    echo "deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] $cuda /" >> $folder/gpulab-mixed.list
    ;;
off-)
    rm -f $folder/gpulab-by-hand.list $folder/gpulab-by-hand.sources $folder/gpulab-cuda-keyring.list \
        $folder/gpulab-mixed.list
    ;;
*)
    echo "signed-by-clash is archive, nvidia or mixed, not ${2:-}" >&2
    exit 2
    ;;
esac
