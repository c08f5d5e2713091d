//! Goal: a store with valid checksums and absurd numbers is reported by the program, which ends soon, with exit code 3
//! for `check`, and takes no more memory than a store of its size needs. Method: a store on two ordinary files, whose
//! one chunk of names, log or superblock is rewritten with contents that this program would never write; each command
//! has a bound on its memory. The expected results are those of `docs/fs/format.md`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use imbrex_fs::device::file::FileBackend;
use imbrex_fs::format::change::{Attributes, Change, Extent, GroupLayout, Inode, ZoneOf};
use imbrex_fs::format::coding::{Encoder, put_seal};
use imbrex_fs::format::superblock::Superblock;
use imbrex_fs::{Device, Executor, Fs, MountOptions};

use super::common::{text, word};

const BLOCK: usize = 4096;
const HEAD: usize = 40;
const ROOT: Inode = 1;
/// Kibibytes of address space for a command: `salvage --to` reserves 4 GiB, most of which it never touches.
const MEMORY_KIB: u32 = 6 << 20;
/// Seconds after which a command counts as hanging.
const WATCHED_S: u32 = 120;
const FILE: u32 = 0o100_644;
const DIRECTORY: u32 = 0o040_755;

/// A store on a file for data and one for metadata.
struct Store {
    folder: tempfile::TempDir,
    data: PathBuf,
    metadata: PathBuf,
}

impl Store {
    fn new() -> Store {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [data, metadata] = ["data.img", "metadata.img"].map(|name| folder.path().join(name));
        for (path, bytes) in [(&data, 32 << 20), (&metadata, 2 << 20)] {
            File::create(path).expect("a file").set_len(bytes).expect("a length");
        }
        text(&["fs", "mkfs", "--store", "log", word(&data), "--meta", word(&metadata)]);
        Store { folder, data, metadata }
    }

    /// Returns a store that holds one file of three blocks, written by the core.
    fn with_a_file() -> Store {
        let store = Store::new();
        let executor = Executor::in_virtual_time();
        let open = |path: &Path| {
            let backend = FileBackend::open(path, true).expect("nobody else has it");
            Device::new(&executor, word(path), Box::new(backend))
        };
        let (devices, inner) = ([open(&store.data), open(&store.metadata)], executor.clone());
        let writing = async move {
            let (fs, _) = Fs::mount(&inner, &devices, &MountOptions::default()).await.expect("it is sound");
            let made = fs.make_node(ROOT, b"a", FILE, 0, Default::default()).await.expect("there is room");
            fs.write(made.inode, 0, &[7; 3 * BLOCK]).await.expect("there is room");
            fs.unmount().await.expect("it is written");
        };
        executor.run(writing).expect("nobody waits for ever");
        executor.shut_down();
        store
    }

    fn superblock(&self) -> Superblock {
        Superblock::decode(&read(&self.metadata, 0, 1)).expect("it is as the program wrote it")
    }

    /// Rewrites the names: all contents of the checkpoint.
    fn with_names(self, changes: &[Change]) -> Store {
        let (superblock, first) = (self.superblock(), self.superblock().layout.checkpoints[0].0);
        let mut contents = Encoder::default();
        changes.iter().for_each(|change| change.encode(&mut contents));
        let chunk = framed(b"Ichk", superblock.uuid.as_u128(), 1, (0, &contents.bytes));
        write(&self.metadata, first + 1, &chunk);
        self
    }

    /// Writes a record as the first frame of the log.
    fn with_record(self, changes: &[Change]) -> Store {
        let mut record = Encoder::default();
        record.u64(0);
        changes.iter().for_each(|change| change.encode(&mut record));
        let mut records = Encoder::default();
        records.bytes(&record.bytes);
        let superblock = self.superblock();
        write(
            &self.metadata,
            superblock.layout.log.0,
            &framed(b"Ilog", superblock.uuid.as_u128(), 1, (1, &records.bytes)),
        );
        self
    }

    /// Rewrites both superblocks of the metadata.
    fn with_superblock(self, alter: impl FnOnce(&mut Superblock)) -> Store {
        let mut superblock = self.superblock();
        alter(&mut superblock);
        (0..2).for_each(|block| write(&self.metadata, block, &superblock.encode()));
        self
    }

