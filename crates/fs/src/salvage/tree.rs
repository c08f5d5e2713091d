//! The directory tree of the recovered files: directories, names, and `lost+found` for files without a known place.
//!
//! If two files had one name, the file with the newer record gets it. The name of the other file, which was deleted or
//! replaced, gets a suffix with the inode number of that file. Files keep their inode numbers where possible, since the
//! records with the data contain them. A file that keeps its number keeps its generation. A file with a new number, and
//! every directory, gets a generation above all in the records.

use std::collections::{BTreeMap, BTreeSet};

use super::{Contents, Everything, Flawed, Salvaged};
use crate::error::FsError;
use crate::format::change::{Attributes, Change, Inode};
use crate::format::file_type::REGULAR;
use crate::format::name::{NAME_BYTES_MAX, is_name};
use crate::namespace::{Namespace, ROOT};

const DIRECTORY: u32 = 0o040_000;
/// Permission bits that are recovered. The set-user-ID and set-group-ID bits are not, since nothing proves who wrote a
/// record.
const PERMISSIONS: u32 = 0o777;
/// Inode numbers above this many times the number of files, plus one million, are replaced by new ones.
const SPARSE: u64 = 16;
/// Generations to skip, for files without a record.
const GENERATIONS_SKIPPED: u64 = 1 << 24;

/// A file or a directory to be added to the tree.
struct Plant<'a> {
    sequence: u64,
    parent: Inode,
    name: Vec<u8>,
    /// Inode number of the file in its records. It is kept if it is free.
    inode: Inode,
    generation: u32,
    file: Option<&'a Contents>,
}

/// Adds all files and directories to `namespace`, which must be empty.
pub(super) fn plant(
    namespace: &mut Namespace,
    everything: &Everything,
    contents: BTreeMap<(Inode, u32), Contents>,
    time_ns: i64,
    salvaged: &mut Salvaged,
) -> Result<(), FsError> {
    let root = everything.directories.get(&ROOT);
    let (mode, uid, gid) = root.map_or((0o755, 0, 0), |root| (root.mode & 0o7777, root.uid, root.gid));
    let times = Attributes { accessed_ns: time_ns, modified_ns: time_ns, changed_ns: time_ns, ..Attributes::default() };
    let attributes = Attributes { mode: DIRECTORY | mode, uid, gid, links: 2, parent: ROOT, ..times };
    namespace.apply(&Change::Node { inode: ROOT, attributes });
    let seen = everything.files.keys().map(|(_, generation)| u64::from(*generation) + 1).max().unwrap_or(0);
    let generation = (namespace.generations_below().max(seen) + GENERATIONS_SKIPPED).min(u64::from(u32::MAX));
    namespace.apply(&Change::Generations { below: generation + 1 });
    let used = directories_used(everything);
    let count = used.len() as u64 + contents.len() as u64;
    let mut gardener = Gardener {
        namespace,
        numbers_max: (count * SPARSE + 1_000_000).min(u64::from(Inode::MAX) - count - 16) as Inode,
        next: 0,
        lost_and_found: None,
        times: Attributes { generation: generation as u32, ..times },
        salvaged,
    };
    gardener.next = gardener.numbers_max + 1;
    let numbers = gardener.plant_directories(everything, &used)?;
    gardener.plant_files(everything, &contents, &numbers)
}

/// Returns the directories above the files, as far as records of them were found.
fn directories_used(everything: &Everything) -> BTreeSet<Inode> {
    let mut used = BTreeSet::new();
    for versions in everything.files.values() {
        let parents = versions.records.values().map(|record| record.parent);
        for mut at in parents {
            while at != ROOT && everything.directories.contains_key(&at) && used.insert(at) {
                at = everything.directories[&at].parent;
            }
        }
    }
    used
}

struct Gardener<'a> {
    namespace: &'a mut Namespace,
    /// Numbers above this one are replaced.
    numbers_max: Inode,
    next: Inode,
    lost_and_found: Option<Inode>,
    /// Times and generation of new files and directories.
    times: Attributes,
    salvaged: &'a mut Salvaged,
}

