#!/usr/bin/env bash
# Everything `make test` runs: formatting, lints, documentation, tests. Ends with one line of counts.
set -uo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log" "$log.guest" "$log.python" "$log.deny"' EXIT
failed=0

step() { # NAME COMMAND…
    echo "── $1"
    shift
    "$@" || { echo "failed: $*" | tee -a "$log"; failed=1; }
}

step "format" cargo fmt --all --check
step "wording" scripts/words.py
step "links" scripts/links.py
step "lint" cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
step "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked --quiet

echo "── dependencies"
if command -v cargo-deny >/dev/null 2>&1; then
    # The database of advisories is fetched only by those who ask for it: `cargo deny fetch`.
    step "licences, sources, duplicates" cargo deny --offline check --hide-inclusion-graph licenses bans sources
    if [ -d "${CARGO_HOME:-$HOME/.cargo}/advisory-dbs" ]; then
        step "advisories" cargo deny --offline check advisories
    else
        echo "skipped: the database of advisories is not here (cargo deny fetch)" | tee -a "$log.deny"
    fi
else
    echo "skipped: cargo-deny is not installed (cargo install --locked cargo-deny)" | tee -a "$log.deny"
fi

echo "── tests"
cargo test --workspace --locked --no-fail-fast -- --show-output 2>&1 | tee -a "$log"
[ "${PIPESTATUS[0]}" -eq 0 ] || failed=1

echo "── block devices, in a guest (all of it: make test-guest)"
# The program that the tests have just built: another selection of crates would build its dependencies anew.
IMBREX=${CARGO_TARGET_DIR:-target}/debug/imbrex scripts/guest/test.sh --core 2>&1 | tee "$log.guest"
[ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
cat "$log.guest" >>"$log"

echo "── the Python package, from its wheel"
scripts/test-python.sh 2>&1 | tee "$log.python"
[ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
cat "$log.python" >>"$log"
[ ! -e "$log.deny" ] || cat "$log.deny" >>"$log"

# Named again at the end, since the log is long: each failure with what it printed, at most 80 lines a program.
awk '
    /^ +Running |^ +Doc-tests / {running = $0}
    /^failures:$/ && !inside {inside = 1; lines = 0; print "\n── failed:" running}
    /^test result:/ {inside = 0}
    inside && lines++ < 80 {print}
    /^(guest|python): FAILED|^FAILED / {print}
' "$log"

passed=$(awk '/^test result:/ {n += $4} /^(guest|python): [0-9]+ passed/ {n += $2} END {print n + 0}' "$log")
broken=$(awk '/^test result:/ {n += $6} /^(guest|python): [0-9]+ passed/ {n += $4} END {print n + 0}' "$log")
skipped=$(grep -c '^skipped: ' "$log")
echo
echo "── counted from the runs above"
[ "$failed" -eq 0 ] || [ "$broken" -gt 0 ] || broken=1
grep '^skipped: ' "$log" | sort | uniq -c
# Each failure by name, as the last lines: a log is often read from its end.
grep -E '^test .* \.\.\. FAILED$|^(guest|python): .*FAILED|^FAILED |^failed: |^error: (test failed|doctest failed|could not compile)' "$log" | sort -u
echo "$passed passed, $broken failed, $skipped skipped"
exit "$failed"
