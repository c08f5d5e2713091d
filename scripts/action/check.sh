#!/usr/bin/env bash
# First step of the action: refuses wrong inputs before anything is built.
set -euo pipefail
source "$(dirname "$0")/common.sh"

[[ $ACTION_WAIT =~ ^[1-9][0-9]{0,4}$ ]] || fail "wait is '$ACTION_WAIT': expected a number of seconds from 1 to 99999"
case $ACTION_MODE in
    start) ;;
    stop) exit 0 ;;
    *) fail "mode is '$ACTION_MODE': expected start or stop" ;;
esac
case $ACTION_DEVICE in
    none | file | loop | nbd | ublk) ;;
    *) fail "device is '$ACTION_DEVICE': expected none, file, loop, nbd or ublk" ;;
esac
[ "$(uname -s)" = Linux ] || fail "imbrex serve runs on Linux alone; this is $(uname -s)"
[ -n "$ACTION_DRIVE$ACTION_IMAGE" ] || fail "drive and image are empty: name a drive, such as seagate-st5000as0011, or an image"
if [ -n "$ACTION_IMAGE" ]; then
    if [ -z "$ACTION_DRIVE" ] && [ ! -e "$ACTION_IMAGE" ]; then
        fail "image is '$ACTION_IMAGE', which does not exist: give drive as well, and the image is created"
    fi
    if [ -n "$ACTION_DRIVE" ] && [ -e "$ACTION_IMAGE" ]; then
        fail "image is '$ACTION_IMAGE', which exists: leave drive empty to serve it, or name another file"
    fi
fi
[ "$ACTION_DEVICE" != ublk ] || [ -z "$ACTION_ADDRESS" ] || fail "address is '$ACTION_ADDRESS': device ublk has no NBD server"
case $ACTION_DEVICE:$ACTION_ADDRESS in
    nbd: | nbd:unix:*) ;;
    nbd:*) fail "address is '$ACTION_ADDRESS': device nbd needs a Unix socket" ;;
esac
if grep -qxE -- '-q|--quiet' <<<"$ACTION_OPTIONS"; then
    fail "options has --quiet: the action waits for a line that it would suppress"
fi
if [ -n "$ACTION_PROGRAM" ] && ! { [ -f "$ACTION_PROGRAM" ] && [ -x "$ACTION_PROGRAM" ]; }; then
    fail "program is '$ACTION_PROGRAM', which is no program: leave it empty to build one, or name another file"
fi
