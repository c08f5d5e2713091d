//! Regular file or ordinary block device: holds metadata, or is a conventional drive of an array.
//!
//! Each operation is performed and answered when it is submitted, because the file is in the host's cache or on flash.
//! Flushed data survive a crash of the host. Long runs of zeros are not written: a hole is punched into the file in
//! their place. So the metadata of a large drive, which are zeros at first, take neither space in the file nor time.

use std::fs::{File, TryLockError};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use imbrex_device::media::host_file::HostFile;

use imbrex_safety::survey::busy;
use imbrex_safety::{Contents, Survey, open_for_writing};

use super::{Answer, BLOCK_BYTES, Backend, DeviceFault, Geometry, Kind, Operation, Outcome};

const BYTES: u64 = BLOCK_BYTES as u64;
/// Length in blocks from which on a write of zeros punches a hole instead.
const HOLE_BLOCKS: usize = 16;
/// Space reserved on the host's disk for writes that are in flight when the disk becomes full: a queue of 32 MiB.
const BEGUN_BYTES: u64 = 32 << 20;

/// Backend on a regular file or a block device of the host, with the answers that were not delivered yet. A write of
/// zeros of at least 64 KiB becomes a hole if the host can make one. After a failed flush only reads succeed.
pub struct FileBackend {
    file: File,
    place: String,
    geometry: Geometry,
    answers: Vec<(u64, Outcome)>,
    head: u64,
    is_writable: bool,
    /// Error message of the first sync that failed, if one did.
    failed_sync: Option<String>,
    host: Arc<HostFile>,
}

impl FileBackend {
    /// Opens the file or block device at `path` and locks it: exclusively for writing, shared for reading. A block
    /// device that is open here for writing is claimed exclusively, so it cannot be mounted meanwhile. Bytes at the end
    /// that are less than a block of 4 KiB are not used. For writing, up to 32 MiB are reserved on the disk of a
    /// regular file, for writes in flight when the disk becomes full.
    ///
    /// # Errors
    /// The file cannot be opened, or another process uses it, or its length cannot be found.
    pub fn open(path: &Path, is_writable: bool) -> Result<FileBackend, DeviceFault> {
        let place = path.display().to_string();
        let failed = |what: &str, error: io::Error| DeviceFault::new(format!("{place}: {what}: {error}"));
        let opened = if is_writable { open_for_writing(path, 0) } else { File::open(path) };
        let mut file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => DeviceFault::new(busy(path).to_string()),
            _ => failed("cannot be opened", error),
        })?;
        let locked = if is_writable { file.try_lock() } else { file.try_lock_shared() };
        locked.map_err(|error| match error {
            TryLockError::WouldBlock => {
                DeviceFault::new(format!("{place}: is in use by another process; stop that one first"))
            }
            TryLockError::Error(error) => failed("cannot be locked", error),
        })?;
        // The metadata of a block device have no length; the position of its end has.
        let bytes = file.seek(SeekFrom::End(0)).map_err(|error| failed("its length cannot be found", error))?;
        let geometry = Geometry { blocks: bytes / BYTES, kind: Kind::Plain };
        let host = HostFile::new(&file, path).map_err(|error| failed("its length cannot be found", error))?;
        if is_writable {
            host.reserve_space(BEGUN_BYTES);
        }
        Ok(FileBackend {
            file,
            place,
            geometry,
            answers: Vec::new(),
            head: 0,
            is_writable,
            failed_sync: None,
            host: Arc::new(host),
        })
    }

    /// Returns an error after a failed sync: the kernel has marked the pages of that sync as clean, so the next sync
    /// would succeed without writing them. Only reads are allowed then.
    fn check_synced(&self) -> io::Result<()> {
        match &self.failed_sync {
            Some(reason) => Err(io::Error::other(format!("a sync failed, and nothing was written since: {reason}"))),
            None => Ok(()),
        }
    }

    fn sync(&mut self) -> io::Result<Answer> {
        self.check_synced()?;
        let synced = self.file.sync_data();
        self.failed_sync = synced.as_ref().err().map(ToString::to_string);
        synced.map(|()| Answer::Done)
    }

    /// Punches a hole in the file if `bytes` are zeros, are long enough and the host can do it. Returns whether it did.
    fn leaves_out(&self, block: u64, bytes: &[u8]) -> bool {
        use rustix::fs::{FallocateFlags, fallocate};
        let is_worth_it = bytes.len() >= HOLE_BLOCKS * BLOCK_BYTES && bytes.iter().all(|byte| *byte == 0);
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        is_worth_it && fallocate(&self.file, hole, block * BYTES, bytes.len() as u64).is_ok()
    }

    fn perform(&mut self, operation: Operation) -> io::Result<Answer> {
        let refused = |what: &str| Err(io::Error::new(io::ErrorKind::Unsupported, what.to_string()));
        match operation {
            Operation::Read { block, blocks } => {
                let mut bytes = vec![0; blocks as usize * BLOCK_BYTES];
                self.file.read_exact_at(&mut bytes, block * BYTES)?;
                self.head = block + blocks;
                Ok(Answer::Bytes(bytes))
            }
            Operation::Write { .. } if !self.is_writable => refused("the file is open read-only"),
            Operation::Write { block, bytes } => {
                self.check_synced()?;
                if !self.leaves_out(block, &bytes) {
                    self.host.write_all_at(&bytes, block * BYTES)?;
                }
                self.head = block + bytes.len() as u64 / BYTES;
                Ok(Answer::Done)
            }
            Operation::Flush => self.sync(),
            Operation::Report => Ok(Answer::Zones(Vec::new())),
            Operation::Reset(_) | Operation::Finish(_) => refused("a file has no zones"),
        }
    }
}

