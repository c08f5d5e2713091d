//! The parameters of our runs that were set by a figure of a paper, and the claims that state or follow from such a
//! figure: those claims are fitted, and not counted.
//!
//! An entry names the parameter, its place (a profile, or the defaults of a layer), the figure that set it, and the
//! claims that state this figure or follow from it. [`mark`] changes the kind of these claims to `fitted`.
//!
//! Invariants:
//! 1. Every parameter has its value in the place that the entry says, and every entry names a claim of a page (by
//!    test).
//! 2. No claim that counts has a number that set a parameter of its drive (by test).

use super::report::{ClaimKind, Report};

/// A parameter of our runs that was set by a figure of a paper.
pub(crate) struct Source {
    /// Name of the parameter: `PROFILE: KEY`, or `LAYER: KEY` for a default of a layer.
    pub parameter: &'static str,
    /// Value of the parameter, as text in the form in which the profile or the layer has it.
    pub value: &'static str,
    /// Figure, table or section of the paper, with its number, that set the value of the parameter.
    pub figure: &'static str,
    /// The claims that state this figure or follow from it: pairs of an experiment's name and a part of the claim's
    /// text.
    pub claims: &'static [(&'static str, &'static str)],
}

const LATER: &str = "measured 2026, unrefereed";

/// All parameters that a figure has set.
pub(crate) const SOURCES: &[Source] = &[
    Source {
        parameter: "cassuto-307g: min_ns",
        value: "974_000",
        figure: "Cassuto 2010 fig. 6: 780 s until the drop, 1.04 ms a write",
        claims: &[("cassuto/fig06-08", "regions of 50000: time of a write while the cache fills")],
    },
    Source {
        parameter: "media-cache: map_merge_every",
        value: "240",
        figure: "Aghayev 2015 fig. 5: every 240th write",
        claims: &[("aghayev/fig04-05", "the merge of the map")],
    },
    Source {
        parameter: "media-cache: map_merge_tracks",
        value: "26",
        figure: "Aghayev 2015 §4.3.1: 285 ms at the centre",
        claims: &[("aghayev/fig04-05", "the head stays at the centre"), ("aghayev/fig04-05", "the merge of the map")],
    },
    Source {
        parameter: "media-cache: out_of_band",
        value: "4",
        figure: "Aghayev 2015 §4.3: 25 ms, two and a half tracks",
        claims: &[
            ("aghayev/fig04-05", "Seagate: latency of a write"),
            ("aghayev/fig04-05", "with the head parked at the inner diameter"),
            ("aghayev/fig04-05", "writes at depth"),
            ("aghayev/fig07", "latency of writes of 4 to 26 KiB"),
            ("aghayev/fig07", "reading again the blocks written at depth 1"),
            ("aghayev/section6", "random writes at depth 31: time of 31"),
        ],
    },
    Source {
        parameter: "media-cache: half_track_payload",
        value: "856KiB",
        figure: "Aghayev 2015 fig. 7: steps at 28, 56 and 84 KiB",
        claims: &[("aghayev/fig07", "sizes at which the latency jumps")],
    },
    Source {
        parameter: "media-cache: collect_per_block",
        value: "320KiB",
        figure: "Aghayev 2015 fig. 11: 1,210 ms at the cache",
        claims: &[("aghayev/fig10-11", "collecting and persisting"), ("aghayev/fig10-11", "cleaning that band in all")],
    },
    Source {
        parameter: "seagate-st5000as0011: idle",
        value: "1.2s",
        figure: "Aghayev 2015 fig. 11: 1,242 ms",
        claims: &[("aghayev/fig10-11", "idle until cleaning starts")],
    },
    Source {
        parameter: "seagate-st5000as0011: map_entries",
        value: "182270",
        figure: "Aghayev 2015 table 2: 182,270 writes",
        claims: &[
            ("aghayev/table2", "seagate-st5000as0011: writes of 4 KiB at depth 31"),
            ("aghayev/table2", "seagate-st5000as0011: writes of 64 KiB at depth 31"),
            ("aghayev/table3", "seagate-st5000as0011: cache map size"),
        ],
    },
    Source {
        parameter: "seagate-st5000as0011: cache_size",
        value: "100GiB",
        figure: "Aghayev 2015 table 2: 22,800 writes",
        claims: &[("aghayev/table2", "seagate-st5000as0011: writes of 4 KiB at depth 1")],
    },
    Source {
        parameter: "media-cache: large_payload",
        value: "768KiB",
        figure: "Aghayev 2015 table 2: 137,496 and 67,830 writes, 16.78 GiB",
        claims: &[
            ("aghayev/table2", "seagate-st5000as0011: writes of 128 KiB"),
            ("aghayev/table2", "seagate-st5000as0011: writes of 256 KiB"),
            ("aghayev/table3", "seagate-st5000as0011: cache size observed"),
        ],
    },
    Source {
        parameter: "seagate-st5000as0011: cache_position",
        value: "od",
        figure: "Aghayev 2015 figs 8 and 9, table 3: at the outer diameter",
        claims: &[
            ("aghayev/fig08-09", "Seagate, the same"),
            ("aghayev/fig08-09", "how far in the head swings"),
            ("aghayev/table3", "seagate-st5000as0011: cache layout and location"),
        ],
    },
    Source {
        parameter: "seagate-st5000as0011: track_sectors_od",
        value: "3686",
        figure: "Aghayev 2015 §4.7: bands of 36 MiB at the outer diameter",
        claims: &[
            ("aghayev/fig15-16", "seagate-st5000as0011 at 0.0 TB"),
            ("aghayev/table3", "seagate-st5000as0011: band size, outer"),
        ],
    },
    Source {
        parameter: "seagate-st5000as0011: track_sectors_id",
        value: "1741",
        figure: "Aghayev 2015 §4.7: bands of 17 MiB at the inner diameter",
        claims: &[
            ("aghayev/fig15-16", "seagate-st5000as0011 at 5.0 TB"),
            ("aghayev/table3", "seagate-st5000as0011: band size, inner"),
        ],
    },
    Source {
        parameter: "cmr-5900: layout",
        value: "cylinder",
        figure: "Aghayev 2015 §4.9: conventional drives have vertical zones",
        claims: &[("aghayev/fig18-19", "cmr-5900: the head")],
    },
    Source {
        parameter: "seagate-st5000as0011: conventional_from",
        value: "0.47",
        figure: "Aghayev 2015 §4.9, fig. 19c: a serpentine layout at the middle diameter; the number is ours",
        claims: &[("aghayev/fig18-19", "strokes at the middle diameter")],
    },
    Source {
        parameter: "seagate-st5000as0011: stroke_tracks_od",
        value: "11_500",
        figure: "Aghayev 2015 §4.9: zones of 18 to 20 GiB, falling to 4 GiB",
        claims: &[
            ("aghayev/fig18-19", "size of a plateau's zone"),
            ("aghayev/table3", "seagate-st5000as0011: zone, outer"),
        ],
    },
    Source {
        parameter: "seagate-st5000as0011: stroke_tracks_id",
        value: "5_100",
        figure: "Aghayev 2015 §4.9: zones falling to 4 GiB",
        claims: &[("aghayev/table3", "seagate-st5000as0011: zone, inner")],
    },
    Source {
        parameter: "seagate-st5000as0011: layout",
        value: "horizontal",
        figure: "Aghayev 2015 §4.9, fig. 18: horizontal zones",
        claims: &[("aghayev/fig18-19", "plateaus of the first zones")],
    },
    Source {
        parameter: "seagate-st5000as0011: split",
        value: "0.5",
        figure: "Aghayev 2015 §4.9, fig. 19: shingled towards the middle",
        claims: &[("aghayev/fig18-19", "direction of the head within a zone")],
    },
    Source {
        parameter: "seagate-st8000as0011: map_entries",
        value: "227837",
        figure: "Aghayev 2015 table 3: 250,000 entries",
        claims: &[("aghayev/table3", "seagate-st8000as0011: cache map size")],
    },
    Source {
        parameter: "seagate-st8000as0011: cache_position",
        value: "od",
        figure: "Aghayev 2015 table 3: single, at the outer diameter",
        claims: &[("aghayev/table3", "seagate-st8000as0011: cache layout and location")],
    },
    Source {
        parameter: "seagate-st8000as0011: track_sectors_od",
        value: "4096",
        figure: "Aghayev 2015 table 3: bands of 40 MiB",
        claims: &[("aghayev/table3", "seagate-st8000as0011: band size, outer")],
    },
    Source {
        parameter: "seagate-st8000as0011: track_sectors_id",
        value: "1536",
        figure: "Aghayev 2015 table 3: bands of 15 MiB",
        claims: &[("aghayev/table3", "seagate-st8000as0011: band size, inner")],
    },
    Source {
        parameter: "seagate-st8000as0011: stroke_tracks_od",
        value: "21_400",
        figure: "Aghayev 2015 table 3: zones of 40 GiB",
        claims: &[("aghayev/table3", "seagate-st8000as0011: zone, outer")],
    },
    Source {
        parameter: "seagate-st8000as0011: stroke_tracks_id",
        value: "6_920",
        figure: "Aghayev 2015 table 3: zones falling to 5 GiB",
        claims: &[("aghayev/table3", "seagate-st8000as0011: zone, inner")],
    },
    Source {
        parameter: "emulated-smr-1: region_size",
        value: "40MiB",
        figure: "Aghayev 2015 table 1: bands of 40 MiB",
        claims: &[
            ("aghayev/fig15-16", "emulated-smr-1: size of a band"),
            ("aghayev/table3", "emulated-smr-1: band size"),
        ],
    },
    Source {
        parameter: "emulated-smr-1: cache_size",
        value: "38080MiB",
        figure: "Aghayev 2015 table 1: 37.2 GiB",
        claims: &[("aghayev/table3", "emulated-smr-1: cache size")],
    },
    Source {
        parameter: "emulated-smr-2: region_size",
        value: "25MiB",
        figure: "Aghayev 2015 table 1: bands of 25 MiB",
        claims: &[
            ("aghayev/fig15-16", "emulated-smr-2: size of a band"),
            ("aghayev/table3", "emulated-smr-2: band size"),
        ],
    },
    Source {
        parameter: "emulated-smr-2: cache_size",
        value: "10200MiB",
        figure: "Aghayev 2015 table 1: 9.98 GiB",
        claims: &[("aghayev/table3", "emulated-smr-2: cache size")],
    },
    Source {
        parameter: "emulated-smr-3: band_size",
        value: "20MiB",
        figure: "Aghayev 2015 table 1: bands of 20 MiB",
        claims: &[
            ("aghayev/fig15-16", "emulated-smr-3: size of a band"),
            ("aghayev/table3", "emulated-smr-3: band size"),
        ],
    },
    Source {
        parameter: "emulated-smr-3: log_bands",
        value: "20",
        figure: "Aghayev 2015 table 1: 37.2 GiB",
        claims: &[("aghayev/table3", "emulated-smr-3: cache size")],
    },
    Source {
        parameter: "seagate-st8000as0022: map_entries",
        value: "191172",
        figure: LATER,
        claims: &[("later-drives/cache-size", "seagate-st8000as0022")],
    },
    Source {
        parameter: "seagate-st8000as0022: cache_size",
        value: "28GiB",
        figure: LATER,
        claims: &[("later-drives/cache-size", "seagate-st8000as0022")],
    },
    Source {
        parameter: "seagate-st8000dm004: map_entries",
        value: "368795",
        figure: LATER,
        claims: &[("later-drives/cache-size", "seagate-st8000dm004")],
    },
    Source {
        parameter: "seagate-st8000dm004: cache_size",
        value: "48GiB",
        figure: LATER,
        claims: &[("later-drives/cache-size", "seagate-st8000dm004")],
    },
    Source {
        parameter: "seagate-st8000as0022: idle",
        value: "3h",
        figure: LATER,
        claims: &[("later-drives/draining", "seagate-st8000as0022: hours of idle")],
    },
    Source {
        parameter: "seagate-st8000as0022: idle_rest",
        value: "370ms",
        figure: LATER,
        claims: &[("later-drives/draining", "seagate-st8000as0022: hours to drain")],
    },
    Source {
        parameter: "seagate-st8000dm004: idle",
        value: "2h",
        figure: LATER,
        claims: &[("later-drives/draining", "seagate-st8000dm004: hours of idle")],
    },
    Source {
        parameter: "seagate-st8000dm004: band_tracks",
        value: "16",
        figure: LATER,
        claims: &[("later-drives/draining", "seagate-st8000dm004: hours to drain")],
    },
    Source {
        parameter: "seagate-st8000as0022: track_sectors_id",
        value: "2400",
        figure: LATER,
        claims: &[("later-drives/speed", "seagate-st8000as0022")],
    },
    Source {
        parameter: "seagate-st8000dm004: track_sectors_id",
        value: "2253",
        figure: LATER,
        claims: &[("later-drives/speed", "seagate-st8000dm004")],
    },
];

