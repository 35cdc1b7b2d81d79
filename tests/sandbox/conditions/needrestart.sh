#!/bin/sh
# Runs as root inside a sandbox host, started by gpulab/hostile.py: SCRIPT on VALUE, SCRIPT off.
set -eu
# needrestart as it comes, which asks at a terminal, and a service that it has to ask about: it runs a file that was
# replaced since, as after a security update.
case $1 in
on)
    export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
    apt-cache show needrestart > /dev/null 2>&1 || apt-get update -qq
    apt-get install -qq --no-install-recommends needrestart > /dev/null 2>&1
    cp /bin/sleep /usr/bin/gpulab-stale
    printf '[Service]\nExecStart=/usr/bin/gpulab-stale infinity\n' > /etc/systemd/system/gpulab-stale.service
    systemctl daemon-reload
    systemctl start gpulab-stale.service
    cp /bin/sleep /usr/bin/gpulab-stale.new
    mv /usr/bin/gpulab-stale.new /usr/bin/gpulab-stale
    ;;
off)
    systemctl stop gpulab-stale.service
    rm -f /etc/systemd/system/gpulab-stale.service /usr/bin/gpulab-stale
    systemctl daemon-reload
    ;;
esac