    /// Runs a command on both files, with `words` as further arguments.
    fn run(&self, command: &str, words: &[&str]) -> Output {
        let mut all = vec!["fs", command, word(&self.data), word(&self.metadata)];
        all.extend(words);
        bounded(&all)
    }
}

/// Runs the program with bounds on memory and time.
fn bounded(words: &[&str]) -> Output {
    let script = format!("ulimit -v {MEMORY_KIB}; exec timeout {WATCHED_S} \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_imbrex")]).args(words).stdin(Stdio::null());
    command.output().expect("a shell")
}

fn read(path: &Path, block: u64, blocks: usize) -> Vec<u8> {
    let mut bytes = vec![0; blocks * BLOCK];
    File::open(path).expect("it is there").read_exact_at(&mut bytes, block * BLOCK as u64).expect("it is as long");
    bytes
}

fn write(path: &Path, block: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(path).expect("it is there");
    file.write_all_at(bytes, block * BLOCK as u64).expect("it is as long");
}

/// Returns a frame of the log, or a chunk of a checkpoint.
fn framed(magic: &[u8; 4], uuid: u128, number: u64, (count, contents): (u32, &[u8])) -> Vec<u8> {
    let mut to = Encoder::default();
    to.bytes.extend_from_slice(magic);
    to.u32(0);
    to.u128(uuid);
    to.u64(number);
    to.u32(count);
    to.bytes(contents);
    assert_eq!(to.bytes.len(), HEAD + contents.len());
    let sum = crc32c::crc32c(&to.bytes);
    to.bytes[4..8].copy_from_slice(&sum.to_le_bytes());
    to.bytes.resize(to.bytes.len().next_multiple_of(BLOCK), 0);
    to.bytes
}

fn node(inode: Inode, mode: u32, links: u32, parent: Inode) -> Change {
    Change::Node { inode, attributes: Attributes { mode, links, parent, ..Attributes::default() } }
}

fn sized(inode: Inode, size: u64) -> Change {
    Change::Node { inode, attributes: Attributes { mode: FILE, links: 1, size, ..Attributes::default() } }
}

fn root(links: u32) -> Change {
    node(ROOT, DIRECTORY, links, ROOT)
}

/// Returns a directory entry at the place where lookups expect it: cookies are hashes of names under the store's key,
/// which `mkfs` chose.
fn entry(store: &Store, directory: Inode, inode: Inode, name: &str) -> Change {
    use std::hash::Hasher;
    let key = store.superblock().uuid.as_u128();
    let mut hasher = siphasher::sip::SipHasher13::new_with_keys((key >> 64) as u64, key as u64);
    hasher.write(name.as_bytes());
    Change::Entry { directory, cookie: (hasher.finish() >> 2).max(16), inode, name: name.as_bytes().into() }
}

/// Asserts that `check` reports the fault and ends with 3, that commands which change the store refuse it, and that
/// nothing panics.
fn is_told(store: &Store, what: &str, expected: &str) {
    let checked = store.run("check", &[]);
    let (told, code) = (String::from_utf8_lossy(&checked.stdout).into_owned(), checked.status.code());
    let besides = String::from_utf8_lossy(&checked.stderr);
    assert!(code == Some(3) && told.contains(expected), "{what}: {code:?}, {told}{besides}");
    for command in ["dump", "scrub", "clean"] {
        let output = store.run(command, &[]);
        let words = String::from_utf8_lossy(&output.stderr);
        let is_an_end = matches!(output.status.code(), Some(0 | 1 | 3));
        assert!(is_an_end && !words.contains("panicked"), "{what}, {command}: {:?}, {words}", output.status);
    }
    let worked = store.run("clean", &[]);
    assert_eq!(worked.status.code(), Some(1), "{what}: what makes no sense is not made worse");
}

