#!/usr/bin/env bash
# Tests the action: runs the steps of action.yml as GitHub does (scripts/action/run.py), and uses the served drives. Ends with a
# line of counts: `action: N passed, M failed`.
#   IMBREX=PROGRAM scripts/action/test.sh [PART OF A CHECK'S NAME]
# The action installs no packages here, and builds no program: both commands are replaced. Goal of the checks of errors: a
# step that fails says why, and leaves no server.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
skip() {
    echo "skipped: the action: $*"
    exit 0
}
[ "$(uname -s)" = Linux ] || skip "imbrex serve runs on Linux alone"
python3 -c 'import yaml' 2>/dev/null || skip "Python has no module yaml (apt-get install python3-yaml)"
for needed in nbdinfo nbdcopy qemu-io; do
    command -v "$needed" >/dev/null 2>&1 || skip "$needed is not here (apt-get install libnbd-bin qemu-utils)"
done
program=${IMBREX:-}
if [ -z "$program" ]; then
    cargo build --quiet --locked -p imbrex-cli || exit 1
    program=${CARGO_TARGET_DIR:-target}/debug/imbrex
fi
program=$(realpath "$program")

work=$(mktemp -d)
export RUNNER_TEMP=$work/temporary XDG_RUNTIME_DIR=$work
mkdir "$RUNNER_TEMP" "$work/bin"
end() {
    # A check that failed may have left a mount or a loop device.
    grep -F " $work/" /proc/mounts | cut -d " " -f 2 | grep -v '/disk$' | xargs -r -n 1 umount 2>/dev/null
    run stop mode=stop wait=5 >/dev/null 2>&1
    local folder
    for folder in "$RUNNER_TEMP"/imbrex-server.*; do
        [ -s "$folder/status" ] || xargs -r kill -KILL <"$folder/process"
    done 2>/dev/null
    losetup -a 2>/dev/null | grep -F "($work/" | cut -d : -f 1 | xargs -r -n 1 losetup -d
    grep -F " $work/" /proc/mounts | cut -d " " -f 2 | xargs -r -n 1 umount -l
    rm -rf "$work"
}
trap end EXIT
export PATH=$work/bin:$PATH:/usr/sbin:/sbin

replace() { # COMMAND SCRIPT
    printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}
replace apt-get 'echo "no package is installed in a test" >&2; exit 100'

# Runs the action with these inputs. Its output is in $work/NAME.log, its outputs in $work/NAME.
run() { # NAME INPUT=VALUE…
    scripts/action/run.py action "$work/$1" "${@:2}" >"$work/$1.log" 2>&1
}
start() { # NAME INPUT=VALUE…
    run "$1" program="$program" time=none "${@:2}" || { cat "$work/$1.log" && return 1; }
}
stop() { # [INPUT=VALUE…]
    run stop mode=stop "$@" || { cat "$work/stop.log" && return 1; }
}
value() { # NAME OUTPUT
    sed -n "s/^$2=//p" "$work/$1"
}
# Succeeds if the action fails with an error that contains TEXT, and leaves no server.
refuses() { # TEXT INPUT=VALUE…
    local text=$1
    shift
    if run refused "$@"; then
        echo "the action succeeded"
        return 1
    fi
    grep '^::error title=imbrex::' "$work/refused.log" | grep -qF -- "$text" || { cat "$work/refused.log" && return 1; }
    no_server_runs
}
no_server_runs() {
    ! grep -lsF "$RUNNER_TEMP/imbrex-server" /proc/[0-9]*/cmdline || { echo "a server is left: see the files above" && return 1; }
}
# Succeeds if the output of a command contains TEXT, whether the command fails or not.
prints() { # TEXT COMMAND…
    "${@:2}" >"$work/printed" 2>&1
    has_text "$work/printed" "$1"
}
has_text() { # FILE TEXT
    grep -qF -- "$2" "$1" || { echo "no '$2' in:" && cat "$1" && return 1; }
}

