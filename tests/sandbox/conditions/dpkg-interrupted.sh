#!/bin/sh
# Runs as root inside a sandbox host, started by gpulab/hostile.py: SCRIPT on VALUE, SCRIPT off.
set -eu
# dpkg was killed while it configured a package: its journal is not empty, the package is half-configured, and apt does
# nothing before `dpkg --configure -a`.
package=gpulab-interrupted
case $1 in
on)
    work=$(mktemp -d)
    mkdir -p "$work/DEBIAN"
    printf '%s\n' "Package: $package" 'Version: 1' 'Architecture: all' 'Maintainer: GPU fleet sandbox <sandbox@repo.lab>' \
        'Description: a package whose first configuration is killed' > "$work/DEBIAN/control"
    cat > "$work/DEBIAN/postinst" << 'POSTINST'
#!/bin/sh
set -e
if [ -e /run/gpulab-kill ]; then
    rm /run/gpulab-kill
    kill -9 $PPID
    sleep 1
fi
POSTINST
    chmod 0755 "$work" "$work/DEBIAN/postinst"
    dpkg-deb --build --root-owner-group "$work" "$work.deb" > /dev/null
    : > /run/gpulab-kill
    dpkg --install "$work.deb" > /dev/null 2>&1 || true
    rm -r "$work" "$work.deb"
    dpkg-query -W -f '${db:Status-Status}' $package | grep -q half-configured
    ;;
off)
    dpkg --configure -a > /dev/null
    dpkg --purge $package > /dev/null 2>&1
    ;;
esac
