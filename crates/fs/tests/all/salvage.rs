//! Goal: with all metadata destroyed, every file with data in the log returns according to its newest record: bytes,
//! name and directory. That holds with as many drives lost as there is parity, and with altered blocks. Damaged and
//! hostile drives give an error or fewer files, and never other bytes. Method: random operations on small arrays beside
//! the naive file system. A second, simple account of the expected records is kept from the places of files after each
//! operation.

use std::collections::{BTreeMap, BTreeSet};

use imbrex_fs::array::zone_header::ZoneHeader;
use imbrex_fs::core::Allocate;
use imbrex_fs::core::MountOptions;
use imbrex_fs::device::model::{Contents, Model};
use imbrex_fs::device::{Geometry, Kind};
use imbrex_fs::format::change::Inode;
use imbrex_fs::format::record::{FileRecord, Filling, Piece};
use imbrex_fs::salvage::{SalvageOptions, Salvaged, salvage};
use imbrex_fs::verify::cuts::{compare_all, fresh, shown};
use imbrex_fs::verify::operation::find;
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{Naive, Operation, perform};
use imbrex_fs::{Device, Executor, Fs, FsError};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Returns arrays that are so large that few operations are refused.
fn arrays() -> Vec<(&'static str, Trial)> {
    let zoned = Kind::Zoned { zone_blocks: 32, zones: 14, conventional: 0, active_max: None };
    let array = |kind, drives: usize, parity| {
        let metadata = vec![Geometry { blocks: 300, kind: Kind::Plain }];
        // Zones are emptied only if an operation asks for that or needs it, so that names do not change while files are
        // copied.
        let options = vec![("clean_below".to_string(), "0".to_string())];
        let trial = Trial::new(Geometry { blocks: 32 * 14, kind }, options);
        Trial { drives, metadata, store: Some("log"), parity, ..trial }
    };
    vec![
        ("one drive", array(zoned, 1, 0)),
        ("four and one parity", array(zoned, 5, 1)),
        ("three and two parity", array(zoned, 5, 2)),
        ("drives without zones", array(Kind::Plain, 3, 1)),
    ]
}

/// The expected newest record of a file.
#[derive(Clone, Default, Debug)]
struct Recorded {
    parent: Inode,
    name: String,
    bytes: Vec<u8>,
    /// Number of the look; larger is newer.
    turn: u64,
}

/// The expected records of files and of directories.
#[derive(Default)]
struct Account {
    files: BTreeMap<Inode, Recorded>,
    directories: BTreeMap<Inode, (Inode, String)>,
    /// Number of looks.
    turns: u64,
    /// Places of the blocks of files.
    places: BTreeMap<Inode, BTreeSet<u64>>,
}

/// Returns the parent and the name of every path of a file system.
async fn names(fs: &Fs) -> BTreeMap<Inode, (Inode, String)> {
    let mut names = BTreeMap::new();
    for path in shown(fs).await.unwrap().keys() {
        let (above, name) = path.rsplit_once('/').map_or(("", path.as_str()), |(above, name)| (above, name));
        names.insert(find(fs, path).unwrap(), (find(fs, above).unwrap(), name.to_string()));
    }
    names
}

impl Account {
    /// Updates the account after an operation: files with blocks in new places have new records. A name given by the
    /// operation itself is not in them, because a file is written before it is renamed.
    async fn look(&mut self, fs: &Fs, before: &BTreeMap<Inode, (Inode, String)>, renames: bool) {
        let now = names(fs).await;
        self.turns += 1;
        let mut places = BTreeMap::new();
        for (inode, named) in &now {
            let extents = fs.extents(*inode).unwrap();
            let blocks: BTreeSet<u64> =
                extents.iter().flat_map(|extent| extent.start..extent.start + u64::from(extent.blocks)).collect();
            let had = self.places.get(inode);
            if blocks.iter().any(|block| had.is_none_or(|had| !had.contains(block))) {
                let then = if renames { before } else { &now };
                let (parent, name) = then.get(inode).unwrap_or(named).clone();
                let size = fs.attr(*inode).unwrap().attributes.size as usize;
                let bytes = fs.read(*inode, 0, size).await.unwrap();
                self.files.insert(*inode, Recorded { parent, name, bytes, turn: self.turns });
                let mut at = parent;
                while let Some((above, name)) = then.get(&at).cloned() {
                    self.directories.insert(at, (above, name));
                    at = above;
                }
            }
            places.insert(*inode, blocks);
        }
        self.files.retain(|inode, _| now.contains_key(inode));
        self.places = places;
    }

