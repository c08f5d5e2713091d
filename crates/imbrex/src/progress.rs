//! Progress of long work: how much is done, and whether it should end early.
//!
//! Work takes a `&Progress`, creates bars on it, and calls [`Progress::should_stop`] at intervals. A program with a
//! terminal creates one with [`Progress::on_terminal`]; a library call, one with [`Progress::silent`]. A caller that
//! displays progress itself, such as a notebook, polls [`Progress::snapshot`] from another thread.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use indicatif::style::ProgressTracker;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, WeakProgressBar};

use crate::human;

/// Channel between long work and the code that waits for it. It carries progress and messages from the work, and the
/// request to stop to the work.
pub struct Progress {
    bars: MultiProgress,
    should_stop: Arc<dyn Fn() -> bool + Send + Sync>,
    is_silent: bool,
    /// Bars that have not ended, for [`Progress::snapshot`]. `said` keeps the printed lines for
    /// [`Progress::drain_messages`].
    under_way: Mutex<Vec<WeakProgressBar>>,
    said: Mutex<Vec<String>>,
}

/// State of one progress bar: the progress of one piece of work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Name of the progress bar, such as `reading the trace`.
    pub name: String,
    /// Number of units done: requests, points of a sweep, bytes or operations, as the work counts them.
    pub position: u64,
    /// Number of units in all: requests, points of a sweep, bytes or operations, as the work counts them; `None` if
    /// unknown.
    pub total: Option<u64>,
}

impl Progress {
    /// Creates a progress that displays and prints nothing and never asks to stop. It still keeps messages for
    /// [`Progress::drain_messages`].
    pub fn silent() -> Progress {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let (under_way, said) = (Mutex::default(), Mutex::default());
        Progress { bars, should_stop: Arc::new(|| false), is_silent: true, under_way, said }
    }

    /// Creates a progress that draws bars on standard error, with rate and time left, if standard error is a terminal
    /// and `quiet` is `false`. Lines of [`Progress::say`] are printed in any case. It never asks to stop; see
    /// [`Progress::stopping_when`].
    pub fn on_terminal(quiet: bool) -> Progress {
        let shown = !quiet && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        Progress { bars: MultiProgress::with_draw_target(target), is_silent: false, ..Progress::silent() }
    }

    /// Makes [`Progress::should_stop`] call `should_stop` and return its result. Replaces an earlier function.
    pub fn stopping_when(self, should_stop: impl Fn() -> bool + Send + Sync + 'static) -> Progress {
        Progress { should_stop: Arc::new(should_stop), ..self }
    }

    /// Returns a silent progress that asks to stop when `self` does. Serves for parts of a work of which only the total
    /// is displayed.
    pub fn quietly(&self) -> Progress {
        Progress { should_stop: self.should_stop.clone(), ..Progress::silent() }
    }

    /// Adds a bar called `name` over the `total` points of a sweep, at position 0. The caller moves it.
    pub fn points(&self, name: &str, total: u64) -> ProgressBar {
        let template = "{prefix:28!} {bar:30} {share:>6}  {done} of {all} points  {eta} left";
        self.add(name, Some(total), template)
    }

    /// Returns the state of every bar that was neither finished nor dropped, in the order of their creation.
    pub fn snapshot(&self) -> Vec<Snapshot> {
        let mut bars = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        bars.retain(is_under_way);
        let told = |bar: ProgressBar| Snapshot { name: bar.prefix(), position: bar.position(), total: bar.length() };
        bars.iter().filter_map(WeakProgressBar::upgrade).map(told).collect()
    }

