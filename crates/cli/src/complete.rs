//! Shell completions: names that the registries hold, such as drives, layers and formats. The shell calls the program for
//! them, so they always fit it.

use std::ffi::OsStr;

use clap_complete::PathCompleter;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, ValueCompleter};
use imbrex::drives;
use imbrex::listing::{self, Listing};
use imbrex_layer::registry;
use imbrex_trace::writers;

/// Completes a drive, `PROFILE[+LAYER][:key=value,…]`, or a TOML file.
pub(crate) fn drive() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let Some(text) = current.to_str() else { return paths(current) };
        if let Some((drive, values)) = text.split_once(':') {
            return keys(drive, values);
        }
        match text.split_once('+') {
            Some((profile, layer)) => layers(profile, layer),
            None => with_paths(beginning(text, &listing::profiles()), current),
        }
    })
}

/// Completes a drive, or the word for one of every kind.
pub(crate) fn drives() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let is_all = current.to_str().is_some_and(|text| drives::ALL.starts_with(text));
        let all = is_all.then(|| candidate(drives::ALL.into(), "One of each layer that is not host-managed"));
        all.into_iter().chain(drive().complete(current)).collect::<Vec<_>>()
    })
}

/// Completes a workload: a built-in one, or a file.
pub(crate) fn workload() -> ArgValueCompleter {
    names_or_paths(listing::generators)
}

/// Completes the name of a trace format.
pub(crate) fn format() -> ArgValueCompleter {
    names(listing::formats)
}

/// Completes the name of a trace format that can be written.
pub(crate) fn written_format() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let text = current.to_str().unwrap_or_default();
        let writers = writers::all().iter().filter(|writer| writer.name.starts_with(text));
        writers.map(|writer| CompletionCandidate::new(writer.name)).collect::<Vec<_>>()
    })
}

/// Completes a paper or the name of an experiment.
pub(crate) fn experiment() -> ArgValueCompleter {
    names(crate::reproduce::listing)
}

/// Completes the name of a layer or a drive profile.
pub(crate) fn layer_or_profile() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let text = current.to_str().unwrap_or_default();
        [listing::layers(), listing::profiles()].iter().flat_map(|listing| beginning(text, listing)).collect::<Vec<_>>()
    })
}

fn names(list: fn() -> Listing) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| beginning(current.to_str().unwrap_or_default(), &list()))
}

fn names_or_paths(list: fn() -> Listing) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        with_paths(beginning(current.to_str().unwrap_or_default(), &list()), current)
    })
}

/// Returns the names of a list that begin with `text`; the last column is the help.
fn beginning(text: &str, listing: &Listing) -> Vec<CompletionCandidate> {
    let rows = listing.rows.iter().filter(|row| row[0].starts_with(text));
    rows.map(|row| candidate(row[0].clone(), row.last().expect("a row has cells"))).collect()
}

fn candidate(value: String, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(help.to_string().into()))
}

/// Returns the layers that fit the recording of `profile` and begin with `text`; all layers if there is no such profile.
fn layers(profile: &str, text: &str) -> Vec<CompletionCandidate> {
    let recording = drives::find_profile(profile).ok().map(|profile| profile.disk().recording.name());
    let fits = |recordings: &[&str]| recording.is_none_or(|recording| recordings.contains(&recording));
    let layers = registry::all().into_iter().filter(|info| info.name.starts_with(text) && fits(info.recordings));
    layers.map(|info| candidate(format!("{profile}+{}", info.name), info.summary)).collect()
}

/// Returns the parameters of the layer of `drive`; `values` are the parameters already typed.
fn keys(drive: &str, values: &str) -> Vec<CompletionCandidate> {
    let layer = match drive.split_once('+') {
        Some((_, layer)) => layer.to_string(),
        None => drives::find_profile(drive).map(|profile| profile.default_layer.clone()).unwrap_or_default(),
    };
    let (typed, begun) = values.rsplit_once(',').map_or(("", values), |(typed, begun)| (typed, begun));
    let before = if typed.is_empty() { format!("{drive}:") } else { format!("{drive}:{typed},") };
    let parameters = registry::named(&layer).map_or(&[][..], |info| info.parameters);
    let fitting = parameters.iter().filter(|parameter| parameter.key.starts_with(begun));
    fitting.map(|parameter| candidate(format!("{before}{}=", parameter.key), parameter.help)).collect()
}

fn paths(current: &OsStr) -> Vec<CompletionCandidate> {
    PathCompleter::any().complete(current)
}

fn with_paths(mut names: Vec<CompletionCandidate>, current: &OsStr) -> Vec<CompletionCandidate> {
    names.extend(paths(current));
    names
}