check_a_drive_in_memory_keeps_bytes_until_it_is_stopped() {
    start one drive=seagate-st5000as0011 || return
    local uri
    uri=$(value one uri)
    [ "$(nbdinfo --size "$uri")" = 5009760549376 ] || { echo "wrong size" && return 1; }
    head -c 1M /dev/urandom >"$work/bytes"
    nbdcopy "$work/bytes" "$uri" || return
    prints "wrote 65536/65536" qemu-io -f raw -c "write -P 171 4M 64k" "$uri" || return
    prints "read 65536/65536" qemu-io -f raw -c "read -P 171 4M 64k" "$uri" || return
    prints "Pattern verification failed" qemu-io -f raw -c "read -P 172 4M 64k" "$uri" || return
    prints "$(head -c 16 "$work/bytes" | od -An -tx1 | sed 's/^ //')" qemu-io -f raw -c "read -v 0 512" "$uri" || return
    [ -z "$(value one device)" ] && [ -S "$(value one control)" ] && [ "$(value one program)" = "$program" ] || return
    stop server="$(value one server)" && has_text "$work/stop.log" "| write " && has_text "$(value one log)" "serving" || return
    [ ! -S "$(value one control)" ] && no_server_runs
}
check_a_port_is_free_with_tcp_0() {
    start port drive=cmr-7200 address=tcp:0 || return
    [[ $(value port uri) =~ ^nbd://127\.0\.0\.1:[0-9]+$ ]] && nbdinfo --size "$(value port uri)" && stop
}
check_an_image_is_created_and_served_again() {
    start made drive=imr-1t image="$work/disk.img" || return
    qemu-io -f raw -c "write -P 7 1M 4k" -c flush "$(value made uri)" && stop || return
    start again image="$work/disk.img" || return
    prints "read 4096/4096" qemu-io -f raw -c "read -P 7 1M 4k" "$(value again uri)" && stop || return
    refuses "leave drive empty to serve it" program="$program" drive=imr-1t image="$work/disk.img" || return
    start read image="$work/disk.img" options="--read-only
--connections
2" || return
    prints "is_read_only: true" nbdinfo "$(value read uri)" && stop
}
check_two_servers_are_stopped_one_by_one_or_together() {
    start first drive=cmr-7200 && start second drive=cmr-5900 || return
    stop server="$(value first server)" || return
    nbdinfo --size "$(value second uri)" && start third drive=imr-1t && stop && no_server_runs
}
check_a_stop_may_be_repeated() {
    start twice drive=cmr-7200 && stop server="$(value twice server)" && stop server="$(value twice server)" || return
    has_text "$work/stop.log" "no server is running" && stop && has_text "$work/stop.log" "no server is running"
}
check_a_file_shows_the_drive() {
    command -v nbdfuse >/dev/null && [ -w /dev/fuse ] || { echo "skipped: the action: no nbdfuse, or no FUSE" && return 77; }
    start file drive=caveat-1g+conventional device=file || return
    local file
    file=$(value file device)
    [ "$(stat -c %s "$file")" = "$(nbdinfo --size "$(value file uri)")" ] || return
    head -c 64K /dev/urandom >"$work/bytes"
    dd if="$work/bytes" of="$file" bs=4k conv=notrunc,fsync status=none && cmp -n 65536 "$work/bytes" "$file" || return
    exec 8<"$file"
    run busy mode=stop
    exec 8<&-
    has_text "$work/busy.log" "is in use" && stop && [ ! -s "$file" ] && no_server_runs
}
check_a_loop_device_is_removed_once_it_is_unmounted() {
    [ "$(id -u)" -eq 0 ] && [ -w /dev/fuse ] && losetup -f >/dev/null 2>&1 && command -v nbdfuse >/dev/null ||
        { echo "skipped: the action: no root, FUSE, nbdfuse or loop devices" && return 77; }
    start loop drive=seagate-st5000as0011 device=loop || return
    local device
    device=$(value loop device)
    mkfs.ext4 -q "$device" 1G && mkdir "$work/mnt" && mount "$device" "$work/mnt" && echo hello >"$work/mnt/file" || return
    run mounted mode=stop
    umount "$work/mnt" && has_text "$work/mounted.log" "$device is mounted: unmount it" && stop && no_server_runs || return
    ! losetup "$device" 2>/dev/null | grep -q "$work"
}
check_the_example_of_the_page_runs() {
    [ "$(id -u)" -eq 0 ] && [ -w /dev/fuse ] && losetup -f >/dev/null 2>&1 && command -v nbdfuse >/dev/null ||
        { echo "skipped: the action: no root, FUSE, nbdfuse or loop devices" && return 77; }
    command -v sudo >/dev/null || replace sudo 'exec "$@"'
    (mkdir "$work/example" && cd "$work/example" && "$root/scripts/action/run.py" workflow "$root/docs/ci.md" program="$program") \
        >"$work/example.log" 2>&1 || { cat "$work/example.log" && return 1; }
    has_text "$work/example.log" "| write " && no_server_runs
}
check_the_page_names_every_input_and_output() {
    python3 -c '
import sys, yaml
from pathlib import Path
action, page = yaml.safe_load(Path("action.yml").read_text()), Path("docs/ci.md").read_text()
missing = [name for name in [*action["inputs"], *action["outputs"]] if f"\n| `{name}` |" not in page]
sys.exit(f"docs/ci.md has no row for {missing}" if missing else 0)
'
}
check_devices_without_a_module_are_errors() {
    replace modprobe 'exit 1'
    replace sudo 'shift 2; exec "$@"'
    local kind
    for kind in nbd ublk; do
        case $kind in nbd) module=nbd ;; ublk) module=ublk_drv ;; esac
        [ -d "/sys/module/$module" ] ||
            refuses "has no module $module" program="$program" drive=cmr-7200 device="$kind" || return
    done
    rm "$work/bin"/{modprobe,sudo}
}
# A stand-in for the program and a list of the commands that sudo ran: this test runs without ublk, and as any user.
check_a_ublk_device_is_served_by_root() {
    [ ! -d /sys/module/ublk_drv ] || { echo "skipped: the action: ublk is loaded: the real one would be tested" && return 77; }
    replace modprobe 'exit 0'
    replace id 'echo 1000'
    replace sudo '[ "$1 $2" = "-n --" ] || exit 9
        shift 2; echo "$1" >>"$RUNNER_TEMP/sudo"; exec "$@"'
    replace serves 'case $1 in
        --version) echo serves 1 ;;
        *) trap "exit 0" TERM; echo "$@" >>"$RUNNER_TEMP/words"; echo "serving x (1 GiB, time none) at /dev/ublkb7; Ctrl-C ends it"
           while :; do sleep 0.1; done ;;
    esac'
    run ublk program="$work/bin/serves" drive=x device=ublk && stop || { cat "$work/ublk.log" && return 1; }
    rm "$work/bin"/{modprobe,id,sudo}
    [ -z "$(value ublk uri)" ] && [ "$(value ublk device)" = /dev/ublkb7 ] || { cat "$work/ublk" && return 1; }
    has_text "$RUNNER_TEMP/words" "--ublk --drive=x" && [ "$(tr '\n' ' ' <"$RUNNER_TEMP/sudo")" = "modprobe bash kill " ]
}
check_wrong_inputs_are_errors() {
    refuses "mode is 'run': expected start or stop" mode=run &&
        refuses "drive and image are empty" program="$program" &&
        refuses "device is 'disk': expected none" drive=cmr-7200 device=disk &&
        refuses "wait is '0'" drive=cmr-7200 wait=0 &&
        refuses "device ublk has no NBD server" drive=cmr-7200 device=ublk address=tcp:0 &&
        refuses "device nbd needs a Unix socket" drive=cmr-7200 device=nbd address=tcp:0 &&
        refuses "which does not exist" program="$program" image="$work/none.img" &&
        refuses "which is no program" program="$work/nothing" drive=cmr-7200 &&
        refuses "which is no folder of a server" mode=stop server="$work"
}
check_the_reason_of_the_program_is_shown() {
    refuses "ended with exit code 2 before it served" program="$program" drive=nothing &&
        has_text "$work/refused.log" "| imbrex: no profile is called 'nothing'" &&
        refuses "ended with exit code 2" program="$program" drive=cmr-7200 time=never &&
        refuses "ended with exit code 2" program="$program" drive=cmr-7200 options=--nonsense &&
        refuses "ended with exit code 1" program="$program" drive=cmr-7200 address="unix:$work/no/folder" &&
        refuses "cannot be created" program="$program" drive=cmr-7200 image="$work/no/disk.img"
}
check_text_in_an_input_is_no_command() {
    refuses "ended with exit code 2" program="$program" drive='$(touch oops)`touch oops`";touch oops' &&
        [ ! -e oops ] && [ ! -e "$work/oops" ]
}
check_programs_that_do_not_serve_are_errors() {
    replace dies 'case $1 in --version) echo dies 1 ;; *) echo "the disk fell down"; exit 3 ;; esac'
    replace sleeps 'case $1 in --version) echo sleeps 1 ;; *) while :; do sleep 0.1; done ;; esac'
    replace broken 'exit 127'
    refuses "ended with exit code 3 before it served" program="$work/bin/dies" drive=x &&
        has_text "$work/refused.log" "| the disk fell down" &&
        refuses "does not serve after 1 s" program="$work/bin/sleeps" drive=x wait=1 &&
        refuses "does not run on this system" program="$work/bin/broken" drive=x
}
check_a_server_that_ended_by_itself_is_an_error() {
    start killed drive=cmr-7200 || return
    kill -KILL "$(cat "$(value killed server)/process")"
    sleep 0.5
    refuses "had ended with exit code 137 before it was stopped" mode=stop && stop
}
check_a_server_that_does_not_end_is_killed() {
    replace stays 'case $1 in
        --version) echo stays 1 ;;
        *) trap "" TERM; echo "serving x (1 GiB, time none) at here; Ctrl-C ends it"; while :; do sleep 1; done ;;
    esac'
    run stays program="$work/bin/stays" drive=x && [ "$(value stays uri)" = here ] || return
    refuses "did not end within 1 s, and was killed" mode=stop wait=1
}
check_the_program_is_built_once_without_the_input() {
    replace cargo 'echo "$@" >>"$RUNNER_TEMP/cargo"
        while [ $# -gt 1 ]; do [ "$1" != --root ] || folder=$2; shift; done
        mkdir -p "$folder/bin" && ln -s '"$program"' "$folder/bin/imbrex"'
    run built drive=cmr-7200 && run built drive=cmr-7200 && stop || { cat "$work/built.log" && return 1; }
    [ "$(wc -l <"$RUNNER_TEMP/cargo")" = 1 ] && has_text "$RUNNER_TEMP/cargo" "install --locked --path $root/crates/cli --root"
}
check_a_release_has_a_version_and_a_section() {
    printf '# Changes\n\n## [1.2.0] - 2030-01-01\n\nNew layers.\n\n## 1.1.0\n\nOld.\n' >"$work/CHANGELOG.md"
    printf '[workspace.package]\nversion = "1.2.0"\n[workspace.dependencies]\nother = { version = "9" }\n' >"$work/Cargo.toml"
    local script=$root/scripts/action/release.sh
    [ "$(cd "$work" && "$script" v1.2.0)" = "New layers." ] || return
    prints "tag v1.1.0 is not v1.2.0" env -C "$work" "$script" v1.1.0 || return
    sed -i 's/2030-01-01/unreleased/' "$work/CHANGELOG.md"
    prints "calls version 1.2.0 unreleased" env -C "$work" "$script" v1.2.0 || return
    sed -i 's/^## .1.2.0. - .*/## [1.2.0-rc1]/' "$work/CHANGELOG.md"
    prints "has no section 1.2.0" env -C "$work" "$script" v1.2.0
}

passed=0
failed=0
for name in $(declare -F | sed -n "s/^declare -f check_\(.*${1:-}.*\)/\1/p"); do
    "check_$name" >"$work/check.log" 2>&1
    case $? in
        0) passed=$((passed + 1)) && echo "ok: $name" ;;
        77) tail -n 1 "$work/check.log" ;;
        *) failed=$((failed + 1)) && echo "action: FAILED $name" && sed 's/^/    /' "$work/check.log" ;;
    esac
    stop >/dev/null 2>&1
done
echo "action: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