impl Backend for FileBackend {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn submit(&mut self, _now_ns: u64, number: u64, operation: Operation) {
        let outcome = self.perform(operation).map_err(|error| DeviceFault::new(format!("{}: {error}", self.place)));
        self.answers.push((number, outcome));
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        (!self.answers.is_empty()).then_some(now_ns)
    }

    fn answers(&mut self, _now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        answers.append(&mut self.answers);
    }

    fn head_position(&self) -> u64 {
        self.head
    }

    fn next_data(&mut self, block: u64) -> u64 {
        use rustix::fs::{SeekFrom, seek};
        match seek(&self.file, SeekFrom::Data(block * BYTES)) {
            Ok(byte) => byte / BYTES,
            Err(rustix::io::Errno::NXIO) => self.geometry.blocks.max(block),
            // The host cannot report holes, so everything may be data.
            Err(_) => block,
        }
    }

    fn survey(&mut self, name: &str) -> io::Result<Survey> {
        Survey::of(name, &self.file)
    }

    fn wipe_rest(&mut self, contents: &[Contents]) -> io::Result<()> {
        self.check_synced()?;
        let (begin, end) = (self.geometry.blocks * BYTES, self.file.seek(SeekFrom::End(0))?);
        for Contents { place: (at, length), .. } in contents {
            let [from, to] = [*at, at + length].map(|place| place.clamp(begin, end));
            self.host.write_all_at(&vec![0; (to - from) as usize], from)?;
        }
        Ok(())
    }

    fn host_file(&self) -> Option<Arc<HostFile>> {
        Some(self.host.clone())
    }

