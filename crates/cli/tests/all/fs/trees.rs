//! Goal: usual work on files succeeds. Method: a tree of source files is unpacked, copied, moved, linked, removed and
//! compiled on each store, compared with the same operations on the host's own file system, and compared again after
//! remounting.

use std::path::Path;

use super::common::{Bench, STORES, has_fuse, json, shell, text, word};

/// Does the work in the directory `work`, on the host's file system or on the mounted one.
fn work_in(work: &Path, sources: &Path) {
    std::fs::create_dir(work).unwrap();
    let script = format!(
        "tar -C {} -cf - src tests | tar -xf -
         cp -a src copy
         mv copy/core moved
         ln moved/mod.rs linked.rs
         ln -s ../src/lib.rs moved/pointer
         rm -r copy/store
         mkdir -p deep/er/still && mv deep/er/still/. . 2>/dev/null || rmdir deep/er/still
         seq 1 200000 > numbers
         cp numbers copy/numbers
         printf 'in the middle' | dd of=numbers bs=1 seek=777777 conv=notrunc status=none
         truncate -s 1000001 copy/numbers
         chmod 750 moved && touch -d '2001-02-03 04:05:06.789' linked.rs",
        sources.display()
    );
    shell(work, &script);
}

fn compile_in(folder: &Path) {
    for part in 0..8 {
        let text = format!("int part{part}(int x) {{ return x * {part} + 1; }}\n");
        std::fs::write(folder.join(format!("part{part}.c")), text).unwrap();
    }
    let calls: Vec<String> = (0..8).map(|part| format!("part{part}({part})")).collect();
    let declared: String = (0..8).map(|part| format!("int part{part}(int);\n")).collect();
    let main = format!("{declared}int main(void) {{ return ({}) == 148 ? 0 : 1; }}\n", calls.join(" + "));
    std::fs::write(folder.join("main.c"), main).unwrap();
    shell(folder, "for file in *.c; do cc -c $file; done; cc -o program *.o; ./program");
}

#[test]
fn a_tree_is_the_same_as_on_the_hosts_file_system_and_after_remounting() {
    if !has_fuse() {
        return;
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fs");
    for (store, drive) in STORES {
        let bench = Bench::new(drive);
        let model = bench.folder().join("model");
        work_in(&model, &sources);
        let mounted = bench.mount(&[]);
        work_in(&mounted.path("work"), &sources);
        let compare =
            |ours: &Path| shell(bench.folder(), &format!("diff -r --no-dereference model {}", ours.display()));
        compare(&mounted.path("work"));
        let names = "find . -printf '%P %y %m %n %l\\n' | sort";
        let ours = mounted.path("work");
        shell(&model, &format!("{names} > ../names"));
        shell(&ours, &format!("{names} | diff - {}", bench.folder().join("names").display()));
        shell(&ours, "test $(stat -c %Y.%y linked.rs | grep -c '04:05:06.789') = 1");
        std::fs::create_dir(mounted.path("program")).unwrap();
        compile_in(&mounted.path("program"));
        let status = json(&["fs", "stat", word(mounted.directory()), "--json"]);
        assert_eq!(status["store"], store);
        mounted.unmount();
        bench.check();
        let mounted = bench.mount(&["-o", "ro"]);
        compare(&mounted.path("work"));
        shell(&mounted.path("program"), "./program");
        assert!(std::fs::write(mounted.path("new"), "x").is_err(), "{store}: it is read-only");
        mounted.unmount();
        let dumped = json(&["fs", "dump", word(&bench.image), "--json"]);
        let paths = dumped["files"].as_array().unwrap().iter().filter_map(|file| file["path"].as_str());
        assert!(paths.clone().any(|path| path == "/work/moved/pointer"), "{store}: {:?}", paths.collect::<Vec<_>>());
    }
}

#[test]
fn metadata_may_lie_in_a_file_of_their_own_which_is_found_beside_the_drive() {
    if !has_fuse() {
        return;
    }
    for (store, drive) in STORES {
        let bench = Bench::blank(drive);
        let meta = bench.folder().join("meta");
        text(&["fs", "mkfs", word(&bench.image), "--meta", word(&meta), "--meta-size", "64MiB"]);
        let mounted = bench.mount(&[]);
        std::fs::write(mounted.path("file"), store).unwrap();
        mounted.unmount();
        bench.check();
        let mounted = bench.mount(&[]);
        assert_eq!(std::fs::read_to_string(mounted.path("file")).unwrap(), store);
        mounted.unmount();
        // The file system is found by the device with the metadata alone, too.
        let status = json(&["fs", "stat", word(&meta), "--json"]);
        assert_eq!(status["devices"].as_array().map(Vec::len), Some(2));
        std::fs::rename(&meta, bench.folder().join("mnt/elsewhere")).unwrap();
        let (code, words) = super::common::failure(&["fs", "stat", word(&bench.image)]);
        assert_eq!(code, Some(1), "{words}");
        assert!(words.contains("missing"), "{words}");
    }
}

#[test]
fn unmounting_waits_a_moment_for_what_is_still_open() {
    if !has_fuse() {
        return;
    }
    let bench = Bench::new("strict-append");
    let mounted = bench.mount(&[]);
    let file = std::fs::File::create(mounted.path("file")).unwrap();
    let closing = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        drop(file);
    });
    mounted.unmount();
    closing.join().unwrap();
    bench.check();
}

#[test]
fn what_is_dead_is_cleaned_by_hand() {
    if !has_fuse() {
        return;
    }
    let bench = Bench::new("strict-append");
    let mounted = bench.mount(&[]);
    for round in 0..3u8 {
        for file in 0..24 {
            std::fs::write(mounted.path(&format!("file{file}")), vec![round; 1 << 20]).unwrap();
        }
    }
    mounted.unmount();
    let before = json(&["fs", "stat", word(&bench.image), "--json"]);
    assert!(before["dead_blocks"].as_u64().unwrap() > 0, "{before}");
    let cleaned = json(&["fs", "clean", word(&bench.image), "--json"]);
    assert!(cleaned["zones_emptied"].as_u64().unwrap() > 0, "{cleaned}");
    assert_eq!(cleaned["dead_blocks"], 0, "{cleaned}");
    bench.check();
    let mounted = bench.mount(&[]);
    for file in 0..24 {
        assert_eq!(std::fs::read(mounted.path(&format!("file{file}"))).unwrap(), vec![2; 1 << 20]);
    }
    mounted.unmount();
}
