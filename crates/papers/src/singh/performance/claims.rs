//! The sentences of §5.2 on its figures. We read *similar* and *equal* as less than 1.25 times apart, *better* as at
//! least 1.25 times, and *significantly lower* as at most a half, as for the claims of all papers.

use super::super::super::{ClaimKind, Report};
use super::{Measured, Row};

/// Indices of the systems in a row.
const CAVEAT: usize = 0;
const STRICT: usize = 1;
const EXT4: usize = 2;
const NILFS2: usize = 3;
const CAVEAT_UNCACHED: usize = 4;
const STRICT_UNCACHED: usize = 5;
const EXT4_WITHOUT_READING_AHEAD: usize = 8;

fn is_near(ratio: f64) -> bool {
    (1.0 / 1.25 < ratio) && (ratio < 1.25)
}

/// Returns a figure of the system `one` divided by that of `other`, or `None` if one of them was not run.
fn over(row: &Row, phase: usize, one: usize, other: usize, value: fn(&Measured) -> f64) -> Option<f64> {
    let of = |system: usize| row[system].as_ref().map(|phases| value(&phases[phase]));
    Some(of(one)? / of(other)?)
}

fn shown(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "not run".into(), |ratio| format!("{ratio:.2}"))
}

fn all(ratios: &[Option<f64>], holds: impl Fn(f64) -> bool) -> Option<bool> {
    let known: Option<Vec<f64>> = ratios.iter().copied().collect();
    known.map(|ratios| ratios.into_iter().all(holds))
}

pub(super) fn judge(report: &mut Report, rows: &[Row]) {
    large_files(report, rows);
    small_files(report, &rows[2]);
    postmark(report, &rows[3]);
    compiling(report, &rows[4]);
    without_cache(report, rows);
    without_reading_ahead(report, rows);
}

/// Adds remarks on the effect of the write cache: the ratios of Caveat SMRfs to Strict-Append SMRfs on drives without
/// one.
fn without_cache(report: &mut Report, rows: &[Row]) {
    let over = |row: usize, phase| {
        shown(over(&rows[row], phase, CAVEAT_UNCACHED, STRICT_UNCACHED, |found| found.disk_ns as f64))
    };
    report.remarks.push(format!(
        "Without a write cache, a file that is written directly behind the file before waits for a rotation, on both \
         kinds of disk. The disk time of Caveat SMRfs, divided by that of Strict-Append SMRfs, both without a write \
         cache: making small files {}, PostMark's making of files {}, PostMark's transactions {}, unpacking {}, \
         compiling {}.",
        over(2, 0),
        over(3, 0),
        over(3, 1),
        over(4, 0),
        over(4, 1),
    ));
    report.remarks.push(
        "ext4 and NILFS2 write files at times that they choose, many at once, and at a sync. Both SMRfs write a file when \
         it is closed, as those of Singh 2014 do."
            .into(),
    );
}

/// Adds a remark on a thread of newer kernels. It was found in the results, so no claim is judged by its variant.
fn without_reading_ahead(report: &mut Report, rows: &[Row]) {
    let ratio =
        |row: usize, phase| shown(over(&rows[row], phase, CAVEAT, EXT4_WITHOUT_READING_AHEAD, Measured::mb_per_s));
    report.remarks.push(format!(
        "ext4 of Linux 6.12 reads the bitmaps of blocks ahead, for some time after each mount. On a new file system of 2 \
         TB this disturbs the first reads of a file in order. The variant is mounted without it \
         (`no_prefetch_block_bitmaps`), as were file systems of the paper's time. The throughput of Caveat SMRfs over that \
         of this variant, reading in order and at random: {}, {} with 100 MB, and {}, {} with 500 MB. The variant was added \
         after the first run, so no claim is judged by it.",
        ratio(0, 1),
        ratio(0, 3),
        ratio(1, 1),
        ratio(1, 3),
    ));
}

