//! The rules of a host-managed drive: they are checked against the host's requests, and the sectors that its writes
//! destroy are counted.
//!
//! A drive with zones accepts writes to a sequential zone only at its write pointer. In a simulation a write elsewhere
//! is executed as on the bare platters, so that the damage can be counted; a drive that serves a host refuses it. A
//! TRIM that covers a whole sequential zone resets the zone, in a simulation and in a served drive. A caveat disk
//! accepts writes anywhere.
//!
//! Invariants:
//! 1. Requests are judged in order of arrival, in whatever order they are served.
//! 2. A sector is live from a write to it until it is trimmed or destroyed. Each destruction of a live sector is
//!    counted once.

use imbrex_disk::{Command, Lba, Operation, Sectors};

use crate::layer::Layer;
use crate::map::run_map::RunMap;
use crate::plan::Plan;
use crate::zones::{Condition, Zones};

/// Counts of the host's violations of the rules of a host-managed drive, and of the host's own data that its writes
/// destroyed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleBreaks {
    /// Number of write commands of the host that break the rules of the zones. A simulation executes these commands; a
    /// drive that serves a host refuses them.
    pub writes: u64,
    /// Number of live sectors (written, and neither trimmed nor destroyed since) that the host's own writes destroyed.
    /// Only a [`super::Checker`] counts them; otherwise 0.
    pub live_sectors_destroyed: u64,
    /// Description of the first violation or destruction, for a message.
    pub first: String,
    /// Number of the request that had arrived last at the time of the first violation or destruction, counted from 1.
    pub request: u64,
}

/// Checks the requests of one run against the rules of a host-managed drive, in order of arrival. As part of a
/// [`super::Checker`] it also counts the live sectors that the host's writes destroy.
#[derive(Debug)]
pub struct Rules {
    /// Write pointers as the host's writes move them; `None` if the drive has no zones.
    zones: Option<Zones>,
    /// Sectors that were trimmed and not written since.
    given_up: RunMap<()>,
    /// Number of the request that arrived last.
    request: u64,
    breaks: Option<RuleBreaks>,
}

impl Rules {
    /// Returns a check of the rules of the drive that `layer` makes, with the write pointers that the layer has now. If
    /// the layer has no zones, no request breaks a rule.
    pub fn of(layer: &dyn Layer) -> Rules {
        Rules { zones: layer.zones().cloned(), given_up: RunMap::default(), request: 0, breaks: None }
    }

    /// Returns the counts of violations and destroyed sectors so far, or `None` if there are none of either.
    pub fn breaks(&self) -> Option<&RuleBreaks> {
        self.breaks.as_ref()
    }

    /// Checks `command`, which arrives as request number `request` (counted from 1), and counts it if it is a write
    /// that breaks the rules of the zones. Moves the write pointers as if every write were executed; a TRIM resets the
    /// sequential zones that it covers completely.
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

    /// Marks the `sectors` from `lba` on as live, because a write of them reached the medium.
    pub(super) fn written(&mut self, lba: u64, sectors: u64) {
        if !self.given_up.is_empty() {
            self.given_up.remove(lba, sectors);
        }
    }

    /// Marks the `sectors` from `lba` on as not live, because a TRIM of them was served.
    pub(super) fn trimmed(&mut self, lba: u64, sectors: u64) {
        self.given_up.insert(lba, sectors, ());
    }

    /// Counts those of the `sectors` from `lba` on that are live, because a write of the host destroys them. All of
    /// them must have been written before.
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

/// Resets the sequential zones that lie completely in the range; zones that lie only partly in it keep their state.
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
    //! Goal: violations and losses are counted as the rules and the recording define them. Method: by hand on toys;
    //! each command is judged and checked as in a simulation.

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
        // A TRIM of the whole zone resets it; then it is written again from its start.
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
        // The naive model computes the sectors that a write of the first sector destroys, all of them live.
        let lost = harm::of(&disk, layer.as_ref(), &again).lost.len() as u64;
        assert!(lost > 0, "the toy overlaps");
        commands.push(again);
        let breaks = run(&disk, layer.as_mut(), &commands).expect("a full zone takes no write");
        assert_eq!((breaks.writes, breaks.live_sectors_destroyed, breaks.request), (1, lost, 2));
        assert_eq!(breaks.first, "zone 0 is full: it cannot be written");
        // Sectors that were trimmed before are not lost, and a TRIM of a part of a zone resets nothing.
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
        // DNOR 5 and DID 12: a write of 100 … 103 damages 106 … 115 (Singh 2014 §3.2). Of those, sectors 110 … 112 were
        // written, and 112 was trimmed.
        let commands = [Command::write(110, 3), Command::trim(112, 1), Command::write(100, 4), Command::write(100, 4)];
        let (disk, mut layer) = toy_of("caveat", "caveat", &[]);
        let breaks = run(&disk, layer.as_mut(), &commands).expect("live sectors were destroyed");
        assert_eq!((breaks.writes, breaks.live_sectors_destroyed, breaks.request), (0, 2, 3));
        assert_eq!(breaks.first, "a write destroyed LBA 110, which was live");
        let (disk, mut layer) = toy_of("caveat", "caveat", &[]);
        assert_eq!(run(&disk, layer.as_mut(), &commands[..2]), None);
    }
}
