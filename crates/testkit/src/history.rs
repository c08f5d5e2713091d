//! Begun and acknowledged commands of the independent writer, in the order in which its client saw them. They determine
//! the allowed values of every sector at any moment that is given as a number of bytes sent by the server.
//!
//! Invariants:
//! 1. Of two acknowledgements the later one has the larger number of bytes.

use std::ops::Range;

use crate::contents::Value;
use crate::record::Record;

/// A command that the writer sent, or an acknowledgement that it received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Act {
    /// A command that gives sectors a value was sent.
    Begin {
        /// Sectors of the command (exclusive end).
        sectors: Range<u64>,
        /// Value that the command gives the sectors.
        value: Value,
    },
    /// A command that gives sectors a value was acknowledged.
    Acknowledge {
        /// Sectors of the command (exclusive end).
        sectors: Range<u64>,
        /// Value that the command gave the sectors.
        value: Value,
        /// Whether the value is durable, so that the sectors can no longer have an older one.
        is_durable: bool,
    },
    /// A flush was acknowledged: values acknowledged before it was sent are durable.
    Flush {
        /// Result of [`Record::flush_begins`] from when the flush was sent: the number of writes, trims and
        /// WRITE_ZEROES acknowledged until then.
        moment: u64,
    },
}

impl Act {
    /// Applies the act to `record`, which changes the allowed values of sectors.
    pub fn apply(&self, record: &mut Record) {
        match self {
            Act::Begin { sectors, value } => record.begin(sectors.clone(), *value),
            Act::Acknowledge { sectors, value, is_durable } => record.acknowledge(sectors.clone(), *value, *is_durable),
            Act::Flush { moment } => record.flushed(*moment),
        }
    }
}

/// The acts of a writer in order, each with the number of bytes received from the server by then. For acts that only
/// send a command the number is 0.
#[derive(Clone, Debug, Default)]
pub struct History(Vec<(Act, u64)>);

impl History {
    /// Appends an act. `received_bytes` is the number of bytes received from the server by then, 0 for a sent command.
    pub fn push(&mut self, act: Act, received_bytes: u64) {
        self.0.push((act, received_bytes));
    }

    /// Applies to `record` the acts from index `next` on, until one whose number of received bytes exceeds
    /// `sent_bytes`, the bytes that the server had sent in total. Returns the index of that act, or the number of acts:
    /// the value of `next` for the following call.
    pub fn advance(&self, record: &mut Record, mut next: usize, sent_bytes: u64) -> usize {
        while let Some((act, _)) = self.0.get(next).filter(|(_, received)| *received <= sent_bytes) {
            act.apply(record);
            next += 1;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_as_old_as_the_bytes_sent() {
        let mut history = History::default();
        let (sectors, value) = (3..5, Value::Version(1));
        history.push(Act::Begin { sectors: sectors.clone(), value }, 0);
        history.push(Act::Acknowledge { sectors: sectors.clone(), value, is_durable: true }, 40);
        history.push(Act::Begin { sectors: sectors.clone(), value: Value::Version(2) }, 0);
        let candidates = |record: &Record| -> Vec<Value> {
            record.within(3..5)[0].1.iter().map(|candidate| candidate.value).collect()
        };
        let mut record = Record::new();
        let next = history.advance(&mut record, 0, 39);
        assert_eq!((next, candidates(&record)), (1, vec![Value::Zeros, value]), "on its way");
        let next = history.advance(&mut record, next, 40);
        assert_eq!(
            (next, candidates(&record)),
            (3, vec![value, Value::Version(2)]),
            "durable, and the next on its way"
        );
    }
}
