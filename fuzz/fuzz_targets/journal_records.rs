//! The bytes of a journal: as they are, and as records with right checksums that a layer is to replay.
#![no_main]

use imbrex_device::verify::hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    hostile::journal(data);
    hostile::records(data);
});
