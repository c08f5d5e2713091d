//! Parses the text of a workload and checks it: fio's words, or TOML with the same words.
//!
//! Commas separate words, semicolons separate phases. A phase inherits every word of the previous phase with requests.
//! An idle phase has no other words, and does not interrupt this inheritance. If a word takes a list, commas may occur
//! in its value (`bs=4k,64k`): a piece without `=` that is not itself a word continues the list.
//!
//! Invariants:
//! 1. The order of words within a phase does not matter: each field is set at most once in a phase.
//! 2. Words of the whole workload may occur in any phase, but only in one.

use toml::de::{DeTable, DeValue};

use super::error::{WordError, WordPlace, WorkloadError};
use super::spec::{Job, Phase, Whole, WorkloadSpec};
use super::words::{self, Effect};
use imbrex_units::names::suggestion;

/// A word of the text: its place, its key, and its value if it has one.
#[derive(Debug)]
struct Word {
    place: WordPlace,
    key: String,
    value: Option<String>,
}

impl WorkloadSpec {
    /// Parses a workload from fio's words: `rw=randwrite,bs=4k,number_ios=1000;idle=2h;rw=read`. Commas separate words
    /// and semicolons separate phases; a phase inherits the values of the previous phase with requests.
    ///
    /// # Errors
    ///
    /// If a word is unknown, has a wrong value or contradicts another word, if a phase would never end, or if there are
    /// no requests. The error names the place in `text` and a remedy.
    pub fn parse(text: &str) -> Result<WorkloadSpec, WorkloadError> {
        from_words(text)
    }

    /// Parses a workload from TOML, with fio's words as keys. Without `[[phase]]`, the file describes one phase. With a
    /// `[[phase]]` for each phase, the keys above them apply to all phases.
    ///
    /// # Errors
    ///
    /// If `text` is not TOML, if a word is unknown, has a wrong value or contradicts another word, if a phase would
    /// never end, or if there are no requests. The error names the place in `text` and a remedy.
    pub fn parse_toml(text: &str) -> Result<WorkloadSpec, WorkloadError> {
        from_toml(text)
    }
}

/// Parses a workload from fio's words.
pub(super) fn from_words(text: &str) -> Result<WorkloadSpec, WorkloadError> {
    let mut builder = Builder::new();
    let mut first_character = 1;
    for (index, piece) in text.split(';').enumerate() {
        let words = split_words(piece, index + 1, first_character)?;
        let place = WordPlace::Character { phase: index + 1, character: first_character };
        if words.is_empty() {
            return Err(WordError::new("a phase without words", "write rw=… or take the semicolon out").at(place));
        }
        builder.phase(index + 1, &words)?;
        first_character += piece.chars().count() + 1;
    }
    builder.finish()
}

/// Splits the text of one phase into words. `first_character` is the position of the phase in the whole text.
fn split_words(piece: &str, phase: usize, first_character: usize) -> Result<Vec<Word>, WorkloadError> {
    let mut words: Vec<Word> = Vec::new();
    if piece.trim().is_empty() {
        return Ok(words);
    }
    let mut character = first_character;
    for part in piece.split(',') {
        let leading = part.chars().take_while(|c| c.is_whitespace()).count();
        let place = WordPlace::Character { phase, character: character + leading };
        character += part.chars().count() + 1;
        let part = part.trim();
        let bare_word = words::named(part).is_some();
        match (part.split_once('='), words.last_mut().filter(|last| takes_list(last))) {
            (Some((key, value)), _) => {
                words.push(Word { place, key: key.trim().to_string(), value: Some(value.trim().to_string()) })
            }
            (None, Some(Word { value: Some(value), .. })) if !bare_word => {
                value.push(',');
                value.push_str(part);
            }
            (None, _) if part.is_empty() => {
                return Err(WordError::new("nothing between two commas", "take one out").at(place));
            }
            (None, _) => words.push(Word { place, key: part.to_string(), value: None }),
        }
    }
    Ok(words)
}

fn takes_list(word: &Word) -> bool {
    words::named(&word.key).is_some_and(|info| info.list)
}

