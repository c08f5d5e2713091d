#!/bin/bash
# Runs the checks in the guest, each in a shell of its own, and counts. A check that exits with 77 has skipped itself.
passed=0 failed=0 skipped=0
source /test/lib.sh
# What `make test` runs.
core=' 10-ublk-attributes 15-in-use 20-ublk-ext4 70-zoned '
is_wanted() { # NAME
    case $GUEST_ONLY in
    '') true ;;
    core) [[ $core == *" $1 "* ]] ;;
    *) [[ $1 == *$GUEST_ONLY* ]] ;;
    esac
}
for check in /test/checks/*.sh; do
    name=$(basename "$check" .sh)
    is_wanted "$name" || continue
    begun=$SECONDS
    timeout -k 5 300 bash -c 'set -euxo pipefail; PS4="+ \$SECONDS "; source /test/lib.sh; source "$1"' check "$check" >/tmp/said 2>&1
    status=$?
    case $status in
    0) passed=$((passed + 1)) && echo "guest: $name: passed ($((SECONDS - begun)) s)" && grep -a '^result: ' /tmp/said ;;
    77) skipped=$((skipped + 1)) && echo "skipped: guest: $name: $(tail -1 /tmp/said)" ;;
    *)
        failed=$((failed + 1))
        echo "guest: $name: FAILED with $status"
        tail -n 40 /tmp/said /tmp/serve.log
        dmesg | tail -n 8
        ;;
    esac
    clean_up
done
echo "guest: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
