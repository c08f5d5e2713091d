//! Burst lengths and pause lengths of three public traces, from which the arrivals of stand-ins are drawn.
//!
//! A request that comes at least 10 ms after its predecessor begins a burst: the drive of Hajkazemi 2019 rotates once
//! in that time. The values of a trace are sorted and cut into groups. From small to large values, 36 groups have 2.5 %
//! of the values each, nine have 1 %, and ten have 0.1 %. A group is represented by its mean. A test recomputes the
//! tables if the traces lie beside the repository.
//!
//! Invariants:
//! 1. Both lists of a table are ascending, and their weighted means are those of the trace.

/// Number of groups in a table.
pub(super) const GROUPS: usize = 55;

/// Burst lengths and pause lengths of a trace.
#[derive(Debug)]
pub(super) struct Table {
    /// Number of requests in a burst: the mean of each group, in ascending order. The groups divide all bursts of the
    /// trace by length. The first 36 groups have 2.5 % of the bursts each, the next 9 have 1 %, the last 10 have 0.1 %.
    pub burst_requests: [f64; GROUPS],
    /// Pause from the last request of a burst to the first of the next, in microseconds: the mean of each group, in
    /// ascending order. The groups divide all pauses of the trace by length. The first 36 groups have 2.5 % of the
    /// pauses each, the next 9 have 1 %, the last 10 have 0.1 %.
    pub pause_us: [f64; GROUPS],
}

/// Returns the share of a group among all values.
pub(super) const fn weight(group: usize) -> f64 {
    match group {
        0..36 => 0.025,
        36..45 => 0.01,
        _ => 0.001,
    }
}

/// `cloudPhysicsIO.vscsi`: a virtual machine from the collection that the paper sampled, 113,872 requests in two hours.
#[rustfmt::skip]
pub(super) const CLOUDPHYSICS: Table = Table {
    burst_requests: [
        1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00,
        1.00, 1.00, 1.00, 1.00, 1.57, 2.00, 2.00, 2.00, 2.00, 2.25, 3.00, 3.00, 3.41, 4.14, 5.30, 6.59, 8.70,
        11.21, 13.81, 16.29, 19.01, 20.30, 22.94, 27.81, 34.40, 46.29, 65.73, 83.53, 90.39, 102.1, 112.6, 122.3,
        133.4, 155.2, 187.2, 261.8, 532.1,
    ],
    pause_us: [
        10_176.0, 10_587.0, 11_050.0, 11_592.0, 12_197.0, 12_833.0, 13_587.0, 14_339.0, 15_120.0, 15_831.0,
        16_795.0, 18_172.0, 20_148.0, 22_330.0, 25_805.0, 31_350.0, 43_491.0, 66_208.0, 99_628.0, 135_674.0,
        176_279.0, 221_405.0, 247_550.0, 282_861.0, 340_232.0, 413_456.0, 507_137.0, 616_820.0, 736_083.0,
        852_594.0, 953_862.0, 999_286.0, 999_963.0, 999_982.0, 999_994.0, 1_000_005.0, 1_000_014.0, 1_000_019.0,
        1_000_025.0, 1_000_034.0, 1_000_045.0, 1_000_065.0, 1_004_765.0, 1_342_871.0, 1_909_268.0, 1_999_990.0,
        1_999_999.0, 2_000_008.0, 2_000_016.0, 2_000_034.0, 2_000_065.0, 2_054_364.0, 2_524_663.0, 2_973_826.0,
        3_335_209.0,
    ],
};

/// `blkreplay-linux-mysql.load`: blkreplay's trace of a MySQL server, 80,794 requests in an hour.
#[rustfmt::skip]
pub(super) const MYSQL: Table = Table {
    burst_requests: [
        1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00,
        1.73, 2.00, 2.00, 2.00, 2.18, 3.00, 3.37, 4.00, 5.16, 6.50, 8.65, 10.74, 11.00, 11.87, 12.00, 12.30, 13.00,
        13.65, 14.65, 15.43, 16.64, 18.33, 20.88, 24.93, 31.00, 37.05, 48.78, 57.69, 60.42, 61.83, 63.62, 65.83,
        68.17, 71.46, 74.08, 77.92, 102.5,
    ],
    pause_us: [
        10_449.0, 11_396.0, 12_234.0, 13_299.0, 14_651.0, 16_288.0, 17_707.0, 19_107.0, 20_446.0, 21_649.0,
        22_854.0, 24_122.0, 25_462.0, 27_057.0, 28_935.0, 31_288.0, 34_963.0, 40_340.0, 48_131.0, 58_259.0,
        69_565.0, 82_354.0, 100_501.0, 125_144.0, 153_818.0, 183_325.0, 217_193.0, 255_411.0, 301_733.0, 355_852.0,
        411_709.0, 475_723.0, 546_216.0, 631_815.0, 730_074.0, 838_609.0, 922_232.0, 980_584.0, 1_041_357.0,
        1_113_024.0, 1_197_159.0, 1_286_239.0, 1_433_503.0, 1_617_135.0, 1_868_591.0, 2_093_743.0, 2_140_495.0,
        2_205_779.0, 2_282_236.0, 2_352_294.0, 2_428_279.0, 2_555_216.0, 2_697_028.0, 2_900_992.0, 3_504_298.0,
    ],
};

