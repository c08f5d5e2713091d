# Our own file system on a zoned drive of ours, served as a block device.
modprobe fuse
tree=/lib/modules/$(uname -r)/kernel/crypto
serve_ublk --drive "$zoned" --time none
judge_own "$disk" "$tree"
stop_server
echo "result: $(find "$tree" -type f | wc -l) files copied, compared and kept through a kill"
