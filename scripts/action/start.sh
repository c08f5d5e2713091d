#!/usr/bin/env bash
# Starts imbrex serve in the background, waits until it serves, and makes a block device of the drive if one is wanted.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/common.sh"
source "$here/devices.sh"

folder=$(mktemp -d "$temporary/imbrex-server.XXXXXX")
log=$folder/log
: >"$log"

# A server that cannot be used does not stay.
give_up() { # MESSAGE
    ACTION_SERVER=$folder ACTION_WAIT=5 "$here/stop.sh" >"$folder/stop" 2>&1 || true
    print_log "$log"
    fail "$1"
}

start_server() {
    local line words=(serve "--time=$ACTION_TIME" "--control=$folder/control")
    if [ "$ACTION_DEVICE" = ublk ]; then
        line=$(load_module ublk_drv) || give_up "no device ublk could be made: $line"
        touch "$folder/process.root"
        words+=(--ublk)
    else
        words+=("--nbd=${ACTION_ADDRESS:-unix:$folder/nbd}")
    fi
    while IFS= read -r line; do
        [ -z "$line" ] || words+=("$line")
    done <<<"$ACTION_OPTIONS"
    if [ -z "$ACTION_IMAGE" ]; then
        words+=("--drive=$ACTION_DRIVE")
    else
        [ -z "$ACTION_DRIVE" ] || "$ACTION_PROGRAM" drive create "--drive=$ACTION_DRIVE" -- "$ACTION_IMAGE" >>"$log" 2>&1 ||
            give_up "the image $ACTION_IMAGE cannot be created: see the log above"
        words+=(-- "$ACTION_IMAGE")
    fi
    # The shell below becomes the server, so that its process number is that of the server.
    {
        code=0
        as_owner "$folder/process.root" bash -c 'echo $$ >"$0/process"; exec "$@"' "$folder" "$ACTION_PROGRAM" "${words[@]}" || code=$?
        echo "$code" >"$folder/status"
    } </dev/null >>"$log" 2>&1 &
}

# Prints the address from the line that the server prints once clients can connect.
served_at() {
    sed -n 's/^serving .*, time [^ ]*) at \(.*\); Ctrl-C ends it$/\1/p' "$log"
}

is_served_or_ended() {
    [ -s "$folder/status" ] || [ -n "$(served_at)" ]
}

start_server
wait_until "$ACTION_WAIT" is_served_or_ended || give_up "imbrex serve does not serve after $ACTION_WAIT s: see the log above"
[ ! -s "$folder/status" ] ||
    give_up "imbrex serve has ended with exit code $(cat "$folder/status") before it served: see the log above"
address=$(served_at)
case $ACTION_DEVICE in
    none) ;;
    ublk) echo "$address" >"$folder/device" ;;
    *)
        reason=$(make_device "$ACTION_DEVICE" "$address" 2>&1) || give_up "no device $ACTION_DEVICE could be made: $reason"
        ;;
esac
print_log "$log"
[ "$ACTION_DEVICE" != ublk ] || address=""
output uri "$address"
output device "$(cat "$folder/device" 2>/dev/null || true)"
output control "$folder/control"
output log "$log"
output server "$folder"
