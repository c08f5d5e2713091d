//! Goal: opening a killed drive takes few reads. Many reads are announced to the medium beforehand, never more than
//! the bound. Method: a medium that records announcements and reads, with an image whose every sector was written
//! since the last barrier.

use std::io;
use std::sync::{Arc, Mutex};

use imbrex_device::Media;
use imbrex_device::image::{Bounds, Region};
use imbrex_device::media::memory::Memory;
use imbrex_device::store::{Data, Store, Transfer};
use imbrex_disk::Command;
use imbrex_layer::Plan;

use crate::common;

/// Bytes read of a slot before its contents: header, digests, padding, and a table of one block.
const HEAD: usize = 4096 + 512;
/// Sectors of a chunk of these images.
const CHUNK_SECTORS: usize = 8;
const SECTOR: usize = 512;

/// An announcement to the medium, or a read of it: offset and length in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Told(u64, usize),
    Read(u64, usize),
}

/// A medium that records announcements and reads.
#[derive(Debug)]
struct Noting {
    inner: Memory,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Noting {
    fn note(&self, event: Event) {
        self.events.lock().expect("nobody panics with it").push(event);
    }
}

impl Media for Noting {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.note(Event::Read(offset, into.len()));
        self.inner.read_at(offset, into)
    }

    fn will_read(&mut self, pieces: &mut dyn Iterator<Item = (u64, usize)>) {
        pieces.for_each(|(offset, length)| self.note(Event::Told(offset, length)));
    }

    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.inner.write_at(offset, from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Returns an image of a drive that was killed after all of it was written and nothing flushed.
fn killed() -> Memory {
    let subject = common::first_subject_of("conventional");
    let (mut drive, mut store) = Store::create(Memory::new(), subject.header).expect("memory takes it");
    let capacity = drive.layer.capacity().0;
    let contents: Vec<u8> = (0..capacity as usize * SECTOR).map(|at| (at / SECTOR) as u8 | 1).collect();
    let mut plan = Plan::new();
    drive.layer.plan(&[Command::write(0, capacity as u32)], &mut plan);
    store.execute(&plan, &mut [Transfer { lba: 0, data: Data::Write(&contents) }]).expect("memory takes it");
    store.into_media()
}

/// Returns the events on the medium while `image` is opened within `bounds`, except reads of sectors of the platters.
/// Also returns the lengths of these reads in bytes.
fn opened(image: Memory, bounds: Bounds) -> (Vec<Event>, Vec<usize>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let medium = Noting { inner: image, events: events.clone() };
    let (_, store) = Store::open_bounded(medium, "image", bounds, |_| {}).expect("it is whole");
    let seen = std::mem::take(&mut *events.lock().expect("nobody panics with it"));
    let (space, layout) = (store.space(), store.space().layout());
    let of_sectors = |at: u64| matches!(space.sector_at(at), Some((Region::Disk, _)));
    let mut contents = Vec::new();
    let mut tables = Vec::new();
    for event in seen {
        match event {
            Event::Read(at, length) if of_sectors(at) => {
                contents.push(length);
                let (slot, _) = layout.slot_at(at).expect("it lies in a slot");
                assert!(tables.contains(&Event::Read(layout.slot(slot), HEAD)), "contents before their table");
            }
            other => tables.push(other),
        }
    }
    (tables, contents)
}

#[test]
fn tables_are_told_before_they_are_read_and_never_too_many() {
    for tables_ahead in [1, 7, 256] {
        let (events, contents) = opened(killed(), Bounds { tables_ahead, ..Bounds::default() });
        let (mut told, mut most, mut read) = (Vec::new(), 0, 0);
        for event in events {
            match event {
                Event::Told(at, length) => told.push((at, length)),
                Event::Read(at, length) => {
                    if let Some(index) = told.iter().position(|&known| known == (at, length)) {
                        told.remove(index);
                        read += 1;
                    }
                }
            }
            most = most.max(told.len());
        }
        assert_eq!((told.len(), read), (0, contents.len()), "every table is told of once, and read");
        assert!(read > 100, "only {read} chunks");
        assert_eq!(most, tables_ahead.min(read), "told of at once");
    }
}

#[test]
fn sectors_side_by_side_are_read_together() {
    let (_, together) = opened(killed(), Bounds::default());
    assert!(together.iter().all(|&length| length == CHUNK_SECTORS * SECTOR), "{together:?}");
    let (_, alone) = opened(killed(), Bounds { read_bytes: 3 * SECTOR, ..Bounds::default() });
    assert_eq!(alone.len(), 3 * together.len(), "three sectors, three and two");
    assert!(alone.iter().all(|&length| length <= 3 * SECTOR), "more than the bound");
}
