//! Deliberate mistakes of the core, for tests: they show that the tests of power cuts would notice a real one. Only
//! builds with feature `fault-injection` have them.

use std::cell::RefCell;

/// Deliberate mistake of the file system that tests of power cuts must detect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "fault-injection"), allow(dead_code, unreachable_pub))]
pub enum Sabotage {
    /// Records are made durable before the data that they name are written.
    RecordBeforeData,
    /// A checkpoint is made valid before its chunks and the log are durable.
    CheckpointWithoutBarrier,
    /// Blocks are freed and reused, and zones reset, before the record that frees the blocks is durable.
    ReuseBeforeRecord,
    /// On a caveat disk, the blocks behind an allocation that absorb the damage of its writes are freed before the data
    /// are written.
    FooterGivenBackEarly,
    /// `fsync` returns before the records are durable.
    AcknowledgeBeforeCommit,
    /// Parity is written only at the next flush, after its data are durable, and not together with them.
    ParityLate,
    /// A change of a file does not drop the file's copy in the hot zone, which is outdated then.
    CopyKept,
    /// The record that names contents in the hot zone is made before these contents are durable.
    CopyBeforeDurable,
    /// Contents of files in the hot zone are written only to the first copy of the metadata area.
    OneCopyWritten,
    /// The part of the hot zone on a drive is read even if the generation of its stamp shows that it is outdated.
    StalePartBelieved,
    /// Stripe groups are appended to before the numbers of rows that an unmount recorded for them are durably deleted.
    RowsForgottenLate,
    /// A mount writes without starting a new generation of the copies of the metadata.
    GenerationNotBegun,
    /// Superblocks do not record how far the checkpoints and the log reach.
    LastDurableNotRecorded,
}

#[cfg(feature = "fault-injection")]
impl Sabotage {
    /// Deliberate mistakes that only a lost write, or a device restored from an old copy, reveals. Power cuts alone do
    /// not.
    pub const OF_LOST_WRITES: [Sabotage; 2] = [Sabotage::GenerationNotBegun, Sabotage::LastDurableNotRecorded];

    /// Deliberate mistakes that tests of power cuts must reveal. Those that only a lost write reveals
    /// ([`Sabotage::OF_LOST_WRITES`]) are not among them.
    pub const ALL: [Sabotage; 11] = [
        Sabotage::RecordBeforeData,
        Sabotage::CheckpointWithoutBarrier,
        Sabotage::ReuseBeforeRecord,
        Sabotage::FooterGivenBackEarly,
        Sabotage::AcknowledgeBeforeCommit,
        Sabotage::ParityLate,
        Sabotage::CopyKept,
        Sabotage::CopyBeforeDurable,
        Sabotage::OneCopyWritten,
        Sabotage::StalePartBelieved,
        Sabotage::RowsForgottenLate,
    ];

    /// Deliberate mistakes about copies of files in the hot zone. Only tests with a hot zone reveal them.
    pub const OF_COPIES: [Sabotage; 4] =
        [Sabotage::CopyKept, Sabotage::CopyBeforeDurable, Sabotage::OneCopyWritten, Sabotage::StalePartBelieved];

    /// Deliberate mistakes that tests of power cuts must reveal if files are stored only in the hot zone.
    pub const OF_FILES_ALONE: [Sabotage; 4] = [
        Sabotage::RecordBeforeData,
        Sabotage::ReuseBeforeRecord,
        Sabotage::CopyBeforeDurable,
        Sabotage::OneCopyWritten,
    ];
}

/// The mistake that a mounted file system makes, and the writes that the mistake delays.
#[derive(Default)]
pub(in crate::core) struct FaultInjection {
    mistake: Option<Sabotage>,
    /// First block and bytes of each delayed write.
    late_writes: RefCell<Vec<(u64, Vec<u8>)>>,
}

impl FaultInjection {
    pub(in crate::core) fn new(mistake: Option<Sabotage>) -> FaultInjection {
        FaultInjection { mistake, late_writes: RefCell::default() }
    }

    /// Returns whether the core makes mistake `which`.
    pub(in crate::core) fn makes(&self, which: Sabotage) -> bool {
        cfg!(feature = "fault-injection") && self.mistake == Some(which)
    }

    /// Delays a write of `bytes` to block `block` until the record that names it is durable.
    pub(in crate::core) fn delay(&self, block: u64, bytes: Vec<u8>) {
        self.late_writes.borrow_mut().push((block, bytes));
    }

    /// Returns and removes the delayed writes.
    pub(in crate::core) fn take_delayed(&self) -> Vec<(u64, Vec<u8>)> {
        std::mem::take(&mut *self.late_writes.borrow_mut())
    }
}
