//! Goal: `docs/schemas` describes every document of the program with all its fields. Method: the names of documents in the
//! sources are compared with the files. Quick commands print every document, and each is validated against its schema in a
//! strict form, which refuses fields that the schema does not describe.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use imbrex_testkit::server::fetch;
use imbrex_testkit::{Client, Program, Server};
use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::fs::common::{Bench, has_fuse, word};

/// Documents that [`documents_of_simulations_match_their_schemas`] prints. The lists below belong to the other tests.
const OF_SIMULATIONS: &[&str] = &[
    "imbrex.explain/1",
    "imbrex.list/1",
    "imbrex.reproduce/2",
    "imbrex.simulate/2",
    "imbrex.sweep/1",
    "imbrex.trace-convert/1",
    "imbrex.trace-info/1",
];
const OF_REAL_DRIVES: &[&str] = &[
    "imbrex.device-info/1",
    "imbrex.fit/1",
    "imbrex.probe-compare/1",
    "imbrex.probe-model/1",
    "imbrex.probe/1",
    "imbrex.validate/1",
];
const OF_IMAGES: &[&str] = &[
    "imbrex.drive-check/1",
    "imbrex.drive-create/1",
    "imbrex.drive-dump/1",
    "imbrex.drive-fault/1",
    "imbrex.drive-info/1",
    "imbrex.drive-repair/1",
    "imbrex.drive-snapshot/1",
    "imbrex.drive-upgrade/1",
];
const OF_SERVERS: &[&str] = &["imbrex.control/1", "imbrex.window/1"];
const OF_FILE_SYSTEMS: &[&str] = &[
    "imbrex.fs-age/1",
    "imbrex.fs-bench/1",
    "imbrex.fs-capacity/1",
    "imbrex.fs-check/1",
    "imbrex.fs-clean/1",
    "imbrex.fs-dump/1",
    "imbrex.fs-mkfs/1",
    "imbrex.fs-stat/1",
    "imbrex.fs-upgrade/1",
];
const OF_THE_LAB: &[&str] = &["imbrex.lab-run/1"];
const OF_ARRAYS: &[&str] = &["imbrex.fs-add/1", "imbrex.fs-replace/1", "imbrex.fs-salvage/1", "imbrex.fs-scrub/1"];

/// A shingled drive whose cache of 16 MiB is full after a few hundred writes.
const SHINGLED: &str = "emulated-smr-1:region_size=4MiB,cache_size=16MiB";
const BLOCK_BYTES: usize = 4096;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the published schemas by the names of their documents.
fn schemas() -> BTreeMap<String, Value> {
    let entries = fs::read_dir(root().join("docs/schemas")).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let schema = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a file");
        let schema: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = schema["title"].as_str().expect("the title is the name of the document").to_string();
        assert_eq!(path.file_stem().and_then(|stem| stem.to_str()), Some(&*name.replace('/', "-")));
        (name, schema)
    };
    files.map(schema).collect()
}

/// Makes every object of a schema refuse fields that the schema does not list. An object with free keys, such as a map
/// from causes to numbers, states the schema of its values in `additionalProperties`, and stays as it is.
fn make_strict(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            // In a list of properties, `properties` and `type` are names of fields, and their values are schemas.
            let is_schema = fields.get("type").is_some_and(|kind| kind.is_string() || kind.is_array());
            let lists_fields = is_schema && fields.get("properties").is_some_and(Value::is_object);
            fields.values_mut().for_each(make_strict);
            if lists_fields {
                fields.entry("additionalProperties").or_insert(Value::Bool(false));
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(make_strict),
        _ => {}
    }
}

fn validator(schema: &Value) -> Validator {
    jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{}: {error}", schema["title"]))
}

fn strict(mut schema: Value) -> Validator {
    make_strict(&mut schema);
    validator(&schema)
}

/// A folder in which commands run, and the names of the documents that they printed.
struct Printer {
    folder: tempfile::TempDir,
    validators: BTreeMap<String, Validator>,
    seen: BTreeSet<String>,
}