#[test]
fn names_that_make_no_tree_are_told() {
    let store = Store::new();
    let d = |inode, name| entry(&store, ROOT, inode, name);
    let inside = |directory, inode, name| entry(&store, directory, inode, name);
    let cases: [(&str, Vec<Change>, &str); 12] = [
        (
            "a directory in itself",
            vec![root(3), node(5, DIRECTORY, 3, 5), d(5, "d"), inside(5, 5, "x")],
            "directory 5 has 2 names",
        ),
        (
            "two directories in each other",
            vec![root(2), node(5, DIRECTORY, 3, 6), node(6, DIRECTORY, 3, 5), inside(5, 6, "x"), inside(6, 5, "y")],
            "is not below the root",
        ),
        (
            "the root in a directory",
            vec![root(3), node(5, DIRECTORY, 3, ROOT), d(5, "d"), inside(5, ROOT, "r")],
            "directory 1 has 1 names",
        ),
        (
            "too many links",
            vec![root(2), node(5, FILE, 4_000_000_000, 0), d(5, "f")],
            "file 5 counts 4000000000 links, and has 1",
        ),
        (
            "a link too few",
            vec![root(2), node(5, FILE, 1, 0), d(5, "f"), d(5, "g")],
            "file 5 counts 1 links, and has 2",
        ),
        ("a name of no file", vec![root(2), d(9, "gone")], "'gone' in directory 1"),
        (
            "one name twice",
            vec![root(2), node(5, FILE, 2, 0), d(5, "f"), moved(&d(5, "f"))],
            "is not found by its name",
        ),
        ("a name elsewhere", vec![root(2), node(5, FILE, 1, 0), far(&d(5, "f"))], "is not found by its name"),
        ("a name with a slash", vec![root(2), node(5, FILE, 1, 0), d(5, "a/b")], "'/' or NUL"),
        ("two dots", vec![root(2), node(5, FILE, 1, 0), d(5, "..")], "'..'"),
        ("no name", vec![root(2), node(5, FILE, 1, 0), d(5, "")], "a name that is empty"),
        ("a symbolic link without a target", vec![root(2), node(5, 0o120_777, 1, 0), d(5, "s")], "no symbolic link"),
    ];
    for (what, changes, expected) in cases {
        let crafted = Store::copy_of(&store).with_names(&changes);
        is_told(&crafted, what, expected);
    }
}

/// Returns the entry with the next cookie, which is valid too after a collision.
fn moved(change: &Change) -> Change {
    let Change::Entry { directory, cookie, inode, name } = change.clone() else { unreachable!("it is a name") };
    Change::Entry { directory, cookie: cookie + 1, inode, name }
}

/// Returns the entry with a cookie where lookups do not find it.
fn far(change: &Change) -> Change {
    let Change::Entry { directory, cookie, inode, name } = change.clone() else { unreachable!("it is a name") };
    Change::Entry { directory, cookie: cookie ^ 1 << 61, inode, name }
}

