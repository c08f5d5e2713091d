//! Goal: no command overwrites targets or files that are not its own. Method: the built program, each command that
//! erases a target and each that writes an output, on targets that have contents or are in use; afterwards every byte
//! of the targets is compared.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use imbrex_testkit::loop_device::LoopDevice;

use crate::nbd::common::*;

const TARGET_BYTES: u64 = 64 << 20;

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_string()
}

/// Runs the program. Returns its exit code and its output.
fn tried(words: &[String]) -> (Option<i32>, String) {
    let output = imbrex(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains("panicked"), "{words:?}: {said}");
    (output.status.code(), said)
}

fn done(words: &[&str]) {
    let (code, said) = tried(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(code, Some(0), "{words:?}: {said}");
}

/// A folder with an array of three drives and two copies of the metadata, not mounted.
struct Array {
    folder: tempfile::TempDir,
}

impl Array {
    fn new() -> Array {
        let array = Array { folder: tempfile::tempdir().unwrap() };
        for name in ["d0", "d1", "d2", "m0", "m1"] {
            File::create(array.path(name)).unwrap().set_len(TARGET_BYTES).unwrap();
        }
        let [d0, d1, d2, m0, m1] = ["d0", "d1", "d2", "m0", "m1"].map(|name| text(&array.path(name)));
        done(&["fs", "mkfs", "--store", "log", "--parity", "1", &d0, &d1, &d2, "--meta", &m0, "--meta", &m1]);
        array
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns every command that erases a target, with `target` as the target.
    fn commands(&self, target: &str) -> Vec<Vec<String>> {
        let [d0, d1, d2] = ["d0", "d1", "d2"].map(|name| text(&self.path(name)));
        let spare = |name: &str| {
            let path = self.path(name);
            File::create(&path).unwrap().set_len(TARGET_BYTES).unwrap();
            text(&path)
        };
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<String>>();
        vec![
            words(&["fs", "mkfs", "--store", "log", target]),
            words(&["fs", "mkfs", "--store", "log", &spare("blank"), "--meta", target]),
            words(&["fs", "mkfs", "--store", "log", &spare("blank"), "--meta", target]),
            words(&[
                "fs",
                "mkfs",
                "--store",
                "log",
                "--parity",
                "1",
                &spare("b0"),
                &spare("b1"),
                "--meta",
                &spare("b2"),
                "--spare",
                target,
            ]),
            words(&["fs", "add", &d0, "--drive", target]),
            words(&["fs", "add", &d0, "--spare", target]),
            words(&["fs", "replace", &d0, "--drive", "1", "--with", target]),
            words(&["fs", "replace", &d0, "--copy", "1", "--with", target]),
            words(&["fs", "salvage", &d0, &d1, &d2, "--meta", target]),
            words(&["probe", target, "--destroy-data", "--test", "rotation"]),
        ]
    }
}

/// Asserts that every command refuses `target` with exit code 1 and a message with each of `words`, and leaves the file
/// at `bytes` unchanged.
fn all_refuse(array: &Array, target: &str, bytes: &Path, options: &[&str], words: &[&str]) {
    let before = fs::read(bytes).unwrap();
    for command in array.commands(target) {
        let command = [command, options.iter().map(ToString::to_string).collect()].concat();
        let (code, said) = tried(&command);
        assert_eq!(code, Some(1), "{command:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{command:?} does not say '{word}': {said}");
        }
        assert!(fs::read(bytes).unwrap() == before, "{command:?} wrote to {}", bytes.display());
    }
}

#[test]
fn contents_of_anyone_are_refused_without_force_by_every_command() {
    let array = Array::new();
    let place = |name: &str| array.path(name);
    let marked = |name: &str, marks: &[(u64, &[u8])]| {
        let file = File::create(place(name)).unwrap();
        file.set_len(TARGET_BYTES).unwrap();
        marks.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
    };
    marked("xfs", &[(0, b"XFSB"), (108, b"archive")]);
    all_refuse(
        &array,
        &text(&place("xfs")),
        &place("xfs"),
        &[],
        &["64 MiB", "an XFS file system (\"archive\")", "--force"],
    );
    all_refuse(&array, &text(&place("xfs")), &place("xfs"), &["--yes"], &["an XFS file system", "--force"]);
    marked("gpt", &[(512, b"EFI PART")]);
    all_refuse(&array, &text(&place("gpt")), &place("gpt"), &[], &["a GPT partition table"]);
    marked("diary", &[(60 << 20, b"Dear diary")]);
    all_refuse(&array, &text(&place("diary")), &place("diary"), &[], &["holds data"]);
    let other = text(&place("other-fs"));
    marked("other-fs", &[]);
    done(&["fs", "mkfs", "--store", "log", &other]);
    all_refuse(&array, &other, &place("other-fs"), &[], &["a file system of imbrex fs"]);
}

#[test]
fn a_file_system_inside_an_image_is_refused_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let [image, meta] = ["image", "meta"].map(|name| text(&folder.path().join(name)));
    done(&["drive", "create", &image, "--drive", "cmr-7200"]);
    let server = Server::start(folder.path(), &[&image, "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    let mut block = vec![0; 4096];
    block[..4].copy_from_slice(b"XFSB");
    assert_eq!(client.write(0, &block), 0);
    server.stop();
    let before = fs::read(&image).unwrap();
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<String>>();
    let mkfs = words(&["fs", "mkfs", "--store", "log", &image, "--meta", &meta, "--meta-size", "4GiB"]);
    for command in [mkfs.clone(), words(&["probe", &image, "--destroy-data", "--test", "rotation"])] {
        let (code, said) = tried(&command);
        assert_eq!(code, Some(1), "{command:?}: {said}");
        assert!(said.contains("an XFS file system") && said.contains("--force"), "{said}");
        assert!(fs::read(&image).unwrap() == before, "{command:?} wrote to the image");
        assert!(!Path::new(&meta).exists(), "the file for the metadata is removed again");
    }
    let (code, said) = tried(&[mkfs, words(&["--force"])].concat());
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = tried(&words(&["probe", &image, "--destroy-data", "--test", "rotation"]));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("a file system of imbrex fs") && !said.contains("XFS"), "the old signature is gone: {said}");
}

#[test]
fn a_target_in_use_is_refused_by_every_command_whatever_is_allowed() {
    let array = Array::new();
    let backing = array.path("backing");
    File::create(&backing).unwrap().set_len(TARGET_BYTES).unwrap();
    let Some(device) = LoopDevice::over(&text(&backing)) else { return };
    let options: [&[&str]; 2] = [&[], &["--force", "--yes"]];
    for options in options {
        all_refuse(&array, &text(&backing), &backing, options, &["in use", "it is behind /dev/loop"]);
    }
    if !has(&["mkfs.ext4", "mount", "umount"], "a mounted device") {
        return;
    }
    run("mkfs.ext4", &["-q", "-L", "home", "-E", "lazy_itable_init=0,lazy_journal_init=0", &device.0]);
    all_refuse(&array, &device.0, &backing, &[], &["ext4", "home", "--force"]);
    let place = array.path("mounted");
    fs::create_dir(&place).unwrap();
    // No thread of the kernel may write to the file system while the test compares its bytes.
    let mounted = output("mount", &["-o", "noinit_itable,noatime,commit=3600", &device.0, place.to_str().unwrap()]);
    if !mounted.status.success() {
        eprintln!("skipped: a mounted device ({})", String::from_utf8_lossy(&mounted.stderr).trim());
        return;
    }
    fs::write(place.join("letter"), "hello").unwrap();
    run("sync", &["-f", place.to_str().unwrap()]);
    for options in options {
        all_refuse(&array, &device.0, &backing, options, &["in use", "is mounted at", "--force does not help"]);
    }
    run("umount", &[place.to_str().unwrap()]);
    run("e2fsck", &["-fn", &device.0]);
    // A file handle that holds the device exclusively.
    let holder = File::options().read(true).custom_flags(libc::O_EXCL).open(&device.0).unwrap();
    for options in options {
        all_refuse(&array, &device.0, &backing, options, &["in use", "exclusively"]);
    }
    drop(holder);
    done(&["fs", "mkfs", "--store", "log", &device.0, "--force"]);
    let left = run("wipefs", &["--no-act", &device.0]);
    assert!(!left.contains("ext4"), "nothing takes it for what it was: {left}");
}

#[test]
fn a_block_device_is_shown_and_asked_about_on_a_terminal() {
    if !has(&["script"], "the question on a terminal") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let backing = folder.path().join("backing");
    File::create(&backing).unwrap().set_len(TARGET_BYTES).unwrap();
    let Some(device) = LoopDevice::over(&text(&backing)) else { return };
    let asked = |options: &str, answer: &str| {
        // `exec`: a waiting shell would be interrupted too, and return its own exit code.
        let command = format!("exec {} fs mkfs --store log {} {options}", env!("CARGO_BIN_EXE_imbrex"), device.0);
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The answer is typed once the question is printed; where the program does not ask, the output ends.
        let (mut said, mut bytes) = (String::new(), [0; 4096]);
        // Kept open: closing it would end the terminal.
        let (mut stdin, mut open) = (child.stdin.take(), None);
        loop {
            let count = child.stdout.as_mut().unwrap().read(&mut bytes).unwrap();
            if count == 0 {
                break;
            }
            said.push_str(&String::from_utf8_lossy(&bytes[..count]));
            if said.contains("Type yes")
                && let Some(mut stdin) = stdin.take()
            {
                writeln!(stdin, "{answer}").unwrap();
                open = Some(stdin);
            }
        }
        drop(open);
        (child.wait().unwrap().code(), said)
    };
    let before = fs::read(&backing).unwrap();
    let (code, said) = asked("", "no");
    assert_eq!(code, Some(1), "{said}");
    for word in
        ["64 MiB", "model", "serial number", "contents: nothing", "Type yes", "not confirmed; nothing was written"]
    {
        assert!(said.contains(word), "'{word}' is not said: {said}");
    }
    assert!(fs::read(&backing).unwrap() == before, "nothing was written");
    let (code, said) = asked("", "\u{3}");
    assert_eq!(code, Some(1), "Ctrl-C: {said}");
    assert!(said.contains("not confirmed; nothing was written") && !said.contains("finishing"), "{said}");
    assert!(fs::read(&backing).unwrap() == before, "nothing was written");
    let (code, said) = asked("", "yes");
    assert_eq!((code, said.matches("Type yes").count()), (Some(0), 1), "{said}");
    let (code, said) = asked("--yes", "no");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("a file system of imbrex fs") && said.contains("--force"), "{said}");
    let (code, said) = asked("--yes --force", "no");
    assert_eq!((code, said.matches("Type yes").count()), (Some(0), 0), "{said}");
}