    /// Returns the path at which salvage must find a file.
    fn path(&self, inode: Inode) -> String {
        let recorded = &self.files[&inode];
        let (mut path, mut at) = (recorded.name.clone(), recorded.parent);
        while let Some((above, name)) = self.directories.get(&at) {
            path = format!("{name}/{path}");
            at = *above;
        }
        path
    }
}

/// Chooses operations on some forty files in five directories.
struct Chooser(Xoshiro256PlusPlus);

impl Chooser {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    fn directory(&mut self) -> String {
        ["d", "e", "d/d", "d/d/long name of a directory"][self.below(4) as usize].into()
    }

    fn path(&mut self) -> String {
        let number = self.below(8);
        let name =
            if number == 7 { "a name that is much longer than the others ".repeat(4) } else { format!("f{number}") };
        match self.below(5) {
            0 => name,
            _ => format!("{}/{name}", self.directory()),
        }
    }

    fn write(&mut self, path: String) -> Operation {
        let from = [0, 0, self.below(30_000)][self.below(3) as usize];
        let length = 1 + [self.below(5_000), self.below(20_000)][self.below(2) as usize];
        Operation::WriteOut(path, from, length as usize, self.below(250) as u8)
    }

    fn choose(&mut self) -> Vec<Operation> {
        let (path, other) = (self.path(), self.path());
        let (at, length) = (self.below(30_000), 1 + self.below(9_000));
        vec![match self.below(30) {
            0..=10 => return vec![Operation::Create(path.clone()), self.write(path)],
            11..=14 => self.write(path),
            15 => Operation::MakeDirectory(self.directory()),
            16 => Operation::Rename(self.directory(), self.directory()),
            17..=18 => Operation::Rename(path, other),
            19 => Operation::Exchange(path, other),
            // The new name is given after the old one, which is then removed.
            20 => return vec![Operation::Link(path.clone(), other), Operation::Unlink(path)],
            21..=22 => Operation::Unlink(path),
            // Changes that are not yet written are in no record, nor in that of a copy, so they are made durable.
            23 => return vec![Operation::Truncate(path.clone(), at), Operation::Fsync(path)],
            24 => {
                return vec![
                    Operation::Allocate(path.clone(), at, length, Allocate::PunchHole),
                    Operation::Fsync(path),
                ];
            }
            25 => Operation::Symlink(path, other),
            26 => Operation::Mode(path, 0o640),
            27 => Operation::Clean,
            28 => Operation::Wait(1 + length % 40),
            _ => Operation::Sync,
        }]
    }
}

/// A random tree, and its expected records.
struct Grown {
    contents: Vec<Contents>,
    account: Account,
    naive: Naive,
}

fn grow(trial: &Trial, seed: u64, operations: usize) -> Grown {
    let (executor, own) = (Executor::in_virtual_time(), trial.clone());
    let inner = executor.clone();
    let run = async move {
        let (fs, rig) = fresh(&inner, &own).await.unwrap();
        let (mut account, mut naive) = (Account::default(), Naive::default());
        let mut chooser = Chooser(Xoshiro256PlusPlus::seed_from_u64(seed));
        let first = ["d", "e", "d/d", "d/d/long name of a directory"].map(|path| Operation::MakeDirectory(path.into()));
        let chosen = (0..operations).flat_map(|_| chooser.choose());
        for operation in first.into_iter().chain(chosen) {
            let before = names(&fs).await;
            let renames = matches!(operation, Operation::Rename(..) | Operation::Exchange(..) | Operation::Link(..));
            if let Ok(()) = perform(&fs, &operation).await {
                naive.perform(&operation).unwrap();
            }
            account.look(&fs, &before, renames).await;
        }
        let before = names(&fs).await;
        fs.sync().await.unwrap();
        account.look(&fs, &before, false).await;
        fs.unmount().await.unwrap();
        compare_all(&fs, &naive).await.unwrap();
        Grown { contents: rig.contents(), account, naive }
    };
    let grown = executor.run(run).unwrap();
    executor.shut_down();
    grown
}

