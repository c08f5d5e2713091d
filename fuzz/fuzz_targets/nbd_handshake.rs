//! All that a client says before its first request; the first byte says whether TLS is on offer.
#![no_main]

use imbrex_serve::nbd::handshake::Tls;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&first, said)) = data.split_first() else { return };
    imbrex_serve::verify::handshake(said, [Tls::None, Tls::Required, Tls::On][usize::from(first % 3)]);
});
