//! Goal: a snapshot that fails, or is killed, leaves no file under its name or beside it, and the image unchanged.
//! Method: each reason for a failure, and SIGKILL for the server, and for the command, in the middle of the copying.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use imbrex_layer::registry;
use imbrex_testkit::random::Random;

use super::common::*;
use super::control::ask;
use super::snapshots::*;

/// Bytes written to a drive before snapshots are interrupted: enough that a copy takes some time.
const WRITTEN_BYTES: u64 = 256 << 20;

/// Serves the image of a conventional drive with its first bytes written.
fn full_server(folder: &Path) -> Server {
    let image = image(folder, "cmr-7200");
    let server = Server::start(folder, &[&image, "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    for at in (0..WRITTEN_BYTES).step_by(1 << 20) {
        assert_eq!(client.write(at, &vec![7; 1 << 20]), 0);
    }
    assert_eq!(client.ask(FLUSH, 0, 0, 0, &[]), 0);
    server
}

fn is_under_way(folder: &Path) -> bool {
    ask(folder, r#"{"verb":"stats"}"#).is_some_and(|stats| !stats["snapshot"].is_null())
}

/// Starts snapshots until one is in progress after a random time, and passes it to `kill`, with its number.
fn interrupted(folder: &Path, random: &mut Random, mut kill: impl FnMut(Child, usize) -> bool) {
    let mut hits = 0;
    for round in 0..60 {
        let command = start_in(folder, &["drive", "snapshot", "image", &format!("copy-{round}")]);
        std::thread::sleep(Duration::from_millis(random.below(60)));
        hits += usize::from(kill(command, round));
        if hits == 3 {
            return;
        }
    }
    panic!("{hits} of 60 were caught in the middle");
}

#[test]
fn a_killed_command_leaves_nothing_and_the_server_goes_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = full_server(folder.path());
    let load = Load::start(&server.socket, 1536);
    interrupted(folder.path(), &mut Random::new(31), |mut command, round| {
        let was_under_way = is_under_way(folder.path());
        command.kill().expect("it is ours");
        command.wait().expect("it is ours");
        until("the end of the snapshot", || (!is_under_way(folder.path())).then_some(()));
        let copy = format!("copy-{round}");
        let is_made = folder.path().join(&copy).exists();
        if is_made {
            // The copy was complete before the kill.
            check_is_whole(folder.path(), &copy);
            fs::remove_file(folder.path().join(&copy)).expect("it is ours");
        }
        assert_eq!(files_in(folder.path()), ["image"], "round {round}");
        was_under_way && !is_made
    });
    let floor = load.floor();
    snapshot(folder.path(), &["image", "copy"]);
    let ceiling = load.ceiling();
    load.end();
    check_is_whole(folder.path(), "copy");
    compare_written(&folder.path().join("copy"), &floor, &ceiling);
    server.stop();
}

/// Asserts that blocks that the load did not write hold their earlier contents.
fn compare_written(image: &Path, floor: &[u64], ceiling: &[u64]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(folder.path(), &[image.to_str().expect("a path"), "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    for (block, (&floor, &ceiling)) in (0..).zip(floor.iter().zip(ceiling)) {
        let bytes = client.read(block * 4096, 4096).expect("it can be read");
        let stamp = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
        let is_old = bytes.iter().all(|&byte| byte == 7);
        assert!((floor..=ceiling).contains(&stamp) || (is_old && floor == 0), "block {block}: {stamp}");
    }
    server.stop();
}

#[test]
fn a_killed_server_leaves_no_half_copy_and_the_command_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut server = full_server(folder.path());
    interrupted(folder.path(), &mut Random::new(32), |command, round| {
        server.kill();
        let output = command.wait_with_output().expect("it ends");
        let copy = folder.path().join(format!("copy-{round}"));
        let was_under_way = said(&output).contains("ended before the snapshot was complete");
        assert_eq!(output.status.success(), copy.exists(), "{}", said(&output));
        if copy.exists() {
            check_is_whole(folder.path(), copy.to_str().expect("a path"));
            fs::remove_file(&copy).expect("it is ours");
        }
        assert_eq!(files_in(folder.path()), ["image"], "round {round}: {}", said(&output));
        check_is_whole(folder.path(), "image");
        let image = folder.path().join("image");
        server = Server::start(folder.path(), &[image.to_str().expect("a path"), "--time", "none"]);
        was_under_way
    });
    server.stop();
}

#[test]
fn ctrl_c_ends_a_snapshot_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = full_server(folder.path());
    interrupted(folder.path(), &mut Random::new(33), |command, round| {
        run("kill", &["-INT", &command.id().to_string()]);
        let output = command.wait_with_output().expect("it ends");
        until("the end of the snapshot", || (!is_under_way(folder.path())).then_some(()));
        let copy = folder.path().join(format!("copy-{round}"));
        // The copy may have been completed just before.
        let is_made = fs::remove_file(&copy).is_ok();
        assert_eq!(files_in(folder.path()), ["image"], "round {round}: {}", said(&output));
        !is_made && !output.status.success()
    });
    server.stop();
}

