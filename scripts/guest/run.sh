#!/usr/bin/env bash
# Boots the guest, runs one script in it as root, prints what it printed, and ends with its status.
#   run.sh SCRIPT [PROGRAM…]      programs are found in the guest's PATH, with their libraries
#
# A run counts as passed only if the guest printed the nonce of this run and ended through its debug port with the
# status: QEMU ends with 1 when it cannot start at all, and an old log proves nothing.
# $IMBREX_GUEST_ONLY is handed on as GUEST_ONLY.
# $IMBREX_GUEST_DRIVES has drives that are served over NBD, SOCKET:SECTOR_BYTES with spaces between: /dev/vda, /dev/vdb, … there.
# $IMBREX_GUEST_VHOST_USER has the sockets of drives that are served over vhost-user, with spaces between: the disks after those.
# $IMBREX_GUEST_SECONDS bounds the run (default 240); $IMBREX_GUEST_LOG keeps the console.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
script=$1
shift
guest=$("$here/fetch.sh")
release=$(cat "$guest/release")
modules=$guest/root/lib/modules/$release
seconds=${IMBREX_GUEST_SECONDS:-240}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nonce=$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')

# The folder that the guest sees as /test: the checks; and as /imbrex: the programs with their libraries.
mkdir -p "$work"/{test,imbrex/bin,imbrex/lib,initramfs}
cp -r "$here/inside/." "$work/test/"
cp "$script" "$work/test/main.sh"
for program in "$@"; do
    name=$(basename "$program")
    cp "$program" "$work/imbrex/lib/$name"
    ldd "$program" | grep -o '/[^ ]*' | while read -r library; do cp -L "$library" "$work/imbrex/lib/"; done
    cat >"$work/imbrex/bin/$name" <<END
#!/bin/bash
exec /imbrex/lib/$(basename "$(ldd "$program" | grep -o '/[^ ]*/ld-linux[^ ]*')") --library-path /imbrex/lib \
    /imbrex/lib/$name "\$@"
END
    chmod +x "$work/imbrex/bin/$name"
done

initramfs=$work/initramfs
mkdir -p "$initramfs"/{bin,proc,sys,dev,newroot,modules}
cp "$guest/root/usr/bin/busybox" "$initramfs/bin/"
: >"$initramfs/modules/order"
for name in virtio_pci 9pnet_virtio 9p; do
    # Each line of modules.dep names a module and what it needs, the deepest last; what is built in has none.
    line=$(grep -m1 "/$name\.ko:" "$modules/modules.dep" || true)
    for module in $(printf '%s\n' ${line/:/} | tac); do
        cp -n "$modules/$module" "$initramfs/modules/"
        echo "$(basename "$module")" >>"$initramfs/modules/order"
    done
done
cp "$here/init.sh" "$initramfs/init"
chmod +x "$initramfs/init"
(cd "$initramfs" && find . | "$guest/root/usr/bin/busybox" cpio -o -H newc 2>/dev/null) >"$work/initramfs.cpio"

drives=()
for drive in ${IMBREX_GUEST_DRIVES:-}; do
    name=drive${#drives[@]}
    drives+=(-blockdev "driver=nbd,node-name=$name,server.type=unix,server.path=${drive%:*},cache.direct=on"
        -device "virtio-blk-pci,drive=$name,num-queues=1,logical_block_size=${drive##*:},physical_block_size=${drive##*:}")
done

# The server maps the memory of the guest.
if [ -n "${IMBREX_GUEST_VHOST_USER:-}" ]; then
    drives+=(-object "memory-backend-memfd,id=memory,size=${IMBREX_GUEST_MEMORY:-2G},share=on" -machine memory-backend=memory)
fi
for socket in ${IMBREX_GUEST_VHOST_USER:-}; do
    name=socket${#drives[@]}
    drives+=(-chardev "socket,id=$name,path=$socket" -device "vhost-user-blk-pci,chardev=$name")
done

log=${IMBREX_GUEST_LOG:-$work/console}
rm -f "$log"
share() { echo "local,path=$1,mount_tag=$2,security_model=none,readonly=on,multidevs=remap"; }
status=0
# no_timer_check: where the host is busy, the timer comes too late for the kernel's trial of it, and it would give up.
timeout --foreground --kill-after=5 "$seconds" qemu-system-x86_64 \
    -accel tcg,thread=multi -cpu max -smp 2 -m "${IMBREX_GUEST_MEMORY:-2G}" \
    -nodefaults -no-user-config -display none -no-reboot -nic none \
    -serial "file:$log" -device isa-debug-exit,iobase=0xf4,iosize=0x04 \
    -virtfs "$(share "$guest/root" root)" -virtfs "$(share "$work/imbrex" imbrex)" \
    -virtfs "$(share "$work/test" test)" \
    ${drives[@]+"${drives[@]}"} \
    -kernel "$guest/vmlinuz" -initrd "$work/initramfs.cpio" \
    -append "no_timer_check console=ttyS0 quiet loglevel=4 panic=-1 tsc=unstable nonce=$nonce only=${IMBREX_GUEST_ONLY:-}" || status=$?

[ -e "$log" ] && tr -d '\r' <"$log"
if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
    echo "guest: not done after $seconds s" >&2
    exit 1
fi
# isa-debug-exit ends QEMU with 2 × value + 1, and the guest writes its status + 16.
if [ "$status" -lt 33 ] || ! grep -q "^guest-nonce $nonce" "$log"; then
    echo "guest: it never came to its end (QEMU ended with $status)" >&2
    exit 1
fi
exit $(((status - 1) / 2 - 16))
