#!/bin/sh
# Runs as root inside a sandbox host, started by gpulab/hostile.py: SCRIPT on VALUE, SCRIPT off.
set -eu
# Another apt is at work for VALUE seconds: it holds dpkg's locks and that of apt's lists, as a real one does.
case $1 in
on)
    systemd-run --quiet --collect --unit=gpulab-apt-lock python3 -c '
import fcntl, sys, time
names = ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/lib/apt/lists/lock")
files = [open(name, "w") for name in names]
for file in files:
    fcntl.lockf(file, fcntl.LOCK_EX)
open("/run/gpulab-apt-lock", "w").close()
time.sleep(float(sys.argv[1]))
' "$2"
    timeout 10 sh -c 'until [ -e /run/gpulab-apt-lock ]; do sleep 0.1; done'
    ;;
off)
    systemctl stop gpulab-apt-lock.service 2> /dev/null || true
    rm -f /run/gpulab-apt-lock
    ;;
esac
