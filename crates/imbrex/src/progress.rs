//! The progress of work that takes long: how far it is, and whether it should end early.
//!
//! Work takes a `&Progress`, draws bars on it, and asks [`Progress::should_stop`] now and then. A program that has a
//! terminal makes one with [`Progress::on_terminal`]; a library call, one with [`Progress::silent`].

use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Where work tells how far it is, and whoever waits for it says when it is enough.
pub struct Progress {
    bars: MultiProgress,
    should_stop: fn() -> bool,
    is_silent: bool,
}

impl Progress {
    /// Tells nobody, and goes on to the end.
    pub fn silent() -> Progress {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        Progress { bars, should_stop: || false, is_silent: true }
    }

    /// Bars on standard error, with rate and time left, if that is a terminal and the user is not `quiet`. Lines are
    /// printed there in any case.
    pub fn on_terminal(quiet: bool) -> Progress {
        let shown = !quiet && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        Progress { bars: MultiProgress::with_draw_target(target), is_silent: false, ..Progress::silent() }
    }

    /// The same, for work that is to end early once `should_stop` says so.
    pub fn stopping_when(self, should_stop: fn() -> bool) -> Progress {
        Progress { should_stop, ..self }
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
        bar
    }

    /// Prints a line above the bars, on standard error.
    pub fn say(&self, line: &str) {
        if self.is_silent {
            return;
        }
        if self.bars.println(line).is_err() || self.bars.is_hidden() {
            eprintln!("{line}");
        }
    }
}
