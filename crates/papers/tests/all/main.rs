//! Tests of the kept results of the papers.

mod verdicts;
