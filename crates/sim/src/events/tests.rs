//! Goal: the trace has every operation and request once, its slices are nested or apart, and it ends clearly at its
//! largest size. Method: runs of a toy drive, whose trace is decoded and compared with the engine's reports.

use std::collections::BTreeMap;

use imbrex_disk::{Command, Lba, SimDuration};
use imbrex_layer::verify::toy;
use imbrex_trace::{Recorded, Request, When};
use prost::Message;

use super::*;
use crate::schedule::Schedule;
use crate::{Arrival, Drive, Engine, Observer, Options};

/// `Trace`.
#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packets: Vec<TracePacket>,
}

struct Recording {
    recorder: EventRecorder<Vec<u8>>,
    /// Times of all operations and of all requests.
    operations: Vec<(u64, u64)>,
    requests: Vec<(u64, u64)>,
}

impl Observer for Recording {
    fn wants_ios(&self) -> bool {
        true
    }

    fn wants_operations(&self) -> bool {
        true
    }

    fn operation(&mut self, operation: &Operation<'_>) {
        if operation.end > operation.begin {
            self.operations.push((operation.begin.0, operation.end.0));
        }
        self.recorder.operation(operation);
    }

    fn io(&mut self, record: &IoRecord) {
        self.requests.push((record.due.0, record.end.0));
        self.recorder.completed(record);
    }
}

/// A slice of a decoded trace.
#[derive(Clone, Debug)]
struct Slice {
    track: u64,
    name: String,
    from: u64,
    until: u64,
    depth: usize,
    flows: Vec<u64>,
}

