//! The validation set of DiskSim. Drives are imported from DiskSim's descriptions and compared with measurements of
//! the real drives. Then each profile is fitted to the first half of the measurements and judged on the second half.

use std::path::{Path, PathBuf};

use imbrex_calibrate::disksim::import;
use imbrex_calibrate::fit::fit;
use imbrex_calibrate::readers::ReadOptions;
use imbrex_sim::Drive;

use super::super::{ClaimKind, Experiment, Replication, Report, Table};
use imbrex::error::Failure;
use imbrex::human::ms;
use imbrex::measured::{judge, requests};

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "validation/real-drives",
    title: "drives imported from DiskSim's descriptions beside measurements of the real ones",
    run,
};

/// Demerit figures of DiskSim itself, in ms, for the drives whose validation outputs we have read.
const THEIRS: [(&str, f64); 3] = [("cheetah9LP", 0.107), ("barracuda", 0.349), ("hp_c2247a", 0.090)];

/// Largest ratio of our demerit figure to DiskSim's that a claim allows.
const TIMES: f64 = 1.5;

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: "The experiment imports each drive (`imbrex drive import`) without any tuning, and gives it the \
                 requests of its trace. Each request is issued after the completion of the one before and the pause \
                 that followed it in the trace. The *figure* is the root of the mean square of the horizontal \
                 distance between the two cumulative distributions of service times, simulated and measured. Then \
                 the profile is fitted to the first half of the trace (`imbrex fit`), and the imported and the \
                 fitted profile are judged on the second half."
            .into(),
        ..Report::default()
    };
    let drives = drives();
    if drives.is_empty() {
        report.remarks.push(
            "The measured drives are not here: set IMBREX_REAL_DRIVES to the folder that has NAME.parv and NAME.trace.xz."
                .into(),
        );
        return Ok(report);
    }
    let mut whole = Table {
        heading: "Demerit figure, in ms".into(),
        columns: ["drive", "requests", "mean", "DiskSim", "imported", "2nd half, imported", "2nd half, fitted"]
            .map(String::from)
            .into(),
        rows: Vec::new(),
    };
    let mut classes = Table {
        heading: "By class of request, imported: figure and mean difference (simulated less measured), in ms".into(),
        columns: ["drive and class", "requests", "measured mean", "figure", "difference"].map(String::from).into(),
        rows: Vec::new(),
    };
    for (name, description, trace) in &drives {
        let bar = replication.progress.steps(name);
        judge_drive(name, description, trace, &mut report, &mut whole, &mut classes)?;
        bar.finish_and_clear();
    }
    report.tables = vec![whole, classes];
    Ok(report)
}

fn judge_drive(
    name: &str,
    description: &Path,
    trace: &Path,
    report: &mut Report,
    whole: &mut Table,
    classes: &mut Table,
) -> Result<(), Failure> {
    let folder = description.parent().unwrap_or(Path::new(""));
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).map_err(|error| error.to_string());
    let file = description.file_name().and_then(|file| file.to_str()).unwrap_or_default();
    let imported = import(file, &read).map_err(Failure::failed)?;
    let measured = requests(trace, &ReadOptions::default())?;
    let drive = Drive::assemble(name, imported.profile.clone(), &imported.profile.default_layer, &[])?;
    let judged = judge(&measured, drive)?.validation;
    let shown = trace.file_name().and_then(|file| file.to_str()).unwrap_or_default();
    let found = fit(&measured, &imported.profile, shown, &mut |_, _| ()).map_err(Failure::failed)?;
    let theirs = THEIRS.iter().find(|(known, _)| *known == name).map(|(_, theirs)| *theirs);
    whole.rows.push(vec![
        name.into(),
        judged.whole.requests.to_string(),
        ms(judged.whole.mean_measured_ns),
        theirs.map_or("–".into(), |theirs| format!("{theirs:.3}")),
        ms(judged.whole.rms_ns),
        ms(found.second.0.rms_ns),
        ms(found.second.1.rms_ns),
    ]);
    for class in &judged.classes {
        classes.rows.push(vec![
            format!("{name}: {}", class.class),
            class.comparison.requests.to_string(),
            ms(class.comparison.mean_measured_ns),
            ms(class.comparison.rms_ns),
            format!("{:+.3}", class.mean_difference_ns as f64 / 1e6),
        ]);
    }
    if let Some(theirs) = theirs {
        let ours = judged.whole.rms_ns as f64 / 1e6;
        let claim = format!("{name}: figure in ms, at most {TIMES} times DiskSim's");
        report.claim(
            ClaimKind::Predicted,
            &claim,
            &format!("{theirs:.3}"),
            format!("{ours:.3}"),
            Some(ours <= TIMES * theirs),
        );
    }
    Ok(())
}

/// Returns (name, description file, trace file) of the available drives, in the order of their names.
fn drives() -> Vec<(String, PathBuf, PathBuf)> {
    let folder =
        std::env::var_os("IMBREX_REAL_DRIVES").map_or_else(|| PathBuf::from("../shared/real-drives"), PathBuf::from);
    let Ok(entries) = std::fs::read_dir(&folder) else { return Vec::new() };
    let mut drives: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "parv"))
        .filter_map(|path| {
            let name = path.file_stem()?.to_str()?.to_string();
            let traces = [format!("{name}.trace.xz"), format!("{name}.trace")].map(|file| folder.join(file));
            let trace = traces.into_iter().find(|trace| trace.is_file())?;
            Some((name, path, trace))
        })
        .collect();
    drives.sort();
    drives
}