#[test]
fn what_stands_in_the_way_is_named_and_left_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let drive = small_drive(folder.path(), registry::named("conventional").expect("it is registered"));
    let image = image(folder.path(), &drive);
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "another").expect("it is written");
    fs::create_dir(at("sub")).expect("it is made");
    std::os::unix::fs::symlink("nowhere", at("link")).expect("it is made");
    std::os::unix::fs::symlink("image", at("same")).expect("it is made");
    fs::hard_link(at("image"), at("hard")).expect("it is made");
    fs::write(at("letter"), "a letter to a friend, long enough to be read as a header").expect("it is written");
    let expected = files_in(folder.path());
    let cases = [
        (["image", "file"], "exists already, and was not changed"),
        (["image", "sub"], "exists already, and was not changed"),
        (["image", "link"], "exists already, and was not changed"),
        (["image", "image"], "are one file"),
        (["image", "same"], "are one file"),
        (["same", "image"], "are one file"),
        (["image", "hard"], "are one file"),
        (["image", "no-folder/copy"], "No such file or directory"),
        (["image", "file/copy"], "Not a directory"),
        (["image", "/sys/kernel/copy"], "cannot make /sys/kernel/copy"),
        (["image", "new/"], "the path names no file"),
        (["missing", "copy"], "is not there"),
        (["sub", "copy"], "is a folder, not an image"),
        (["letter", "copy"], "is not an Imbrex image"),
    ];
    let refused = |is_served: bool| {
        for ([from, to], says) in cases {
            if is_served && !["image", "same", "hard"].contains(&from) {
                continue;
            }
            let output = imbrex_in(folder.path(), &["drive", "snapshot", from, to]);
            let said = said(&output);
            assert!(output.status.code() == Some(1) && said.contains(says), "{from} to {to}: {said}");
            assert_eq!(files_in(folder.path()), expected, "{from} to {to}");
        }
    };
    refused(false);
    let server = Server::start(folder.path(), &[&image, "--time", "none"]);
    refused(true);
    server.stop();
    assert_eq!(fs::read(at("file")).expect("it is there"), b"another");
    check_is_whole(folder.path(), "image");
}

#[test]
fn a_full_disk_leaves_nothing_of_the_copy() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tiny = folder.path().join("tiny");
    fs::create_dir(&tiny).expect("it is made");
    let place = tiny.to_str().expect("a path").to_string();
    if !output("mount", &["-t", "tmpfs", "-o", "size=8m", "tmpfs", &place]).status.success() {
        eprintln!("skipped: a full disk (tmpfs cannot be mounted here)");
        return;
    }
    let server = full_server(folder.path());
    for is_served in [true, false] {
        let output = imbrex_in(folder.path(), &["drive", "snapshot", "image", "tiny/copy"]);
        let said = said(&output);
        assert!(
            output.status.code() == Some(1) && said.contains("no space left on the disk of"),
            "{is_served}: {said}"
        );
        assert_eq!(files_in(&tiny), [""; 0], "{is_served}");
        if is_served {
            assert_eq!(Client::connect(&server.socket).write(0, &[9; 4096]), 0, "the drive goes on");
            run("kill", &["-INT", &server.process().to_string()]);
            until("the server's end", || (!server.socket.exists()).then_some(()));
        }
        until("the end of the server", || {
            imbrex_in(folder.path(), &["drive", "check", "image"]).status.success().then_some(())
        });
    }
    run("umount", &[&place]);
}

#[test]
fn an_image_that_another_process_has_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let drive = small_drive(folder.path(), registry::named("conventional").expect("it is registered"));
    let image = image(folder.path(), &drive);
    let server = Server::start(folder.path(), &[&image, "--time", "none"]);
    // To the command the server is another user's.
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    let output = imbrex_in(elsewhere.path(), &["drive", "snapshot", &image, "copy"]);
    let words = said(&output);
    assert_eq!(output.status.code(), Some(1), "{words}");
    for part in ["is in use by another process", "--control PATH", "imbrex serve --control PATH"] {
        assert!(words.contains(part), "{words}");
    }
    // With its socket given, the server is found from any folder.
    let control = fs::read_dir(folder.path().join("imbrex")).expect("it is there").next().expect("one").expect("read");
    let control = control.path().display().to_string();
    snapshot(elsewhere.path(), &[&image, "copy", "--control", &control]);
    check_is_whole(elsewhere.path(), "copy");
    // A server of another image takes no snapshot of this one.
    fs::write(elsewhere.path().join("other"), "another image").expect("it is written");
    let output = imbrex_in(elsewhere.path(), &["drive", "snapshot", "other", "copy-2", "--control", &control]);
    assert!(said(&output).contains("another image"), "{}", said(&output));
    server.stop();
    let output = imbrex_in(elsewhere.path(), &["drive", "snapshot", &image, "copy-3", "--control", &control]);
    assert!(said(&output).contains("no server answers at"), "{}", said(&output));
    assert_eq!(files_in(elsewhere.path()), ["copy", "other"]);
}