#[test]
fn each_existing_path_is_refused_for_a_new_image() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    fs::write(place("empty"), "").unwrap();
    fs::write(place("letter"), "hello").unwrap();
    symlink("letter", place("link")).unwrap();
    symlink("nothing", place("dangling")).unwrap();
    for name in ["empty", "letter", "link", "dangling"] {
        let words = ["drive", "create", &text(&place(name)), "--drive", "cmr-7200"].map(str::to_string);
        let (code, said) = tried(&words);
        assert_eq!(code, Some(1), "{name}: {said}");
        assert!(said.contains("exists already"), "{name}: {said}");
    }
    assert_eq!(fs::read(place("letter")).unwrap(), b"hello");
    assert!(!place("nothing").exists(), "a link is not followed to make a file");
}

#[test]
fn no_output_replaces_an_input() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let trace = "128166372003061629,hm,0,Read,383496192,32768,1331\n128166372003161629,hm,0,Write,0,4096,1331\n";
    fs::write(place("t.csv"), trace).unwrap();
    symlink("t.csv", place("link.csv")).unwrap();
    fs::hard_link(place("t.csv"), place("hard.csv")).unwrap();
    fs::create_dir(place("sub")).unwrap();
    let input = text(&place("t.csv"));
    for name in ["t.csv", "link.csv", "hard.csv", "sub/../t.csv"] {
        let output = text(&place(name));
        for words in [
            vec!["trace", "convert", &input, &output],
            vec!["trace", "convert", &input, &output, "--to", "fio-iolog"],
            vec!["trace", "info", &input, "--plot", &output],
            vec!["probe", &input, "--report", &output],
        ] {
            let (code, said) = tried(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(code, Some(1), "{words:?}: {said}");
            assert!(said.contains("is the input") && said.contains("another name"), "{words:?}: {said}");
            assert_eq!(fs::read_to_string(place("t.csv")).unwrap(), trace, "{words:?}");
        }
    }
    // The profile of a drive is an input, also with a layer and parameters after it.
    let profile = "base = \"cmr-7200\"\nname = \"mine\"\nsummary = \"my drive\"\ndefault_layer = \"conventional\"\n";
    fs::write(place("my.toml"), profile).unwrap();
    let (profile_path, words) = (text(&place("my.toml")), ["--columns", "time,op,offset,size,latency"]);
    fs::write(place("m.csv"), "0,read,0,4096,0.008\n1,read,40960000,4096,0.009\n").unwrap();
    for drive in ["", "+conventional", "+conventional:host.queue=16"] {
        let (drive, measured) = (format!("{profile_path}{drive}"), text(&place("m.csv")));
        let report = ["--drive", &drive, "--report", &profile_path];
        let words = [&["validate", &measured][..], &words, &["--units", "s,,B,B,s"], &report].concat();
        let (code, said) = tried(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert!(code == Some(1) && said.contains("is the input"), "{drive}: {said}");
    }
    assert_eq!(fs::read_to_string(place("my.toml")).unwrap(), profile);
    // A trace with the name of one of the program's result files.
    let [out, rows] = ["sub", "sub/ios.parquet"].map(|name| text(&place(name)));
    done(&["trace", "convert", &input, &rows, "--to", "imbrex"]);
    let before = fs::read(&rows).unwrap();
    let (code, said) =
        tried(&["simulate", &rows, "--drive", "cmr-7200", "--out", &out, "--per-io"].map(str::to_string));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("is the input"), "{said}");
    assert!(fs::read(&rows).unwrap() == before);
    // A file that is no input is replaced, as other tools do.
    fs::write(place("old.csv"), "old").unwrap();
    done(&["trace", "convert", &input, &text(&place("old.csv"))]);
    assert_ne!(fs::read(place("old.csv")).unwrap(), b"old");
}

