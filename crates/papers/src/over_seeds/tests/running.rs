//! Goal: replications are kept, found and replaced as the invariants say, and seeds are those of the replication.
//! Method: small experiments written here, which count their runs; one real experiment; kept files altered by hand.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use imbrex::{Failure, FailureKind, Progress};

use crate::replication::Replication;
use crate::report::{ClaimKind, Report, Verdict};
use crate::{Experiment, Results};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Returns the path of the kept report of a replication of the experiment `test/figure`.
fn kept(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("reproduction/seeds/test-figure-{number}.json"))
}

fn experiment(run: fn(&Replication) -> Result<Report, Failure>) -> Experiment {
    Experiment { name: "test/figure", title: "a test", run }
}

/// Returns a report whose number is the seed and whose claim holds for seeds below 12.
fn of_seed(replication: &Replication) -> Report {
    let seed = replication.seed(10);
    let mut report = Report::default();
    report.claim(ClaimKind::Shape, "the seed", "below 12", seed.to_string(), Some(seed < 12));
    report
}

#[test]
fn each_replication_has_its_seed_and_is_kept() {
    let (folder, progress) = (folder(), Progress::silent());
    let experiment = experiment(|replication| Ok(of_seed(replication)));
    let report = experiment.report_over_seeds(3, None, folder.path(), &progress).expect("it runs");
    assert_eq!(report.claims[0].ours_by_seed, ["10", "11", "12"]);
    assert_eq!(report.claims[0].verdict, Verdict::DependsOnSeed);
    assert!((0..3).all(|number| kept(folder.path(), number).is_file()));
}

#[test]
fn one_seed_keeps_nothing_and_is_the_plain_report() {
    let (folder, progress) = (folder(), Progress::silent());
    let experiment = experiment(|replication| Ok(of_seed(replication)));
    let report = experiment.report_over_seeds(1, None, folder.path(), &progress).expect("it runs");
    assert_eq!(report, experiment.report(&progress).expect("it runs"));
    assert!(!folder.path().join("reproduction").exists());
}

#[test]
fn an_experiment_without_a_seed_runs_once() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let (folder, progress) = (folder(), Progress::silent());
    let experiment = experiment(|_| {
        RUNS.fetch_add(1, Ordering::Relaxed);
        Ok(Report { method: "no choice".into(), ..Report::default() })
    });
    for _ in 0..2 {
        let report = experiment.report_over_seeds(5, None, folder.path(), &progress).expect("it runs");
        assert_eq!((report.seeds, report.method.as_str()), (None, "no choice"));
        let said = progress.drain_messages();
        assert_eq!(said[1..], ["test/figure has no random choices, so it runs once"]);
    }
    assert_eq!(RUNS.load(Ordering::Relaxed), 1, "the second call finds the report");
}

#[test]
fn an_interrupted_call_continues_with_the_replications_that_are_missing() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    static STOP_AT: AtomicU64 = AtomicU64::new(2);
    let folder = folder();
    let experiment = experiment(|replication| {
        if RUNS.fetch_add(1, Ordering::Relaxed) == 2 {
            assert!(replication.progress.should_stop());
            return Err(Failure::interrupted());
        }
        Ok(of_seed(replication))
    });
    let stops = || RUNS.load(Ordering::Relaxed) > STOP_AT.load(Ordering::Relaxed);
    let progress = Progress::silent().stopping_when(stops);
    let failure =
        experiment.report_over_seeds(4, None, folder.path(), &progress).expect_err("the third is interrupted");
    assert_eq!(failure.kind, FailureKind::Interrupted);
    assert!(failure.message.contains("test/figure, seed 3 of 4"), "{failure}");
    assert!(kept(folder.path(), 1).is_file() && !kept(folder.path(), 2).exists());
    STOP_AT.store(u64::MAX, Ordering::Relaxed);
    let report = experiment.report_over_seeds(4, None, folder.path(), &progress).expect("it goes on");
    assert_eq!(report.claims[0].ours_by_seed, ["10", "11", "12", "13"]);
    assert_eq!(RUNS.load(Ordering::Relaxed), 5, "two, one interrupted, and the two that were missing");
}

/// Goal: a report that lacks parts because the user stopped the program is not kept. Method: an experiment that
/// ignores the request to stop.
#[test]
fn a_report_made_while_stopping_is_not_kept() {
    let folder = folder();
    let progress = Progress::silent().stopping_when(|| true);
    let experiment = experiment(|replication| Ok(of_seed(replication)));
    assert!(experiment.report_over_seeds(2, None, folder.path(), &progress).is_err());
    assert!(!kept(folder.path(), 0).exists());
}

#[test]
fn damaged_files_and_those_of_another_program_are_replaced() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let (folder, progress) = (folder(), Progress::silent());
    let experiment = experiment(|replication| {
        RUNS.fetch_add(1, Ordering::Relaxed);
        Ok(of_seed(replication))
    });
    let run = || experiment.report_over_seeds(2, None, folder.path(), &progress).expect("it runs");
    let first = run();
    let path = kept(folder.path(), 1);
    let text = std::fs::read_to_string(&path).expect("it is kept");
    progress.drain_messages();
    let program = imbrex::program::sha256().expect("the program can be read");
    let alter = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} is not in {text}");
        text.replacen(from, to, 1)
    };
    let cases = [
        (text[..text.len() / 2].to_string(), "is damaged"),
        (alter("\"replication\": 1", "\"replication\": 0"), "is damaged"),
        (alter(&program, "0123"), "is of another program"),
        (text.clone(), "found in"),
    ];
    for (contents, message) in cases {
        std::fs::write(&path, contents).expect("written");
        let runs_before = RUNS.load(Ordering::Relaxed);
        assert_eq!(run(), first);
        let said = progress.drain_messages();
        assert!(said[0].starts_with("test/figure, seed 1 of 2: found in"), "{said:?}");
        assert!(said[1].contains(message), "{said:?}");
        let runs = RUNS.load(Ordering::Relaxed) - runs_before;
        assert_eq!(runs, u64::from(message != "found in"), "{message}");
        assert_eq!(std::fs::read_to_string(&path).expect("it is kept"), text);
    }
    let of_others = alter("\"test/figure\"", "\"test/other\"");
    std::fs::write(&path, &of_others).expect("written");
    let refused = experiment.report_over_seeds(2, None, folder.path(), &progress).expect_err("it is refused");
    assert!(refused.message.contains("was not written by imbrex"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), of_others);
}

/// Goal: invariant 1 of `replication`. Method: an experiment of a second against its results in the documentation.
#[test]
fn the_first_replication_gives_the_kept_results_and_the_next_gives_others() {
    let experiment = crate::choose(Some("aghayev/fig04-05")).expect("it is there")[0];
    let progress = Progress::silent();
    let report = |number| experiment.replicate(&Replication::new(&progress, number)).expect("it runs");
    let (first, second) = (report(0), report(1));
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let kept: Vec<Results> = crate::kept(&docs).expect("the results can be read");
    let kept = kept.iter().find(|results| results.experiment == experiment.name).expect("it has results");
    assert!(*kept == Results::of(experiment, &first), "the results in the documentation are of other seeds");
    assert_ne!(first.claims, second.claims);
}