impl Printer {
    fn new() -> Printer {
        let validators = schemas().into_iter().map(|(name, schema)| (name, strict(schema))).collect();
        Printer { folder: tempfile::tempdir().expect("a temporary folder"), validators, seen: BTreeSet::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("there is room");
    }

    /// Runs the program with the words of `command`, which are separated by spaces.
    fn run(&self, command: &str) -> Output {
        let mut program = Command::new(env!("CARGO_BIN_EXE_imbrex"));
        let words = command.split(' ');
        program.args(words).current_dir(self.folder.path()).stdin(Stdio::null()).output().expect("the program starts")
    }

    /// Runs `command` with `--json`, and validates the document that it prints.
    fn print(&mut self, command: &str) -> Value {
        self.print_and_exit(0, command)
    }

    /// Runs `command` like [`Printer::print`]; the command must exit with `code`.
    fn print_and_exit(&mut self, code: i32, command: &str) -> Value {
        let output = self.run(&format!("{command} --json"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{command}: {said}");
        let document: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{command}: {error}: {said}"));
        self.accept(command, &document);
        document
    }

    /// Validates a file that a command wrote.
    fn accept_file(&mut self, name: &str) {
        let text = fs::read_to_string(self.path(name)).expect("the command wrote the file");
        self.accept(name, &serde_json::from_str(&text).expect("JSON"));
    }

    /// Validates a document. `source` names the command or file for messages.
    fn accept(&mut self, source: &str, document: &Value) {
        let name = document["schema"].as_str().unwrap_or_else(|| panic!("{source}: no schema: {document}"));
        let validator = self.validators.get(name).unwrap_or_else(|| panic!("{source}: docs/schemas lacks {name}"));
        let errors = validator.iter_errors(document);
        let faults: Vec<String> = errors.map(|error| short(&format!("{}: {error}", error.instance_path()))).collect();
        assert!(faults.is_empty(), "{source}: {name}:\n{}", faults.join("\n"));
        self.seen.insert(name.to_string());
    }

    /// Asserts that every document of `names` was printed.
    fn end(self, names: &[&str]) {
        let missing: Vec<&&str> = names.iter().filter(|name| !self.seen.contains(**name)).collect();
        assert!(missing.is_empty(), "documents that no command printed: {missing:?}");
    }

    /// Damages every `step`th of the blocks behind `first_byte` of a file that are not all zeros.
    fn spoil(&self, name: &str, first_byte: usize, step: usize) {
        let bytes = fs::read(self.path(name)).expect("the file is there");
        let file = OpenOptions::new().write(true).open(self.path(name)).expect("the file is ours");
        let blocks = bytes.chunks(BLOCK_BYTES).enumerate().skip(first_byte / BLOCK_BYTES);
        let used = blocks.filter(|(_, block)| block.iter().any(|byte| *byte != 0));
        for (number, _) in used.step_by(step) {
            file.write_all_at(b"spoilt, spoilt, spoilt", (number * BLOCK_BYTES + 64) as u64).expect("there is room");
        }
    }

    /// Creates files of `bytes` bytes without contents.
    fn make_files(&self, names: &[&str], bytes: u64) {
        for name in names {
            fs::File::create(self.path(name)).and_then(|file| file.set_len(bytes)).expect("there is room");
        }
    }

    /// Unpacks an image of an earlier version, which crate `owner` keeps for its tests, as `name`.
    fn unpack(&self, owner: &str, kept: &str, name: &str) {
        let packed = root().join("crates").join(owner).join("tests/fixtures").join(kept);
        let bytes = zstd::decode_all(fs::File::open(packed).expect("it is kept there")).expect("it is whole");
        self.write(name, bytes);
    }
}

/// Returns the beginning of a message, which may contain a whole document.
fn short(message: &str) -> String {
    message.chars().take(400).collect()
}

/// Collects the names of documents in the sources below `folder`: string literals such as `imbrex.list/1`, outside of
/// comments and tests.
fn collect_names(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            collect_names(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).expect("a source");
            let code = text.split("#[cfg(test)]").next().expect("there is a first part");
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            names.extend(lines.flat_map(|line| line.split("\"imbrex.").skip(1)).filter_map(name_at));
        }
    }
}

/// Returns the name of a document whose part behind `imbrex.` is at the start of `rest`.
fn name_at(rest: &str) -> Option<String> {
    let end = rest.find(['"', '\\'])?;
    let (kind, version) = rest[..end].split_once('/')?;
    let is_name = kind.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
    (is_name && version.parse::<u32>().is_ok()).then(|| format!("imbrex.{kind}/{version}"))
}

#[test]
fn every_document_in_the_sources_has_a_schema_and_the_reverse() {
    let mut in_sources = BTreeSet::new();
    for entry in fs::read_dir(root().join("crates")).expect("the crates are there") {
        let sources = entry.expect("an entry").path().join("src");
        if sources.is_dir() {
            collect_names(&sources, &mut in_sources);
        }
    }
    let in_docs: BTreeSet<String> = schemas().into_keys().collect();
    assert_eq!(in_sources, in_docs, "documents of the sources, and files of docs/schemas");
    let groups = [OF_SIMULATIONS, OF_REAL_DRIVES, OF_IMAGES, OF_SERVERS, OF_FILE_SYSTEMS, OF_THE_LAB, OF_ARRAYS];
    let printed: BTreeSet<String> = groups.concat().into_iter().map(String::from).collect();
    assert_eq!(in_docs, printed, "files of docs/schemas, and documents that a test prints");
    let page = fs::read_to_string(root().join("docs/schemas/README.md")).expect("the page is there");
    for name in in_docs {
        let file = format!("{}.json", name.replace('/', "-"));
        let line = format!("| [`{name}`]({file}) |");
        assert!(page.contains(&line), "the page lacks a row that begins with {line}");
    }
}

/// Returns the fields of a schema, below the path `at`, that lack a description or a type.
fn undescribed(at: &str, schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let Some(fields) = schema.as_object() else {
        let entries = schema.as_array().into_iter().flatten();
        return entries.flat_map(|entry| undescribed(at, entry)).collect();
    };
    for (key, value) in fields {
        match value.as_object().filter(|_| key == "properties") {
            Some(properties) => {
                for (name, property) in properties {
                    let kinds = ["type", "$ref", "anyOf", "oneOf", "enum", "const"];
                    let has_kind = kinds.iter().any(|kind| property.get(kind).is_some());
                    if !has_kind || property["description"].as_str().is_none_or(str::is_empty) {
                        found.push(format!("{at}/{name}"));
                    }
                    found.extend(undescribed(&format!("{at}/{name}"), property));
                }
            }
            None => found.extend(undescribed(at, value)),
        }
    }
    found
}

#[test]
fn every_field_has_a_description_and_a_type() {
    for (name, schema) in schemas() {
        assert_eq!(undescribed("", &schema), [""; 0], "{name}");
    }
}

/// Returns the fields of the object at `place`, a JSON pointer.
fn object_at<'a>(document: &'a mut Value, place: &str) -> &'a mut Map<String, Value> {
    document.pointer_mut(place).and_then(Value::as_object_mut).expect("an object")
}

