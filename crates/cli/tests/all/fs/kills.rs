//! Goal: fsynced data survives the process that serves the mount. Method: that process is killed in the middle of work.

use std::fs::File;
use std::io::{Read, Write};

use rustix::process::{Pid, Signal, kill_process};

use super::common::{Bench, STORES, has_fuse, is_mounted, json, text, word};

#[test]
fn what_was_fsynced_outlives_a_killed_server() {
    if !has_fuse() {
        return;
    }
    for (store, drive) in STORES {
        let bench = Bench::new(drive);
        let mounted = bench.mount(&[]);
        for number in 0..20u32 {
            let mut file = File::create(mounted.path(&format!("kept{number}"))).unwrap();
            file.write_all(&vec![number as u8; 5000 * number as usize]).unwrap();
            file.sync_all().unwrap();
        }
        std::fs::create_dir(mounted.path("folder")).unwrap();
        std::fs::rename(mounted.path("kept3"), mounted.path("folder/moved")).unwrap();
        File::open(mounted.path("folder")).unwrap().sync_all().unwrap();
        let mut unfinished = File::create(mounted.path("unfinished")).unwrap();
        unfinished.write_all(&[9; 100_000]).unwrap();
        mounted.kill();
        drop(unfinished);
        // The kernel returns errors since no process serves the directory any more; then it is unmounted.
        assert!(std::fs::read(mounted.path("kept1")).is_err(), "{store}");
        if store == "caveat" {
            // A second mount on the directory is enough.
            let mounted = bench.mount(&[]);
            assert_eq!(std::fs::read(mounted.path("kept1")).unwrap().len(), 5000);
            mounted.unmount();
        } else {
            text(&["fs", "umount", word(mounted.directory())]);
            assert!(!is_mounted(mounted.directory()));
        }
        bench.check();
        let mounted = bench.mount(&[]);
        for number in (0..20u32).filter(|number| *number != 3) {
            let bytes = std::fs::read(mounted.path(&format!("kept{number}"))).unwrap();
            assert!(bytes == vec![number as u8; 5000 * number as usize], "{store}: kept{number}");
        }
        assert_eq!(std::fs::read(mounted.path("folder/moved")).unwrap(), vec![3; 15000], "{store}");
        assert!(!mounted.path("kept3").exists(), "{store}");
        mounted.unmount();
        bench.check();
    }
}

#[test]
fn figures_are_served_as_long_as_the_directory_is() {
    if !has_fuse() {
        return;
    }
    let bench = Bench::new("strict-append");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (address, socket) = (format!("127.0.0.1:{port}"), bench.folder().join("figures"));
    let option = format!("window={address},stats={}", word(&socket));
    let mounted = bench.mount(&["-o", &option]);
    std::fs::write(mounted.path("file"), vec![7; 10_000]).unwrap();
    let asked = |path: &str| {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let metrics = asked("/metrics");
    assert!(metrics.contains("\nimbrex_fs_live_bytes 12288\n"), "{metrics}");
    let told: String = std::os::unix::net::UnixStream::connect(&socket)
        .map(|mut stream| {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        })
        .unwrap();
    assert!(told.contains("live: 12 KiB") && asked("/").ends_with(&told), "{told}");
    mounted.unmount();
    assert!(std::net::TcpStream::connect(&address).is_err() && !socket.exists(), "nothing is left of them");
}

#[test]
fn a_server_that_is_told_to_end_writes_everything_though_a_file_is_open() {
    if !has_fuse() {
        return;
    }
    for (store, drive) in STORES {
        let bench = Bench::new(drive);
        let mounted = bench.mount(&[]);
        let mut open = File::create(mounted.path("open")).unwrap();
        open.write_all(&[7; 123_456]).unwrap();
        let process = Pid::from_raw(mounted.process()).unwrap();
        let server = rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()).unwrap();
        kill_process(process, Signal::TERM).unwrap();
        let mut ended = [rustix::event::PollFd::new(&server, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut ended, None).unwrap();
        assert!(!is_mounted(mounted.directory()), "{store}");
        drop(open);
        let dumped = json(&["fs", "dump", word(&bench.image), "--json"]);
        assert_eq!(dumped["log_records"], 0, "{store}: it ended with a checkpoint");
        let mounted = bench.mount(&[]);
        assert!(std::fs::read(mounted.path("open")).unwrap() == vec![7; 123_456], "{store}");
        mounted.unmount();
    }
}