/// Decodes a trace. Panics if a slice ends that did not begin, never ends, or ends before it begins.
fn slices(bytes: &[u8]) -> (Vec<Slice>, Vec<String>, BTreeMap<u64, String>) {
    let trace = Trace::decode(bytes).expect("it is a trace");
    let (mut slices, mut instants, mut tracks) = (Vec::new(), Vec::new(), BTreeMap::new());
    let mut open: BTreeMap<u64, Vec<Slice>> = BTreeMap::new();
    for packet in trace.packets {
        if let Some(track) = packet.track_descriptor {
            tracks.insert(track.uuid.expect("it has one"), track.name.expect("it has one"));
        }
        let Some(event) = packet.track_event else { continue };
        let (at, track) = (packet.timestamp.expect("it has one"), event.track_uuid.expect("it has one"));
        assert!(tracks.contains_key(&track), "track {track} is not described");
        let stack = open.entry(track).or_default();
        match event.kind {
            Some(SLICE_BEGIN) => {
                assert!(stack.last().is_none_or(|outer| outer.from <= at), "a slice begins before its outer one");
                let (name, depth, flows) = (event.name.expect("it has one"), stack.len(), event.flow_ids);
                stack.push(Slice { track, name, from: at, until: 0, depth, flows });
            }
            Some(SLICE_END) => {
                let slice = stack.pop().expect("a slice ends that did not begin");
                assert!(slice.from <= at, "{slice:?} ends at {at}");
                slices.push(Slice { until: at, ..slice });
            }
            Some(INSTANT) => instants.push(event.name.expect("it has one")),
            other => panic!("an event of kind {other:?}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "{open:?} never end");
    for depth in 0..3 {
        for track in tracks.keys() {
            let mut level: Vec<_> =
                slices.iter().filter(|slice: &&Slice| slice.track == *track && slice.depth == depth).collect();
            level.sort_by_key(|slice| (slice.from, slice.until));
            for pair in level.windows(2) {
                assert!(pair[0].until <= pair[1].from, "{:?} and {:?} overlap", pair[0], pair[1]);
            }
        }
    }
    (slices, instants, tracks)
}

/// A run, and its trace.
struct Made {
    operations: Vec<(u64, u64)>,
    requests: Vec<(u64, u64)>,
    counts: EventCounts,
    bytes: Vec<u8>,
}

fn made(bytes_max: u64, from: u64, to: u64) -> Made {
    let toy = toy::disks("shingled").next().expect("there is one");
    let parameters = [("region_size".to_string(), "8k".to_string()), ("cache_share".to_string(), "20%".to_string())];
    let drive = Drive::assemble("toy", toy.profile, "set-associative", &parameters).expect("it is right");
    let options = EventOptions { name: "toy".into(), drive: 2, from: SimTime(from), to: SimTime(to), bytes_max };
    let recorder = EventRecorder::new(drive.layer.as_ref(), options, Vec::new());
    let mut recording = Recording { recorder, operations: Vec::new(), requests: Vec::new() };
    let mut commands = toy::Commands::new(3, drive.layer.capacity(), 24);
    let requests: Vec<_> = (0..300u64)
        .map(|number| {
            let command = Command { lba: Lba(commands.draw().lba.0), sectors: 1, ..Command::write(0, 1) };
            Request { when: When::At(SimTime(number / 5 * 4000)), device: 0, command }
        })
        .collect();
    let sector_bytes = u64::from(drive.disk.sector_bytes);
    let schedule = Schedule::named("elevator", SimDuration::ZERO).expect("it is known");
    let run = Options { schedule, write_cache_bytes: 6 * sector_bytes, ..Options::bare(Arrival::FixedQueue(9)) };
    Engine::new(drive, run, Recorded::new(requests), &mut recording).run().expect("a list cannot fail");
    let Recording { recorder, operations, requests } = recording;
    let (bytes, counts) = recorder.finish().expect("a vector grows");
    Made { operations, requests, counts, bytes }
}

#[test]
fn a_trace_has_every_operation_and_request_once() {
    let Made { operations, requests, counts, bytes } = made(u64::MAX, 0, u64::MAX);
    assert_eq!((counts.bytes, counts.left_out), (bytes.len() as u64, 0));
    let (slices, instants, tracks) = slices(&bytes);
    let on = |name: &str, depth: usize| -> Vec<(u64, u64)> {
        let found = slices.iter().filter(|slice| tracks[&slice.track] == name && slice.depth == depth);
        let mut found: Vec<_> = found.map(|slice| (slice.from, slice.until)).collect();
        found.sort_unstable();
        found
    };
    let sorted = |mut times: Vec<(u64, u64)>| {
        times.sort_unstable();
        times
    };
    assert_eq!(on("actuator", 0), sorted(operations.clone()));
    assert_eq!(on("requests", 0), sorted(requests.clone()));
    let length = |times: Vec<(u64, u64)>| times.iter().map(|(from, until)| until - from).sum::<u64>();
    assert_eq!(length(on("actuator", 1)), length(operations), "stretches fill the operations");
    assert_eq!(length(on("requests", 1)), length(requests), "waiting and service fill the requests");
    assert!(!on("cleaning", 0).is_empty() && !on("volatile cache", 0).is_empty() && !instants.is_empty());
    // Each piece of cleaning leads to one access at least, and comes from a request.
    for cleaning in slices.iter().filter(|slice| tracks[&slice.track] == "cleaning" && slice.depth == 0) {
        assert!(cleaning.name.starts_with("cleaning of "), "{cleaning:?}");
        assert_eq!(cleaning.flows.len(), 2, "{cleaning:?}");
        for flow in &cleaning.flows {
            let ends = slices.iter().filter(|slice| slice.flows.contains(flow) && slice.track != cleaning.track);
            assert!(ends.count() >= 1, "flow {flow} of {cleaning:?} leads nowhere");
        }
    }
}

#[test]
fn a_trace_ends_clearly_at_its_largest_size() {
    let whole = made(u64::MAX, 0, u64::MAX).bytes;
    for bytes_max in (2000..whole.len() as u64).step_by(1777) {
        let Made { counts, bytes, .. } = made(bytes_max, 0, u64::MAX);
        assert!(bytes.len() as u64 <= bytes_max && counts.left_out > 0, "{} of {bytes_max} bytes", bytes.len());
        assert!(bytes.len() as u64 + 4 * RESERVED_BYTES > bytes_max, "{} of {bytes_max} bytes", bytes.len());
        let (_, instants, _) = slices(&bytes);
        let last = instants.last().expect("a last event");
        assert!(last.contains(&format!("{} later ones are left out", counts.left_out)), "{last}");
    }
}

#[test]
fn a_trace_of_a_part_of_the_time_has_what_reaches_into_it() {
    let all = made(u64::MAX, 0, u64::MAX).operations;
    let (from, to) = (all[all.len() / 3].0 + 1, all[all.len() / 2].1 - 1);
    let Made { operations, bytes, .. } = made(u64::MAX, from, to);
    let (slices, _, tracks) = slices(&bytes);
    let is_within = |&&(begin, end): &&(u64, u64)| begin <= to && end >= from;
    let expected = operations.iter().filter(is_within).count();
    let found = slices.iter().filter(|slice| tracks[&slice.track] == "actuator" && slice.depth == 0).count();
    assert!(expected > 0 && expected < operations.len());
    assert_eq!(found, expected);
}