/// Salvages the drives, without those in `missing`, to a new device, and mounts the result; returns the result of
/// `look`.
fn salvaged<T: 'static>(
    trial: &Trial,
    contents: Vec<Contents>,
    missing: &[usize],
    look: impl AsyncFnOnce(Fs, Salvaged) -> T + 'static,
) -> Result<T, FsError> {
    let executor = Executor::in_virtual_time();
    let drives = contents.into_iter().take(trial.drives).collect();
    let new = Model::new(trial.metadata[0]);
    let (own, missing, trial) = (executor.clone(), missing.to_vec(), trial.clone());
    let run = async move {
        let rig = Rig::with(drives);
        let drives = rig.devices(&own, &missing);
        let metadata = Device::new(&own, "new metadata", Box::new(new));
        let told = salvage(&drives, &metadata, &SalvageOptions::default(), |_| {}).await?;
        assert_eq!(rig.events(), 0, "the drives are read only");
        let devices: Vec<Device> = drives.into_iter().chain([metadata]).collect();
        let options = MountOptions { bounds: Some(trial.bounds), ..MountOptions::default() };
        let (fs, _) = Fs::mount(&own, &devices, &options).await?;
        let seen = look(fs.clone(), told).await;
        // The file system stays usable: existing data is changed, and a new file is made.
        for operation in [Operation::Create("new".into()), Operation::Write("new".into(), 0, 100, 9), Operation::Sync] {
            match perform(&fs, &operation).await {
                Ok(()) | Err(FsError::NoSpace) => {}
                Err(error) => panic!("afterwards {operation:?}: {error}"),
            }
        }
        assert_eq!(rig.broken_rules(), 0);
        Ok(seen)
    };
    let outcome = executor.run(run).unwrap();
    executor.shut_down();
    outcome
}

/// The files that must return, and the numbers of others.
struct Expected {
    files: BTreeMap<String, Vec<u8>>,
    without_data: usize,
    renamed_since: usize,
}

fn expected(grown: &Grown) -> Expected {
    let mut files = BTreeMap::new();
    let with_data = grown.account.places.iter().filter(|(_, blocks)| !blocks.is_empty()).map(|(inode, _)| *inode);
    let mut with_data: Vec<Inode> = with_data.collect();
    // Of two files that had one name after the other, the newer keeps the name, and the other's name is marked as
    // older.
    with_data.sort_by_key(|inode| std::cmp::Reverse((grown.account.files[inode].turn, *inode)));
    let (all, mut renamed_since) = (grown.naive.paths(), 0);
    for inode in &with_data {
        let path = grown.account.path(*inode);
        renamed_since += usize::from(!all.contains_key(&path));
        let path = if files.contains_key(&path) { format!("{path}.older-{inode}-") } else { path };
        files.insert(path, grown.account.files[inode].bytes.clone());
    }
    let regular: BTreeSet<u32> = all.values().filter(|number| grown.naive.bytes(**number).is_some()).copied().collect();
    Expected { files, without_data: regular.len().saturating_sub(with_data.len()), renamed_since }
}

/// Compares the salvaged files; returns the number of regular files found.
async fn compare(fs: &Fs, expected: &BTreeMap<String, Vec<u8>>, when: &str) -> usize {
    assert_eq!(fs.self_check(), Vec::<String>::new(), "{when}");
    let shown = shown(fs).await.unwrap();
    for (path, bytes) in expected {
        // A file whose name a newer file had, possibly deleted since, has a name marked as older.
        let older = path.split(".older-").next().unwrap_or_default().to_string() + ".older-";
        let names = shown.keys().filter(|name| *name == path || name.starts_with(&older));
        let mut is_found = false;
        for name in names {
            let inode = find(fs, name).unwrap();
            let size = fs.attr(inode).unwrap().attributes.size as usize;
            let read = fs.read(inode, 0, size).await.unwrap_or_else(|error| panic!("{when}: '{name}': {error}"));
            is_found |= read == *bytes;
        }
        assert!(is_found, "{when}: '{path}' is not there with its bytes; there are {:?}", shown.keys());
    }
    shown.values().filter(|shown| shown.mode & 0o170_000 == 0o100_000).count()
}

