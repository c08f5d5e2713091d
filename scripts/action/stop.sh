#!/usr/bin/env bash
# Stops one server of the action, or all of them, and prints their logs. A server that is stopped already is no error; a server
# that has ended by itself is one.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/common.sh"
source "$here/devices.sh"

has_ended() {
    [ -s "$folder/status" ]
}

signal() { # NAME
    [ ! -s "$folder/process" ] || as_owner "$folder/process.root" kill "-$1" "$(cat "$folder/process")" 2>/dev/null || true
}

# Ends the server in $folder. Prints the reason if it did not end normally.
end_server() {
    if has_ended; then
        echo "imbrex serve had ended with exit code $(cat "$folder/status") before it was stopped"
        return 1
    fi
    signal TERM
    if ! wait_until "$ACTION_WAIT" has_ended; then
        signal KILL
        wait_until 5 has_ended || true
        echo "imbrex serve did not end within $ACTION_WAIT s, and was killed"
        return 1
    fi
    [ "$(cat "$folder/status")" = 0 ] || {
        echo "imbrex serve ended with exit code $(cat "$folder/status")"
        return 1
    }
}

# Stops the server in $folder. Prints the reason if it cannot.
stop_server() {
    remove_device || return
    touch "$folder/stopped"
    end_server
}

if [ -n "$ACTION_SERVER" ]; then
    [ -f "$ACTION_SERVER/log" ] || fail "server is '$ACTION_SERVER', which is no folder of a server: give the output server of a start"
    folders=("$ACTION_SERVER")
else
    shopt -s nullglob
    folders=("$temporary"/imbrex-server.*)
fi
reasons=()
count=0
for folder in "${folders[@]}"; do
    [ ! -e "$folder/stopped" ] || continue
    count=$((count + 1))
    reason=$(stop_server 2>&1) || reasons+=("$reason: see the log above")
    print_log "$folder/log"
done
[ "$count" -gt 0 ] || echo "no server is running"
[ "${#reasons[@]}" -eq 0 ] || fail "$(printf '%s\n' "${reasons[@]}")"
