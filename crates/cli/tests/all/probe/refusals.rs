//! Goal: data is never overwritten without permission, and each message gives the cause and a remedy. Method:
//! impossible targets, servers that misbehave, and files and loop devices with contents.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use imbrex_testkit::loop_device::LoopDevice;

use super::said;

use crate::nbd::common::*;

/// Asserts that the program fails with `code` and a message with each of `words`.
fn refused(arguments: &[&str], code: i32, words: &[&str]) {
    let output = imbrex(arguments);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{arguments:?} does not say '{word}': {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

fn sparse(path: &Path, bytes: u64) -> String {
    fs::File::create(path).unwrap().set_len(bytes).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn targets_that_cannot_be_are_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    refused(&["probe", &path("missing")], 1, &["missing: there is no such file or device"]);
    refused(&["probe", folder.path().to_str().unwrap()], 1, &["is a folder"]);
    refused(&["probe", "/dev/null"], 1, &["neither a block device nor a file"]);
    refused(&["probe", &sparse(&folder.path().join("small"), 1 << 20)], 1, &["too small", "64 MiB"]);
    for url in ["nbd://", "nbd+unix:///x", "nbds://host", "http://host/x"] {
        refused(&["probe", url], 2, &[url]);
    }
    refused(&["probe", "sim:no-such-drive"], 2, &["no profile is called"]);
    refused(&["probe", "sim:cmr-7200", "--test", "nonsense"], 2, &["no test is called 'nonsense'", "rotation"]);
    refused(&["probe", "sim:cmr-7200", "--budget", "soon"], 2, &["30m"]);
    for option in ["--force", "--yes", "--really"] {
        refused(&["probe", &path("x"), option], 2, &["--destroy-data"]);
    }
    refused(&["probe", &path("x"), "--test", "type"], 2, &["writes", "--destroy-data"]);
    assert!(std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    refused(&["probe", &path("pipe")], 1, &["neither a block device nor a file"]);
}

#[test]
fn no_output_replaces_another_or_the_profile_that_is_probed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let measure =
        |target: &str, more: &[&str]| [&["probe", target, "--test", "rotation", "-q"], more].concat().join("\n");
    let profile = imbrex(&["list", "profiles", "cmr-7200"]).stdout;
    fs::write(path("my.toml"), &profile).unwrap();
    let (mine, one, other) = (format!("sim:{}", path("my.toml")), path("f.toml"), path("./f.toml"));
    for (target, more, code, says) in [
        ("sim:cmr-7200", ["--share", &one, "--report", &other], 2, "--report and --share both name"),
        ("sim:cmr-7200", ["--share", &one, "--emit-profile", &other], 2, "--share and --emit-profile both name"),
        (&mine, ["--share", &path("my.toml"), "--seed", "1"], 1, "is the input"),
        (&format!("{mine}+conventional"), ["--emit-profile", &path("my.toml"), "--seed", "1"], 1, "is the input"),
    ] {
        let words = measure(target, &more);
        refused(&words.split('\n').collect::<Vec<_>>(), code, &[says]);
    }
    assert_eq!(fs::read(path("my.toml")).unwrap(), profile);
    // The path of a profile may name its owner.
    assert!(imbrex(&["probe", &mine, "--test", "rotation", "-q", "--share", &path("shared.json")]).status.success());
    let shared = fs::read_to_string(path("shared.json")).unwrap();
    assert!(shared.contains("\"target\": \"a drive\"") && !shared.contains("my.toml"), "{shared}");
    let built_in = "sim:cmr-7200:host.queue=16";
    let words = ["probe", built_in, "--test", "rotation", "-q", "--share", &path("built-in.json")];
    assert!(imbrex(&words).status.success());
    let shared = fs::read_to_string(path("built-in.json")).unwrap();
    assert!(shared.contains(built_in), "{shared}");
}

/// A probe is for drives that keep their own rules; a host-managed drive reports its type itself.
#[test]
fn host_managed_drives_are_not_written() {
    refused(&["probe", "sim:hm-zoned"], 1, &["is host-managed"]);
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image").to_str().unwrap().to_string();
    assert!(imbrex(&["drive", "create", &image, "--drive", "strict-append"]).status.success());
    let before = fs::read(&image).unwrap();
    refused(&["probe", &image, "--destroy-data"], 1, &["is host-managed"]);
    assert!(fs::read(&image).unwrap() == before);
    assert!(imbrex(&["probe", &image, "--test", "rotation"]).status.success(), "it can be read");
}

/// On a terminal the user is asked, and only `yes` is permission; the terminal is one of `script`.
#[test]
fn on_a_terminal_the_user_is_asked_once() {
    if !has(&["script"], "the question on a terminal") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image").to_str().unwrap().to_string();
    assert!(imbrex(&["drive", "create", &image, "--drive", "cmr-5900"]).status.success());
    let before = fs::read(&image).unwrap();
    let asked = |answer: &str| {
        let command = format!("{} probe {image} --destroy-data --test type", env!("CARGO_BIN_EXE_imbrex"));
        let mut child = std::process::Command::new("script")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(child.stdin.as_mut().unwrap(), "{answer}").unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, said) = asked("no");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("Type yes to go on") && said.contains("not confirmed; nothing was written"), "{said}");
    assert!(fs::read(&image).unwrap() == before, "nothing was written");
    let (code, said) = asked("yes");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("conventional") && !said.contains("nobody is asked"), "{said}");
    assert_eq!(said.matches("Type yes").count(), 1, "once: {said}");
}

