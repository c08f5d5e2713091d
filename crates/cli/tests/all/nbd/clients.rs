//! Goal: popular NBD clients work with a served drive. Method: nbdinfo, nbdcopy, qemu-io and fio against the built
//! program; their output and the data that they read back are compared.

use std::fs;

use super::common::*;

/// Options of a drive without delays.
const QUICK: [&str; 2] = ["--time", "none"];

fn small(folder: &std::path::Path, layer: &str) -> String {
    small_drive(folder, imbrex_layer::registry::named(layer).expect("it is registered"))
}

#[test]
fn nbdinfo_finds_the_facts_and_the_map() {
    if !has(&["nbdinfo", "nbdsh", "qemu-io"][..1], "nbdinfo") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let drive = small(folder.path(), "conventional");
    let server = Server::start(folder.path(), &[&["--drive", &drive], &QUICK[..]].concat());
    let facts: serde_json::Value = serde_json::from_str(&run("nbdinfo", &["--json", &server.uri()])).expect("JSON");
    let export = &facts["exports"][0];
    for can in ["can_flush", "can_fua", "can_trim", "can_zero", "can_multi_conn", "is_rotational"] {
        assert_eq!(export[can], true, "{can}: {export}");
    }
    assert_eq!(export["is_read_only"], false, "{export}");
    assert_eq!(export["block_size_minimum"], 512, "{export}");
    assert_eq!(export["block_size_preferred"], 4096, "{export}");
    let mut client = Client::connect(&server.socket);
    assert_eq!(export["export-size"], client.capacity_bytes);
    assert_eq!(client.write(3 << 20, &[1; 4096]), 0);
    let map: serde_json::Value =
        serde_json::from_str(&run("nbdinfo", &["--json", "--map", &server.uri()])).expect("JSON");
    let extents = map.as_array().expect("extents");
    let total: u64 = extents.iter().map(|extent| extent["length"].as_u64().unwrap()).sum();
    assert_eq!(total, client.capacity_bytes);
    let allocated: Vec<_> = extents.iter().filter(|extent| extent["type"] == 0).collect();
    assert_eq!(allocated.len(), 1, "{map}");
    let (begin, length) = (allocated[0]["offset"].as_u64().unwrap(), allocated[0]["length"].as_u64().unwrap());
    assert!(begin <= 3 << 20 && begin + length >= (3 << 20) + 4096, "{map}");
    server.stop();
}

#[test]
fn nbdcopy_brings_back_what_it_took_there() {
    if !has(&["nbdcopy"], "nbdcopy") {
        return;
    }
    for layer in ["conventional", "media-cache", "track-map"] {
        let folder = tempfile::tempdir().unwrap();
        let image = image(folder.path(), &small(folder.path(), layer));
        let server = Server::start(folder.path(), &[&[&image[..]], &QUICK[..]].concat());
        let (there, back) = (folder.path().join("there"), folder.path().join("back"));
        let bytes: Vec<u8> = (0..8u32 << 20).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        fs::write(&there, &bytes).unwrap();
        run("nbdcopy", &["--flush", there.to_str().unwrap(), &server.uri()]);
        // The image is reopened in between: flushed data is present.
        server.stop();
        let server = Server::start(folder.path(), &[&[&image[..]], &QUICK[..]].concat());
        run("nbdcopy", &[&server.uri(), back.to_str().unwrap()]);
        let copied = fs::read(&back).unwrap();
        assert!(copied[..bytes.len()] == bytes[..], "{layer}");
        assert!(copied[bytes.len()..].iter().all(|&byte| byte == 0), "{layer}");
        server.stop();
    }
}

#[test]
fn qemu_io_writes_zeroes_discards_and_flushes() {
    if !has(&["qemu-io"], "qemu-io") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let drive = small(folder.path(), "media-cache");
    let server = Server::start(folder.path(), &[&["--drive", &drive], &QUICK[..]].concat());
    let words = [
        "write -P 0x5a 0 1M",
        "read -P 0x5a 0 1M",
        "write -f -P 0x33 64k 4k",
        "read -P 0x33 64k 4k",
        "write -z 128k 64k",
        "read -P 0 128k 64k",
        "write -z -u 256k 8k",
        "read -P 0 256k 8k",
        "write -P 0x77 512 512",
        "read -P 0x77 512 512",
        "read -P 0x5a 0 512",
        "discard 512k 64k",
        "flush",
        "write -z -f 300k 4k",
        "read -P 0 300k 4k",
    ];
    let commands: Vec<&str> = words.iter().flat_map(|words| ["-c", words]).collect();
    let said = run("qemu-io", &[&["-f", "raw"], &commands[..], &[&server.uri()]].concat());
    assert!(!said.contains("verification failed") && !said.contains("failed:"), "{said}");
    server.stop();
}

#[test]
fn fio_verifies_over_several_connections_while_time_passes_as_on_the_drive() {
    if !has(&["fio"], "fio") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let drive = small(folder.path(), "media-cache");
    let server = Server::start(folder.path(), &["--drive", &drive, "--time", "1000x"]);
    let uri = format!("--uri={}", server.uri());
    run(
        "fio",
        &[
            "--name=a",
            "--ioengine=nbd",
            &uri,
            "--rw=randrw",
            "--bsrange=4k-64k",
            "--iodepth=16",
            "--numjobs=3",
            "--size=3m",
            "--offset_increment=8m",
            "--verify=crc32c",
            "--verify_fatal=1",
            "--verify_state_save=0",
        ],
    );
    let said = server.stop();
    assert!(said.contains("latency p50"), "{said}");
}
