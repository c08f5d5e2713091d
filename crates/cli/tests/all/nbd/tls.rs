//! Goal: with a certificate the server speaks only TLS, and with a client authority only to clients with a certificate
//! signed by it. Method: a private authority made by openssl; nbdinfo and nbdcopy of libnbd, which check the server's
//! certificate.

use std::path::Path;

use super::common::*;

/// Creates an authority in `folder`, and certificates for a server and a client signed by it, under the names libnbd
/// expects.
fn certificates(folder: &Path) {
    let at = |name: &str| folder.join(name).display().to_string();
    let make_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    let authority =
        ["req", "-x509", "-subj", "/CN=test authority", "-out", &at("ca-cert.pem"), "-keyout", &at("ca-key.pem")]
            .map(String::from);
    let words: Vec<&str> = authority.iter().map(String::as_str).chain(make_key).collect();
    run("openssl", &words);
    for who in ["server", "client"] {
        let (key, certificate) = (at(&format!("{who}-key.pem")), at(&format!("{who}-cert.pem")));
        let (ca, ca_key) = (at("ca-cert.pem"), at("ca-key.pem"));
        let signed = [
            "req",
            "-x509",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-CA",
            &ca,
            "-CAkey",
            &ca_key,
            "-out",
            &certificate,
            "-keyout",
            &key,
        ];
        run("openssl", &[&signed[..], &make_key[..]].concat());
    }
}

/// Starts `imbrex serve` over TLS at a port of its own; returns the server and the port.
fn serve(folder: &Path, more: &[&str]) -> (std::process::Child, u16) {
    let at = |name: &str| folder.join(name).display().to_string();
    let log = folder.join("log");
    let layer = imbrex_layer::registry::named("conventional").expect("it is registered");
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args(["serve", "--drive", &small_drive(folder, layer), "--nbd", "tcp:localhost:0", "--time", "none"])
        .args(["--tls-cert", &at("server-cert.pem"), "--tls-key", &at("server-key.pem")])
        .args(more)
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .expect("the program starts");
    let port = until("the port", || {
        let said = std::fs::read_to_string(&log).unwrap();
        let (_, rest) = said.split_once("localhost:")?;
        rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    });
    (child, port)
}

struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn libnbd_speaks_tls_with_it() {
    if !has(&["openssl", "nbdinfo", "nbdcopy"], "TLS") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let (child, port) = serve(folder.path(), &[]);
    let _ended = Ended(child);
    let uri = format!("nbds://localhost:{port}/?tls-certificates={}", folder.path().display());
    let facts = run("nbdinfo", &[&uri]);
    assert!(facts.contains("TLS"), "{facts}");
    let (there, back) = (folder.path().join("there"), folder.path().join("back"));
    let bytes: Vec<u8> = (0..5u32 << 20).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(&there, &bytes).unwrap();
    run("nbdcopy", &[there.to_str().unwrap(), &uri]);
    run("nbdcopy", &[&uri, back.to_str().unwrap()]);
    assert!(std::fs::read(&back).unwrap()[..bytes.len()] == bytes[..]);
    let plain = output("nbdinfo", &[&format!("nbd://localhost:{port}")]);
    assert!(!plain.status.success(), "the server took a client that does not speak TLS");
}

#[test]
fn a_client_authority_keeps_strangers_out() {
    if !has(&["openssl", "nbdinfo"], "TLS with client certificates") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let authority = folder.path().join("ca-cert.pem").display().to_string();
    let (child, port) = serve(folder.path(), &["--tls-client-ca", &authority]);
    let _ended = Ended(child);
    let uri = |certificates: &Path| format!("nbds://localhost:{port}/?tls-certificates={}", certificates.display());
    run("nbdinfo", &["--size", &uri(folder.path())]);
    let stranger = tempfile::tempdir().unwrap();
    std::fs::copy(&authority, stranger.path().join("ca-cert.pem")).unwrap();
    let refused = output("nbdinfo", &["--size", &uri(stranger.path())]);
    assert!(!refused.status.success(), "a client without a certificate was let in");
    run("nbdinfo", &["--size", &uri(folder.path())]);
}