impl Gardener<'_> {
    /// Adds the directories, parents before their subdirectories. Returns the new inode number of each.
    fn plant_directories(
        &mut self,
        everything: &Everything,
        used: &BTreeSet<Inode>,
    ) -> Result<BTreeMap<Inode, Inode>, FsError> {
        let mut numbers = BTreeMap::from([(ROOT, ROOT)]);
        let mut below: BTreeMap<Inode, Vec<Inode>> = BTreeMap::new();
        let in_rings = in_rings(everything, used);
        for inode in used {
            let parent = everything.directories[inode].parent;
            // A directory without a known parent, or inside itself, goes to `lost+found`.
            let is_lost = (parent != ROOT && !used.contains(&parent)) || in_rings.contains(inode);
            below.entry(if is_lost { 0 } else { parent }).or_default().push(*inode);
        }
        let mut left = vec![0, ROOT];
        while let Some(above) = left.pop() {
            let mut inside = below.remove(&above).unwrap_or_default();
            inside.sort_unstable_by_key(|inode| std::cmp::Reverse(everything.directories[inode].sequence));
            for inode in inside {
                let record = &everything.directories[&inode];
                let (parent, name) = match above {
                    0 => (self.lost_and_found()?, format!("directory-{inode}").into_bytes()),
                    _ => (numbers[&above], record.name.to_vec()),
                };
                self.salvaged.unnamed += u64::from(above == 0);
                let wanted = Plant { sequence: record.sequence, parent, name, inode, generation: 0, file: None };
                let number = self.free_number(inode);
                let attributes = Attributes {
                    mode: DIRECTORY | (record.mode & PERMISSIONS),
                    uid: record.uid,
                    gid: record.gid,
                    links: 2,
                    parent,
                    ..self.times
                };
                self.namespace.apply(&Change::Node { inode: number, attributes });
                self.give_name(number, &wanted)?;
                self.add_link(parent);
                numbers.insert(inode, number);
                self.salvaged.directories += 1;
                left.push(inode);
            }
        }
        Ok(numbers)
    }

    /// Adds the files, those with the newest records first.
    fn plant_files(
        &mut self,
        everything: &Everything,
        contents: &BTreeMap<(Inode, u32), Contents>,
        numbers: &BTreeMap<Inode, Inode>,
    ) -> Result<(), FsError> {
        let mut plants: Vec<Plant<'_>> = Vec::new();
        for (&(inode, generation), contents) in contents {
            let records = &everything.files[&(inode, generation)].records;
            let sequence = records.keys().next_back().copied().unwrap_or(0);
            let named =
                records.values().rev().find(|record| !record.name.is_empty() && numbers.contains_key(&record.parent));
            let (parent, mut name) = match named {
                Some(record) => (numbers[&record.parent], record.name.to_vec()),
                None => (0, format!("file-{inode}-{generation}").into_bytes()),
            };
            if contents.missing_blocks > 0 {
                name = with_suffix(&name, b".incomplete");
            }
            plants.push(Plant { sequence, parent, name, inode, generation, file: Some(contents) });
        }
        plants.sort_unstable_by_key(|plant| std::cmp::Reverse((plant.sequence, plant.inode)));
        for mut plant in plants {
            if plant.parent == 0 {
                plant.parent = self.lost_and_found()?;
                self.salvaged.unnamed += 1;
            }
            self.plant_file(&plant)?;
        }
        Ok(())
    }

    fn plant_file(&mut self, plant: &Plant<'_>) -> Result<(), FsError> {
        let contents = plant.file.expect("it is a file");
        let (record, number) = (&contents.record, self.free_number(plant.inode));
        let attributes = Attributes {
            mode: REGULAR | (record.mode & PERMISSIONS),
            uid: record.uid,
            gid: record.gid,
            links: 1,
            generation: if number == plant.inode { record.generation } else { self.times.generation },
            size: record.size.min(u64::from(u32::MAX) * 4096),
            accessed_ns: record.modified_ns,
            modified_ns: record.modified_ns,
            ..self.times
        };
        self.namespace.apply(&Change::Node { inode: number, attributes });
        if !contents.extents.is_empty() {
            self.namespace.apply(&Change::Extents { inode: number, extents: contents.extents.clone() });
        }
        let name = self.give_name(number, plant)?;
        self.salvaged.files += 1;
        self.salvaged.bytes += attributes.size;
        let mut tell = |missing_blocks: u64, list: fn(&mut Salvaged) -> &mut Vec<Flawed>| {
            let path = path_of(self.namespace, plant.parent, &name);
            list(self.salvaged).push(Flawed { path, missing_blocks });
        };
        if contents.missing_blocks > 0 {
            tell(contents.missing_blocks, |salvaged| &mut salvaged.incomplete);
        } else if contents.newer_missing_blocks > 0 {
            tell(contents.newer_missing_blocks, |salvaged| &mut salvaged.older);
        }
        Ok(())
    }

    /// Returns the number `wanted`, or a new one if `wanted` is in use or above `numbers_max`.
    fn free_number(&mut self, wanted: Inode) -> Inode {
        if wanted > ROOT && wanted <= self.numbers_max && self.namespace.get(wanted).is_none() {
            return wanted;
        }
        self.next += 1;
        self.next
    }

    /// Gives `inode` the name from its record, or a similar one if that is in use or invalid. Returns the name.
    fn give_name(&mut self, inode: Inode, plant: &Plant<'_>) -> Result<Vec<u8>, FsError> {
        let kind = if plant.file.is_some() { "file" } else { "directory" };
        let mut name = plant.name.clone();
        if !is_name(&name) {
            name = format!("{kind}-{}-{}", plant.inode, plant.generation).into_bytes();
        }
        for turn in 0.. {
            if self.namespace.lookup(plant.parent, &name)?.is_none() {
                break;
            }
            self.salvaged.renamed += u64::from(turn == 0);
            let suffix = format!(".older-{}-{}-{turn}", plant.inode, plant.generation);
            let suffix = suffix.strip_suffix("-0").unwrap_or(&suffix);
            name = with_suffix(&plant.name, suffix.as_bytes());
        }
        let cookie = self.namespace.new_cookie(plant.parent, &name)?;
        self.namespace.apply(&Change::Entry { directory: plant.parent, cookie, inode, name: name.clone().into() });
        Ok(name)
    }

    fn add_link(&mut self, directory: Inode) {
        let mut attributes = self.namespace.get(directory).expect("it was planted").attributes;
        attributes.links += 1;
        self.namespace.apply(&Change::Node { inode: directory, attributes });
    }

    /// Returns the directory `lost+found`, and creates it if it does not exist.
    fn lost_and_found(&mut self) -> Result<Inode, FsError> {
        if let Some(inode) = self.lost_and_found {
            return Ok(inode);
        }
        self.next += 1;
        let inode = self.next;
        let attributes = Attributes { mode: DIRECTORY | 0o700, links: 2, parent: ROOT, ..self.times };
        self.namespace.apply(&Change::Node { inode, attributes });
        let name = b"lost+found".to_vec();
        let plant = Plant { sequence: 0, parent: ROOT, name, inode, generation: 0, file: None };
        self.give_name(inode, &plant)?;
        self.add_link(ROOT);
        self.lost_and_found = Some(inode);
        Ok(inode)
    }
}