fn large_files(report: &mut Report, rows: &[Row]) {
    for (row, size) in rows.iter().zip(["100 MB", "500 MB"]) {
        let ratio = |phase, other| over(row, phase, CAVEAT, other, Measured::mb_per_s);
        let reads = [ratio(1, EXT4), ratio(3, EXT4), ratio(1, STRICT), ratio(3, STRICT)];
        report.claim(
            ClaimKind::Shape,
            &format!("reading {size}: Caveat SMRfs over ext4 in order and at random, and over Strict-Append"),
            "similar",
            reads.map(shown).join(", "),
            all(&reads, is_near),
        );
        let nilfs = [ratio(1, NILFS2), ratio(3, NILFS2)];
        report.claim(
            ClaimKind::Shape,
            &format!("reading {size}: Caveat SMRfs over NILFS2, in order and at random"),
            "similar",
            nilfs.map(shown).join(", "),
            all(&nilfs, is_near),
        );
        let writes = [ratio(0, EXT4), ratio(2, EXT4), ratio(0, NILFS2), ratio(2, NILFS2)];
        report.claim(
            ClaimKind::NotReproducible,
            &format!("writing {size}: Caveat SMRfs over ext4 and over NILFS2, each in order and at random"),
            "significantly lower; \"most probable\" for its implementation in user space, which takes no time of the disk",
            writes.map(shown).join(", "),
            None,
        );
    }
}

fn small_files(report: &mut Report, row: &Row) {
    let against = |other| [0, 1].map(|phase| over(row, phase, CAVEAT, other, Measured::rate));
    let strict = against(STRICT);
    report.claim(
        ClaimKind::Shape,
        "small files made and read: Caveat SMRfs over Strict-Append SMRfs",
        "better",
        strict.map(shown).join(", "),
        all(&strict, |ratio| ratio >= 1.25),
    );
    let ext4 = against(EXT4);
    report.claim(
        ClaimKind::Shape,
        "small files made and read: Caveat SMRfs over ext4",
        "similar",
        ext4.map(shown).join(", "),
        all(&ext4, is_near),
    );
    let nilfs = against(NILFS2);
    report.claim(
        ClaimKind::Shape,
        "small files made and read: Caveat SMRfs over NILFS2",
        "better",
        nilfs.map(shown).join(", "),
        all(&nilfs, |ratio| ratio >= 1.25),
    );
}

fn postmark(report: &mut Report, row: &Row) {
    let ratios = [0, 1].map(|phase| [STRICT, EXT4].map(|other| over(row, phase, CAVEAT, other, Measured::rate)));
    let ratios = ratios.concat();
    report.claim(
        ClaimKind::Shape,
        "PostMark, files made and transactions: Caveat SMRfs over Strict-Append SMRfs, and over ext4",
        "equal in all parameters",
        ratios.iter().map(|ratio| shown(*ratio)).collect::<Vec<_>>().join(", "),
        all(&ratios, is_near),
    );
    let nilfs = [0, 1].map(|phase| over(row, phase, CAVEAT, NILFS2, Measured::rate));
    report.claim(
        ClaimKind::Shape,
        "PostMark, files made and transactions: Caveat SMRfs over NILFS2",
        "equal in all parameters",
        nilfs.map(shown).join(", "),
        all(&nilfs, is_near),
    );
}

fn compiling(report: &mut Report, row: &Row) {
    let ratio = over(row, 1, CAVEAT, STRICT, |found| found.disk_ns as f64);
    report.claim(
        ClaimKind::Shape,
        "compiling: time of Caveat SMRfs over Strict-Append SMRfs",
        "the same",
        shown(ratio),
        all(&[ratio], is_near),
    );
    let ratio = over(row, 1, EXT4, NILFS2, |found| found.disk_ns as f64);
    report.claim(
        ClaimKind::Shape,
        "compiling: time of ext4 over NILFS2",
        "equally good",
        shown(ratio),
        all(&[ratio], is_near),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_on_both_sides() {
        assert!(is_near(1.0) && is_near(1.24) && is_near(0.81) && !is_near(1.25) && !is_near(0.79));
        assert_eq!(all(&[Some(1.0), None], is_near), None);
        assert_eq!(all(&[Some(1.0), Some(2.0)], is_near), Some(false));
        assert_eq!(all(&[Some(1.0), Some(1.1)], is_near), Some(true));
    }

    #[test]
    fn what_was_not_run_is_not_judged() {
        let phase = |disk_ns| Measured { name: "p".into(), done: 10, bytes: 1000, disk_ns };
        let row: Row = vec![Some(vec![phase(10)]), Some(vec![phase(20)]), None, None];
        assert_eq!(over(&row, 0, CAVEAT, STRICT, Measured::rate), Some(2.0));
        assert_eq!(over(&row, 0, CAVEAT, EXT4, Measured::rate), None);
    }
}
