//! Goal: claims of the papers that can be run in seconds are reproduced. Method: the experiments themselves; every
//! claim that has a verdict must hold.

use std::process::{Command, Stdio};

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
            assert_ne!(claim["verdict"], "no", "{experiment}: {claim}");
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
