# A host-managed drive is a zoned block device: its zones are told, and written at their pointers alone.
modprobe ublk_drv
make_image /tmp/drive.img "$zoned"
serve_ublk /tmp/drive.img --time none
queue=/sys/block/$(basename "$disk")/queue
[ "$(cat "$queue/zoned")" = host-managed ]
[ "$(cat "$queue/chunk_sectors")" = 8192 ]
[ "$(cat "$queue/max_open_zones")" = 32 ] && [ "$(cat "$queue/max_active_zones")" = 64 ]
blkzone report "$disk" >/tmp/zones
[ "$(grep -c . /tmp/zones)" = "$(cat "$queue/nr_zones")" ]
[ "$(grep -c CONVENTIONAL /tmp/zones)" = 64 ]
# Zone 64 is the first with a pointer; the drive's sectors have 4 KiB, the kernel's 512 bytes.
first=$((64 * 8192))
pointer() { # ZONE
    blkzone report -o $(($1 * 8192)) -c 1 "$disk" | sed -n 's/.*wptr 0x\([0-9a-f]*\) .*/\1/p'
}
write() { # SECTOR
    dd if=/tmp/block of="$disk" bs=4096 count=4 seek=$(($1 / 8)) oflag=direct conv=notrunc 2>/dev/null
}
head -c 16384 /dev/urandom >/tmp/block
write "$first"
[ "$(pointer 64)" = 000020 ]
cmp -n 16384 -i 0:$((first * 512)) /tmp/block "$disk"
if write "$((first + 64))"; then exit 1; fi
if write "$first"; then exit 1; fi
write 8
write 8
# After an error the block layer takes no writes to a zone until somebody has asked for its pointer.
[ "$(pointer 64)" = 000020 ]
write "$((first + 32))"
[ "$(pointer 64)" = 000040 ]
# What lies past the pointer reads as zeros.
dd if="$disk" bs=4096 skip=$(((first + 64) / 8)) count=4 iflag=direct 2>/dev/null | cmp -n 16384 - /dev/zero
blkzone open -o $((65 * 8192)) -c 1 "$disk"
blkzone report -o $((65 * 8192)) -c 1 "$disk" | grep -q 'zcond: 3'
blkzone close -o $((65 * 8192)) -c 1 "$disk"
blkzone finish -o $((66 * 8192)) -c 1 "$disk"
blkzone report -o $((66 * 8192)) -c 1 "$disk" | grep -q 'zcond:14'
# The pointer outlives the server.
sync "$disk"
stop_server
serve_ublk /tmp/drive.img --time none
[ "$(pointer 64)" = 000040 ]
cmp -n 16384 -i 0:$((first * 512)) /tmp/block "$disk"
blkzone reset -o "$first" -c 1 "$disk"
[ "$(pointer 64)" = 000000 ]
blkzone reset "$disk" || blkzone reset -o "$first" "$disk"
[ "$(blkzone report "$disk" | grep -c 'zcond: 1')" = "$(($(cat "$queue/nr_zones") - 64))" ]
# Many at once, each zone from its start; with a pace the answers come from another thread.
stop_server
serve_ublk /tmp/drive.img --time 100x
fio --name=zones --filename="$disk" --direct=1 --zonemode=zbd --offset=$((first * 512)) --size=32m --rw=write --bs=64k \
    --ioengine=libaio --iodepth=8 --verify=crc32c --verify_fatal=1 --do_verify=1 --minimal >/dev/null
stop_server
imbrex drive check /tmp/drive.img
echo "result: $(wc -l </tmp/zones) zones reported, written, refused, opened, closed, finished, reset and read back"
