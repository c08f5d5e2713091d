//! Reads blktrace, binary or as printed by blkparse: pairs the requests issued to the drive (D) with their completions
//! (C).
//!
//! An issue belongs to the next completion of the same kind and sectors on the same device.

use std::collections::{BTreeMap, VecDeque};

use imbrex_disk::{Operation, SimDuration, SimTime};
use imbrex_trace::formats;
use imbrex_trace::{Input, Request, TraceError, TraceOptions, When};

use super::record::ReadOptions;
use crate::measured::{Measured, MeasuredRequest};

/// Returns whether the file is a blktrace in either form.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    let input = Input::bytes("", bytes.to_vec());
    let Ok(unpacked) = input.unpack() else { return false };
    let format = formats::recognise(&formats::Head::of(&unpacked));
    format.is_some_and(|format| ["blktrace", "blkparse"].contains(&format.name))
}

/// Reads issues and completions, and pairs them.
pub(super) fn read(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Measured, TraceError> {
    let (issues, format) = action(name, bytes, options, 'D')?;
    let (completions, _) = action(name, bytes, options, 'C')?;
    let mut ends: BTreeMap<Key, VecDeque<u64>> = BTreeMap::new();
    for (at, request) in &completions {
        ends.entry(key(request)).or_default().push_back(*at);
    }
    let origin = issues.first().map_or(0, |(at, _)| *at);
    let mut measured = Measured { format, ..Measured::default() };
    let mut open = 0;
    for (at, request) in &issues {
        if request.command.operation == Operation::Flush {
            continue;
        }
        let waiting = ends.get_mut(&key(request));
        let end = waiting.and_then(|ends| {
            while ends.front().is_some_and(|end| end < at) {
                ends.pop_front();
            }
            ends.pop_front()
        });
        match end {
            Some(end) => measured.requests.push(MeasuredRequest {
                command: request.command,
                issued: SimTime(at - origin),
                taken: SimDuration(end - at),
                hit: None,
            }),
            None => open += 1,
        }
    }
    if open > 0 {
        measured.notes.push(format!("{open} issues have no completion of the same sectors and are left out"));
    }
    if measured.requests.is_empty() {
        let reason = "has no issue (D) with its completion (C): trace both actions".to_string();
        return Err(TraceError::new(name, reason));
    }
    Ok(measured)
}

type Key = (u32, u64, u32, u8);

fn key(request: &Request) -> Key {
    (request.device, request.command.lba.0, request.command.sectors, request.command.operation as u8)
}

/// Returns every request with this action, and its time on the trace's own clock, nanoseconds.
fn action(
    name: &str,
    bytes: &[u8],
    options: &ReadOptions,
    action: char,
) -> Result<(Vec<(u64, Request)>, String), TraceError> {
    let device = options.device.as_ref().map(|device| device.parse().unwrap_or_else(|never| match never {}));
    let read = TraceOptions { action: Some(action), device, ..TraceOptions::default() };
    let opened = formats::open(Input::bytes(name, bytes.to_vec()), &read)?;
    let mut source = opened.source;
    let mut requests = Vec::new();
    while let Some(request) = source.next(SimTime::ZERO)? {
        let When::At(at) = request.when else { continue };
        requests.push((at.0, request));
    }
    let origin = source.facts().origin_ns.unwrap_or(0);
    requests.iter_mut().for_each(|(at, _)| *at += origin);
    Ok((requests, opened.format.name.to_string()))
}
