#!/bin/sh
# Sandbox double: says its version, and sets up no container.
case ${1:-} in
    --version | -V) echo "cli-version: @V@" && echo "lib-version: @V@" ;;
    *)
        echo "nvidia-container-cli: sandbox double of @V@, it sets up no container" >&2
        exit 1
        ;;
esac
