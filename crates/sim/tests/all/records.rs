//! Goal: a dump of a journal shows words. Method: every record that a layer writes on its toys has a description, with
//! a name for each operand.

use imbrex_layer::verify::toy::{self, Commands};
use imbrex_layer::{Plan, registry};
use imbrex_sim::{Drive, DriveSpec};

#[test]
fn every_record_has_words() {
    let mut kinds = 0;
    for info in registry::all() {
        let mut seen = std::collections::BTreeSet::new();
        for disk in info.recordings.iter().flat_map(|&name| toy::disks(name)) {
            for words in info.toys {
                let spec = DriveSpec::parse(&format!("toy+{}:{words}", info.name)).expect("key=value");
                let Ok(drive) = Drive::assemble("toy", disk.profile.clone(), info.name, &spec.parameters) else {
                    continue;
                };
                let mut layer = drive.layer;
                let mut commands = Commands::new(3, layer.capacity(), 24);
                let (mut plan, mut notes) = (Plan::new(), Vec::new());
                for _ in 0..200 {
                    commands.plan(layer.as_mut(), &mut plan);
                    notes.extend_from_slice(&plan.notes);
                }
                layer.checkpoint(&mut notes);
                for note in notes {
                    let record = info.record(note.tag);
                    let record = record.unwrap_or_else(|| panic!("{}: nobody knows what {note:?} says", info.name));
                    let unnamed = &note.fields[record.fields.len()..];
                    assert!(unnamed.iter().all(|&field| field == 0), "{}: {note:?} is more than {record:?}", info.name);
                    seen.insert(note.tag);
                }
            }
        }
        let mut tags: Vec<u8> = info.records.iter().copied().flatten().map(|record| record.tag).collect();
        tags.sort_unstable();
        assert!(tags.windows(2).all(|pair| pair[0] < pair[1]), "{}: two meanings of one tag: {tags:?}", info.name);
        kinds += seen.len();
    }
    assert!(kinds > 60, "{kinds} kinds of records were written");
}
