//! Tests of the kept results of the papers, and of the ledger of their sentences.

mod ledger;
mod verdicts;