/// Parses a workload from TOML.
pub(super) fn from_toml(text: &str) -> Result<WorkloadSpec, WorkloadError> {
    let line = |offset: usize| {
        let before = &text[..offset.min(text.len())];
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        WordPlace::Line { line: before.matches('\n').count() + 1, column }
    };
    let table = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        WordError::new(error.message().to_string(), "write TOML: key = \"value\"").at(line(offset))
    })?;
    let mut builder = Builder::new();
    let common = table_words(table.get_ref(), &line)?;
    let Some(phases) = table.get_ref().get("phase") else {
        builder.phase(1, &common)?;
        return builder.finish();
    };
    builder.common(&common)?;
    let place = line(phases.span().start);
    let not_tables = || WordError::new("phase is not a list of tables", "write [[phase]] above each phase");
    for (index, phase) in phases.get_ref().as_array().ok_or_else(|| not_tables().at(place.clone()))?.iter().enumerate()
    {
        let table = phase.get_ref().as_table().ok_or_else(|| not_tables().at(line(phase.span().start)))?;
        builder.phase(index + 1, &table_words(table, &line)?)?;
    }
    builder.finish()
}

/// Returns the words of a table, without its key `phase`.
fn table_words(table: &DeTable<'_>, line: &dyn Fn(usize) -> WordPlace) -> Result<Vec<Word>, WorkloadError> {
    let entries = table.iter().filter(|(key, _)| key.get_ref() != "phase");
    let word = |(key, value): (&toml::Spanned<toml::de::DeString<'_>>, &toml::Spanned<DeValue<'_>>)| {
        let place = line(key.span().start);
        let value = toml_value(value.get_ref()).map_err(|complaint| complaint.at(place.clone()))?;
        Ok(Word { place, key: key.get_ref().to_string(), value: Some(value) })
    };
    entries.map(word).collect()
}

/// Converts a TOML value to the text of the value in fio's words.
fn toml_value(value: &DeValue<'_>) -> Result<String, WordError> {
    match value {
        DeValue::String(text) => Ok(text.trim().to_string()),
        DeValue::Integer(integer) if integer.radix() == 10 => Ok(integer.as_str().to_string()),
        DeValue::Float(float) => Ok(float.as_str().to_string()),
        DeValue::Boolean(on) => Ok(if *on { "on" } else { "off" }.to_string()),
        DeValue::Array(values) => {
            let values = values.iter().map(|value| toml_value(value.get_ref())).collect::<Result<Vec<_>, _>>()?;
            Ok(values.join(","))
        }
        _ => Err(WordError::new("not a value a word takes", "write a string, a decimal number, true or false")),
    }
}

/// Collects the phases of a workload.
struct Builder {
    phases: Vec<Phase>,
    inherited: Job,
    whole: Whole,
    whole_given: Vec<&'static str>,
    /// Place and name of a synchronous engine of fio, if the text names one.
    synchronous: Option<(WordPlace, String)>,
}

impl Builder {
    fn new() -> Builder {
        let (phases, whole_given) = (Vec::new(), Vec::new());
        Builder { phases, inherited: Job::default(), whole: Whole::DEFAULT, whole_given, synchronous: None }
    }

    /// Sets the words that all phases inherit.
    fn common(&mut self, words: &[Word]) -> Result<(), WorkloadError> {
        if let Some(word) = words.iter().find(|word| word.key == "idle") {
            let complaint = WordError::new("idle is a phase", "write it in a [[phase]] of its own");
            return Err(complaint.at(word.place.clone()));
        }
        self.inherited = self.job(words)?;
        Ok(())
    }

    fn phase(&mut self, number: usize, words: &[Word]) -> Result<(), WorkloadError> {
        if let Some(idle) = words.iter().find(|word| word.key == "idle") {
            if let Some(other) = words.iter().find(|word| !std::ptr::eq(*word, idle)) {
                let complaint = WordError::new(
                    format!("'{}' is in one phase with idle, which is a phase of its own", other.key),
                    "put a semicolon between them",
                );
                return Err(complaint.at(other.place.clone()));
            }
            let duration =
                words::idle(idle.value.as_deref().unwrap_or("")).map_err(|complaint| blame(idle, complaint))?;
            self.phases.push(Phase::Idle(duration));
            return Ok(());
        }
        let job = self.job(words)?;
        job.check().map_err(|complaint| complaint.at(WordPlace::Phase(number)))?;
        self.inherited = job.clone();
        self.phases.push(Phase::Run(Box::new(job)));
        Ok(())
    }

