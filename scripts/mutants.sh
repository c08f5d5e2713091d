#!/usr/bin/env bash
# Mutation testing of what guards data: cargo-mutants alters one thing at a time, and a test must fail of it.
#
#   scripts/mutants.sh                       all of it: days
#   SHARD=1/20 scripts/mutants.sh            every twentieth mutant, from the first on
#   CRATES=device scripts/mutants.sh -F lost what is named so, of one crate; options go to cargo-mutants
#   PASSES=quick scripts/mutants.sh          against the tests within the crates alone
#
# Works on a copy in target/mutants, so that the checkout can be edited meanwhile. Each mutant meets the tests within its
# crate first, for they are built and run fastest; what survives meets those of a second and a third choice. The outcomes are
# in out/mutants/CRATE-PASS/mutants.out; the last lines count them. Exit code 0: nothing survived; 2: something did, listed
# above the counts; 1: it could not be run.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

crates=${CRATES:-disk layer sim device}
passes=${PASSES:-quick middle thorough}
out=$PWD/out/mutants
tree=$PWD/target/mutants/tree
export CARGO_TARGET_DIR=$PWD/target/mutants/build CARGO_PROFILE_DEV_DEBUG=0
# A counterexample need not be small.
export PROPTEST_MAX_SHRINK_ITERS=20
# The short forms of the tests that run every layer: one that rewrites in place, and so uses everything.
export IMBREX_LAYER=${IMBREX_LAYER:-region-rmw} IMBREX_DAMAGES=${IMBREX_DAMAGES:-40}

shard=()
if [ -n "${SHARD:-}" ]; then
    [[ $SHARD =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ ]] && [ "${BASH_REMATCH[1]}" -le "${BASH_REMATCH[2]}" ] || {
        echo "imbrex: SHARD=$SHARD: give the part and how many there are, as in SHARD=1/20" >&2
        exit 1
    }
    shard=(--sharding round-robin --shard "$((BASH_REMATCH[1] - 1))/${BASH_REMATCH[2]}")
fi

tests() { # CRATE PASS: the options of cargo-mutants that choose the tests; none for a pass that the crate has not.
    local names
    case $1-$2 in
    layer-quick) echo --cargo-arg=--lib --cargo-test-arg=verify; return ;;
    *-quick) echo --cargo-arg=--lib; return ;;
    layer-middle) names=mutants ;;
    layer-thorough) names=all_layers ;;
    sim-middle) names="caches carrier engine" ;;
    device-middle) names="bytes check image_damage volatile" ;;
    device-thorough) names="bounds caveat drive_power_loss faults hostile image_witnesses images open_damage power_loss
        zone_rules zoned" ;;
    *) return ;;
    esac
    # One program has all integration tests of a crate; these are the first parts of their names.
    printf -- '--cargo-arg=--test=all\n--cargo-test-arg=--\n'
    printf -- '--cargo-test-arg=%s::\n' $names
}

# Copies what differs: what is the same keeps its time, and is not built again.
copy_tree() {
    mkdir -p "$tree"
    local list=$tree.files
    git ls-files -co --exclude-standard | sort >"$list"
    while IFS= read -r file; do
        [ -e "$file" ] && ! cmp -s "$file" "$tree/$file" || continue
        mkdir -p "$(dirname "$tree/$file")"
        cp "$file" "$tree/$file"
    done <"$list"
    (cd "$tree" && find . -type f -printf '%P\n' | sort | comm -23 - "$list" | xargs -r -d '\n' rm -f)
}

# Mutants by their whole names, as the options that select them.
selected() { # FILE
    sed -E 's/[][\\.*^$+?(){}|]/\\&/g; s/^/^/; s/$/$/' "$1" | while IFS= read -r name; do printf -- '-F\0%s\0' "$name"; done
}

mutate() { # CRATE PASS OPTION…
    local crate=$1 pass=$2 status=0
    shift 2
    mkdir -p "$out/$crate-$pass"
    # 2: some survived; 3: some took too long, which is as good as caught.
    nice -n 10 cargo mutants --dir "$tree" --in-place --no-shuffle --output "$out/$crate-$pass" --package "imbrex-$crate" \
        $(tests "$crate" "$pass") "$@" || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 2 ] || [ "$status" -eq 3 ] || exit 1
}

copy_tree
# A compiler that was killed leaves state behind that does not link any more.
rm -rf "$out" "$CARGO_TARGET_DIR/debug/incremental"
for crate in $crates; do
    mutate "$crate" quick --timeout "${QUICK_S:-60}" "${shard[@]}" "$@"
    survived=$out/$crate-survived.txt
    cat "$out/$crate-quick/mutants.out/missed.txt" >"$survived" 2>/dev/null || true
    for pass in middle thorough; do
        [[ " $passes " == *" $pass "* ]] && [ -n "$(tests "$crate" "$pass")" ] && [ -s "$survived" ] || continue
        readarray -d '' -t names < <(selected "$survived")
        mutate "$crate" "$pass" --timeout "${THOROUGH_S:-600}" "${names[@]}"
        # Names do not keep out mutants that leave a field out; those met their tests before.
        grep -Fxf "$out/$crate-$pass/mutants.out/missed.txt" "$survived" >"$survived.now" || true
        mv "$survived.now" "$survived"
    done
done

count() { # OUTCOME: how many had it in the first pass
    cat "$out"/*-quick/mutants.out/"$1".txt 2>/dev/null | wc -l
}
echo
cat "$out"/*-survived.txt
survived=$(cat "$out"/*-survived.txt | wc -l)
viable=$(($(count caught) + $(count timeout) + $(count missed)))
echo "$((viable + $(count unviable))) mutants, of which $viable build: $((viable - survived)) caught, $survived survived" \
    "(listed above; docs/mutants.md says which may)"
[ "$survived" -eq 0 ] || exit 2
