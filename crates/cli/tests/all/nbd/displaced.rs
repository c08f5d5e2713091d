//! Goal: a server whose image was removed, renamed or replaced reports that by every interface, and its drive can still
//! be saved. Method: each of the three, done to the image of a served drive.

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;

use imbrex_layer::registry;
use imbrex_testkit::server::fetch;

use super::common::*;
use super::control::ask;
use super::snapshots::{check_is_whole, imbrex_in, said};

#[test]
fn an_image_that_lost_its_path_is_told_everywhere_and_can_be_saved() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let drive = small_drive(folder.path(), registry::named("conventional").expect("it is registered"));
    let image = image(folder.path(), &drive);
    let stats = folder.path().join("stats");
    let words = [&image, "--stats", stats.to_str().expect("a path"), "--window", "127.0.0.1:0", "--time", "none"];
    let server = Server::start(folder.path(), &words);
    let address = server.window();
    let seen = |how: &str| {
        let mut text = String::new();
        UnixStream::connect(&stats).expect("it listens").read_to_string(&mut text).expect("it answers");
        let placement = ask(folder.path(), r#"{"verb":"stats"}"#).expect("it listens")["placement"].clone();
        assert_eq!(placement, how);
        let metrics = fetch(&address, "/metrics");
        for of in ["removed", "renamed", "replaced"] {
            let line = format!("imbrex_image_displaced{{how=\"{of}\"}} {}", u8::from(of == how));
            assert!(metrics.contains(&line), "{how}: {metrics}");
        }
        let is_told = text.contains("image: ") && fetch(&address, "/state.json").contains("while it is in use");
        (is_told, text)
    };
    assert!(!seen("in-place").0);
    let renamed = folder.path().join("renamed");
    fs::rename(&image, &renamed).expect("renamed");
    let (is_told, text) = seen("renamed");
    assert!(is_told && text.contains("was renamed while it is in use"), "{text}");
    until("a word on standard error", || server.log().contains("was renamed while it is in use").then_some(()));
    fs::rename(&renamed, &image).expect("renamed");
    until("a better word", || server.log().contains("is back in its place").then_some(()));
    fs::remove_file(&image).expect("it is ours");
    assert!(seen("removed").0);
    until("a word on standard error", || server.log().contains("was removed while it is in use").then_some(()));
    fs::write(&image, "another file").expect("it is written");
    let (_, text) = seen("replaced");
    assert!(text.contains("another file is at"), "{text}");

    // The command in the message saves the drive.
    let mut client = Client::connect(&server.socket);
    assert_eq!(client.write(0, &[5; 4096]), 0);
    let said_words = until("a word on standard error", || {
        let log = server.log();
        log.contains("another file is at").then_some(log)
    });
    let advice = said_words.lines().last().expect("a line").split('`').nth(1).expect("a command").to_string();
    let advice: Vec<&str> = advice.split(' ').skip(1).map(|word| if word == "COPY" { "saved" } else { word }).collect();
    let saved = imbrex_in(folder.path(), &advice);
    assert!(saved.status.success(), "{advice:?}: {}", said(&saved));
    check_is_whole(folder.path(), "saved");
    let ended = server.ended().expect_err("the data in the removed file are lost");
    assert!(ended.contains("exit status: 1") && ended.contains("the data went to the file"), "{ended}");
    assert!(!ended.contains("all acknowledged writes are in it"), "{ended}");
    assert_eq!(fs::read(&image).expect("it is there"), b"another file");
    let saved = folder.path().join("saved");
    let server = Server::start(folder.path(), &[saved.to_str().expect("a path"), "--time", "none"]);
    assert_eq!(Client::connect(&server.socket).read(0, 4096), Ok(vec![5; 4096]));
    server.stop();
}