impl Store {
    fn copy_of(other: &Store) -> Store {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [data, metadata] = [&other.data, &other.metadata].map(|path| {
            let to = folder.path().join(path.file_name().expect("it is a file"));
            // The copies are sparse like the originals.
            let copied = Command::new("cp").arg("--sparse=always").args([path, &to]).status().expect("cp");
            assert!(copied.success());
            to
        });
        Store { folder, data, metadata }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

#[test]
fn places_of_files_that_cannot_be_are_told() {
    let store = Store::new();
    let shape = store.superblock().shape.expect("the store is log");
    let stride = shape.stride();
    let group = |group, zone| Change::Group {
        group,
        layout: GroupLayout { sequence: u64::from(group) + 1, width: 1, members: vec![ZoneOf { drive: 0, zone }] },
    };
    let extents = |all: &[(u32, u32, u64)]| Change::Extents {
        inode: 5,
        extents: all.iter().map(|&(at, blocks, start)| Extent { at, blocks, start }).collect(),
    };
    let file = |all| vec![root(2), group(0, 1), sized(5, 1 << 20), extents(all), entry(&store, ROOT, 5, "f")];
    let twice = {
        let other = Change::Extents { inode: 6, extents: vec![Extent { at: 0, blocks: 1, start: 2 }] };
        [file(&[(0, 4, 0)]), vec![sized(6, 4096), entry(&store, ROOT, 6, "g"), other]].concat()
    };
    let members = |zones: &[(u8, u32)]| {
        let members = zones.iter().map(|&(drive, zone)| ZoneOf { drive, zone }).collect();
        vec![root(2), Change::Group { group: 0, layout: GroupLayout { sequence: 1, width: 1, members } }]
    };
    let cases: [(&str, Vec<Change>, &str); 12] = [
        ("a file of 2^50 bytes", vec![root(2), sized(5, 1 << 50), entry(&store, ROOT, 5, "f")], "the size of a file"),
        ("beyond the device", file(&[(0, 1, 1 << 40)]), "are in no band"),
        ("at the end of all numbers", file(&[(0, 1, u64::MAX)]), "the pieces of a file"),
        ("over the end of a group", file(&[(0, 2, stride - 1)]), "are in no band"),
        ("in no group", file(&[(0, 1, 5 * stride)]), "are in no band"),
        ("a block of two files", twice, "blocks 2 to 3 are of file 6 and of file 5"),
        ("pieces that overlap", file(&[(0, 4, 0), (2, 4, 10)]), "the pieces of a file"),
        ("a piece of no blocks", file(&[(0, 0, 0)]), "the pieces of a file"),
        ("a zone that the drive has not", members(&[(0, 4_000_000_000)]), "zone 4000000000 of drive 0 is not there"),
        ("a drive that is not there", members(&[(7, 1)]), "zone 1 of drive 7 is not there"),
        ("two zones of one drive", members(&[(0, 1), (0, 2)]), "two zones of a drive"),
        ("a group of no width", vec![root(2), narrow(&group(0, 1))], "the width of a stripe group"),
    ];
    for (what, changes, expected) in cases {
        let crafted = Store::copy_of(&store).with_names(&changes);
        is_told(&crafted, what, expected);
    }
}

fn narrow(change: &Change) -> Change {
    let Change::Group { group, layout } = change.clone() else { unreachable!("it is a group") };
    Change::Group { group, layout: GroupLayout { width: 0, ..layout } }
}

#[test]
fn records_of_the_log_are_held_against_what_there_is() {
    let store = Store::new();
    let blocks = store.superblock().data.1;
    let sums = |block: u64, count: usize| vec![Change::Checksums { block, sums: vec![7; count] }];
    let cases: [(&str, Vec<Change>, &str); 4] = [
        ("a checksum behind the table", sums(blocks, 1), "has checksums of blocks"),
        ("checksums over its end", sums(blocks - 1, 2), "has checksums of blocks"),
        ("a checksum at the end of all numbers", sums(u64::MAX, 1), "checksums of blocks beyond all devices"),
        ("a sequence that has run out", vec![Change::Sequence { below: u64::MAX - 1 }], "the sequence of records"),
    ];
    for (what, changes, expected) in cases {
        let crafted = Store::copy_of(&store).with_record(&changes);
        is_told(&crafted, what, expected);
    }
    let last = Store::copy_of(&store).with_record(&sums(blocks - 1, 1));
    assert_eq!(last.run("check", &[]).status.code(), Some(0), "the last block has a checksum");
}

#[test]
fn a_superblock_that_contradicts_itself_is_told() {
    let store = Store::new();
    type Alter = fn(&mut Superblock);
    let cases: [(&str, Alter, &str); 9] = [
        ("a log of no blocks", |it| it.layout.log.1 = 0, "the layout of its metadata"),
        ("a log in the checkpoint", |it| it.layout.log.0 = it.layout.checkpoints[0].0, "the layout of its metadata"),
        ("checkpoints of one block", |it| it.layout.checkpoints = [(40, 1), (41, 1)], "the layout of its metadata"),
        ("islands without end", |it| it.layout.place.gap = u64::MAX / 2, "the layout of its metadata"),
        ("a table of one page", |it| it.layout.checksums.1 = 1, "the table of checksums"),
        (
            "four billion groups",
            |it| it.shape.as_mut().expect("it has one").groups = u32::MAX,
            "the shape of its array",
        ),
        ("a width of 200", |it| it.shape.as_mut().expect("it has one").width = 200, "the shape of its array"),
        ("a device twice", |it| it.members[1].uuid = it.members[0].uuid, "its list of devices"),
        ("a generation that has run out", |it| it.standing.generation = u64::MAX, "the generation of its metadata"),
    ];
    for (what, alter, expected) in cases {
        is_told(&Store::copy_of(&store).with_superblock(alter), what, expected);
    }
}

/// A file with an inode number far from all others takes no more memory than any other file.
#[test]
fn a_file_of_number_four_billion_takes_no_table_of_that_length() {
    let store = Store::new();
    let inode = 4_004_675_842;
    let names = [root(2), node(inode, FILE, 1, 0), entry(&store, ROOT, inode, "far")];
    let crafted = store.with_names(&names);
    let checked = crafted.run("check", &[]);
    let told = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.code() == Some(0) && told.contains("2 files"), "{:?} {told}", checked.status);
    let dumped = crafted.run("dump", &[]);
    assert!(String::from_utf8_lossy(&dumped.stdout).contains("4004675842"), "{:?}", dumped.status);
    assert_eq!(crafted.run("clean", &[]).status.code(), Some(0));
}

/// 16 TiB less a block is the largest file; this one is one hole.
#[test]
fn a_file_of_sixteen_tebibytes_of_zeros_is_checked_at_once() {
    let store = Store::new();
    let names = [root(2), sized(5, (1 << 44) - 4096), entry(&store, ROOT, 5, "sparse")];
    let checked = store.with_names(&names).run("check", &[]);
    let told = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.code() == Some(0) && told.contains("whole"), "{:?} {told}", checked.status);
}

