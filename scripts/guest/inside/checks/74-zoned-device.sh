# The interface that our own file systems write to, over zoned block devices: one of ours, and the kernel's.
export IMBREX_ZONED_ACTIONS=300
serve_ublk --drive "$zoned" --time none
IMBREX_ZONED_DEVICE=$disk device-tests zoned::zoned_block_devices_are_as_the_naive_drive --nocapture
stop_server
modprobe null_blk nr_devices=0
# The kernel has the file system for it only now.
mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
null=/sys/kernel/config/nullb/nullb9
mkdir "$null"
echo 64 >"$null/size"
echo 1 >"$null/memory_backed"
echo 1 >"$null/zoned"
echo 1 >"$null/zone_size"
echo 4 >"$null/zone_nr_conv"
echo 4 >"$null/zone_max_open"
echo 1 >"$null/power"
IMBREX_ZONED_DEVICE=/dev/nullb9 device-tests zoned::zoned_block_devices_are_as_the_naive_drive --nocapture >/tmp/trial
echo 0 >"$null/power"
rmdir "$null"
echo "result: $(sed -n 's/.*\(\/dev\/nullb9: .*\)/\1/p' /tmp/trial)"
