//! What the independent writer began and what was acknowledged, in the order of its client: from it follows what every
//! sector may hold at any moment, as long as the moment can be named by the bytes that the server had sent.
//!
//! Invariants:
//! 1. Of two acknowledgements the later one has the larger number of bytes.

use std::ops::Range;

use crate::contents::Value;
use crate::record::Record;

/// Something that the writer did or was told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Act {
    /// A command that gives sectors a value was sent.
    Begin {
        /// Which sectors.
        sectors: Range<u64>,
        /// Which value.
        value: Value,
    },
    /// It was acknowledged.
    Acknowledge {
        /// Which sectors.
        sectors: Range<u64>,
        /// Which value.
        value: Value,
        /// Whether nothing older may come back.
        is_durable: bool,
    },
    /// A flush was acknowledged.
    Flush {
        /// When it was sent, as [`Record::flush_begins`] gave it.
        moment: u64,
    },
}

impl Act {
    /// Enters the act into `record`.
    pub fn apply(&self, record: &mut Record) {
        match self {
            Act::Begin { sectors, value } => record.begin(sectors.clone(), *value),
            Act::Acknowledge { sectors, value, is_durable } => record.acknowledge(sectors.clone(), *value, *is_durable),
            Act::Flush { moment } => record.flushed(*moment),
        }
    }
}

/// All of them, each with the bytes of the server's that had been received with it; 0 for what was only sent.
#[derive(Clone, Debug, Default)]
pub struct History(Vec<(Act, u64)>);

impl History {
    /// Appends an act.
    pub fn push(&mut self, act: Act, received_bytes: u64) {
        self.0.push((act, received_bytes));
    }

    /// Applies to `record` the acts from number `next` on that had happened when the server had sent so many bytes; returns
    /// the number of the first that had not.
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
