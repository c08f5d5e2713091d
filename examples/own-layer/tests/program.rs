//! Goal: the layer gets the same features as the built-in layers. Method: the program lists the layer, simulates it under
//! the checker, creates a drive with it, serves that drive, and checks it after a kill.

use std::process::Output;

use imbrex_testkit::{Client, Program, Server};

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_layer_gets_every_command() {
    let program = Program::new(env!("CARGO_BIN_EXE_own-layer"));
    let listed = said(&program.run(&["list", "layers"]));
    assert!(listed.contains("inside-out") && listed.contains("chunk_size=1MiB"), "{listed}");
    let drive = "cmr-7200+inside-out:chunk_size=64KiB,geometry.tracks=20000";
    let words = "rw=randrw,bs=4k,size=1GiB,number_ios=2000";
    let simulated = said(&program.run(&["simulate", words, "--drive", drive, "--check"]));
    assert!(simulated.contains("no live sector was lost on any drive"), "{simulated}");

    let folder = tempfile::tempdir().expect("a temporary folder");
    let image = folder.path().join("drive.img");
    program.create(&image, drive);
    let path = image.to_str().expect("plain words");
    let mut server = Server::start(&program, folder.path(), &[path, "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    for place in 0..40_u64 {
        assert_eq!(client.write(place * 65_536 * 7, &[place as u8 + 1; 8192]), 0);
    }
    assert_eq!(client.ask(imbrex_testkit::nbd_client::FLUSH, 0, 0, 0, &[]), 0);
    server.kill();
    assert_eq!(program.check(&image).code, 0);
    let server = Server::start(&program, folder.path(), &[path, "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    for place in 0..40_u64 {
        assert_eq!(client.read(place * 65_536 * 7, 8192), Ok(vec![place as u8 + 1; 8192]));
    }
    drop(client);
    server.stop().expect("it ends well");
}