#[test]
fn a_file_that_may_not_be_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = sparse(&folder.path().join("secret"), 128 << 20);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        eprintln!("skipped: a file that may not be read (whoever runs this reads all)");
        return;
    }
    refused(&["probe", &path], 1, &["may not be opened"]);
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_tests() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    refused(&["probe", "sim:cmr-7200", "--report", place], 1, &["--report", "is a folder"]);
    refused(
        &["probe", "sim:cmr-7200", "--report", &format!("{place}/none/r.html")],
        1,
        &["--report", "cannot be written"],
    );
}

/// Answers one connection by `answer`, and closes it.
fn listen(answer: impl FnOnce(&mut std::net::TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || answer(&mut listener.accept().unwrap().0));
    format!("nbd://127.0.0.1:{port}/x")
}

/// Sends the greeting of a server, and refuses every option with `error`.
fn refuse_options(stream: &mut std::net::TcpStream, error: u32, words: &[u8]) {
    stream.write_all(b"NBDMAGICIHAVEOPT\0\x03").unwrap();
    stream.read_exact(&mut [0; 4]).unwrap();
    let mut head = [0; 16];
    while stream.read_exact(&mut head).is_ok() {
        let mut data = vec![0; u32::from_be_bytes(head[12..].try_into().unwrap()) as usize];
        stream.read_exact(&mut data).unwrap();
        let mut reply = 0x0003_e889_0455_65a9u64.to_be_bytes().to_vec();
        reply.extend_from_slice(&head[8..12]);
        reply.extend_from_slice(&(1 << 31 | error).to_be_bytes());
        reply.extend_from_slice(&(words.len() as u32).to_be_bytes());
        reply.extend_from_slice(words);
        if stream.write_all(&reply).is_err() {
            return;
        }
    }
}

#[test]
fn servers_that_are_none_or_refuse_are_told_apart() {
    let nobody = listen(|_| ());
    refused(&["probe", &nobody], 1, &["closed the connection while shaking hands"]);
    let web = listen(|stream| drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")));
    refused(&["probe", &web], 1, &["no NBD server"]);
    let old = listen(|stream| drop(stream.write_all(b"NBDMAGIC\0\0\x42\x02\x81\x86\x12\x53\0\0")));
    refused(&["probe", &old], 1, &["oldest form"]);
    let tls = listen(|stream| refuse_options(stream, 5, b""));
    refused(&["probe", &tls], 1, &["TLS"]);
    let unknown = listen(|stream| refuse_options(stream, 6, b"look elsewhere"));
    refused(&["probe", &unknown], 1, &["no export called 'x'", "look elsewhere"]);
    // The port of a listener that has just been closed: no process listens there.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    refused(&["probe", &format!("nbd://127.0.0.1:{port}")], 1, &["cannot connect", "is the server running"]);
}

/// The program supports a server that knows only the oldest option (`EXPORT_NAME`).
#[test]
fn a_server_without_go_is_understood() {
    let url = listen(|stream| {
        stream.write_all(b"NBDMAGICIHAVEOPT\0\x01").unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        for _ in 0..2 {
            let mut head = [0; 16];
            stream.read_exact(&mut head).unwrap();
            let mut data = vec![0; u32::from_be_bytes(head[12..].try_into().unwrap()) as usize];
            stream.read_exact(&mut data).unwrap();
            if head[11] == 7 {
                let mut reply = 0x0003_e889_0455_65a9u64.to_be_bytes().to_vec();
                reply.extend_from_slice(&[0, 0, 0, 7, 0x80, 0, 0, 1, 0, 0, 0, 0]);
                stream.write_all(&reply).unwrap();
            } else {
                // A size of 32 MiB, no flags, and the zeroes of the old handshake.
                let mut facts = (32u64 << 20).to_be_bytes().to_vec();
                facts.resize(10 + 124, 0);
                stream.write_all(&facts).unwrap();
            }
        }
    });
    refused(&["probe", &url], 1, &["32 MiB are too small"]);
}

#[test]
fn what_holds_something_is_not_written_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let marks: [(&str, u64, &[u8]); 4] = [
        ("GPT partition table", 512, b"EFI PART"),
        ("LUKS", 0, b"LUKS\xba\xbe"),
        ("ZFS", 130 << 10, &0x00ba_b10cu64.to_le_bytes()),
        ("Btrfs", (64 << 10) + 64, b"_BHRfS_M"),
    ];
    for (index, (what, at, bytes)) in marks.into_iter().enumerate() {
        let path = sparse(&folder.path().join(format!("disk-{index}")), 128 << 20);
        std::os::unix::fs::FileExt::write_all_at(&fs::File::options().write(true).open(&path).unwrap(), bytes, at)
            .unwrap();
        let before = fs::read(&path).unwrap();
        refused(&["probe", &path, "--destroy-data"], 1, &["holds", what, "--force"]);
        assert!(fs::read(&path).unwrap() == before, "{what}: nothing was written");
    }
}

