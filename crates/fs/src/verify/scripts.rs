//! Sequences of operations for the power-cut checker: every sequence of three out of fifteen operations on two names,
//! and long random ones.

use super::operation::{Chooser, Operation};
use crate::core::Allocate;

/// Number of operations from which each of the three operations of a short sequence is taken.
pub const KINDS: usize = 15;

fn operation(kind: usize, place: usize) -> Vec<Operation> {
    let (a, b, d) = (|| "a".to_string(), || "b".to_string(), || "d".to_string());
    let seed = 10 * place as u8 + kind as u8 + 1;
    vec![match kind {
        0 => Operation::Create(b()),
        1 => Operation::Write(b(), 0, 6000, seed),
        2 => Operation::Write(a(), 9000, 5000, seed),
        3 => Operation::Write(a(), 1000, 5000, seed),
        4 => Operation::Fsync(a()),
        5 => Operation::Rename(b(), a()),
        6 => Operation::Rename(a(), "c".into()),
        7 => Operation::Link(a(), "l".into()),
        8 => Operation::Unlink(a()),
        9 => Operation::Truncate(a(), 3000),
        10 => Operation::MakeDirectory(d()),
        11 => Operation::RemoveDirectory(d()),
        12 => Operation::SetAttribute(a(), seed),
        13 => Operation::Allocate(a(), 2000, 12_000, Allocate::Room),
        _ => Operation::Fsync(String::new()),
    }]
}

/// Returns the short sequence with the given number, from 0 to [`KINDS`]³ − 1. It creates two files and makes them
/// durable, performs three operations, and ends with `fsync` of both names.
pub fn short(number: usize) -> Vec<Operation> {
    let mut operations = vec![
        Operation::Create("a".into()),
        Operation::Write("a".into(), 0, 9000, 200),
        Operation::Create("b".into()),
        Operation::Write("b".into(), 0, 4096, 201),
        Operation::Sync,
    ];
    for (place, kind) in [number / KINDS / KINDS, number / KINDS % KINDS, number % KINDS].into_iter().enumerate() {
        operations.extend(operation(kind, place));
    }
    operations.extend([Operation::Fsync("a".into()), Operation::Fsync("b".into())]);
    operations
}

/// Returns a random sequence: four operations that create files and a directory, then `length` random ones. Equal seeds
/// give equal sequences.
pub fn long(seed: u64, length: usize) -> Vec<Operation> {
    let mut chooser = Chooser::new(seed, 20_000);
    let first = [
        Operation::Create("a".into()),
        Operation::Create("b".into()),
        Operation::MakeDirectory("d".into()),
        Operation::Create("d/a".into()),
    ];
    first.into_iter().chain((0..length).map(|_| chooser.choose())).collect()
}

/// Returns a random sequence like [`long`]: operations that create files, and `length` random ones. After each
/// operation it reads one random path twice, so that files differ in heat.
pub fn long_with_reads(seed: u64, length: usize) -> Vec<Operation> {
    let mut chooser = Chooser::new(seed ^ 0x4EAD, 20_000);
    let mut operations = Vec::new();
    for operation in long(seed, length) {
        let read = chooser.choose_read();
        operations.extend([operation, read.clone(), read]);
    }
    operations
}

/// Returns a sequence in which several files are written to the store concurrently, each by several commands, after
/// other files were removed.
pub fn at_once() -> Vec<Operation> {
    let name = |number: usize| format!("f{number}");
    let write = |number: usize, seed: u8| Operation::Write(name(number), 0, 4096 * (2 + number % 3), seed);
    let close = |numbers: std::ops::Range<usize>| {
        Operation::Together(numbers.map(|number| Operation::Close(name(number))).collect())
    };
    let mut operations: Vec<Operation> = (0..6).map(|number| Operation::Create(name(number))).collect();
    operations.extend((0..6).map(|number| write(number, 40)));
    operations.extend([close(0..6), Operation::Unlink(name(1)), Operation::Unlink(name(4)), Operation::Sync]);
    operations.extend([0, 2, 3, 5].map(|number| write(number, 90)));
    operations.extend([close(0..6), Operation::Sync]);
    // A short file is allocated while a long file is being written.
    for round in 0..3 {
        operations.push(Operation::Write(name(0), 0, 4096 * 9, round));
        let short = Operation::WriteOut(name(2 + round as usize % 2), 0, 100, 50 + round);
        operations.push(Operation::Together(vec![Operation::Close(name(0)), short]));
        operations.push(Operation::Sync);
    }
    operations
}