/// `blkreplay-windows-mssql.load`: blkreplay's trace of an SQL Server, 42,976 requests in 51 minutes.
#[rustfmt::skip]
pub(super) const MSSQL: Table = Table {
    burst_requests: [
        1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.00, 1.42, 2.00, 2.00, 2.00, 2.00, 2.89, 3.00, 3.00, 3.20, 4.00,
        4.00, 4.00, 4.20, 5.42, 7.81, 11.31, 15.28, 17.19, 18.00, 18.00, 18.00, 18.00, 18.00, 18.00, 18.00, 18.00,
        18.17, 20.53, 27.50, 29.00, 29.00, 35.00, 36.00, 48.21, 74.87, 142.6, 386.0, 706.5, 911.0, 963.0, 1091.0,
        1095.0, 1182.0, 1519.0, 1801.0, 1984.0, 2729.5,
    ],
    pause_us: [
        10_155.0, 10_457.0, 10_763.0, 11_073.0, 11_359.0, 11_640.0, 12_084.0, 12_613.0, 13_174.0, 13_724.0,
        14_529.0, 15_448.0, 16_441.0, 17_274.0, 18_261.0, 19_198.0, 20_446.0, 25_505.0, 47_644.0, 121_610.0,
        268_507.0, 457_376.0, 603_455.0, 762_974.0, 961_550.0, 1_178_583.0, 1_468_840.0, 1_730_988.0, 1_949_217.0,
        2_229_252.0, 2_622_479.0, 2_991_045.0, 3_301_316.0, 3_852_358.0, 4_520_593.0, 5_043_520.0, 5_096_808.0,
        5_138_787.0, 5_166_644.0, 5_308_044.0, 7_003_034.0, 8_452_940.0, 12_055_858.0, 18_815_311.0, 23_847_620.0,
        29_596_783.0, 30_159_594.0, 30_961_693.0, 31_242_900.0, 32_981_003.0, 33_656_135.0, 36_894_808.0,
        39_127_608.0, 39_896_824.0, 43_715_859.0,
    ],
};

#[cfg(test)]
mod tests {
    //! Goal: invariant 1, and tables that match the traces. Method: the tables recomputed from the traces, if these lie
    //! beside the repository.

    use std::fs::File;
    use std::path::Path;

    use imbrex_units::SimTime;

    use super::super::pace::PAUSE_NS_MIN;
    use super::*;
    use crate::{Input, TraceOptions, When, open};

    const TRACES: [(&str, Table); 3] = [
        ("cloudPhysicsIO.vscsi", CLOUDPHYSICS),
        ("blkreplay-linux-mysql.load.gz", MYSQL),
        ("blkreplay-windows-mssql.load.gz", MSSQL),
    ];

    /// Returns the times of the requests, ascending. Prints a message and returns `None` if the trace is missing.
    fn times(name: &str) -> Option<Vec<u64>> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces").join(name);
        let Ok(file) = File::open(&path) else {
            eprintln!("skipped: {} is not there", path.display());
            return None;
        };
        let mut opened = open(Input::file(name, file), &TraceOptions::default()).expect("a sound trace");
        let mut times = Vec::new();
        while let Some(request) = opened.source.next(SimTime::ZERO).expect("a sound trace") {
            let When::At(time) = request.when else { panic!("a trace has times") };
            times.push(time.0);
        }
        times.sort_unstable();
        Some(times)
    }

    /// Returns the means of the groups of sorted values.
    fn means(mut values: Vec<u64>) -> Vec<f64> {
        values.sort_unstable();
        let at = |share: f64| ((share * values.len() as f64 + 1e-6) as usize).min(values.len() - 1);
        let mut from = 0.0;
        let mean = |group: usize| {
            let end = from + weight(group);
            let (first, last) = (at(from), if end > 0.9999 { values.len() } else { at(end).max(at(from) + 1) });
            from = end;
            let part = &values[first..last];
            part.iter().sum::<u64>() as f64 / part.len() as f64
        };
        (0..GROUPS).map(mean).collect()
    }

    #[test]
    fn the_tables_rise() {
        for (name, table) in &TRACES {
            assert!(table.burst_requests.is_sorted() && table.pause_us.is_sorted(), "{name}");
        }
    }

    #[test]
    fn the_tables_are_made_of_the_traces() {
        for (name, table) in &TRACES {
            let Some(times) = times(name) else { continue };
            let (mut bursts, mut pauses, mut burst) = (Vec::new(), Vec::new(), 1u64);
            for pair in times.windows(2) {
                let gap_ns = pair[1] - pair[0];
                if gap_ns as f64 >= PAUSE_NS_MIN {
                    bursts.push(std::mem::replace(&mut burst, 1));
                    pauses.push(gap_ns);
                } else {
                    burst += 1;
                }
            }
            bursts.push(burst);
            let is_near = |made: &f64, kept: &f64| (made / kept - 1.0).abs() < 0.01;
            let (bursts, pauses) = (means(bursts), means(pauses));
            assert!(
                bursts.iter().zip(&table.burst_requests).all(|(made, kept)| is_near(made, kept)),
                "{name}: {bursts:?}"
            );
            let pauses: Vec<f64> = pauses.iter().map(|pause_ns| pause_ns / 1e3).collect();
            assert!(pauses.iter().zip(&table.pause_us).all(|(made, kept)| is_near(made, kept)), "{name}: {pauses:?}");
        }
    }
}
