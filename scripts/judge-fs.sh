#!/usr/bin/env bash
# Judges the file systems behind a mount, by programs that others wrote: pjdfstest, fsx (with kills of the server), stress-ng,
# fio with verify, dbench, SQLite, git, rsync, and a source tree that is unpacked, compiled and compared. A line for each.
#
#   scripts/judge-fs.sh                        every part on every store
#   scripts/judge-fs.sh caveat                 on one: strict-append, caveat, log, and arrays of five drives with store log
#                                              that may lose one or two of them: log-5-1, log-5-2
#   scripts/judge-fs.sh strict-append fsx git  some parts
#
# IMBREX_JUDGE_SECONDS (60) is how long fsx and the stressors take each; IMBREX names the program. Root, for pjdfstest acts as
# several users. Exit code 0: nobody found anything.
set -uo pipefail
cd "$(dirname "$0")/.."
tree=$PWD
seconds=${IMBREX_JUDGE_SECONDS:-60}
parts="pjdfstest fsx stress fio dbench sqlite git rsync compile"
tools=$PWD/target/judges
work=$(mktemp -d "${TMPDIR:-/tmp}/imbrex-judge.XXXXXX")
chmod 755 "$work" # other users look into it
failed=0

install_judges() {
    local want=() pair
    for pair in stress-ng:stress-ng fio:fio dbench:dbench sqlite3:sqlite3 git:git rsync:rsync; do
        # Some parts below have the names of their programs.
        type -P "${pair%:*}" >/dev/null || want+=("${pair#*:}")
    done
    if [ "${#want[@]}" -gt 0 ]; then
        echo "imbrex: installing ${want[*]} (apt-get)" >&2
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${want[@]}" >/dev/null || exit 1
    fi
    local crate
    for crate in pjdfstest@0.2.2 fsx@0.3.2; do
        [ -x "$tools/bin/${crate%@*}" ] && continue
        echo "imbrex: building $crate (cargo)" >&2
        cargo install --quiet --locked --root "$tools" "$crate" || exit 1
    done
}

tell() { # PART OUTCOME WORDS
    printf '%-14s %-10s %-5s %5ss  %s\n' "$store" "$1" "$2" "$SECONDS" "$3"
    [ "$2" = ok ] || failed=1
}

mount_it() { "$imbrex" fs mount -q "$work/drive0.img" "$mnt" -o allow_other,suid,dev; } # it finds the others
server() { "$imbrex" fs stat "$mnt" --json | grep -o '"process": *[0-9]*' | grep -o '[0-9]*$'; }

# Runs a script in the mounted directory: what it prints last is told.
run() { # PART SCRIPT
    SECONDS=0
    if (cd "$mnt" && bash -eu -o pipefail -c "$2") >"$work/$1.log" 2>&1; then
        tell "$1" ok "$(tail -1 "$work/$1.log")"
    else
        tell "$1" FAIL "$(tail -1 "$work/$1.log")"
        tail -40 "$work/$1.log" >&2
    fi
}

pjdfstest() {
    mkdir -p "$work/other"
    cat >"$work/pjdfstest.toml" <<-END
		[features]
		posix_fallocate = {}
		rename_ctime = {}
		utimensat = {}
		utime_now = {}
		stat_st_birthtime = {}
		[settings]
		naptime = 0.05
		allow_remount = false
		[dummy_auth]
		entries = [["nobody", "nogroup"], ["daemon", "daemon"], ["bin", "bin"]]
	END
    mkdir "$mnt/pjd"
    run pjdfstest "'$tools/bin/pjdfstest' -c '$work/pjdfstest.toml' -p '$mnt/pjd' -s '$work/other' | tee '$work/all' |
        grep '^Summary'"
    grep -E ' (skipped|FAILED)$' "$work/all" | sed 's/^/    /'
    rm -rf "$mnt/pjd"
}

# One run after another, each with a seed of its own; the server is killed under every second one.
fsx() {
    SECONDS=0
    local seed=0 kills=0 runs=0 end=$((seconds)) outcome
    while [ "$SECONDS" -lt "$end" ]; do
        seed=$((seed + 1))
        if [ $((seed % 2)) = 1 ]; then
            if ! timeout 600 "$tools/bin/fsx" -q -S $seed -N 20000 -P "$work" "$mnt/fsx$seed" >"$work/fsx.log" 2>&1; then
                tell fsx FAIL "seed $seed: $(tail -1 "$work/fsx.log")"
                return
            fi
            rm -f "$mnt/fsx$seed"
            runs=$((runs + 1))
        else
            "$tools/bin/fsx" -q -S $seed -P "$work" "$mnt/killed" >/dev/null 2>&1 &
            sleep 1
            echo "kept $seed" >"$mnt/kept"
            sync "$mnt/kept"
            kill -KILL "$(server)"
            wait
            if ! { mount_it && [ "$(cat "$mnt/kept")" = "kept $seed" ] && "$imbrex" fs umount -q "$mnt" &&
                "$imbrex" fs check -q "$work/drive0.img" >"$work/fsx.log" 2>&1 && mount_it; }; then
                tell fsx FAIL "a killed server, seed $seed: $(tail -1 "$work/fsx.log")"
                return
            fi
            kills=$((kills + 1))
        fi
    done
    tell fsx ok "$runs runs of 20,000 operations, $kills servers killed"
}