#[test]
fn every_file_with_data_in_the_log_comes_back_as_its_newest_record_has_it() {
    let seeds = if std::env::var_os("IMBREX_LONG").is_some() { 60 } else { 6 };
    for (name, trial) in arrays() {
        let (mut back, mut without_data, mut renamed_since, mut returned) = (0, 0, 0, 0);
        for seed in 0..seeds {
            let grown = grow(&trial, seed, 150);
            let expected = expected(&grown);
            let live = expected.files.len();
            let mut harms: Vec<Vec<usize>> = vec![Vec::new()];
            harms.extend((0..trial.drives).filter(|_| trial.parity == 1).map(|drive| vec![drive]));
            harms.extend((0..trial.drives).filter(|_| trial.parity == 2).map(|drive| vec![drive, (drive + 2) % 5]));
            for missing in harms {
                let when = format!("{name}, seed {seed}, without {missing:?}");
                let files = expected.files.clone();
                let told = when.clone();
                let found = salvaged(&trial, grown.contents.clone(), &missing, async move |fs: Fs, salvaged| {
                    assert_eq!(salvaged.damaged_blocks, 0, "{told}: {salvaged:?}");
                    let found = compare(&fs, &files, &told).await;
                    // All existing files return whole: a file that lacks blocks was deleted, and a part of it was
                    // erased since.
                    assert!(salvaged.incomplete.len() <= found - live, "{told}: {salvaged:?}");
                    found
                });
                returned += found.unwrap_or_else(|error| panic!("{when}: {error}")) - expected.files.len();
                back += expected.files.len();
                without_data += expected.without_data;
                renamed_since += expected.renamed_since;
            }
        }
        println!(
            "{name}: {back} of {back} files with data came back, {renamed_since} of them under an earlier name; {without_data} \
             had none; {returned} that were deleted returned"
        );
        assert!(back > 10 * seeds as usize, "{name}: too few files to say something: {back}");
    }
}

/// Grows a tree on a small array with this parity, for the tests of harm.
fn grown(parity: u8) -> (Trial, Grown) {
    let (_, trial) = arrays().into_iter().find(|(_, trial)| trial.parity == parity).unwrap();
    let grown = grow(&trial, 3, 60);
    (trial, grown)
}

#[test]
fn a_block_that_is_altered_is_made_right_by_parity_or_left_out_and_never_given() {
    for parity in [0, 1] {
        let (trial, grown) = grown(parity);
        let expected = expected(&grown);
        let (mut all, mut harmed) = (0, 0);
        for drive in 0..trial.drives {
            let step = if std::env::var_os("IMBREX_LONG").is_some() { 1 } else { 7 };
            for block in grown.contents[drive].used_blocks().into_iter().filter(|block| *block > 0).step_by(step) {
                let mut contents = grown.contents.clone();
                contents[drive].corrupt(block, |bytes| bytes[30] ^= 4);
                let files = expected.files.clone();
                let found = salvaged(&trial, contents, &[], async move |fs: Fs, salvaged| {
                    let mut lost = 0;
                    for (path, bytes) in &files {
                        let Ok(inode) = find(&fs, path) else {
                            lost += 1;
                            continue;
                        };
                        let read = fs.read(inode, 0, 1 << 20).await.unwrap();
                        let is_older = salvaged.older.iter().any(|older| older.path == path.as_bytes());
                        let is_told = is_older || salvaged.untold_blocks > 0 || salvaged.unknown_zones > 0;
                        assert!(read == *bytes || is_told, "'{path}' has other bytes, and nothing is said of it");
                        lost += usize::from(read != *bytes);
                    }
                    lost
                });
                match found {
                    Ok(lost) => {
                        assert!(parity == 0 || lost == 0, "block {block} of drive {drive}: {lost} files are lost");
                        harmed += usize::from(lost > 0);
                    }
                    Err(error) => panic!("block {block} of drive {drive}: {error}"),
                }
                all += 1;
            }
        }
        assert!(parity == 1 || harmed > 3, "of {all} altered blocks {harmed} were noticed");
    }
}

#[test]
fn whatever_lies_on_the_drives_it_ends() {
    let (trial, grown) = grown(1);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    let (mut errors, mut found) = (0, 0);
    for _ in 0..60 {
        let mut contents = grown.contents.clone();
        let blocks: Vec<Vec<u64>> = contents.iter().map(Contents::used_blocks).collect();
        let harmed = [3, 40, 400][(random.next_u64() % 3) as usize];
        for _ in 0..harmed {
            let drive = (random.next_u64() % trial.drives as u64) as usize;
            let block = blocks[drive][(random.next_u64() % blocks[drive].len() as u64) as usize];
            let (at, value) = ((random.next_u64() % 600) as usize, random.next_u64() as u8);
            contents[drive].corrupt(block, |bytes| bytes[at] = value);
        }
        match salvaged(&trial, contents, &[], async |_, _| ()) {
            Ok(()) => found += 1,
            Err(_) => errors += 1,
        }
    }
    assert!(found > 10 && errors > 10, "{found} salvaged, {errors} errors");
}