#[test]
fn a_missing_and_an_unknown_field_are_refused_by_the_strict_form_alone() {
    let mut printer = Printer::new();
    let created = printer.print("drive create new.img --drive strict-append");
    let simulated = printer.print("simulate rw=read,bs=4k,size=1m,number_ios=9 -d cmr-7200 --no-baseline");
    let all = schemas();
    for (document, place) in [(&created, ""), (&simulated, "/drives/0/latency_ns/all")] {
        let schema = &all[document["schema"].as_str().expect("a name")];
        let (strict, published) = (strict(schema.clone()), validator(schema));
        let (mut more, mut fewer) = (document.clone(), document.clone());
        object_at(&mut more, place).insert("colour".into(), json!("red"));
        object_at(&mut fewer, place).retain(|key, _| !["uuid", "p99"].contains(&key.as_str()));
        assert!(strict.is_valid(document) && published.is_valid(document));
        assert!(!strict.is_valid(&more) && published.is_valid(&more), "an unknown field in {}", schema["title"]);
        assert!(!strict.is_valid(&fewer) && !published.is_valid(&fewer), "a missing field in {}", schema["title"]);
    }
}

#[test]
fn documents_of_simulations_match_their_schemas() {
    let mut printer = Printer::new();
    let writes = "rw=randwrite,bs=64k,size=64MiB,number_ios=400";
    printer.print(&format!("simulate {writes} -d {SHINGLED} --explain 3 --check --out out -q"));
    printer.accept_file("out/summary.json");
    printer.accept_file("out/explain.json");
    let some = "rw=randrw,bs=4k,number_ios=200";
    printer.print(&format!("simulate {some} -d {SHINGLED} -d cmr-7200 --seeds 2 --warmup 50 -q"));
    let few = "rw=randwrite,bs=4k,size=64m,number_ios=200";
    let summary = printer.print_and_exit(3, &format!("simulate {few} -d caveat-1g --no-baseline --check -q"));
    assert!(summary["drives"][0]["integrity"].is_object(), "the host destroys data of its own: {summary}");
    printer.print(&format!("simulate {few} -d strict-append --no-baseline -q"));
    printer.print(&format!("simulate {few} -d cassuto-307g+region-rmw:safety=paper -q"));
    printer.print(&format!("explain {writes} -d {SHINGLED} --worst 2 --replay -q"));
    printer.print(&format!("explain {writes} -d {SHINGLED} --request 7 --no-baseline -q"));
    printer.print("explain rw=randrw,bs=4k,size=64m,number_ios=600,iodepth=8 -d imr-1t+track-cache --percentile 99 -q");
    let spec = format!("workloads = [\"{few}\"]\ndrives = [\"caveat-1g\", \"cmr-7200\"]\n[options]\ncheck = true\n");
    printer.write("spec.toml", spec);
    printer.print_and_exit(3, "sweep spec.toml");
    // The third record is malformed.
    let records = ["0,write,0,4096", "0.001,read,0,4096", "hello", "0.002,write,8192,4096", "0.003,write,4095,100", ""];
    printer.write("some.csv", records.join("\n"));
    let csv = "--format csv --columns time,op,offset,size --skip-malformed=all";
    printer.print(&format!("simulate some.csv {csv} -d cmr-7200 -q"));
    printer.print(&format!("trace info some.csv {csv}"));
    printer.print(&format!("trace info {some}"));
    printer.print("trace info cloudphysics-w28 --limit 2000");
    printer.print(&format!("trace convert some.csv some.msr --to msr {csv}"));
    for lists in ["list", "list layers", "list drives"] {
        printer.print(lists);
    }
    printer.print("reproduce cassuto/fig06-08 --out reproduced");
    printer.print("reproduce aghayev/fig14 --seeds 2 --out reproduced");
    printer.end(OF_SIMULATIONS);
}

