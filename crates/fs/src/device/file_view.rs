//! View of a regular file or an ordinary block device: holds all writes in memory and never changes the file.
//!
//! Like a [`FileBackend`], the view performs and answers each operation when it is submitted.
//!
//! Invariants:
//! 1. The view submits only reads to the file.
//! 2. A block that was written reads as its last contents, any other block as the file's.

use std::collections::BTreeMap;
use std::path::Path;

use super::file::FileBackend;
use super::{Answer, BLOCK_BYTES, Backend, DeviceFault, Geometry, Operation, Outcome};

/// Backend that reads a file and keeps all writes in memory. They are lost when the view is dropped.
pub struct FileView {
    file: FileBackend,
    /// Contents of the blocks that were written, by their numbers.
    written: BTreeMap<u64, Box<[u8]>>,
    answers: Vec<(u64, Outcome)>,
    head: u64,
}

impl FileView {
    /// Opens a view of the file or block device at `path`, and locks the file against writers. Bytes at the end that
    /// are less than a block of 4 KiB are not used.
    ///
    /// # Errors
    /// The file cannot be opened, or another process writes to it, or its length cannot be found.
    pub fn open(path: &Path) -> Result<FileView, DeviceFault> {
        let file = FileBackend::open(path, false)?;
        Ok(FileView { file, written: BTreeMap::new(), answers: Vec::new(), head: 0 })
    }

    /// Performs the operation `number`, whose answer is appended to the answers.
    fn perform(&mut self, number: u64, operation: Operation) {
        let answer = match operation {
            Operation::Write { block, bytes } => {
                let blocks = (block..).zip(bytes.chunks(BLOCK_BYTES));
                self.written.extend(blocks.map(|(block, bytes)| (block, bytes.into())));
                self.head = block + (bytes.len() / BLOCK_BYTES) as u64;
                Ok(Answer::Done)
            }
            Operation::Flush => Ok(Answer::Done),
            Operation::Read { block, blocks } => self.read(block, blocks),
            Operation::Report | Operation::Reset(_) | Operation::Finish(_) => self.ask_file(operation),
        };
        self.answers.push((number, answer));
    }

    fn read(&mut self, block: u64, blocks: u64) -> Outcome {
        let mut answer = self.ask_file(Operation::Read { block, blocks })?;
        if let Answer::Bytes(bytes) = &mut answer {
            for (at, contents) in self.written.range(block..block + blocks) {
                let start = (at - block) as usize * BLOCK_BYTES;
                bytes[start..start + BLOCK_BYTES].copy_from_slice(contents);
            }
        }
        self.head = block + blocks;
        Ok(answer)
    }

    /// Submits an operation to the file, and returns its answer.
    fn ask_file(&mut self, operation: Operation) -> Outcome {
        let mut answers = Vec::new();
        self.file.submit(0, 0, operation);
        self.file.answers(0, &mut answers);
        answers.pop().expect("a file answers at once").1
    }
}

impl Backend for FileView {
    fn geometry(&self) -> Geometry {
        self.file.geometry()
    }

    fn submit(&mut self, _now_ns: u64, number: u64, operation: Operation) {
        self.perform(number, operation);
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
        let written = self.written.range(block..).next().map(|(block, _)| *block);
        let stored = self.file.next_data(block);
        written.map_or(stored, |written| written.min(stored))
    }

    fn survey(&mut self, name: &str) -> std::io::Result<imbrex_safety::Survey> {
        self.file.survey(name)
    }

    fn shut_down(&mut self) -> Result<(), DeviceFault> {
        self.file.shut_down()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: u64 = 40;

    fn answer(device: &mut dyn Backend, operation: Operation) -> Outcome {
        let mut answers = Vec::new();
        device.submit(0, 7, operation);
        assert_eq!(device.next_event_ns(5), Some(5), "the answer is ready");
        device.answers(5, &mut answers);
        let (number, outcome) = answers.pop().expect("one answer");
        assert_eq!((number, answers.len()), (7, 0));
        outcome
    }

    /// Does equal operations on a view of a file and on another file, and compares every answer.
    #[test]
    fn a_view_answers_like_a_file_and_leaves_its_own_unchanged() {
        let contents: Vec<u8> = (0..BLOCKS as usize * BLOCK_BYTES).map(|at| (at / BLOCK_BYTES + 1) as u8).collect();
        let files = [(), ()].map(|()| {
            let file = tempfile::NamedTempFile::new().expect("a temporary file");
            std::fs::write(file.path(), &contents).expect("written");
            file
        });
        let mut view = FileView::open(files[0].path()).expect("it opens");
        let mut other = FileBackend::open(files[1].path(), true).expect("it opens");
        assert_eq!(view.geometry(), other.geometry());
        let mut operations = Vec::new();
        for (block, blocks) in [(3, 4), (0, 1), (5, 20), (BLOCKS - 1, 1), (6, 2)] {
            let bytes = vec![200 + block as u8; blocks * BLOCK_BYTES];
            operations.push(Operation::Write { block, bytes });
            operations.push(Operation::Read { block: 0, blocks: BLOCKS });
            operations.push(Operation::Read { block: 4, blocks: 3 });
        }
        operations.extend([Operation::Flush, Operation::Report, Operation::Reset(0)]);
        operations.push(Operation::Read { block: BLOCKS, blocks: 1 });
        for operation in operations {
            let outcomes = [answer(&mut view, operation.clone()), answer(&mut other, operation)];
            let [ours, expected] = outcomes.map(|outcome| outcome.map_err(|_| ()));
            assert_eq!(ours, expected);
            assert_eq!(view.head_position(), other.head_position());
        }
        view.shut_down().expect("nothing can fail");
        assert!(std::fs::read(files[0].path()).expect("it is there") == contents, "the file was changed");
    }

    #[test]
    fn written_blocks_and_data_of_the_file_are_no_holes() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.as_file().set_len(4096 * BLOCK_BYTES as u64).expect("it grows");
        let mut view = FileView::open(file.path()).expect("it opens");
        assert_eq!(view.next_data(0), 4096, "there is nothing but a hole");
        for block in [3000, 700] {
            let write = Operation::Write { block, bytes: vec![7; BLOCK_BYTES] };
            answer(&mut view, write).expect("memory takes it");
        }
        assert_eq!([0, 700, 701, 3001].map(|block| view.next_data(block)), [700, 700, 3000, 4096]);
    }
}
