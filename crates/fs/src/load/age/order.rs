//! The order in which the ageing deletes files.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// Order in which the ageing deletes files.
///
/// Singh 2014 §5.3 says that its tool creates and deletes files "randomly", that files are generated "determined by a
/// weight associated with each file size", and that "the files thus created are also deleted in a similar manner".
/// These words have two readings: every file has an equal chance ([`DeleteOrder::Random`], for "randomly"), or a size
/// is chosen by its weight first ([`DeleteOrder::Weighted`], since the sentences before the last one are about
/// weights). Live files have the sizes of the created ones, so both choose a size with nearly equal probabilities. The
/// default is [`DeleteOrder::Random`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum DeleteOrder {
    /// A size is chosen with the weights by which files are created, among the sizes of live files. Of the live files
    /// of this size, each has an equal chance.
    Weighted,
    /// Every live file has an equal chance.
    #[default]
    Random,
    /// The file that was created first.
    Oldest,
    /// Whole directories: a directory with live files is chosen, each with an equal chance. All its files are deleted
    /// in the order of their creation, before the next directory is chosen.
    Directory,
    /// Runs of neighbours: a live file is chosen, each with an equal chance. It and the next live files in the order of
    /// creation are deleted, as many as the number says, or up to the last one.
    Runs(NonZeroU64),
}

impl FromStr for DeleteOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<DeleteOrder, String> {
        match text {
            "weighted" => Ok(DeleteOrder::Weighted),
            "random" => Ok(DeleteOrder::Random),
            "oldest" => Ok(DeleteOrder::Oldest),
            "directory" => Ok(DeleteOrder::Directory),
            _ => match text.strip_prefix("runs=").map(str::parse) {
                Some(Ok(files)) => Ok(DeleteOrder::Runs(files)),
                Some(Err(_)) => Err(format!("'{text}': expected runs of at least one file, such as runs=500")),
                None => Err(format!(
                    "there is no order '{text}': expected weighted, random, oldest, directory, or runs=FILES such as \
                     runs=500"
                )),
            },
        }
    }
}

impl fmt::Display for DeleteOrder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeleteOrder::Weighted => formatter.write_str("weighted"),
            DeleteOrder::Random => formatter.write_str("random"),
            DeleteOrder::Oldest => formatter.write_str("oldest"),
            DeleteOrder::Directory => formatter.write_str("directory"),
            DeleteOrder::Runs(files) => write!(formatter, "runs={files}"),
        }
    }
}