/// The places in records among the data, and in the drive's first blocks, are checked against the size of the drive.
#[test]
fn places_that_are_not_on_the_drive_are_passed_over_by_salvage() {
    let store = Store::with_a_file();
    let blocks = std::fs::metadata(&store.data).expect("it is there").len() / BLOCK as u64;
    let find =
        |magic: &[u8; 8]| (1..blocks).find(|block| read(&store.data, *block, 1).starts_with(magic)).expect("one");
    let (unit, header) = (find(b"imbrexrc"), find(b"imbrexzn"));
    let salvage = |crafted: &Store, name: &str| {
        let to = crafted.path(name);
        // Removed, since a device of the file system in the same folder would be used too.
        std::fs::remove_file(&crafted.metadata).expect("it is there");
        let output = bounded(&["fs", "salvage", word(&crafted.data), "--to", word(&to)]);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !words.contains("panicked") && matches!(output.status.code(), Some(0 | 1 | 3)),
            "{:?} {words}",
            output.status
        );
        (output.status.code(), std::fs::read(to.join("a")).ok())
    };
    assert_eq!(salvage(&Store::copy_of(&store), "sound"), (Some(0), Some(vec![7; 3 * BLOCK])));
    // The run of the unit: its place in the group, in the last entry.
    for place in [2_000_000_000u32, u32::MAX - 3, 4_000] {
        let crafted = Store::copy_of(&store);
        let mut bytes = read(&crafted.data, unit, 1);
        let run = 44 + u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes")) as usize - (13 + 3 * 4);
        assert_eq!(bytes[run], 3, "a run");
        bytes[run + 7..run + 11].copy_from_slice(&place.to_le_bytes());
        bytes[8..12].fill(0);
        let sum = crc32c::crc32c(&bytes);
        bytes[8..12].copy_from_slice(&sum.to_le_bytes());
        write(&crafted.data, unit, &bytes);
        let (code, contents) = salvage(&crafted, "out");
        assert!(code == Some(3) && contents != Some(vec![7; 3 * BLOCK]), "place {place}: {code:?}");
    }
    // The zone header: group, column and sequence, and the drive and the zone of its only member.
    for (at, value) in [(32, u32::MAX), (36, 0xFF), (36, 1 << 8), (50, u32::MAX), (51, u32::MAX)] {
        let crafted = Store::copy_of(&store);
        let mut bytes = read(&crafted.data, header, 1);
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        put_seal(&mut bytes);
        write(&crafted.data, header, &bytes);
        let (code, contents) = salvage(&crafted, "out");
        // Salvage uses the place where a zone was found, not the place in its header: then all data is recovered.
        assert!(code != Some(0) || contents == Some(vec![7; 3 * BLOCK]), "{value} at {at}: {code:?}");
    }
}

