//! Goal: appending to a file that was written before reads nothing from the device, but readers still see all the data
//! on the device. Method: counts the blocks that are read from the device, and compares contents.

use imbrex_fs::core::{Caller, MakeOptions, MountOptions, make};
use imbrex_fs::device::memory::Memory;
use imbrex_fs::device::{Geometry, Kind};
use imbrex_fs::format::file_type::REGULAR;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::{Bounds, Device, Executor, Fs};

/// Returns the number of blocks read while a file of 10,000 bytes gets `rounds` appends of 1,000 bytes, each closed.
fn read_while_appending(rounds: usize, bounds: Bounds) -> u64 {
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let work = async move {
        let kind = Kind::Caveat { isolation: 4, no_overlap: 2 };
        let device = Device::new(&own, "disk", Box::new(Memory::new(Geometry { blocks: 4096, kind })));
        let metadata = Memory::new(Geometry { blocks: 4096, kind: Kind::Plain });
        let metadata = Device::new(&own, "metadata", Box::new(metadata));
        make(&device, Some(&metadata), &MakeOptions::default(), 0).await.unwrap();
        let options = MountOptions { bounds: Some(bounds), ..MountOptions::default() };
        let (fs, _) = Fs::mount(&own, &[device.clone(), metadata], &options).await.unwrap();
        let inode = fs.make_node(ROOT, b"f", REGULAR | 0o644, 0, Caller::default()).await.unwrap().inode;
        let mut expected = Vec::new();
        let before = device.traffic().blocks_read;
        for round in 0..=rounds {
            let bytes = vec![round as u8 + 1; if round == 0 { 10_000 } else { 1_000 }];
            fs.open(inode).unwrap();
            fs.write(inode, expected.len() as u64, &bytes).await.unwrap();
            fs.close(inode).await.unwrap();
            expected.extend_from_slice(&bytes);
        }
        let read = device.traffic().blocks_read - before;
        assert_eq!(fs.read(inode, 0, expected.len()).await.unwrap(), expected);
        assert!(device.traffic().blocks_read > before + read, "a reader is served from the device");
        read
    };
    let read = executor.run(work).unwrap();
    executor.shut_down();
    read
}

#[test]
fn appending_builds_on_what_is_in_memory() {
    assert_eq!(read_while_appending(8, Bounds::default()), 0);
    assert!(read_while_appending(8, Bounds { written_blocks: 0, ..Bounds::default() }) > 0, "without it, it reads");
}