/// Returns the path of a block device of this machine.
fn block_device() -> Option<String> {
    let names =
        fs::read_dir("/sys/block").ok()?.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.map(|name| format!("/dev/{name}")).find(|path| Path::new(path).exists())
}

#[test]
fn documents_about_real_drives_match_their_schemas() {
    let mut printer = Printer::new();
    let drive = "cmr-7200:host.write_cache_bytes=0";
    let made = printer.run(&format!("simulate rw=randrw,bs=4k,number_ios=300 -d {drive} --per-io --out own -q"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    printer.print(&format!("validate own/ios.parquet -d {drive}"));
    printer.print("validate own/ios.parquet -d cmr-5900:host.write_cache_bytes=0");
    let reads = json!({ "clat_ns": { "bins": { "8000000": 40, "12000000": 60 } } });
    let job = json!({ "job options": { "rw": "randread", "bs": "4k", "size": "1g" }, "read": reads, "write": {} });
    printer.write("fio.json", json!({ "fio version": "fio-3.33", "jobs": [job] }).to_string());
    printer.print(&format!("validate fio.json -d {drive}"));
    printer.print("fit own/ios.parquet --from cmr-5900");
    printer.print("probe sim:cmr-7200 --test rotation");
    printer.print("probe sim:seagate-st5000as0011 --test type");
    printer.print(&format!("probe sim:{SHINGLED} --budget 60s --share one.json"));
    printer.print("probe sim:cmr-7200 --test rotation --model ST1000DM010-2EP102 --share two.json");
    printer.print("probe --compare one.json two.json");
    printer.print("probe --model WD40EFAX-68JH4N0");
    printer.print("probe --model WD41EFAX");
    match block_device() {
        Some(device) => drop(printer.print(&format!("drive info {device}"))),
        None => {
            eprintln!("skipped: /dev has no block device");
            printer.seen.insert("imbrex.device-info/1".into());
        }
    }
    printer.end(OF_REAL_DRIVES);
}

/// Returns the profile of a conventional drive whose controller is described in detail.
fn profile_with_controller() -> String {
    let profile = fs::read_to_string(root().join("crates/disk/profiles/cmr-7200.toml")).expect("a profile");
    let of_host = ["write_cache_bytes", "read_ahead_bytes", "overhead_ns"];
    let lines = profile.lines().filter(|line| !of_host.iter().any(|key| line.starts_with(key)));
    let disconnect = "{ command_ns = 1, disconnect_ns = 2, pause_ns = 3, second_disconnect_ns = 4, seek_delay_ns = 5, \
                      start_sectors = 1, long_start_sectors = 2, long_from_sectors = 3 }";
    let controller = format!(
        "[host.controller]\ncommand_ns = 1000\nsegments = 4\nsegment_sectors = 512\ncaches = true\ndrops_requested = true\n\
         keeps_sectors_before = true\nextra_disconnect = {disconnect}\n"
    );
    lines.chain([controller.as_str()]).collect::<Vec<_>>().join("\n")
}

#[test]
fn documents_of_images_match_their_schemas() {
    let mut printer = Printer::new();
    printer.write("controller.toml", profile_with_controller());
    fs::copy(root().join("scripts/guest/inside/small.toml"), printer.path("small.toml")).expect("there is room");
    for (image, drive) in [
        ("zoned.img", "strict-append"),
        ("caveat.img", "caveat-1g"),
        ("small.img", "small.toml"),
        ("controller.img", "controller.toml"),
    ] {
        printer.print(&format!("drive create {image} --drive {drive}"));
        printer.print(&format!("drive info {image}"));
        printer.print(&format!("drive dump {image}"));
    }
    printer.print("drive dump zoned.img --regions");
    for fault in [
        "zone --zone 7 --state read-only",
        "zone --zone 8 --state offline",
        "unreadable --lba 8 --sectors 16",
        "slow --lba 100 --sectors 16 --by 5ms",
    ] {
        printer.print(&format!("drive fault zoned.img {fault}"));
    }
    for command in ["info", "dump", "check"] {
        printer.print(&format!("drive {command} zoned.img"));
    }
    printer.print("drive snapshot zoned.img copy.img");
    printer.print("drive info copy.img");
    printer.print("drive fault copy.img clear");
    printer.write("short.img", &fs::read(printer.path("zoned.img")).expect("it is there")[..1000]);
    printer.print_and_exit(3, "drive check short.img");
    // A file system fills the drive with contents that can be damaged.
    printer.print("fs mkfs copy.img");
    printer.print("fs age copy.img --fill 8MiB --operations 60");
    printer.spoil("copy.img", 1 << 20, 5);
    let damage = printer.print_and_exit(3, "drive check copy.img");
    assert!(damage["findings"].as_array().is_some_and(|findings| !findings.is_empty()), "{damage}");
    printer.print("drive check copy.img --repair");
    printer.print("drive check copy.img");
    for (kept, image) in [("version-2-flash.img.zst", "flash.img"), ("version-2-imr.img.zst", "imr.img")] {
        printer.unpack("device", kept, image);
        printer.print(&format!("drive info {image}"));
    }
    printer.print("drive upgrade flash.img");
    printer.print("drive dump imr.img");
    printer.end(OF_IMAGES);
}

/// Sends a line to a control socket, and returns the answer.
fn ask(control: &Path, line: &str) -> Value {
    let mut stream = UnixStream::connect(control).expect("the server listens");
    stream.write_all(format!("{line}\n").as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    serde_json::from_str(&answer).expect("JSON")
}

#[test]
fn documents_of_served_drives_match_their_schemas() {
    let mut printer = Printer::new();
    printer.print("drive create zoned.img --drive strict-append");
    fs::copy(root().join("scripts/guest/inside/small.toml"), printer.path("small.toml")).expect("there is room");
    let (image, profile, copy) = (printer.path("zoned.img"), printer.path("small.toml"), printer.path("copy.img"));
    let drives = [&[word(&image)][..], &["--drive", word(&profile)], &["--drive", "cmr-7200"]];
    for (number, drive) in drives.into_iter().enumerate() {
        let (folder, control) = (printer.path(&format!("server{number}")), printer.path(&format!("control{number}")));
        fs::create_dir(&folder).expect("there is room");
        let more = ["--time", "none", "--window", "127.0.0.1:0", "--control", word(&control)];
        let program = Program::new(env!("CARGO_BIN_EXE_imbrex"));
        let mut server = Server::start(&program, &folder, &[drive, &more].concat());
        let mut client = Client::connect(&server.socket);
        assert_eq!(client.write(0, &[7; 64 << 10]), 0, "the write succeeds");
        client.read(0, 64 << 10).expect("the read succeeds");
        drop(client);
        let page = fetch(&server.window(), "/state.json");
        let state = page.split("\r\n\r\n").nth(1).expect("a body");
        printer.accept("the state of the page", &serde_json::from_str(state).expect("JSON"));
        let snapshot = format!("{{\"verb\":\"snapshot\",\"to\":\"{}\"}}", word(&copy));
        for line in ["{\"verb\":\"stats\"}", "{\"verb\":\"dance\"}", &snapshot, "{\"verb\":\"shutdown\"}"] {
            printer.accept(line, &ask(&control, line));
        }
        assert_eq!(server.wait(), Some(0), "{}", server.log());
    }
    printer.end(OF_SERVERS);
}

#[test]
fn documents_of_file_systems_match_their_schemas() {
    let mut printer = Printer::new();
    for (image, drive) in [("zoned.img", "strict-append"), ("caveat.img", "caveat-1g")] {
        printer.print(&format!("drive create {image} --drive {drive}"));
        printer.print(&format!("fs mkfs {image}"));
        printer.print(&format!("fs age {image} --fill 8MiB --operations 60"));
        for command in ["stat", "dump", "check", "clean"] {
            printer.print(&format!("fs {command} {image}"));
        }
    }
    printer.print("fs bench postmark zoned.img --files 20 --operations 30 --seeds 2 --out results");
    printer.accept_file("results/summary.json");
    fs::create_dir(printer.path("plain")).expect("there is room");
    printer.print("fs bench varmail plain --files 20 --operations 30 --threads 2");
    printer.print("fs age plain --fill 1MiB --operations 30");
    printer.print("fs capacity --size 4MiB --operations 300 --fit next --did 16");
    printer.print("fs capacity --size 4MiB --operations 300 --fit best --did 16 --most 1");
    printer.unpack("fs", "format-8-strict-append.img.zst", "old.img");
    let adopted = printer.run("drive adopt old.img");
    assert!(adopted.status.success(), "{}", String::from_utf8_lossy(&adopted.stderr));
    printer.print("fs upgrade old.img");
    printer.end(OF_FILE_SYSTEMS);
}

#[test]
fn documents_of_the_lab_match_their_schemas() {
    if !crate::lab::has_kernel("the document of the lab") {
        return;
    }
    let mut printer = Printer::new();
    let output = printer.run("lab run --drive cmr-7200 --explain 2 --out run -- true");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    printer.accept_file("run/summary.json");
    printer.end(OF_THE_LAB);
}

#[test]
fn documents_of_arrays_match_their_schemas() {
    let mut printer = Printer::new();
    printer.make_files(&["a0", "a1", "a2", "a3", "a4", "a5"], 48 << 20);
    printer.make_files(&["m0", "m1", "m2"], 8 << 20);
    printer.print("fs mkfs a0 a1 a2 --store log --parity 1 --meta m0 --meta m1 --hot 2MiB");
    printer.print("fs age m0 --fill 4MiB --operations 60");
    for drive in ["b0", "b1", "b2"] {
        printer.print(&format!("drive create {drive} --drive strict-append"));
    }
    printer.print("fs mkfs b0 b1 b2 --store log --parity 1 --meta b3 --meta-size 64MiB --hot 2MiB");
    printer.print("fs bench postmark b3 --files 20 --operations 30");
    printer.print("fs scrub m0");
    printer.print("fs add m0 --drive a3");
    printer.print("fs add m0 --spare a4");
    printer.print("fs replace m0 --drive 1 --with a5");
    printer.print("fs replace m0 --copy 1 --with m2");
    printer.print("fs stat m0");
    printer.print("fs dump m0");
    printer.spoil("a0", 64 << 10, 1);
    printer.spoil("a2", 64 << 10, 1);
    printer.spoil("m0", 1 << 20, 1);
    for command in ["fs check m0", "fs scrub m0", "fs scrub m0 --repair"] {
        printer.print_and_exit(3, command);
    }
    fs::remove_file(printer.path("a2")).expect("it is ours");
    let status = printer.print("fs stat m0");
    assert!(status["last_scrub"].is_object() && status["drives_missing"] == json!([2]), "{status}");
    for name in ["m0", "m1", "m2"] {
        fs::remove_file(printer.path(name)).expect("it is ours");
    }
    printer.print_and_exit(3, "fs salvage a0 --meta new --meta-size 8MiB");
    fs::remove_file(printer.path("new")).expect("it is ours");
    printer.print_and_exit(3, "fs salvage a0 --to rescued");
    printer.end(OF_ARRAYS);
}

#[test]
fn the_status_of_a_hot_zone_on_drives_matches_its_schema() {
    let mut printer = Printer::new();
    for image in ["d0", "d1", "d2"] {
        printer.print(&format!("drive create {image} --drive strict-append"));
    }
    printer.make_files(&["m"], 8 << 20);
    printer.print("fs mkfs d0 d1 d2 --store log --parity 1 --meta m --hot 8MiB --hot-on drives");
    printer.print("fs bench varmail m --files 20 --operations 30");
    let status = printer.print("fs stat m");
    assert!(status["hot_zone"]["drives"].as_array().is_some_and(|parts| !parts.is_empty()), "{status}");
    printer.print("fs dump m");
}

#[test]
fn documents_of_a_mounted_file_system_match_their_schemas() {
    if !has_fuse() {
        return;
    }
    let mut printer = Printer::new();
    let bench = Bench::new("strict-append");
    let mounted = bench.mount(&["-o", "time=none"]);
    fs::write(bench.directory.join("file"), vec![7; 3 << 20]).expect("there is room");
    for command in ["stat", "scrub", "clean", "stat"] {
        printer.print(&format!("fs {command} {}", word(&bench.directory)));
    }
    mounted.unmount();
    printer.end(&["imbrex.fs-check/1", "imbrex.fs-clean/1", "imbrex.fs-stat/1"]);
}
