//! Turns a verdict into advice to the drive's user, in plain words: the size of bursts, the idle time that the drive
//! needs, and uses that it is unfit for (Aghayev 2015 §6).

use crate::verdict::Verdict;
use crate::words::{count, size};

fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 5400.0 => format!("{:.1} hours", seconds / 3600.0),
        seconds if seconds >= 90.0 => format!("{:.0} minutes", seconds / 60.0),
        seconds => format!("{seconds:.1} seconds"),
    }
}

/// Returns the advice that follows from `verdict`.
pub(crate) fn advise(verdict: &Verdict) -> Vec<String> {
    match verdict.word("type") {
        Some("shingled") => advise_shingled(verdict),
        Some("interlaced") => advise_interlaced(verdict),
        Some("conventional") => vec![
            "Nothing in its timing says that writes are put off: use it as any conventional drive, in a RAID and under ZFS \
             too."
                .into(),
        ],
        _ => vec![
            "The tests that ran do not tell whether writes are put off. Before it goes into a RAID, run all tests while it is \
             empty: those that write destroy everything on it. Switch its volatile cache off for that."
                .into(),
        ],
    }
}

fn advise_interlaced(verdict: &Verdict) -> Vec<String> {
    let cost = match verdict.word("bottom_writes") {
        Some("buffered") => {
            "Scattered writes to half of its addresses go to a buffer, and are written to their places later, each with the \
             tracks beside it: bursts are quick, and what lasts longer than the buffer is slow. The tests do not tell how \
             much it takes."
        }
        _ => {
            "A scattered write to half of its addresses costs several rotations, since the tracks beside are read and written \
             as well; one to the other half costs no more than on a conventional drive. It has no cache that fills, so no \
             write takes seconds."
        }
    };
    let hot = match verdict.word("hot_tracks") {
        Some("moved") => "It moves data that are written often to where writing is cheap: repeated work gets faster.",
        _ => "Where a partition or a file lies decides how fast it is written; nothing in the drive evens that out.",
    };
    let mut advice = vec![cost.to_string()];
    if verdict.word("hot_tracks").is_some() {
        advice.push(hot.into());
    }
    advice.push(
        "It is good for archives, backups and whatever is written in long runs. In a RAID it slows down every array that is \
         written in small pieces: measure one before relying on it."
            .into(),
    );
    advice
}

fn advise_shingled(verdict: &Verdict) -> Vec<String> {
    let mut advice = Vec::new();
    if let Some(burst) = burst(verdict) {
        advice.push(burst);
    }
    advice.push(rest(verdict));
    advice.push(
        "Keep it out of a RAID with parity or mirrors, and out of a ZFS pool: a rebuild or a resilver writes for longer than \
         its cache lasts, and then single writes take so long that the array may drop the drive."
            .into(),
    );
    advice.push(match verdict.word("mapping") {
        Some("static") => "It is good for archives and backups that are written in order and seldom changed: with the \
             volatile cache on, long sequential writes go to their place and cost no cache."
            .into(),
        _ => "It is good for archives and backups that are written in order and seldom changed.".to_string(),
    });
    advice
}

/// Returns the advice about how much the drive accepts at full speed, if the size of its cache is known.
fn burst(verdict: &Verdict) -> Option<String> {
    let Some(bytes) = verdict.number("cache_bytes") else { return burst_of_file(verdict) };
    // The factor is a margin, for a cache that is not quite empty.
    let safe = format!("It takes bursts of up to {} of scattered writes at full speed", size(bytes * 0.8));
    let writes = [verdict.number("map_entries"), verdict.number("cache_writes_4k_depth_1")];
    let fewest = writes.iter().flatten().copied().fold(f64::MAX, f64::min);
    let singly = match verdict.number("map_entries") {
        Some(entries) => format!(", and of no more than {} writes, however small", count(entries * 0.8)),
        None => String::new(),
    };
    let synchronous = match verdict.number("cache_writes_4k_depth_1") {
        Some(singly) if verdict.number("map_entries").is_some() && singly <= fewest => {
            format!("; {} if each waits for the one before", count(singly * 0.8))
        }
        _ => String::new(),
    };
    Some(format!("{safe}{singly}{synchronous}. Beyond that every write may wait for cleaning, seconds at a time."))
}

/// Returns the advice about the burst that a file on the drive could take.
fn burst_of_file(verdict: &Verdict) -> Option<String> {
    let burst = verdict.property("burst_bytes")?;
    let bytes = size(verdict.number("burst_bytes")?);
    let after = match (verdict.property("recovery"), verdict.number("recovery")) {
        (Some(recovery), Some(seconds)) if recovery.at_least => {
            format!(" It was slow still after {} of rest.", time(seconds))
        }
        (_, Some(seconds)) => format!(" After {} of rest, an eighth of that went quickly again.", time(seconds)),
        _ => String::new(),
    };
    Some(match burst.at_least {
        true => format!("It took a burst of {bytes} of scattered writes at full speed; its limit lies higher."),
        false => format!("It took {bytes} of scattered writes at full speed; then writes waited for cleaning.{after}"),
    })
}

/// Returns the advice about the idle time that the drive needs for cleaning.
fn rest(verdict: &Verdict) -> String {
    match verdict.word("cleaning") {
        Some("lazy") => "It does not clean when idle: once full, its cache stays full, and rest does not help.".into(),
        Some("aggressive" | "late") => {
            let begins = match verdict.number("idle_trigger") {
                Some(seconds) => format!("It cleans when left alone for {}", time(seconds)),
                None => "It cleans when left alone".into(),
            };
            let Some(each) = verdict.number("cleaning_time") else { return format!("{begins}.") };
            let bands =
                verdict.number("cache_bytes").zip(verdict.number("band_bytes_md")).map(|(cache, band)| cache / band);
            let whole = match bands {
                Some(bands) => format!(
                    "; a cache filled from few places is empty after {} or more, and one filled with scattered small writes \
                     takes that long for each {} places written",
                    time(bands * each),
                    count(bands.max(1.0))
                ),
                None => String::new(),
            };
            format!(
                "{begins}, and needs {} for every band touched{whole}. Leave it powered and idle after a burst.",
                time(each)
            )
        }
        _ => "Whether it cleans when left alone is not known: give it hours of rest after a burst.".into(),
    }
}
