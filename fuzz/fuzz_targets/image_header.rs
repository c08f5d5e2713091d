//! The first bytes of an image: as they are, and as the text of a header with the right checksum.
#![no_main]

use imbrex_device::verify::hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    hostile::header(data);
    hostile::header_text(data);
});
