//! Goal: on every layer, reads return the latest written bytes. Method: random commands on every toy, executed on an
//! image in memory and on a plain array. All sectors are compared after every few commands, and again after the image
//! was reopened from its journal and from a checkpoint.

use imbrex_device::DeviceError;
use imbrex_device::media::memory::Memory;
use imbrex_device::store::{Data, Store, Transfer};
use imbrex_disk::{Command, Operation, Sectors};
use imbrex_layer::verify::harm;
use imbrex_layer::verify::toy::Commands;
use imbrex_layer::{Layer, Plan};
use imbrex_sim::Drive;

use crate::common;

const SECTOR: usize = 512;

/// A naive model: the latest bytes of every sector.
struct Naive {
    bytes: Vec<u8>,
    /// Sectors destroyed by the host, or never written on a disk that is maybe damaged when new.
    lost: Vec<bool>,
    keeps_trims: bool,
    stamp: u64,
}

impl Naive {
    fn new(drive: &Drive) -> Naive {
        let sectors = drive.layer.capacity().0 as usize;
        Naive {
            bytes: vec![0; sectors * SECTOR],
            lost: vec![drive.disk.recording.leaves_damage_to_host(); sectors],
            keeps_trims: drive.layer.keeps_trims(),
            stamp: 0,
        }
    }

    fn is_lost(&self, command: &Command) -> bool {
        self.lost[command.lba.0 as usize..command.end().0 as usize].contains(&true)
    }

    fn range(command: &Command) -> std::ops::Range<usize> {
        command.lba.0 as usize * SECTOR..command.end().0 as usize * SECTOR
    }

    /// Applies a command to the model, and returns the bytes to write.
    fn apply(&mut self, command: &Command) -> Vec<u8> {
        let range = Naive::range(command);
        match command.operation {
            Operation::Write => {
                self.stamp += 1;
                for (index, sector) in self.bytes[range.clone()].chunks_exact_mut(SECTOR).enumerate() {
                    sector.fill((self.stamp ^ index as u64) as u8);
                    sector[..8].copy_from_slice(&self.stamp.to_le_bytes());
                }
                self.bytes[range].to_vec()
            }
            Operation::Trim if self.keeps_trims => {
                self.bytes[range].fill(0);
                Vec::new()
            }
            Operation::Read => vec![0xaa; range.len()],
            Operation::Trim | Operation::Flush => Vec::new(),
        }
    }
}

/// Executes `commands`. Reads must return the bytes of the model, or fail where the model has none.
fn carry_out(drive: &Drive, store: &mut Store<Memory>, plan: &Plan, commands: &[Command], naive: &mut Naive) {
    let before = naive.bytes.clone();
    let reads_lost = commands.iter().any(|command| command.operation == Operation::Read && naive.is_lost(command));
    let mut buffers: Vec<Vec<u8>> = commands.iter().map(|command| naive.apply(command)).collect();
    let mut transfers = Vec::new();
    for (command, buffer) in commands.iter().zip(&mut buffers) {
        let data = match command.operation {
            Operation::Read => Data::Read(buffer),
            Operation::Write => Data::Write(buffer),
            Operation::Trim => Data::Trim(command.sectors as u64),
            Operation::Flush => continue,
        };
        transfers.push(Transfer { lba: command.lba.0, data });
    }
    match store.execute(plan, &mut transfers) {
        Ok(()) => assert!(!reads_lost, "{commands:?} read what was destroyed\n{plan:?}"),
        Err(DeviceError::Destroyed { .. }) if reads_lost => return,
        Err(error) => panic!("{commands:?}: {error}\n{plan:?}"),
    }
    for command in commands.iter().filter(|command| command.operation == Operation::Write) {
        naive.lost[command.lba.0 as usize..command.end().0 as usize].fill(false);
        let harm = harm::of(&drive.disk, drive.layer.as_ref(), command);
        harm.lost.iter().for_each(|&lba| naive.lost[lba as usize] = true);
    }
    for (command, buffer) in commands.iter().zip(&buffers).filter(|(command, _)| command.operation == Operation::Read) {
        assert!(buffer[..] == before[Naive::range(command)], "{command:?} read something else\n{plan:?}");
    }
}

/// Reads the whole drive and compares it with the model.
fn compare(layer: &mut dyn Layer, store: &mut Store<Memory>, naive: &Naive, what: &str) {
    let Sectors(capacity) = layer.capacity();
    let mut plan = Plan::new();
    let mut lba = 0;
    while lba < capacity {
        // Lost sectors are read one at a time.
        let run = naive.lost[lba as usize..].iter().take_while(|&&lost| !lost).take(16).count() as u64;
        let command = Command::read(lba, run.max(1).min(capacity - lba) as u32);
        plan.clear();
        layer.plan(&[command], &mut plan);
        let mut bytes = vec![0xaa; command.sectors as usize * SECTOR];
        let mut transfers = [Transfer { lba, data: Data::Read(&mut bytes) }];
        let outcome = store.execute(&plan, &mut transfers);
        lba = command.end().0;
        if run == 0 {
            let is_refused = matches!(outcome, Err(DeviceError::Destroyed { .. }));
            assert!(is_refused, "{what}: {command:?} was destroyed, and read {outcome:?}");
            continue;
        }
        outcome.unwrap_or_else(|error| panic!("{what}: {error}\n{plan:?}"));
        assert!(bytes[..] == naive.bytes[Naive::range(&command)], "{what}: {command:?} differs\n{plan:?}");
    }
}

#[test]
fn what_was_written_last_is_read() {
    for subject in common::subjects() {
        let (mut drive, mut store) = Store::create(Memory::new(), subject.header.clone()).expect("memory takes it");
        let mut naive = Naive::new(&drive);
        let mut source = Commands::new(11, drive.layer.capacity(), 24);
        let mut plan = Plan::new();
        for number in 0..600 {
            let commands = source.plan(drive.layer.as_mut(), &mut plan);
            carry_out(&drive, &mut store, &plan, &commands, &mut naive);
            if number % 50 == 49 {
                compare(drive.layer.as_mut(), &mut store, &naive, &subject.what);
            }
            if number % 150 == 149 {
                if number > 400 {
                    store.checkpoint(drive.layer.as_ref()).expect("memory takes it");
                }
                store.barrier().expect("memory takes it");
                let media = store.space().media().clone();
                (drive, store) = Store::open(media, &subject.what).unwrap_or_else(|error| panic!("{error}"));
                compare(drive.layer.as_mut(), &mut store, &naive, &format!("{} opened anew", subject.what));
            }
        }
    }
}
