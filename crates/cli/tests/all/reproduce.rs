//! Goal: claims of the papers that can be run in seconds are reproduced. Method: the experiments themselves; every
//! claim that has a verdict must hold.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

#[test]
fn figures_6_to_9_come_out_as_the_paper_has_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for experiment in ["cassuto/definition4", "cassuto/fig06-08", "cassuto/fig09"] {
        let output = Command::new(env!("CARGO_BIN_EXE_imbrex"))
            .args(["reproduce", experiment, "--json", "--out"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .output()
            .expect("the program starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let claims = document["experiments"][0]["claims"].as_array().expect("claims");
        for claim in claims {
            // A write overloading of three orders of magnitude counts blocks, not commands as definition 4 does.
            let is_finding = claim["claim"].as_str().is_some_and(|claim| claim.starts_with("pure read-modify-write"));
            assert_eq!(claim["verdict"] == "no", is_finding, "{experiment}: {claim}");
        }
        assert!(claims.iter().any(|claim| claim["verdict"] == "yes"), "{experiment} judges nothing");
    }
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("the page");
    let (index, page) = (read("reproduction.md"), read("reproduction/cassuto-fig09.md"));
    assert!(index.contains("[cassuto/fig09](reproduction/cassuto-fig09.md)"), "{index}");
    assert!(page.starts_with("# cassuto/fig09") && page.contains("](../figures/cassuto-fig09.svg)"), "{page}");
    assert!(folder.path().join("figures/cassuto-fig06.svg").exists());
}

/// Goal: Aghayev 2015 fig. 14 is exact through the whole program. Method: the paper's three counts.
#[test]
fn figure_14_of_the_second_paper_counts_9_12_and_8_writes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args(["reproduce", "aghayev/fig14", "--json", "--out"])
        .arg(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let claims = document["experiments"][0]["claims"].as_array().expect("claims");
    let ours: Vec<_> = claims.iter().map(|claim| claim["ours"].as_str().expect("a text")).collect();
    assert_eq!(ours, ["9", "12", "8"]);
}

fn reproduce(words: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args([&["reproduce"], words, &["--out"]].concat())
        .arg(folder)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

/// Goal: files of others in the folder of results are kept. Method: a file of each kind that a run replaces, written
/// here; the run is refused with its name and the file is as it was. Files of an earlier run are replaced.
#[test]
fn files_of_others_are_not_replaced() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = || reproduce(&["cassuto/fig09"], folder.path());
    assert!(run().status.success(), "an empty folder");
    assert!(run().status.success(), "files of an earlier run");
    for name in ["reproduction/cassuto-fig09.json", "reproduction/cassuto-fig09.md", "figures/cassuto-fig09.svg"] {
        let path = folder.path().join(name);
        let own = std::fs::read(&path).expect("it was written");
        std::fs::write(&path, "notes of mine").expect("written");
        let output = run();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(name), "{name}: {said}");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "notes of mine");
        std::fs::write(&path, own).expect("written");
    }
    // Notes about the experiment are no page of it, and what cannot be read as results would spoil the index.
    for (name, notes) in [
        ("reproduction/cassuto-fig09.md", "# My notes\n\n## cassuto/fig09: the plot\n"),
        ("reproduction/cassuto-fig05.json", "notes of mine"),
    ] {
        let path = folder.path().join(name);
        let own = std::fs::read(&path).unwrap_or_default();
        std::fs::write(&path, notes).expect("written");
        let output = run();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(name), "{name}: {said}");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), notes);
        match own.is_empty() {
            true => std::fs::remove_file(&path).expect("removed"),
            false => std::fs::write(&path, own).expect("written"),
        }
    }
    // A kept report of a seed, in the place of which somebody has a file.
    let seeds = folder.path().join("reproduction/seeds");
    std::fs::create_dir_all(&seeds).expect("made");
    std::fs::write(seeds.join("cassuto-fig09-0.json"), "notes of mine").expect("written");
    let output = reproduce(&["cassuto/fig09", "--seeds", "2"], folder.path());
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("cassuto-fig09-0.json"));
    assert_eq!(std::fs::read_to_string(seeds.join("cassuto-fig09-0.json")).expect("it is there"), "notes of mine");
}

/// Goal: `--seeds` runs each seed once, over several calls, and its JSON has the verdict with each seed. Method: three
/// calls on one folder, with messages and files compared.
#[test]
fn several_seeds_are_run_once_each_and_merged() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let call = |seeds: &str| {
        let output = reproduce(&["aghayev/fig14", "--json", "--seeds", seeds], folder.path());
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success(), "{said}");
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (document["experiments"][0].clone(), said)
    };
    let (first, said) = call("2");
    assert!(!said.contains("found in"), "{said}");
    assert_eq!((&first["seeds"], &first["claims"][0]["ours"]), (&Value::from(2), &Value::from("9")));
    assert_eq!(first["claims"][2]["verdicts"], serde_json::json!(["yes", "yes"]));
    assert_eq!(first["claims"][2]["ours_by_seed"], serde_json::json!(["8", "8"]));
    let (again, said) = call("2");
    assert_eq!((again, said.matches("found in").count()), (first, 2), "{said}");
    let (more, said) = call("3");
    assert_eq!((&more["seeds"], said.matches("found in").count()), (&Value::from(3), 2), "{said}");
    let page = std::fs::read_to_string(folder.path().join("reproduction/aghayev-fig14.md")).expect("the page");
    assert!(page.contains("The experiment ran with 3 seeds"), "{page}");
    let plain = reproduce(&["aghayev/fig14", "--json"], folder.path());
    assert!(!String::from_utf8_lossy(&plain.stdout).contains("seed"), "a run with one seed has no field for seeds");
}

#[test]
fn seeds_are_one_to_a_thousand() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for seeds in ["0", "2000", "few"] {
        let output = reproduce(&["aghayev/fig14", "--seeds", seeds], folder.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("--seeds"), "{said}");
    }
    let is_empty = std::fs::read_dir(folder.path()).expect("it can be read").next().is_none();
    assert!(is_empty, "a refused call writes nothing");
}

/// Goal: traces of a user replace the stand-ins, and the page says so. Method: for each machine of Hajkazemi 2019 a
/// trace of three requests, of which two write, in the table of the published set.
#[test]
fn traces_of_a_user_replace_the_stand_ins() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let traces = folder.path().join("traces");
    std::fs::create_dir(&traces).expect("made");
    let machines =
        ["w08", "w09", "w17", "w24", "w28", "w31", "w35", "w39", "w43", "w46", "w56", "w61", "w84", "w87", "w106"];
    let rows = "version,time,op,size,lbn\n1,0.5,2a,4096,800\n1,0.75,28,8192,16\n1,1.5,2a,512,100\n";
    for machine in machines {
        std::fs::write(traces.join(format!("{machine}.csv")), rows).expect("written");
    }
    let given = traces.to_string_lossy().into_owned();
    let output = reproduce(&["hajkazemi/table1", "--traces", &given], folder.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(folder.path().join("reproduction/hajkazemi-table1.md")).expect("it is written");
    assert!(page.contains("The workloads of w08, ") && page.contains("`w106.csv`"), "{page}");
    let share = page.lines().find(|line| line.contains("w08: share of requests that write")).expect("it is judged");
    assert!(share.contains("| predicted |") && share.contains("| 66.7 % |") && share.ends_with("| no |"), "{share}");
}