#[test]
fn no_output_goes_to_a_block_device() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let backing = place("backing");
    File::create(&backing).unwrap().set_len(TARGET_BYTES).unwrap();
    let Some(device) = LoopDevice::over(&text(&backing)) else { return };
    fs::write(place("t.csv"), "time,op,offset,size\n0.0,read,0,4096\n").unwrap();
    symlink(&device.0, place("page.html")).unwrap();
    symlink(&device.0, place("profile.toml")).unwrap();
    fs::create_dir(place("out")).unwrap();
    symlink(&device.0, place("out/report.html")).unwrap();
    let [trace, page, profile, out] = ["t.csv", "page.html", "profile.toml", "out"].map(|name| text(&place(name)));
    for words in [
        vec!["trace", "convert", &trace, &device.0, "--to", "fio-iolog"],
        vec!["trace", "info", &trace, "--plot", &device.0],
        vec!["probe", "sim:cmr-7200", "--report", &page],
        vec!["probe", "sim:cmr-7200", "--emit-profile", &profile],
        vec!["simulate", &trace, "--drive", "cmr-7200", "--out", &out],
    ] {
        let (code, said) = tried(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(code, Some(1), "{words:?}: {said}");
        assert!(said.contains("block device"), "{words:?}: {said}");
        assert!(fs::read(&backing).unwrap().iter().all(|byte| *byte == 0), "{words:?} wrote to the device");
    }
}

