//! The options of `imbrex fs mount -o`.

use std::path::PathBuf;

use imbrex::Failure;
use imbrex_fuse::FLAGS;

use crate::args::size::size;
use imbrex_units::names::suggestion;

/// Names of the options that are passed to the store.
const STORE: [&str; 8] =
    ["fit", "extents", "cleaner", "clean_below", "open_bands", "open_groups", "kept_back", "hot_files"];
/// Upper bounds of the queue options.
const QUEUE_DEPTH_MAX: usize = 1024;
const QUEUE_DEADLINE_MS_MAX: u64 = 60_000;
/// Options of fstab and mount(8) that have no effect here.
const IGNORED: [&str; 9] =
    ["defaults", "default_permissions", "auto", "noauto", "user", "nouser", "nofail", "_netdev", "relatime"];

/// Options that the kernel reports for a mount, and that mount(8) passes back on a remount.
const TOLD: [&str; 6] = ["user_id", "group_id", "rootmode", "subtype", "max_read", "user"];

/// The mount options that the user gave with `-o`, parsed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Options {
    /// Whether the file system is mounted read-only (`ro`).
    pub read_only: bool,
    /// Whether the flags of an existing mount at the directory are changed, instead of a new mount (`remount`).
    pub remount: bool,
    /// Whether users other than the one who mounts get access (`allow_other`).
    pub allow_other: bool,
    /// Name of the source in the mount table (`fsname=`); `None` for the default.
    pub source: Option<String>,
    /// Whether emulated drives answer as slowly as they would (`time=real`), instead of at once (`time=none`, the
    /// default).
    pub is_paced: bool,
    /// Maximum number of bytes of file data in memory that are not written to the drives yet (`cache=`); `None` for the
    /// default.
    pub cache_bytes: Option<u64>,
    /// Maximum number of operations that a drive is given at a time, 1 to 1024 (`queue_depth=`); `None` for the
    /// default.
    pub queue_depth: Option<usize>,
    /// Time in nanoseconds after which a write that waits for reads takes turns with them (`queue_deadline=`, there in
    /// milliseconds); `None` for the default.
    pub queue_deadline_ns: Option<u64>,
    /// Address (`HOST:PORT`) at which the figures are served over HTTP (`window=`); `None` for no HTTP.
    pub window: Option<String>,
    /// Path of a Unix socket that gives the figures as text to each client (`stats=`); `None` for no socket.
    pub stats: Option<PathBuf>,
    /// Whether the directory may have contents, which are hidden during the mount (`nonempty`). Without it, such a
    /// directory is refused.
    pub non_empty: bool,
    /// Options that are passed to the store of the file system, as pairs of key and value, such as `fit` and `worst`.
    pub store: Vec<(String, String)>,
    /// Flags of mount(8), such as `noexec`, in the order in which they were given; without those that have no effect.
    pub flags: Vec<String>,
}

impl Options {
    /// Returns the names of the given options that only a new mount applies, so that a remount leaves them as they are.
    pub(crate) fn of_a_new_mount(&self) -> Vec<&str> {
        let given = [
            ("allow_other", self.allow_other),
            ("time", self.is_paced),
            ("cache", self.cache_bytes.is_some()),
            ("queue_depth", self.queue_depth.is_some()),
            ("queue_deadline", self.queue_deadline_ns.is_some()),
            ("window", self.window.is_some()),
            ("stats", self.stats.is_some()),
        ];
        let given = given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name);
        given.chain(self.store.iter().map(|(name, _)| name.as_str())).collect()
    }
}

/// Parses the options.
pub(super) fn parse(words: &[String]) -> Result<Options, Failure> {
    let mut options = Options::default();
    for word in words.iter().filter(|word| !word.is_empty()) {
        let (key, value) = word.split_once('=').map_or((word.as_str(), None), |(key, value)| (key, Some(value)));
        take(&mut options, key, value, word)?;
    }
    Ok(options)
}