/// Goal: a superblock of a newer format is no damage: each command says that a newer program is needed, and mkfs erases
/// nothing. Method: the format in the superblocks of a store is raised; their checksums are right.
#[test]
fn a_newer_format_is_no_damage() {
    let raise = |store: &Store, blocks: &[u64]| {
        for (device, at) in
            [&store.data, &store.metadata].into_iter().flat_map(|it| blocks.iter().map(move |at| (it, *at)))
        {
            let mut block = read(device, at, 1);
            block[8..12].copy_from_slice(&12u32.to_le_bytes());
            put_seal(&mut block);
            write(device, at, &block);
        }
    };
    for blocks in [&[0, 1][..], &[1]] {
        let store = Store::with_a_file();
        raise(&store, blocks);
        let before = [&store.data, &store.metadata].map(|path| std::fs::read(path).expect("it is there"));
        let (data, metadata) = (word(&store.data), word(&store.metadata));
        let (folder, mount) = (store.folder.path().join("to"), store.folder.path().join("mnt"));
        std::fs::create_dir(&mount).expect("a directory");
        let commands = [
            vec!["check", data, metadata],
            vec!["check", metadata],
            vec!["check", data, metadata, "--json"],
            vec!["mount", data, metadata, word(&mount)],
            vec!["mount", data, metadata, word(&mount), "-o", "ro"],
            vec!["dump", data, metadata],
            vec!["stat", data, metadata],
            vec!["scrub", data, metadata, "--repair"],
            vec!["upgrade", data, metadata],
            vec!["salvage", data, "--to", word(&folder)],
        ];
        for command in commands {
            let (code, said) = super::common::failure(&[&["fs"], &command[..]].concat());
            assert_eq!(code, Some(1), "{command:?}: {said}");
            let expected = "has format 12; this program reads formats 2 to 9: use a newer imbrex";
            assert!(said.contains(expected), "{command:?}: {said}");
        }
        let (code, said) = super::common::failure(&["fs", "mkfs", "--store", "log", data, "--meta", metadata]);
        assert!(code == Some(1) && said.contains("a file system of imbrex fs"), "{said}");
        for (path, before) in [&store.data, &store.metadata].into_iter().zip(before) {
            assert!(std::fs::read(path).expect("it is there") == before, "{}: nothing is written", path.display());
        }
    }
    // A damaged superblock is damage, whichever format it names.
    let store = Store::with_a_file();
    raise(&store, &[0, 1]);
    for at in [0, 1] {
        let mut block = read(&store.metadata, at, 1);
        block[100] ^= 1;
        write(&store.metadata, at, &block);
    }
    let output = super::common::imbrex(&["fs", "check", word(&store.metadata)]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.code() == Some(3) && said.contains("its superblock is damaged"), "{said}");
}

/// Goal: mkfs erases former contents that no block of 4 KiB reaches. Method: the header of a backup GPT lies in the last
/// 512 bytes of devices whose sizes are no multiples of 4 KiB.
#[test]
fn a_backup_partition_table_behind_the_last_block_is_erased() {
    let store = Store::new();
    let paths = [&store.data, &store.metadata];
    for path in paths {
        let file = File::options().write(true).open(path).expect("it is there");
        let bytes = file.metadata().expect("it has a length").len() + 1536;
        file.set_len(bytes).expect("it grows");
        file.write_all_at(b"EFI PART", bytes - 512).expect("it is written");
    }
    let (data, metadata) = (word(&store.data), word(&store.metadata));
    text(&["fs", "mkfs", "--store", "log", "--force", "--yes", data, "--meta", metadata]);
    for path in paths {
        let bytes = std::fs::read(path).expect("it is there");
        assert_eq!(bytes.len() % BLOCK, 1536, "the length is kept");
        assert!(bytes[bytes.len() - 1536..].iter().all(|byte| *byte == 0), "{}: erased", path.display());
    }
    text(&["fs", "check", data, metadata]);
}
