//! Goal: the simplest use succeeds: fio writes 4 KiB at random over 512 MB of a drive of terabytes. In media-cache
//! drives each such write takes two and a half tracks, so the writes fill the cache more than once. Method: fio itself,
//! then `imbrex drive check`.

use std::process::{Command, Stdio};

use imbrex_testkit::Server;

use super::drives::*;

const FIO: [&str; 6] = ["--name=a", "--ioengine=nbd", "--rw=randwrite", "--bs=4k", "--iodepth=1", "--size=512m"];

/// Runs fio on `drive`. Returns the failure, if there is one.
fn fio_ends_well(drive: &str) -> Result<(), String> {
    let image = Image::create(drive);
    let server = Server::try_start(&program(), image.folder(), &[image.word(), "--time", "none"])?;
    let uri = format!("--uri={}", server.uri());
    let output = Command::new("fio").args(FIO).arg(uri).stdin(Stdio::null()).output().expect("it was just there");
    let said = String::from_utf8_lossy(&output.stdout);
    let written = said.lines().find(|line| line.contains("issued rwts")).unwrap_or_default().trim();
    eprintln!("{drive}: fio {}; {written}", output.status);
    if !output.status.success() {
        return Err(format!("{}\n{}", String::from_utf8_lossy(&output.stderr), server.log()));
    }
    server.stop()?;
    let checked = program().check(&image.path);
    if checked.code == 0 {
        return Ok(());
    }
    Err(format!("drive check: exit {}, {:?} {}", checked.code, checked.findings, checked.errors))
}

#[test]
#[ignore = "takes minutes"]
fn long_soak_fio_writes_at_random_over_half_a_gigabyte() {
    if Command::new("fio").arg("--version").output().is_err() {
        eprintln!("skipped: fio's random writes (no fio; scripts/install.sh test installs it)");
        return;
    }
    let drives = ["seagate-st5000as0011", "seagate-st8000as0011", "seagate-st8000as0022", "seagate-st8000dm004"];
    let mut failed = Vec::new();
    for drive in drives.into_iter().filter(|drive| is_wanted(drive)) {
        if let Err(why) = fio_ends_well(drive) {
            failed.push(format!("{drive}: {why}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