#[test]
fn a_file_system_in_a_file_and_behind_a_server_is_seen() {
    if !has(&["mkfs.ext4"], "a file system in the way of the probe") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = sparse(&folder.path().join("disk"), 128 << 20);
    run("mkfs.ext4", &["-q", &path]);
    refused(&["probe", &path, "--destroy-data"], 1, &["ext4", "--force"]);
    refused(&["probe", &path, "--destroy-data", "--yes"], 1, &["ext4", "--force"]);
    for option in ["--force", "--really"] {
        let output = imbrex(&["probe", &path, "--destroy-data", option, "--test", "rotation"]);
        assert!(output.status.success(), "{}", said(&output));
    }
    let output = imbrex(&["probe", &path, "--destroy-data", "--force", "--test", "rotation"]);
    assert!(said(&output).contains("ext4") && said(&output).contains("nobody is asked"), "{}", said(&output));
    let image = folder.path().join("image");
    let drive = imbrex(&["drive", "create", image.to_str().unwrap(), "--drive", "cmr-7200"]);
    assert!(drive.status.success(), "{}", said(&drive));
    let server = Server::start(folder.path(), &[image.to_str().unwrap(), "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    assert_eq!(client.write(0, &fs::read(&path).unwrap()[..4096]), 0);
    refused(&["probe", &server.uri(), "--destroy-data"], 1, &["ext4", "--force"]);
    server.stop();
    refused(&["probe", image.to_str().unwrap(), "--destroy-data"], 1, &["ext4", "--force"]);
}

#[test]
fn a_device_in_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = sparse(&folder.path().join("disk"), 128 << 20);
    let Some(device) = LoopDevice::over(&path) else { return };
    refused(&["probe", &path, "--destroy-data"], 1, &["in use", "it is behind /dev/loop"]);
    if !has(&["mkfs.ext4", "mount", "umount"], "a mounted device") {
        return;
    }
    run("mkfs.ext4", &["-q", &device.0]);
    let place = folder.path().join("mounted");
    fs::create_dir(&place).unwrap();
    let mounted = output("mount", &[&device.0, place.to_str().unwrap()]);
    if !mounted.status.success() {
        eprintln!("skipped: a mounted device ({})", String::from_utf8_lossy(&mounted.stderr).trim());
        return;
    }
    for options in [&[][..], &["--force", "--yes"][..], &["--really"][..]] {
        let words = [&["probe", &device.0, "--destroy-data"], options].concat();
        refused(&words, 1, &["in use", "is mounted at", "Unmount it"]);
        let words = [&["probe", &path, "--destroy-data"], options].concat();
        refused(&words, 1, &["in use", "it is behind /dev/loop"]);
    }
    let reading = imbrex(&["probe", &device.0]);
    assert!(said(&reading).contains("is mounted at"), "reading goes, with a word: {}", said(&reading));
    run("umount", &[place.to_str().unwrap()]);
}