/// Returns a unit of records that claims the block before it as a file of a forger.
fn forged(file_system: u128, sequence: u64, place: u32, before: &[u8]) -> Vec<u8> {
    let file = FileRecord {
        inode: 999,
        generation: 0,
        sequence: 1 << 40,
        parent: 1,
        name: b"forged".as_slice().into(),
        mode: 0o104_755,
        uid: 0,
        gid: 0,
        size: 4096,
        modified_ns: 0,
        is_whole: true,
        ranges: Some(vec![(0, 1)]),
    };
    let mut filling = Filling::default();
    let piece = Piece { file: std::rc::Rc::new(file), at: 0, blocks: 1 };
    filling.add(&[piece], place - 1, &[crc32c::crc32c(before)]);
    filling.seal(file_system, sequence, place)
}

#[test]
fn what_a_user_wrote_is_not_taken_for_a_record() {
    let (_, trial) = arrays().remove(0);
    let (executor, own) = (Executor::in_virtual_time(), trial.clone());
    let inner = executor.clone();
    let run = async move {
        let (fs, rig) = fresh(&inner, &own).await.unwrap();
        perform(&fs, &Operation::Create("f".into())).await.unwrap();
        perform(&fs, &Operation::WriteOut("f".into(), 0, 8192, 5)).await.unwrap();
        let inode = find(&fs, "f").unwrap();
        let zone = fs.extents(inode).unwrap()[0].start / 31;
        let header = (1..14).map(|zone| zone * 32);
        let mut headers = Vec::new();
        for block in header {
            headers.extend(ZoneHeader::decode(&rig.devices(&inner, &[])[0].read(block, 1).await.unwrap()));
        }
        let header = headers.into_iter().find(|header| u64::from(header.group) == zone).unwrap();
        // A rewritten file lies right behind its old place: its second block is a unit forged for that very place.
        let place = (fs.extents(inode).unwrap()[0].start % 31) as u32 + 3;
        let before = vec![1; 4096];
        let unit = forged(header.file_system.as_u128(), header.layout.sequence, place, &before);
        fs.write(inode, 0, &[before, unit].concat()).await.unwrap();
        fs.sync().await.unwrap();
        assert_eq!(fs.extents(inode).unwrap()[0].start % 31 + 1, u64::from(place), "the forger guessed right");
        fs.unmount().await.unwrap();
        rig.contents()
    };
    let contents = executor.run(run).unwrap();
    executor.shut_down();
    let strange = salvaged(&trial, contents, &[], async move |fs: Fs, salvaged| {
        assert_eq!(shown(&fs).await.unwrap().keys().collect::<Vec<_>>(), ["f"]);
        salvaged.strange_units
    });
    assert_eq!(strange, Ok(1), "it looks like a unit, and a later one tells of it as data");
}

#[test]
fn what_need_not_or_cannot_be_salvaged_is_refused_with_advice() {
    let (trial, grown) = grown(1);
    let executor = Executor::in_virtual_time();
    let own = executor.clone();
    let refuse = async move |contents: Vec<Contents>, missing: &[usize]| {
        let rig = Rig::with(contents);
        let drives = rig.devices(&own, missing);
        let metadata = Device::new(&own, "new metadata", Box::new(Model::new(trial.metadata[0])));
        let refused = salvage(&drives, &metadata, &SalvageOptions::default(), |_| {}).await;
        refused.map(drop).unwrap_err().to_string()
    };
    let (_, strict) = imbrex_fs::verify::toys().remove(0);
    let inner = executor.clone();
    let run = async move {
        let all = grown.contents.clone();
        assert!(refuse(all.clone(), &[]).await.contains("imbrex fs mount"), "its metadata are good");
        assert!(refuse(all.clone(), &[0, 1, 5]).await.contains("with parity 1 no more than 1 may be"));
        assert!(refuse(all, &[0, 1, 2, 3, 4, 5]).await.contains("give the drives"));
        let (_, rig) = fresh(&inner, &strict).await.unwrap();
        assert!(refuse(rig.contents(), &[]).await.contains("carry no records"));
    };
    executor.run(run).unwrap();
    executor.shut_down();
}