stress() { run stress "mkdir stress && stress-ng --class filesystem --seq 1 --timeout $stressor --temp-path stress --verify \
    --metrics-brief --exclude binderfs,ramfs,tun,sync-file,dev,procfs,sysfs > '$work/stress.all' 2>&1 || {
        grep -iE 'fail|unsuccessful' '$work/stress.all'; exit 1; }
    rm -rf stress
    grep -c 'metrc' '$work/stress.all' | sed 's/\$/ lines of stressors, none failed/'"; }
stressor=${IMBREX_STRESSOR_SECONDS:-2}
fio() { run fio "fio --name=v --directory=. --size=256m --bs=4k --rw=randwrite --verify=crc32c --do_verify=1 \
    --verify_fatal=1 --randseed=5 --group_reporting | grep -E 'WRITE:|READ:' ; rm -f v.*; echo verified"; }
dbench() { run dbench "mkdir db && dbench -D db -t 10 4 | grep Throughput; rm -rf db"; }
sqlite() { run sqlite "for mode in delete wal; do rm -f t.db*; sqlite3 -bail t.db \"pragma journal_mode=\$mode;
    create table t(a integer primary key, b blob);
    with recursive n(i) as (select 1 union all select i+1 from n where i<20000) insert into t select i, randomblob(200) from n;
    update t set b=randomblob(300) where a%3=0; delete from t where a%5=0; vacuum; pragma integrity_check;
    select count(*) from t;\" | tee /dev/stderr | tail -2 | tr '\\n' ' ' | grep -x 'ok 16000 '; done; rm -f t.db*
    echo 'both journals: whole, 16000 rows'"; }
git_() { run git "git clone -q '$tree' clone && cd clone && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x &&
    git gc -q && git fsck --full --strict && git status --porcelain | wc -l && cd .. && rm -rf clone && echo 'cloned, packed, checked'"; }
rsync() { run rsync "mkdir home; rsync -aHAX /usr/share/doc/ home/
    rsync -aHAXn --delete --checksum --itemize-changes /usr/share/doc/ home/ | wc -l | grep -x 0
    find home | wc -l | sed 's/\$/ files, none differs/' | tee '$work/rsync.found'; rm -rf home; cat '$work/rsync.found'"; }
compile() { run compile "git -C '$tree' archive HEAD | tar x --one-top-level=source &&
    mkdir -p '$work/source' && git -C '$tree' archive HEAD | tar x -C '$work/source' && diff -r source '$work/source' &&
    (cd source && CARGO_TARGET_DIR=\$PWD/target cargo test -q --locked -p imbrex-units 2>&1 | grep 'test result' | head -1) &&
    rm -rf source/target && diff -r source '$work/source' && rm -rf source && echo 'unpacked, compiled, its tests run, compared'"; }

# New drives with a new file system.
make_it() {
    local drive profile=strict-append-2t count=1 words=()
    rm -f "$work"/drive?.img "$work/meta"
    case $store in
    caveat) profile=caveat-2t ;;
    log) words=(--store log --meta "$work/meta" --meta-size 64GiB) ;;
    log-5-?) count=5 words=(--store log --parity "${store#log-5-}" --meta "$work/meta" --meta-size 64GiB) ;;
    esac
    drives=()
    for drive in $(seq 0 $((count - 1))); do
        drives+=("$work/drive$drive.img")
        "$imbrex" drive create -q "$work/drive$drive.img" --drive "$profile" >/dev/null || return
    done
    "$imbrex" fs mkfs -q "${drives[@]}" "${words[@]}" >/dev/null
}

judge() { # STORE PARTS…
    store=$1 mnt=$work/mnt
    shift
    mkdir -p "$mnt"
    make_it && mount_it || { failed=1; return; }
    local part
    for part in "$@"; do
        if [ "$part" = git ]; then git_; else "$part"; fi
    done
    SECONDS=0
    local found
    found=$("$imbrex" fs umount -q "$mnt" 2>&1 && "$imbrex" fs check "$work/drive0.img" 2>&1) && tell check ok "${found#*: }" ||
        tell check FAIL "$found"
    local drive
    for drive in "${drives[@]}"; do
        found=$("$imbrex" drive check -q "$drive" 2>&1) && tell drive ok "no live sector destroyed, no write off a pointer" ||
            tell drive FAIL "$found"
    done
}

end() {
    "$imbrex" fs umount -q "$work/mnt" >/dev/null 2>&1
    rm -rf "$work"
}

[ "$(id -u)" = 0 ] || { echo "imbrex: pjdfstest acts as several users: run this as root" >&2; exit 1; }
[ -e /dev/fuse ] || { echo "imbrex: SKIPPED: there is no /dev/fuse" >&2; exit 0; }
install_judges
if [ -z "${IMBREX:-}" ]; then
    cargo build --release --locked -p imbrex-cli || exit 1
fi
imbrex=${IMBREX:-$tree/target/release/imbrex}
trap end EXIT
stores="strict-append caveat log log-5-1 log-5-2"
case "${1:-}" in strict-append | caveat | log | log-5-1 | log-5-2) stores=$1; shift ;; esac
for store in $stores; do
    judge "$store" ${*:-$parts}
done
exit $failed