    /// Returns the lines passed to [`Progress::say`] since the last call of this method, and forgets them.
    pub fn drain_messages(&self) -> Vec<String> {
        std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether the work should end early. Work calls this method at intervals.
    pub fn should_stop(&self) -> bool {
        (self.should_stop)()
    }

    /// Adds a bar called `name` over `total` requests, at position 0. If `total` is `None`, the bar shows only the
    /// number done and the rate.
    pub fn requests(&self, name: &str, total: Option<u64>) -> ProgressBar {
        let template = match total {
            Some(_) => "{prefix:28!} {bar:30} {share:>6}  {done} of {all}  {rate}  {eta} left",
            None => "{prefix:28!} {spinner} {done} requests  {rate}  {elapsed}",
        };
        self.add(name, total, template)
    }

    /// Adds a line called `name` that shows the number of operations done, their rate, and the message that the caller
    /// sets. It has no total.
    pub fn operations(&self, name: &str) -> ProgressBar {
        self.add(name, None, "{prefix:28!} {spinner} {done} operations  {rate}  {msg}  {elapsed}")
    }

    /// Adds a bar called `name` over bytes, with the length 0. The caller sets its length and position.
    pub fn bytes(&self, name: &str) -> ProgressBar {
        let template = "{prefix:28!} {bar:30} {share:>6}  {bytes_done} of {bytes_all}  {bytes_rate}  {eta} left";
        self.add(name, Some(0), template)
    }

    /// Adds a line called `name` that shows the message that the caller sets, such as the current step, and the time
    /// elapsed.
    pub fn steps(&self, name: &str) -> ProgressBar {
        self.add(name, None, "{prefix:28!} {spinner} {msg}  {elapsed}")
    }

    fn add(&self, name: &str, total: Option<u64>, template: &str) -> ProgressBar {
        let style = ProgressStyle::with_template(template).expect("the templates above are well formed");
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        let style = KEYS.iter().fold(style, |style, (name, text)| style.with_key(name, Key(*text)));
        let bar = self.bars.add(bar.with_style(style.progress_chars("=> ")));
        bar.set_prefix(name.to_string());
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.retain(is_under_way);
        under_way.push(bar.downgrade());
        drop(under_way);
        bar
    }

    /// Prints `line` on standard error, above the bars, unless the progress is silent. In any case keeps `line` for
    /// [`Progress::drain_messages`]. Ignores errors of writing.
    pub fn say(&self, line: &str) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_string());
        if self.is_silent {
            return;
        }
        if self.bars.println(line).is_err() || self.bars.is_hidden() {
            // Nobody may be reading standard error any more; `eprintln!` would end the program.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}

/// A function that formats a figure of a bar.
type Figure = fn(&ProgressState) -> String;

/// Words of the templates above, with three digits each.
const KEYS: [(&str, Figure); 7] = [
    ("share", |state| human::percent(f64::from(state.fraction()))),
    ("done", |state| human::short_count(state.pos() as f64)),
    ("all", |state| human::short_count(state.len().unwrap_or(0) as f64)),
    ("rate", |state| format!("{}/s", human::short_count(state.per_sec()))),
    ("bytes_done", |state| human::bytes(state.pos())),
    ("bytes_all", |state| human::bytes(state.len().unwrap_or(0))),
    ("bytes_rate", |state| format!("{}/s", human::bytes(state.per_sec() as u64))),
];

/// A word of a template.
#[derive(Clone)]
struct Key(Figure);

impl ProgressTracker for Key {
    fn clone_box(&self) -> Box<dyn ProgressTracker> {
        Box::new(self.clone())
    }

    fn tick(&mut self, _: &ProgressState, _: Instant) {}

    fn reset(&mut self, _: &ProgressState, _: Instant) {}

    fn write(&self, state: &ProgressState, out: &mut dyn std::fmt::Write) {
        // Writing to memory does not fail.
        let _ = out.write_str(&(self.0)(state));
    }
}

fn is_under_way(bar: &WeakProgressBar) -> bool {
    bar.upgrade().is_some_and(|bar| !bar.is_finished())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_progress_tells_how_far_it_is_and_what_was_said() {
        let progress = Progress::silent();
        let (one, other) = (progress.requests("one", Some(10)), progress.requests("other", None));
        one.set_position(4);
        let told = |name: &str, position, total| Snapshot { name: name.into(), position, total };
        assert_eq!(progress.snapshot(), [told("one", 4, Some(10)), told("other", 0, None)]);
        one.finish_and_clear();
        assert_eq!(progress.snapshot(), [told("other", 0, None)]);
        drop(other);
        assert!(progress.snapshot().is_empty());
        progress.say("a line");
        assert_eq!(progress.drain_messages(), ["a line"]);
        assert!(progress.drain_messages().is_empty());
    }
}
