//! Glossary of the page: terms, their meanings and their sources.

use std::fmt::Write as _;

/// Terms: (word, meaning, source).
const WORDS: [(&str, &str, &str); 18] = [
    (
        "Adjusted command",
        "A piece of at most 1000 blocks of a longer command, so that long and short commands can be counted \
         together.",
        "Cassuto 2010 §III.B",
    ),
    (
        "Baseline",
        "The drive that the others are compared with on the same workload: a conventional one of like \
         geometry, unless another was named.",
        "",
    ),
    ("Capacity gain", "Capacity over that of the conventional drive with like surfaces.", ""),
    (
        "Cleaning",
        "Work of the layer to reclaim space or bring data home. It stalls the host when it cannot wait.",
        "Aghayev 2015 §4.5",
    ),
    (
        "Conventional, shingled, interlaced",
        "Tracks side by side; overlapping like shingles, so that a write destroys the tracks after it; \
         alternating bottom and top tracks, so that writing a bottom one destroys its two neighbours.",
        "Cassuto 2010 §I; Hajkazemi 2019 §1",
    ),
    (
        "Integrity",
        "Whether every live sector stayed whole in the places the layer would take it from; known only with \
         --check.",
        "",
    ),
    (
        "Issue-time disparity",
        "How much later a request enters the drive than it does on the baseline: what the drive has fallen \
         behind.",
        "Hajkazemi 2019 §4, figure 13",
    ),
    ("Latency", "From entering the drive’s queue to completion.", "Hajkazemi 2019 §3"),
    ("Layer", "The translation layer: where the drive puts each logical sector, and what it moves to do so.", ""),
    ("Map", "Memory for the layer’s mapping: as our structures have it, and by the paper’s formula.", ""),
    ("Medium", "The platters (and flash, where there is some), as opposed to the host.", ""),
    ("99 %, 99.9 %", "The latency that this share of requests did not exceed.", ""),
    ("Over-provisioning", "Physical sectors that hold no logical ones, as a share of the logical.", ""),
    ("Read amplification", "Sectors read on the medium for each the host read.", ""),
    ("Slowdown", "Simulated time over the baseline’s on the same workload.", ""),
    (
        "Windows with no completion",
        "Stretches of simulated time (1 s unless set otherwise) in which the drive completed nothing.",
        "",
    ),
    ("Write amplification", "Sectors written on the medium for each the host wrote.", "Hajkazemi 2019 §4"),
    (
        "Write overloading",
        "(Adjusted writes and reads of the medium − adjusted reads of the host) over adjusted writes of the \
         host: commands the medium spends on each write.",
        "Cassuto 2010 §III.B, definition 4",
    ),
];

const SOURCES: [(&str, &str); 3] = [
    (
        "Aghayev 2015",
        "A. Aghayev, M. Shafaei, P. Desnoyers: Skylight – A Window on Shingled Disk Operation. ACM \
         Transactions on Storage 11(4).",
    ),
    (
        "Cassuto 2010",
        "Y. Cassuto, M. Sanvido, C. Guyot, D. Hall, Z. Bandic: Indirection Systems for Shingled-Recording \
         Disk Drives. MSST 2010.",
    ),
    (
        "Hajkazemi 2019",
        "M. H. Hajkazemi, A. N. Kulkarni, P. Desnoyers, T. Feldman: Track-Based Translation Layers for \
         Interlaced Magnetic Recording. USENIX ATC 2019.",
    ),
];

pub(super) fn section() -> String {
    let mut html = String::from("<section aria-labelledby=\"words\"><h2 id=\"words\">Words</h2><dl class=\"words\">");
    for (word, meaning, source) in WORDS {
        let source = if source.is_empty() { String::new() } else { format!(" <cite>{source}</cite>") };
        let _ = write!(html, "<div><dt>{word}</dt><dd>{meaning}{source}</dd></div>");
    }
    html += "</dl><p class=\"sources\">";
    for (name, source) in SOURCES {
        let _ = write!(html, "<b>{name}</b>: {source}<br>");
    }
    html + "</p></section>"
}
