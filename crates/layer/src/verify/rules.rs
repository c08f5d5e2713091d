//! The rules of a host-managed drive, held against what a host asks for, and what its writes cost it.
//!
//! A drive with zones takes a sequential zone's writes at its pointer. In a simulation a write elsewhere is carried out
//! all the same, as on the bare platters, so that the harm can be counted; a drive that serves a host refuses it. A TRIM
//! that covers a sequential zone whole resets it, as it does where a drive is served. A caveat disk takes writes anywhere.
//!
//! Invariants:
//! 1. Requests are judged in the order in which they enter, whatever order they are served in.
//! 2. A sector is live from a write to it until it is trimmed or destroyed; it is counted as destroyed once for each time.

use imbrex_disk::{Command, Lba, Operation, Sectors};

use crate::layer::Layer;
use crate::map::run_map::RunMap;
use crate::plan::Plan;
use crate::zones::{Condition, Zones};

/// What a host did against its drive's rules and to its own data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleBreaks {
    /// Writes that the drive would have refused.
    pub writes: u64,
    /// Live sectors that the host's own writes destroyed.
    pub live_sectors_destroyed: u64,
    /// The first of either, in words.
    pub first: String,
    /// The number of the request that was the latest to enter then, counted from 1.
    pub request: u64,
}

/// The judge of one run: on its own of the rules alone, within a [`super::Checker`] of what was destroyed too.
#[derive(Debug)]
pub struct Rules {
    /// Pointers as the host's writes move them; none where the drive has no zones.
    zones: Option<Zones>,
    /// What was trimmed and not written since.
    given_up: RunMap<()>,
    /// Requests that have entered.
    request: u64,
    breaks: Option<RuleBreaks>,
}

impl Rules {
    /// The rules of the drive of `layer`, as new.
    pub fn of(layer: &dyn Layer) -> Rules {
        Rules { zones: layer.zones().cloned(), given_up: RunMap::default(), request: 0, breaks: None }
    }

    /// What was broken so far, if anything.
    pub fn breaks(&self) -> Option<&RuleBreaks> {
        self.breaks.as_ref()
    }

    /// `command` enters as request number `request`.
    pub fn entered(&mut self, command: &Command, request: u64) {
        self.request = request;
        let Some(zones) = &mut self.zones else { return };
        let (lba, sectors) = (command.lba, Sectors(u64::from(command.sectors)));
        match command.operation {
            Operation::Write => {
                let refused = zones.accept_write(lba, sectors.0).err();
                zones.wrote(lba, sectors);
                if let Some(reason) = refused {
                    self.broken(|| reason.to_string()).writes += 1;
                }
            }
            Operation::Trim => reset_covered(zones, lba, sectors),
            Operation::Read | Operation::Flush => {}
        }
    }

    /// A write reaches the medium: its sectors are live.
    pub(super) fn written(&mut self, lba: u64, sectors: u64) {
        if !self.given_up.is_empty() {
            self.given_up.remove(lba, sectors);
        }
    }

    /// A TRIM is served: its sectors are given up.
    pub(super) fn trimmed(&mut self, lba: u64, sectors: u64) {
        self.given_up.insert(lba, sectors, ());
    }

    /// A write of the host destroys these sectors, which were written once.
    pub(super) fn destroyed(&mut self, lba: u64, sectors: u64) {
        let (mut live, mut first) = (0, None);
        self.given_up.cover(lba, sectors, |start, length, trimmed| {
            if trimmed.is_none() {
                live += length;
                first.get_or_insert(start);
            }
        });
        if let Some(first) = first {
            let breaks = self.broken(|| format!("a write destroyed LBA {first}, which was live"));
            breaks.live_sectors_destroyed += live;
        }
    }

    fn broken(&mut self, first: impl FnOnce() -> String) -> &mut RuleBreaks {
        let request = self.request;
        self.breaks.get_or_insert_with(|| RuleBreaks { writes: 0, live_sectors_destroyed: 0, first: first(), request })
    }
}

