# Members of a Linux RAID and of a device-mapper device, swap, and a mounted device: refused by every command that erases, with
# --force too, and unchanged.
export MDADM_NO_UDEV=1 DM_DISABLE_UDEV=1
for module in loop raid1 md_mod dm_mod ext4; do modprobe "$module" || skip "no module $module"; done
blank() { truncate -s 64M "$1" && losetup --find --show "$1"; }
for name in md dm swap ext4; do declare "$name=$(blank "/tmp/$name.img")"; done
truncate -s 64M /tmp/spare.img

mdadm --quiet --create /dev/md0 --level=1 --raid-devices=2 --run "$md" missing
dmsetup create held --table "0 65536 linear $dm 0"
mkswap -q "$swap"
swapon "$swap" || swap=
mkfs.ext4 -q -L home "$ext4"
mkdir -p /mnt/held
mount "$ext4" /mnt/held
sync

refused() { # DEVICE WORDS OPTION…
    local device=$1 words=$2 before command
    shift 2
    before=$(sha256sum <"$device")
    for command in "fs mkfs --store log $device" "fs mkfs --store log /tmp/spare.img --meta $device" \
        "probe $device --destroy-data --test rotation"; do
        ! imbrex $command "$@" >/tmp/refused 2>&1
        grep -q 'in use' /tmp/refused
        grep -q "$words" /tmp/refused
    done
    [ "$before" = "$(sha256sum <"$device")" ]
}
for options in "" "--force --yes"; do
    refused "$md" 'Linux RAID md0 (raid1)' $options
    refused "$dm" 'device-mapper device held (dm-0)' $options
    [ -z "$swap" ] || refused "$swap" 'is swap' $options
    refused "$ext4" 'is mounted at /mnt/held' $options
done
echo "result: a RAID member, a mapped device, ${swap:+swap, }and a mounted device were refused, with --force too"

# Taken out of use, each says what it holds; with --force it is erased, and nothing recognises the old contents.
mdadm --quiet --stop /dev/md0
! imbrex fs mkfs --store log "$md" >/tmp/refused 2>&1
grep -q 'a member of a Linux RAID' /tmp/refused
imbrex fs mkfs --store log "$md" --force --yes
! mdadm --examine "$md"
umount /mnt/held
! imbrex fs mkfs --store log "$ext4" >/tmp/refused 2>&1
grep -q 'home' /tmp/refused
imbrex fs mkfs --store log "$ext4" --force --yes
! wipefs --no-act "$ext4" | grep ext4
dmsetup remove held
imbrex fs mkfs --store log "$dm" --yes
[ -z "$swap" ] || swapoff "$swap"
losetup --detach-all