    /// Applies `words` to a copy of the inherited job.
    fn job(&mut self, words: &[Word]) -> Result<Job, WorkloadError> {
        let mut job = self.inherited.clone();
        let mut fields: Vec<(&str, &str)> = Vec::new();
        for word in words {
            let info = words::named(&word.key).ok_or_else(|| unknown(word))?;
            if let Some((_, earlier)) = fields.iter().find(|(field, _)| *field == info.field) {
                let problem = format!("'{}' beside '{earlier}' in one phase: they set the same", info.key);
                return Err(WordError::new(problem, "give one of them").at(word.place.clone()));
            }
            fields.push((info.field, info.key));
            let value = match &word.value {
                Some(value) => value.as_str(),
                None if info.bare => "on",
                None => return Err(missing_value(word, info)),
            };
            self.apply(info, &mut job, word, value)?;
        }
        if let Some(word) = words.iter().find(|word| word.key == "time_based" && job.runtime.is_zero()) {
            let complaint = WordError::new("'time_based' without a runtime", "add runtime=…");
            return Err(complaint.at(word.place.clone()));
        }
        Ok(job)
    }

    fn apply(
        &mut self,
        info: &'static words::WordInfo,
        job: &mut Job,
        word: &Word,
        value: &str,
    ) -> Result<(), WorkloadError> {
        match info.effect {
            Effect::Job { set, .. } => set(job, value).map_err(|complaint| blame(word, complaint)),
            Effect::Whole { set, .. } => {
                if self.whole_given.contains(&info.key) {
                    let problem = format!("'{}' holds for the whole workload, but is given twice", info.key);
                    return Err(WordError::new(problem, "give it in one phase only").at(word.place.clone()));
                }
                self.whole_given.push(info.key);
                set(&mut self.whole, value).map_err(|complaint| blame(word, complaint))
            }
            Effect::Nothing(check) => {
                if info.key == "ioengine" && words::SYNCHRONOUS_ENGINES.contains(&value) {
                    self.synchronous = Some((word.place.clone(), value.to_string()));
                }
                check(value).map_err(|complaint| blame(word, complaint))
            }
            Effect::Idle => unreachable!("a phase with idle in it has no other words, and idle is looked for first"),
        }
    }

    /// Returns the index of the first phase that differs from the first one in whether it has a rate.
    fn other_pace(&self) -> Option<usize> {
        let timed = |phase: &Phase| match phase {
            Phase::Run(job) => Some(job.rate_thousandths > 0),
            Phase::Idle(_) => None,
        };
        let first = self.phases.iter().find_map(timed)?;
        self.phases.iter().position(|phase| timed(phase).is_some_and(|timed| timed != first))
    }

    fn finish(self) -> Result<WorkloadSpec, WorkloadError> {
        let runs = self.phases.iter().any(|phase| matches!(phase, Phase::Run(_)));
        if !runs {
            return Err(WordError::new("it makes no requests", "add a phase with rw=…").at(WordPlace::Workload));
        }
        if let Some(index) = self.other_pace() {
            let complaint = WordError::new(
                "rate_iops is set for some phases only; a workload has a rate in all phases or in none",
                "give each phase a rate_iops, or none",
            );
            return Err(complaint.at(WordPlace::Phase(index + 1)));
        }
        if let Some((place, engine)) = self.synchronous.filter(|_| self.whole.iodepth > 1) {
            let problem =
                format!("'ioengine={engine}' has one request outstanding, and iodepth is {}", self.whole.iodepth);
            return Err(WordError::new(problem, "write iodepth=1, or another ioengine such as io_uring").at(place));
        }
        let ends_idle = matches!(self.phases.last(), Some(Phase::Idle(_)));
        if ends_idle && self.whole.loops == 1 {
            let complaint = WordError::new("no request follows this pause", "add a phase after it, or loops=2");
            return Err(complaint.at(WordPlace::Phase(self.phases.len())));
        }
        Ok(WorkloadSpec { phases: self.phases, whole: self.whole })
    }
}

fn blame(word: &Word, complaint: WordError) -> WorkloadError {
    let value = word.value.as_deref().unwrap_or("");
    WordError::new(format!("'{}={value}': {}", word.key, complaint.problem), complaint.remedy).at(word.place.clone())
}

fn unknown(word: &Word) -> WorkloadError {
    let keys: Vec<_> = words::words().iter().map(|info| info.key).collect();
    let meant = suggestion(&word.key, keys.iter().copied());
    WordError::new(format!("unknown word '{}'{meant}", word.key), format!("there are: {}", keys.join(", ")))
        .at(word.place.clone())
}

fn missing_value(word: &Word, info: &words::WordInfo) -> WorkloadError {
    WordError::new(format!("'{}' has no value", info.key), format!("write {}={}", info.key, info.takes))
        .at(word.place.clone())
}