/// Changes the kind of the fitted claims of `experiment` to [`ClaimKind::Fitted`] and notes the parameters they set.
pub(crate) fn mark(experiment: &str, report: &mut Report) {
    for claim in &mut report.claims {
        let by: Vec<_> = SOURCES.iter().filter(|source| source.sets(experiment, &claim.claim)).collect();
        if by.is_empty() {
            continue;
        }
        claim.kind = ClaimKind::Fitted;
        let told: Vec<_> =
            by.iter().map(|source| format!("{} = {} ({})", source.parameter, source.value, source.figure)).collect();
        claim.fitted_by = Some(told.join("; "));
    }
}

impl Source {
    fn sets(&self, experiment: &str, claim: &str) -> bool {
        self.claims.iter().any(|(of, words)| *of == experiment && claim.contains(words))
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the invariants. Method: the built-in profiles, the layers' defaults, and the results kept in the
    //! documentation.

    use std::path::Path;

    use super::*;
    use crate::page::kept;
    use crate::results::Results;

    fn pages() -> Vec<Results> {
        kept(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")).expect("the results can be read")
    }

    /// Returns whether the place named by the parameter has the entry's value.
    fn stands(source: &Source) -> bool {
        let (place, key) = source.parameter.split_once(": ").expect("place and key");
        if let Some((_, text)) = imbrex_disk::profile::BUILT_IN.iter().find(|(name, _)| *name == place) {
            return text.lines().any(|line| {
                let line = line.split('#').next().expect("a line has a beginning");
                let found = line.split_once('=').map(|(found, value)| (found.trim(), value.trim().trim_matches('"')));
                found == Some((key, source.value))
            });
        }
        let layers = imbrex_layer::registry::all();
        let layer = layers.iter().find(|layer| layer.name == place).expect("a profile or a layer");
        layer.parameters.iter().any(|parameter| parameter.key == key && parameter.default == source.value)
    }

    #[test]
    fn every_parameter_stands_where_it_is_said_to() {
        for source in SOURCES {
            assert!(stands(source), "{} = {}", source.parameter, source.value);
        }
    }

    #[test]
    fn every_claim_that_a_parameter_was_set_by_is_on_the_page_and_fitted() {
        let pages = pages();
        for source in SOURCES {
            for (experiment, words) in source.claims {
                let results = pages.iter().find(|results| results.experiment == *experiment);
                let Some(results) = results else { panic!("{experiment} has no results") };
                let found: Vec<_> = results.claims.iter().filter(|claim| claim.claim.contains(words)).collect();
                assert!(!found.is_empty(), "{experiment} claims nothing of '{words}'");
                for claim in found {
                    assert_eq!(claim.kind, ClaimKind::Fitted, "{experiment}: {}", claim.claim);
                }
            }
        }
    }

    /// Returns the numbers of a text with their units: `182,270`, `25 ms`.
    fn figures(text: &str) -> Vec<String> {
        const UNITS: [&str; 5] = ["ms", "s", "MiB", "GiB", "h"];
        let words: Vec<&str> =
            text.split_whitespace().map(|word| word.trim_matches([',', '.', ';', ':', '(', ')'])).collect();
        let mut found = Vec::new();
        for (index, word) in words.iter().enumerate() {
            let plain = word.replace(',', "");
            let Ok(value) = plain.parse::<f64>() else { continue };
            match words.get(index + 1).filter(|unit| UNITS.contains(unit)) {
                Some(unit) => found.push(format!("{plain} {unit}")),
                None if value >= 3000.0 => found.push(plain),
                None => {}
            }
        }
        found
    }

    #[test]
    fn no_claim_that_counts_has_a_number_that_set_a_parameter() {
        assert_eq!(figures("table 2: 182,270 writes of 1.5 s at 16.78 GiB"), ["182270", "1.5 s", "16.78 GiB"]);
        for results in pages() {
            let paper = results.experiment.split('/').next().expect("a name has a paper");
            let of_paper =
                |source: &&Source| source.claims.iter().any(|(name, _)| name.split('/').next() == Some(paper));
            for source in SOURCES.iter().filter(of_paper) {
                let set_by = figures(source.figure);
                for claim in results.claims.iter().filter(|claim| claim.kind.is_counted()) {
                    let shared: Vec<_> =
                        figures(&claim.theirs).into_iter().filter(|one| set_by.contains(one)).collect();
                    assert!(
                        shared.is_empty(),
                        "{}: {}: {shared:?} set {}",
                        results.experiment,
                        claim.claim,
                        source.parameter
                    );
                }
            }
        }
    }
}
