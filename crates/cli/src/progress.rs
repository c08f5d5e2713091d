//! Progress bars: on standard error, on a terminal only, with rate and time left.

use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Several bars, one below the other.
pub struct Bars {
    bars: MultiProgress,
}

impl Bars {
    /// Bars on the terminal, or nowhere.
    pub fn new(quiet: bool) -> Bars {
        let shown = !quiet && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        Bars { bars: MultiProgress::with_draw_target(target) }
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
        if self.bars.println(line).is_err() || self.bars.is_hidden() {
            eprintln!("{line}");
        }
    }
}