#[test]
fn a_folder_keeps_what_is_not_ours() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    fs::create_dir(place("out")).unwrap();
    fs::write(place("out/notes.txt"), "mine").unwrap();
    let out = text(&place("out"));
    let simulate = ["simulate", "rw=randwrite,bs=4k,number_ios=100", "--drive", "cmr-7200", "--out", &out];
    done(&simulate);
    done(&simulate);
    assert_eq!(fs::read(place("out/notes.txt")).unwrap(), b"mine", "another name stays, and our files are replaced");
    for name in ["report.html", "summary.json", "latency.parquet", "plan.jsonl"] {
        let path = place("out").join(name);
        let ours = fs::read(&path).ok();
        fs::write(&path, "somebody's own").unwrap();
        let (code, said) = tried(&simulate.map(str::to_string));
        assert_eq!(code, Some(1), "{name}: {said}");
        assert!(said.contains(name) && said.contains("not written by imbrex"), "{name}: {said}");
        assert_eq!(fs::read(&path).unwrap(), b"somebody's own");
        match ours {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
    }
    fs::create_dir(place("man")).unwrap();
    fs::write(place("man/imbrex.1"), "somebody's own").unwrap();
    let (code, said) = tried(&["man".to_string(), text(&place("man"))]);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(fs::read_dir(place("man")).unwrap().count(), 1, "no page was written");
    fs::remove_file(place("man/imbrex.1")).unwrap();
    done(&["man", &text(&place("man"))]);
    done(&["man", &text(&place("man"))]);
}