/// Resets the sequential zones that lie within the range; what it has of others is left alone.
fn reset_covered(zones: &mut Zones, lba: Lba, sectors: Sectors) {
    let size = zones.zone_sectors().0;
    let (first, end) = (lba.0.div_ceil(size), ((lba + sectors).0 / size).min(u64::from(zones.len())));
    let mut plan = Plan::new();
    for index in first as u32..end.max(first) as u32 {
        let is_sequential = zones.zone(index).is_ok_and(|zone| zone.condition != Condition::Conventional);
        if is_sequential {
            zones.reset(index, &mut plan).expect("a zone of a simulated drive never fails");
        }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: breaks and losses are counted as the rules and the recording have them. Method: by hand on toys, each command
    //! judged and checked as a simulation would.

    use imbrex_disk::{Command, SharedDisk};

    use super::RuleBreaks;
    use crate::layer::Layer;
    use crate::plan::Plan;
    use crate::registry;
    use crate::verify::{Checker, harm, toy};

    fn toy_of(layer: &str, recording: &str, parameters: &[(String, String)]) -> (SharedDisk, Box<dyn Layer>) {
        let toy = toy::disks(recording).next().expect("there is one");
        let built = registry::build(layer, &toy.disk, parameters).expect("it takes the toy");
        (toy.disk.clone(), built)
    }

    fn run(disk: &SharedDisk, layer: &mut dyn Layer, commands: &[Command]) -> Option<RuleBreaks> {
        let (mut checker, mut plan) = (Checker::new(disk, layer, true), Plan::new());
        for (number, command) in commands.iter().enumerate() {
            checker.entered(command, number as u64 + 1);
            plan.clear();
            layer.plan(&[*command], &mut plan);
            checker.check(&plan, &[*command], layer).expect("the layer is faultless");
        }
        checker.rule_breaks().cloned()
    }

    fn zoned() -> (SharedDisk, Box<dyn Layer>) {
        toy_of("zoned", "shingled", &[("zone_size".to_string(), "20000".to_string())])
    }

    #[test]
    fn a_host_that_keeps_to_the_pointers_breaks_nothing() {
        let (disk, mut layer) = zoned();
        let zone = layer.zones().expect("it has zones").zone_sectors().0;
        let mut commands: Vec<Command> = (0..zone).map(|lba| Command::write(lba, 1)).collect();
        // Reset by a TRIM of the whole zone, it is written again from its start.
        commands.push(Command::trim(0, zone as u32));
        commands.extend((0..zone).map(|lba| Command::write(lba, 1)));
        assert_eq!(run(&disk, layer.as_mut(), &commands), None);
    }

    #[test]
    fn a_write_off_the_pointer_is_counted_with_what_it_destroys() {
        let (disk, mut layer) = zoned();
        let zone = layer.zones().expect("it has zones").zone_sectors().0;
        let mut commands = vec![Command::write(0, zone as u32)];
        let again = Command::write(0, 1);
        // The twin says what a write of the first sector destroys, all of it live.
        let lost = harm::of(&disk, layer.as_ref(), &again).lost.len() as u64;
        assert!(lost > 0, "the toy overlaps");
        commands.push(again);
        let breaks = run(&disk, layer.as_mut(), &commands).expect("a full zone takes no write");
        assert_eq!((breaks.writes, breaks.live_sectors_destroyed, breaks.request), (1, lost, 2));
        assert_eq!(breaks.first, "zone 0 is full: it cannot be written");
        // What was given up before is not lost, and a TRIM of a part resets nothing.
        let (disk, mut layer) = zoned();
        commands.insert(1, Command::trim(1, zone as u32 - 1));
        let breaks = run(&disk, layer.as_mut(), &commands).expect("a part resets nothing");
        assert_eq!((breaks.writes, breaks.live_sectors_destroyed, breaks.request), (1, 0, 3));
    }

    #[test]
    fn a_write_ahead_of_the_pointer_and_one_over_the_end_of_a_zone_break_the_rules() {
        let (disk, mut layer) = zoned();
        let zone = layer.zones().expect("it has zones").zone_sectors().0;
        let commands = [Command::write(1, 1), Command::write(2, 1), Command::write(zone - 1, 2)];
        let breaks = run(&disk, layer.as_mut(), &commands).expect("two of the three are off the pointer");
        assert_eq!((breaks.writes, breaks.live_sectors_destroyed, breaks.request), (2, 0, 1));
        assert!(breaks.first.contains("zone 0 takes its next write at LBA 0, not at 1"), "{}", breaks.first);
    }

    #[test]
    fn a_caveat_disk_has_no_pointers_and_loses_what_did_and_dnor_say() {
        // DNOR 5 and DID 12: a write of 100 … 103 damages 106 … 115 (Singh 2014 §3.2). Of those 110 … 112 are live, and one
        // of them is given up.
        let commands = [Command::write(110, 3), Command::trim(112, 1), Command::write(100, 4), Command::write(100, 4)];
        let (disk, mut layer) = toy_of("caveat", "caveat", &[]);
        let breaks = run(&disk, layer.as_mut(), &commands).expect("live sectors were destroyed");
        assert_eq!((breaks.writes, breaks.live_sectors_destroyed, breaks.request), (0, 2, 3));
        assert_eq!(breaks.first, "a write destroyed LBA 110, which was live");
        let (disk, mut layer) = toy_of("caveat", "caveat", &[]);
        assert_eq!(run(&disk, layer.as_mut(), &commands[..2]), None);
    }
}