/// Returns the directories of `used` from which the parents do not lead to an end: those in a cycle, and those below
/// one.
fn in_rings(everything: &Everything, used: &BTreeSet<Inode>) -> BTreeSet<Inode> {
    let mut leads_up: BTreeMap<Inode, bool> = BTreeMap::from([(ROOT, true)]);
    for &inode in used {
        let (mut way, mut at) = (BTreeSet::new(), inode);
        let ends = loop {
            match (leads_up.get(&at), everything.directories.get(&at)) {
                (Some(known), _) => break *known,
                (None, None) => break true,
                (None, Some(_)) if !way.insert(at) => break false,
                (None, Some(record)) => at = record.parent,
            }
        };
        leads_up.extend(way.into_iter().map(|at| (at, ends)));
    }
    used.iter().filter(|inode| leads_up.get(inode) == Some(&false)).copied().collect()
}

/// Returns `name` with `suffix`, shortened to the maximum length of a name.
fn with_suffix(name: &[u8], suffix: &[u8]) -> Vec<u8> {
    let kept = name.len().min(NAME_BYTES_MAX - suffix.len());
    [&name[..kept], suffix].concat()
}

/// Returns the path of `name` in `directory`.
fn path_of(namespace: &Namespace, directory: Inode, name: &[u8]) -> Vec<u8> {
    let (mut path, mut at) = (name.to_vec(), directory);
    while at != ROOT {
        let Some(parent) = namespace.get(at).map(|node| node.attributes.parent) else { break };
        let names = namespace.directory(parent).into_iter().flat_map(|names| names.entries_from(0));
        let own = names.into_iter().find(|(_, entry)| entry.inode == at).map(|(_, entry)| entry.name.to_vec());
        path = [own.unwrap_or_default(), path].join(&b'/');
        at = parent;
    }
    path
}