fn take(options: &mut Options, key: &str, value: Option<&str>, word: &str) -> Result<(), Failure> {
    let wrong = |reason: String| Failure::usage(format!("-o {word}: {reason}"));
    match (key, value) {
        ("ro", None) => options.read_only = true,
        ("rw", None) => options.read_only = false,
        ("remount", None) => options.remount = true,
        ("allow_other", None) => options.allow_other = true,
        ("nonempty", None) => options.non_empty = true,
        ("fsname", Some(name)) => options.source = Some(name.into()),
        ("time", Some("none")) => options.is_paced = false,
        ("time", Some("real")) => options.is_paced = true,
        ("time", _) => return Err(wrong("time is none or real".into())),
        ("cache", Some(bytes)) => options.cache_bytes = Some(size(bytes).map_err(|error| wrong(error.to_string()))?),
        ("queue_depth", Some(text)) => {
            let depth = text.parse().ok().filter(|depth| (1..=QUEUE_DEPTH_MAX).contains(depth));
            options.queue_depth =
                Some(depth.ok_or_else(|| wrong(format!("queue_depth is a number from 1 to {QUEUE_DEPTH_MAX}")))?);
        }
        ("queue_deadline", Some(text)) => {
            let deadline_ms: Option<u64> = text.parse().ok().filter(|ms| *ms <= QUEUE_DEADLINE_MS_MAX);
            let reason = || wrong(format!("queue_deadline is in milliseconds, from 0 to {QUEUE_DEADLINE_MS_MAX}"));
            options.queue_deadline_ns = Some(deadline_ms.ok_or_else(reason)? * 1_000_000);
        }
        ("window", Some(address)) => options.window = Some(address.into()),
        ("stats", Some(path)) => options.stats = Some(path.into()),
        (key, Some(value)) if STORE.contains(&key) => options.store.push((key.into(), value.into())),
        (key, None) if FLAGS.contains(&key) => options.flags.push(key.into()),
        (key, None) if IGNORED.contains(&key) => {}
        (key, Some(_)) if TOLD.contains(&key) => {}
        (key, _) if key.starts_with("x-") => {}
        (key, _) => {
            let names = [
                "allow_other",
                "remount",
                "fsname",
                "time",
                "cache",
                "queue_depth",
                "queue_deadline",
                "window",
                "stats",
            ];
            let meant = suggestion(key, names.into_iter().chain(STORE.iter().copied()).chain(FLAGS.iter().copied()));
            let known = "ro, rw, remount, allow_other, nonempty, fsname=, time=, cache=, queue_depth=, queue_deadline=, window=, stats=";
            return Err(wrong(format!(
                "there is no such option{meant}; there are {known}, {}=, {}",
                STORE.join("=, "),
                FLAGS.join(", ")
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Result<Options, Failure> {
        parse(&words.split(',').map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn each_word_does_what_it_says() {
        let options = parsed(
            "ro,allow_other,fsname=disk,time=real,cache=8MiB,queue_depth=4,queue_deadline=250,window=[::1]:80,stats=/run/s,fit=worst,suid,defaults,x-systemd.automount,",
        );
        let expected = Options {
            read_only: true,
            remount: false,
            allow_other: true,
            source: Some("disk".into()),
            is_paced: true,
            cache_bytes: Some(8 << 20),
            queue_depth: Some(4),
            queue_deadline_ns: Some(250_000_000),
            window: Some("[::1]:80".into()),
            stats: Some("/run/s".into()),
            non_empty: false,
            store: vec![("fit".into(), "worst".into())],
            flags: vec!["suid".into()],
        };
        let options = options.expect("all are known");
        assert_eq!(options, expected);
        let of_a_new_mount =
            ["allow_other", "time", "cache", "queue_depth", "queue_deadline", "window", "stats", "fit"];
        assert_eq!(options.of_a_new_mount(), of_a_new_mount);
        assert!(parsed("remount,ro,noexec,defaults").expect("all are known").of_a_new_mount().is_empty());
    }

    #[test]
    fn what_is_unknown_is_refused_by_name() {
        for word in ["speed=fast", "time=slow", "cache=much", "ro=1", "fit", "queue_depth=0", "queue_deadline=-1"] {
            let failure = parsed(word).expect_err(word);
            assert_eq!(failure.kind, imbrex::FailureKind::Usage, "{word}");
            assert!(failure.message.contains(word), "{failure}");
        }
    }
}
