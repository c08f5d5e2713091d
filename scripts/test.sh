#!/usr/bin/env bash
# Everything `make test` runs: formatting, lints, documentation, tests. Ends with one line of counts.
set -uo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log" "$log.action" "$log.guest" "$log.python" "$log.deny" "$log.nextest"' EXIT
failed=0

# Names the part that begins, and keeps the seconds that the part before it took.
times=() part="" begun=0
begin() { # NAME
    [ -z "$part" ] || times+=("$part $((SECONDS - begun)) s")
    part=$1 begun=$SECONDS
    [ -z "$1" ] || echo "── $1"
}

step() { # NAME COMMAND…
    begin "$1"
    shift
    "$@" || { echo "failed: $*" | tee -a "$log"; failed=1; }
}

step "format" cargo fmt --all --check
step "wording" scripts/words.py
step "links" scripts/links.py
step "lint" cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
step "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked --quiet

begin "dependencies"
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

begin "tests"
: >"$log.nextest"
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --workspace --locked --no-fail-fast --no-output-indent --color never 2>&1 | tee "$log.nextest"
    [ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
    begin "tests in the documentation"
    cargo test --doc --workspace --locked --no-fail-fast -- --show-output 2>&1 | tee -a "$log"
    [ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
else
    echo "cargo-nextest is not installed (scripts/install.sh test): cargo test runs all tests of a crate in one process"
    cargo test --workspace --locked --no-fail-fast -- --show-output 2>&1 | tee -a "$log"
    [ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
fi

begin "block devices, in a guest (all of it: make test-guest)"
# The program that the tests have just built: another selection of crates would build its dependencies anew.
IMBREX=${CARGO_TARGET_DIR:-target}/debug/imbrex scripts/guest/test.sh --core 2>&1 | tee "$log.guest"
[ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
cat "$log.guest" >>"$log"

begin "the action, by its steps"
IMBREX=${CARGO_TARGET_DIR:-target}/debug/imbrex scripts/action/test.sh 2>&1 | tee "$log.action"
[ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
cat "$log.action" >>"$log"

# The site itself needs mdBook: make site.
site=$(mktemp -d)
step "sources of the documentation site" python3 scripts/site/source.py "${CARGO_TARGET_DIR:-target}/debug/imbrex" "$site"
rm -rf "$site"

begin "the Python package, from its wheel"
scripts/test-python.sh 2>&1 | tee "$log.python"
[ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
cat "$log.python" >>"$log"
[ ! -e "$log.deny" ] || cat "$log.deny" >>"$log"

# Named again at the end, since the log is long: each failure with what it printed, at most 80 lines a program. cargo-nextest
# runs a program for each test, and prints a line with the outcome, what the test printed, and a summary after the last.
awk '
    /^ +Summary +\[/ {exit}
    /^ +[A-Z][-A-Z0-9 +]* +\[[> ]*[0-9.]+s\]/ {
        inside = $1 !~ /^(PASS|LEAK|SLOW|TERMINATING|KILLING)$/
        lines = 0
        if (inside) print "\n── failed:"
    }
    inside && lines++ < 80 {print}
' "$log.nextest"
awk '
    /^ +Running |^ +Doc-tests / {running = $0}
    /^failures:$/ && !inside {inside = 1; lines = 0; print "\n── failed:" running}
    /^test result:/ {inside = 0}
    inside && lines++ < 80 {print}
    /^(guest|python|action): FAILED|^FAILED / {print}
' "$log"

begin ""
summary=$(grep -E '^ +Summary +\[' "$log.nextest" | grep -oE '[0-9]+ (passed|failed|timed out|exec failed)')
passed=$({ awk '/^test result:/ {print $4} /^(guest|python|action): [0-9]+ passed/ {print $2}' "$log"; grep ' passed' <<<"$summary"; } |
    awk '{n += $1} END {print n + 0}')
broken=$({ awk '/^test result:/ {print $6} /^(guest|python|action): [0-9]+ passed/ {print $4}' "$log"; grep -v ' passed' <<<"$summary"; } |
    awk '{n += $1} END {print n + 0}')
skipped=$(cat "$log" "$log.nextest" | grep -c '^skipped: ')
echo
echo "── counted from the runs above"
[ "$failed" -eq 0 ] || [ "$broken" -gt 0 ] || broken=1
printf '%s\n' "times:" "${times[@]/#/    }"
grep -hE '^ +Summary +\[' "$log.nextest" | sed -E 's/^ +Summary +\[ *([0-9.]+)s\].*/    of the tests, without their build: \1 s/'
cat "$log" "$log.nextest" | grep '^skipped: ' | sort | uniq -c
# Each failure by name, as the last lines: a log is often read from its end.
sed -nE '/^ +Summary +\[/,$ s/^ +([A-Z][-A-Z0-9 +]*[A-Z0-9]) +\[[^]]*\]( \([^)]*\))? +(.*)/\1 \3/p' "$log.nextest"
grep -E '^error: could not compile' "$log.nextest" | sort -u
grep -E '^test .* \.\.\. FAILED$|^(guest|python|action): .*FAILED|^FAILED |^failed: |^error: (test failed|doctest failed|could not compile)' "$log" | sort -u
echo "$passed passed, $broken failed, $skipped skipped"
exit "$failed"
