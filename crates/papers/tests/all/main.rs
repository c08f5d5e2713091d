//! Tests of the kept results and figures of the papers, and of the ledger of their sentences.

mod figures;
mod ledger;
mod verdicts;
