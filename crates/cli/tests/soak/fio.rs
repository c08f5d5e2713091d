//! Goal: the plainest use there is ends well: fio writes 4 KiB at random over 512 MB of a drive of terabytes. In
//! media-cache drives each such write takes two and a half tracks, so it goes once round the cache and on. Method: fio
//! itself, then `imbrex drive check`.

use std::process::{Command, Stdio};

use imbrex_testkit::Server;

use crate::drives::*;

const FIO: [&str; 6] = ["--name=a", "--ioengine=nbd", "--rw=randwrite", "--bs=4k", "--iodepth=1", "--size=512m"];

fn fio_ends_well(drive: &str) {
    let Ok(version) = Command::new("fio").arg("--version").output() else {
        eprintln!("skipped: fio's random writes (no fio; scripts/install.sh test installs it)");
        return;
    };
    assert!(version.status.success());
    let image = Image::create(drive);
    let server = Server::start(&program(), image.folder(), &[image.word(), "--time", "none"]);
    let uri = format!("--uri={}", server.uri());
    let output = Command::new("fio").args(FIO).arg(uri).stdin(Stdio::null()).output().expect("it was just there");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{drive}: {said}\n{}", server.log());
    server.stop().unwrap_or_else(|log| panic!("{drive}: {log}"));
    let checked = program().check(&image.path);
    assert_eq!(checked.code, 0, "{drive}: {checked:?}");
}

#[test]
#[ignore = "takes minutes"]
fn long_soak_fio_writes_at_random_over_half_a_gigabyte() {
    let failed: Vec<&str> =
        ["seagate-st5000as0011", "seagate-st8000as0011", "seagate-st8000as0022", "seagate-st8000dm004"]
            .into_iter()
            .filter(|drive| is_wanted(drive))
            .filter(|drive| std::panic::catch_unwind(|| fio_ends_well(drive)).is_err())
            .collect();
    assert!(failed.is_empty(), "{failed:?}");
}
