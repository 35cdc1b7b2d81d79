#!/bin/sh
# Turns the bootstrapped base into one image. Runs as root inside a container of the base, started by gpulab/images.py:
#   /mnt    this folder, read-only          /srv    packages to install (may be empty), read-only
#   /media  the generated repositories, /opt their server.py, both read-only (stand-ins only)
# Usage: setup.sh IMAGE stand-in|genuine
set -eu
image=$1 kind=$2
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

cp -a /mnt/common/. /
rm -f /etc/ssh/ssh_host_*
: > /etc/machine-id
# Consoles do not exist here, and binary formats are the whole machine's: at a host's shutdown all would be unregistered.
systemctl mask --quiet getty.target console-getty.service systemd-binfmt.service proc-sys-fs-binfmt_misc.automount
systemctl set-default --quiet multi-user.target

if [ "$kind" = stand-in ]; then
    # Diverted, because an upgrade of base-files would bring Debian's own identity back.
    dpkg-divert --quiet --local --no-rename --divert /usr/lib/os-release.debian --add /usr/lib/os-release
    dpkg-divert --quiet --local --no-rename --divert /etc/debian_version.debian --add /etc/debian_version
    printf 'This is not Ubuntu: a Debian %s system with the identity files of %s, made for tests.\n' \
        "$(cat /etc/debian_version)" "$image" > /etc/gpulab-standin
    printf 'Debian are: %s, dpkg %s, %s and every package but the kernel and the NVIDIA driver.\n' \
        "$(python3 --version)" "$(dpkg-query -W -f '${Version}' dpkg)" "$(systemctl --version | head -n 1)" \
        >> /etc/gpulab-standin
    cp -a "/mnt/$image/." /
    # Ordinary packages come from Debian; its NVIDIA packages (non-free) would compete with the generated ones.
    sed -i 's/ main .*$/ main/' /etc/apt/sources.list
    if grep -rq non-free /etc/apt/sources.list*; then
        echo "the sources still have non-free" >&2
        exit 1
    fi
fi

set -- /srv/*.deb
if [ -e "$1" ]; then
    dpkg -i "$@" > /dev/null
fi

if [ -e /opt/server.py ]; then
    # The repository server of the lab, for this moment on the loopback address of this container.
    echo '127.0.0.1 repo.lab' >> /etc/hosts
    python3 /opt/server.py /media 80 > /dev/null 2>&1 &
    server=$!
    python3 - << 'WAIT'
import socket, time
for _ in range(100):
    try:
        socket.create_connection(("127.0.0.1", 80), 1).close()
        break
    except OSError:
        time.sleep(0.1)
else:
    raise SystemExit("the repository server did not start")
WAIT
    # Any failed index is an error here: with empty lists check mode on a host would see no package at all.
    apt-get update -qq --error-on=any
    kill "$server"
fi
# Older versions of mmdebstrap always remove the package lists of the base.
if ! ls /var/lib/apt/lists/*_Packages > /dev/null 2>&1; then
    apt-get update -qq --error-on=any
fi
apt-get clean
apt-cache gencaches -q > /dev/null
