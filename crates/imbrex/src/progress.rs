//! The progress of work that takes long: how far it is, and whether it should end early.
//!
//! Work takes a `&Progress`, draws bars on it, and asks [`Progress::should_stop`] now and then. A program that has a
//! terminal makes one with [`Progress::on_terminal`]; a library call, one with [`Progress::silent`]. Whoever shows progress
//! in a way of its own, as a notebook does, asks [`Progress::told`] from another thread.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle, WeakProgressBar};

/// Where work tells how far it is, and whoever waits for it says when it is enough.
pub struct Progress {
    bars: MultiProgress,
    should_stop: Arc<dyn Fn() -> bool + Send + Sync>,
    is_silent: bool,
    /// The bars that are not at their end yet, and the lines that were said: for [`Progress::told`] and
    /// [`Progress::take_said`].
    under_way: Mutex<Vec<WeakProgressBar>>,
    said: Mutex<Vec<String>>,
}

/// How far one piece of work is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// What is being done.
    pub name: String,
    /// How much of it is done.
    pub position: u64,
    /// How much there is, where that is known.
    pub total: Option<u64>,
}

impl Progress {
    /// Tells nobody, and goes on to the end.
    pub fn silent() -> Progress {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let (under_way, said) = (Mutex::default(), Mutex::default());
        Progress { bars, should_stop: Arc::new(|| false), is_silent: true, under_way, said }
    }

    /// Bars on standard error, with rate and time left, if that is a terminal and the user is not `quiet`. Lines are
    /// printed there in any case.
    pub fn on_terminal(quiet: bool) -> Progress {
        let shown = !quiet && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        Progress { bars: MultiProgress::with_draw_target(target), is_silent: false, ..Progress::silent() }
    }

    /// The same, for work that is to end early once `should_stop` says so.
    pub fn stopping_when(self, should_stop: impl Fn() -> bool + Send + Sync + 'static) -> Progress {
        Progress { should_stop: Arc::new(should_stop), ..self }
    }

    /// One that tells nobody, and is to stop when this is: for work of which only the whole is shown.
    pub fn quietly(&self) -> Progress {
        Progress { should_stop: self.should_stop.clone(), ..Progress::silent() }
    }

    /// A bar called `name` over `total` points of a sweep.
    pub fn points(&self, name: &str, total: u64) -> ProgressBar {
        let template = "{prefix:28!} {bar:30} {percent:>3} %  {human_pos} of {human_len} points  {eta} left";
        self.add(name, Some(total), template)
    }

    /// How far the work is that has begun and not ended, in the order in which it began.
    pub fn told(&self) -> Vec<Told> {
        let mut bars = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        bars.retain(is_under_way);
        let told = |bar: ProgressBar| Told { name: bar.prefix(), position: bar.position(), total: bar.length() };
        bars.iter().filter_map(WeakProgressBar::upgrade).map(told).collect()
    }

    /// The lines that were said since this was last asked, for whoever shows them in a way of their own.
    pub fn take_said(&self) -> Vec<String> {
        std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether whoever waits wants an end.
    pub fn should_stop(&self) -> bool {
        (self.should_stop)()
    }

    /// A bar called `name` over `total` requests, if that is known.
    pub fn requests(&self, name: &str, total: Option<u64>) -> ProgressBar {
        let template = match total {
            Some(_) => "{prefix:28!} {bar:30} {percent:>3} %  {human_pos} of {human_len}  {per_sec}  {eta} left",
            None => "{prefix:28!} {spinner} {human_pos} requests  {per_sec}  {elapsed}",
        };
        self.add(name, total, template)
    }

    /// A line called `name` that counts operations, of which nobody knows how many there will be, after what was done last.
    pub fn operations(&self, name: &str) -> ProgressBar {
        self.add(name, None, "{prefix:28!} {spinner} {human_pos} operations  {per_sec}  {msg}  {elapsed}")
    }

    /// A bar called `name` over bytes; how many there are is told later.
    pub fn bytes(&self, name: &str) -> ProgressBar {
        let template = "{prefix:28!} {bar:30} {percent:>3} %  {bytes} of {total_bytes}  {bytes_per_sec}  {eta} left";
        self.add(name, Some(0), template)
    }

    /// A line that says what is being done, while it lasts.
    pub fn steps(&self, name: &str) -> ProgressBar {
        self.add(name, None, "{prefix:28!} {spinner} {msg}  {elapsed}")
    }

    fn add(&self, name: &str, total: Option<u64>, template: &str) -> ProgressBar {
        let style = ProgressStyle::with_template(template).expect("the templates above are well formed");
        let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        let bar = self.bars.add(bar.with_style(style.progress_chars("=> ")));
        bar.set_prefix(name.to_string());
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.retain(is_under_way);
        under_way.push(bar.downgrade());
        drop(under_way);
        bar
    }

    /// Prints a line above the bars, on standard error, unless it is silent, and keeps it for [`Progress::take_said`].
    pub fn say(&self, line: &str) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_string());
        if self.is_silent {
            return;
        }
        if self.bars.println(line).is_err() || self.bars.is_hidden() {
            eprintln!("{line}");
        }
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
        let told = |name: &str, position, total| Told { name: name.into(), position, total };
        assert_eq!(progress.told(), [told("one", 4, Some(10)), told("other", 0, None)]);
        one.finish_and_clear();
        assert_eq!(progress.told(), [told("other", 0, None)]);
        drop(other);
        assert!(progress.told().is_empty());
        progress.say("a line");
        assert_eq!(progress.take_said(), ["a line"]);
        assert!(progress.take_said().is_empty());
    }
}
