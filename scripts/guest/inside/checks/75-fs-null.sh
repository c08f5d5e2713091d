# Our own file system on a zoned block device of the kernel's.
modprobe fuse
modprobe null_blk nr_devices=0
mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
null=/sys/kernel/config/nullb/nullb8
mkdir "$null"
echo 112 >"$null/size"
echo 1 >"$null/memory_backed"
echo 1 >"$null/zoned"
echo 4 >"$null/zone_size"
echo 8 >"$null/zone_nr_conv"
echo 6 >"$null/zone_max_active"
echo 1 >"$null/power"
tree=/lib/modules/$(uname -r)/kernel/lib

judge_own /dev/nullb8 "$tree"
echo 0 >"$null/power"
rmdir "$null"
echo "result: $(find "$tree" -type f | wc -l) files copied, compared and kept through a kill"
