#!/bin/sh
# Sandbox double of the wrapper that the unit starts from branch 570 on: checks, then starts or stops the daemon.
set -eu

config=/usr/share/nvidia/nvswitch/fabricmanager.cfg
pid_file=/run/nvidia-fabricmanager/nv-fabricmanager.pid
mode=start
while [ $# -gt 0 ]; do
    case "$1" in
        --mode) mode="$2"; shift 2 ;;
        --fm-config-file) config="$2"; shift 2 ;;
        --fm-pid-file) pid_file="$2"; shift 2 ;;
        *) echo "unknown option: $1" >&2; exit 2 ;;
    esac
done

case "$mode" in
    precheck)
        [ -r "$config" ] || { echo "configuration file $config cannot be read" >&2; exit 1; }
        ;;
    start)
        mkdir -p "${pid_file%/*}"
        exec /usr/bin/nv-fabricmanager -c "$config"
        ;;
    stop)
        if [ -s "$pid_file" ]; then kill "$(cat "$pid_file")" 2>/dev/null || true; fi
        rm -f "$pid_file"
        ;;
    *)
        echo "unknown mode: $mode" >&2
        exit 2
        ;;
esac
