if [ "$1" = @PHASE@ ] && command -v update-initramfs >/dev/null; then
    update-initramfs -u -k all || echo "update-initramfs failed" >&2
fi
