//! All requests of a client; the first byte says what its handshake agreed on, and whether the drive has a pace.
#![no_main]

use imbrex_serve::nbd::handshake::Session;
use imbrex_serve::verify::Requests;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&first, said)) = data.split_first() else { return };
    let layer = if first & 4 == 0 { "media-cache" } else { "conventional" };
    let session = Session { structured: first & 3 != 0, allocation: first & 3 == 2 };
    let mut drive = if first & 8 == 0 { Requests::new(layer) } else { Requests::paced(layer) };
    drive.serve(said, session);
});