    fn shut_down(&mut self) -> Result<(), DeviceFault> {
        let synced = self.check_synced().and_then(|()| if self.is_writable { self.file.sync_all() } else { Ok(()) });
        synced.and_then(|()| self.file.unlock()).map_err(|error| DeviceFault::new(format!("{}: {error}", self.place)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::executor::Executor;

    fn file(blocks: u64) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.as_file().set_len(blocks * BYTES + 17).expect("it grows");
        file
    }

    #[test]
    fn what_is_written_is_read_again_by_the_next() {
        let file = file(8);
        let executor = Executor::on_the_wall();
        let bytes: Vec<u8> = (0..2 * BLOCK_BYTES).map(|at| (at % 251) as u8).collect();
        let device = Device::new(&executor, "file", Box::new(FileBackend::open(file.path(), true).expect("it opens")));
        assert_eq!(device.geometry(), Geometry { blocks: 8, kind: Kind::Plain });
        let (writer, written) = (device.clone(), bytes.clone());
        executor.run(async move { writer.write(3, written).await }).expect("it ends").expect("it is written");
        let second = FileBackend::open(file.path(), false).map(drop).expect_err("the file is in use");
        assert!(second.reason.contains("in use by another process"), "{second}");
        device.shut_down().expect("the host's disk takes it");
        drop((device, executor));
        let executor = Executor::on_the_wall();
        let device = Device::new(&executor, "file", Box::new(FileBackend::open(file.path(), false).expect("it opens")));
        let reader = device.clone();
        let read = executor.run(async move { reader.read(2, 4).await }).expect("it ends").expect("it is read");
        assert_eq!(read[BLOCK_BYTES..3 * BLOCK_BYTES], bytes[..]);
        assert!(read[..BLOCK_BYTES].iter().chain(&read[3 * BLOCK_BYTES..]).all(|byte| *byte == 0));
    }

    /// Uses a pipe in place of the file: a pipe cannot be synced.
    #[test]
    fn after_a_sync_that_failed_nothing_is_written_and_no_flush_succeeds() {
        let file = file(8);
        let mut backend = FileBackend::open(file.path(), true).expect("it opens");
        let (_, writer) = std::io::pipe().expect("there are pipes");
        let whole = std::mem::replace(&mut backend.file, File::from(std::os::fd::OwnedFd::from(writer)));
        backend.perform(Operation::Flush).expect_err("a pipe cannot be synced");
        backend.file = whole;
        let write = Operation::Write { block: 1, bytes: vec![7; BLOCK_BYTES] };
        for operation in [write, Operation::Flush] {
            let error = backend.perform(operation).expect_err("the sync before has failed").to_string();
            assert!(error.contains("a sync failed"), "{error}");
        }
        assert_eq!(backend.perform(Operation::Read { block: 1, blocks: 1 }).map(|_| ()).ok(), Some(()), "reads go on");
        assert!(backend.shut_down().is_err(), "it has not ended well");
        assert_eq!(std::fs::read(file.path()).expect("it is there")[BLOCK_BYTES..2 * BLOCK_BYTES], [0; BLOCK_BYTES]);
    }

    /// The signature of a backup GPT begins 512 bytes before the end of the file.
    #[test]
    fn a_signature_behind_the_last_whole_block_is_wiped_and_the_rest_is_kept() {
        let file = file(8);
        let bytes = 8 * BYTES + 1536;
        file.as_file().set_len(bytes).expect("it grows");
        file.as_file().write_all_at(b"kept", 8 * BYTES).expect("it is written");
        file.as_file().write_all_at(b"EFI PART", bytes - 512).expect("it is written");
        let mut backend = FileBackend::open(file.path(), true).expect("it opens");
        let found = backend.survey("file").expect("it is read").contents;
        assert!(found.iter().any(|one| one.place == (bytes - 512, 8)), "{found:?}");
        backend.wipe_rest(&found).expect("it is written");
        let after = std::fs::read(file.path()).expect("it is there");
        assert_eq!(after.len() as u64, bytes);
        assert_eq!(&after[8 * BLOCK_BYTES..8 * BLOCK_BYTES + 4], b"kept");
        assert!(after[8 * BLOCK_BYTES + 4..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn what_may_be_data_is_found_behind_a_hole() {
        let file = file(4096);
        let executor = Executor::on_the_wall();
        let device = Device::new(&executor, "file", Box::new(FileBackend::open(file.path(), true).expect("it opens")));
        assert_eq!([device.next_data(0), device.next_data(4096)], [4096; 2], "there is nothing but a hole");
        let writer = device.clone();
        executor
            .run(async move { writer.write(2048, vec![7; BLOCK_BYTES]).await })
            .expect("it ends")
            .expect("it is written");
        // Hosts report holes in units of their own, but never report data as a hole.
        assert!((1024..=2048).contains(&device.next_data(3)), "{}", device.next_data(3));
        assert_eq!([device.next_data(2048), device.next_data(4095)], [2048, 4096]);
    }

    #[test]
    fn zeros_take_the_place_of_what_was_there_and_no_room() {
        use std::os::unix::fs::MetadataExt;
        let file = file(64);
        let executor = Executor::on_the_wall();
        let device = Device::new(&executor, "file", Box::new(FileBackend::open(file.path(), true).expect("it opens")));
        let one = device.clone();
        let read = executor.run(async move {
            one.write(0, vec![7; 64 * BLOCK_BYTES]).await.expect("it is written");
            // First the shortest run of zeros that becomes a hole, then one that is a block shorter.
            one.write(1, vec![0; HOLE_BLOCKS * BLOCK_BYTES]).await.expect("it is written");
            one.write(40, vec![0; (HOLE_BLOCKS - 1) * BLOCK_BYTES]).await.expect("it is written");
            one.flush().await.expect("it is flushed");
            one.read(0, 64).await.expect("it is read")
        });
        let expected = |block: usize| match block {
            1..17 | 40..55 => 0,
            _ => 7,
        };
        for (block, bytes) in read.expect("it ends").chunks(BLOCK_BYTES).enumerate() {
            assert!(bytes.iter().all(|byte| *byte == expected(block)), "block {block}");
        }
        let stored = file.as_file().metadata().expect("it is there").blocks() * 512;
        assert!(stored <= (64 - HOLE_BLOCKS as u64) * BYTES, "{stored} bytes are stored");
    }
}
