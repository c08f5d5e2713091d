//! Faults planted in a log: the log of a program with a bug. A test that checks replays must detect them.

use std::ops::Range;

use imbrex_testkit::Random;

use crate::log::{Entry, Event, Log};

/// A bug of a program, simulated by a change of the program's log. A test of power cuts must detect the bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plant {
    /// One sync of a file is missing from the log.
    MissingSync,
    /// The last write before a sync and the first write after the sync are swapped in the log; these may concern
    /// different files.
    SwappedWrites,
    /// One write is missing from the log, together with the writes of equal bytes directly before and after it in the
    /// log.
    LostWrite,
    /// One write, together with the writes of equal bytes directly before and after it in the log, is undone after a
    /// later sync: from then on their ranges durably hold the bytes from before these writes.
    LostGeneration,
}

impl Plant {
    /// All kinds of bugs, in the order of their declaration.
    pub const ALL: [Plant; 4] = [Plant::MissingSync, Plant::SwappedWrites, Plant::LostWrite, Plant::LostGeneration];

    /// Returns a copy of `log` with this bug at a place in `range` that `seed` selects, and the position of the first
    /// changed entry. Positions count entries from 0. Returns `None` if there is no suitable place. A missing entry is
    /// replaced by an entry without effect. Writes of equal bytes beside the chosen one may lie outside of `range`.
    ///
    /// # Panics
    /// If `range` reaches past the end of the log.
    pub fn plant(self, log: &Log, range: Range<usize>, seed: u64) -> Option<(Log, usize)> {
        let mut random = Random::new(seed ^ 0x91a2);
        let find = |is_wanted: &dyn Fn(&Event) -> bool| -> Vec<usize> {
            range.clone().filter(|&position| is_wanted(&log.entries[position].event)).collect()
        };
        let syncs = find(&|event| matches!(event, Event::Sync { .. }));
        let writes = find(&|event| matches!(event, Event::Write { .. }));
        let mut planted = log.clone();
        let at = match self {
            Plant::MissingSync => {
                let at = any(&syncs, &mut random)?;
                planted.entries[at] = nothing();
                at
            }
            Plant::LostWrite => {
                let copies = copies(log, any(&writes, &mut random)?);
                planted.entries[copies.clone()].fill(nothing());
                copies.start
            }
            Plant::SwappedWrites => {
                let sync = any(&syncs, &mut random)?;
                let (before, after) = (writes.iter().rfind(|&&at| at < sync)?, writes.iter().find(|&&at| at > sync)?);
                planted.entries.swap(*before, *after);
                *before
            }
            Plant::LostGeneration => {
                let sync = any(&syncs, &mut random)?;
                let before = any(&writes.into_iter().filter(|&at| at < sync).collect::<Vec<_>>(), &mut random)?;
                let copies = copies(log, before);
                let mut disk = log.first.clone();
                log.entries[..copies.start].iter().for_each(|entry| disk.apply(&entry.event));
                for entry in &log.entries[copies] {
                    let Event::Write { file, offset, bytes, .. } = &entry.event else {
                        unreachable!("copies are writes")
                    };
                    let mut old = vec![0; bytes.len()];
                    disk.files.get(file)?.read(*offset, &mut old);
                    let write = Event::Write { file: *file, offset: *offset, bytes: old.into(), is_durable: true };
                    planted.entries.insert(sync + 1, Entry { call: "planted", event: write });
                }
                sync + 1
            }
        };
        Some((planted, at))
    }
}

/// Returns the positions of a write and its copies: the adjacent writes of equal bytes.
fn copies(log: &Log, at: usize) -> Range<usize> {
    let is_copy = |entry: &Entry| match (&entry.event, &log.entries[at].event) {
        (Event::Write { bytes, .. }, Event::Write { bytes: same, .. }) => bytes == same,
        _ => false,
    };
    let before = log.entries[..at].iter().rev().take_while(|entry| is_copy(entry)).count();
    let after = log.entries[at..].iter().take_while(|entry| is_copy(entry)).count();
    at - before..at + after
}

fn any(from: &[usize], random: &mut Random) -> Option<usize> {
    (!from.is_empty()).then(|| from[random.below(from.len() as u64) as usize])
}

fn nothing() -> Entry {
    Entry { call: "left out", event: Event::Names { changes: Vec::new() } }
}
