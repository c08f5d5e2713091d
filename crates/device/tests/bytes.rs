//! Goal: every layer, on bytes, reads back what was written last. Method: random commands on every toy, carried out on an
//! image in memory and on a plain array; all is compared after every few commands, and again after the image was opened
//! anew, with its journal and from a checkpoint.

mod common;

use imbrex_device::media::memory::Memory;
use imbrex_device::store::{Data, Store, Transfer};
use imbrex_disk::{Command, Operation, Sectors};
use imbrex_layer::verify::toy::Commands;
use imbrex_layer::{Layer, Plan};

const SECTOR: usize = 512;

/// The stupid twin: the newest bytes of every sector.
struct Naive {
    bytes: Vec<u8>,
    keeps_trims: bool,
    stamp: u64,
}

impl Naive {
    fn new(layer: &dyn Layer) -> Naive {
        Naive { bytes: vec![0; layer.capacity().0 as usize * SECTOR], keeps_trims: layer.keeps_trims(), stamp: 0 }
    }

    fn range(command: &Command) -> std::ops::Range<usize> {
        command.lba.0 as usize * SECTOR..command.end().0 as usize * SECTOR
    }

    /// New bytes for a write; takes in what the command changes.
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

/// Carries out what `commands` ask for; what was read must be what the twin holds.
fn carry_out(store: &mut Store<Memory>, plan: &Plan, commands: &[Command], naive: &mut Naive) {
    let before = naive.bytes.clone();
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
    store.execute(plan, &mut transfers).unwrap_or_else(|error| panic!("{commands:?}: {error}\n{plan:?}"));
    for (command, buffer) in commands.iter().zip(&buffers).filter(|(command, _)| command.operation == Operation::Read) {
        assert!(buffer[..] == before[Naive::range(command)], "{command:?} read something else\n{plan:?}");
    }
}

/// Reads all of the drive and compares.
fn compare(layer: &mut dyn Layer, store: &mut Store<Memory>, naive: &Naive, what: &str) {
    let Sectors(capacity) = layer.capacity();
    let mut plan = Plan::new();
    let mut lba = 0;
    while lba < capacity {
        let command = Command::read(lba, 16.min(capacity - lba) as u32);
        plan.clear();
        layer.plan(&[command], &mut plan);
        let mut bytes = vec![0xaa; command.sectors as usize * SECTOR];
        let mut transfers = [Transfer { lba, data: Data::Read(&mut bytes) }];
        store.execute(&plan, &mut transfers).unwrap_or_else(|error| panic!("{what}: {error}\n{plan:?}"));
        assert!(bytes[..] == naive.bytes[Naive::range(&command)], "{what}: {command:?} differs\n{plan:?}");
        lba = command.end().0;
    }
}

#[test]
fn what_was_written_last_is_read() {
    for subject in common::subjects() {
        let (mut drive, mut store) = Store::create(Memory::new(), subject.header.clone()).expect("memory takes it");
        let mut naive = Naive::new(drive.layer.as_ref());
        let mut source = Commands::new(11, drive.layer.capacity(), 24);
        let mut plan = Plan::new();
        for number in 0..600 {
            let commands = source.plan(drive.layer.as_mut(), &mut plan);
            carry_out(&mut store, &plan, &commands, &mut naive);
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
