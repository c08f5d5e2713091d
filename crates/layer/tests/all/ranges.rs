//! Goal: the listed range of a parameter is correct: some toy accepts the lowest value, and none accepts a lower one.
//! Method: every layer on its toys, with the lowest value of every count and share, and with the value below if there
//! is one.

use imbrex_layer::parameters::{ParameterInfo, ParameterKind};
use imbrex_layer::verify::toy;
use imbrex_layer::{LayerInfo, registry};

/// Returns whether some toy accepts `value` for the parameter.
fn takes(info: &LayerInfo, parameter: &ParameterInfo, value: u64) -> bool {
    let disks: Vec<_> = info.recordings.iter().flat_map(|recording| toy::disks(recording)).collect();
    info.toys.iter().any(|words| {
        let pairs = words.split(',').filter_map(|word| word.trim().split_once('='));
        let mut given: Vec<_> = pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect();
        given.push((parameter.key.to_string(), value.to_string()));
        disks.iter().any(|toy| registry::build(info.name, &toy.disk, &given).is_ok())
    })
}

#[test]
fn the_least_value_that_is_listed_is_taken_and_no_less() {
    for info in registry::built_in() {
        for parameter in info.parameters {
            let (least, less) = match parameter.kind {
                ParameterKind::Count | ParameterKind::Share => (Some(0), None),
                ParameterKind::CountFrom(least) => (Some(least), Some(least - 1)),
                ParameterKind::ShareAboveZero => (None, Some(0)),
                _ => (None, None),
            };
            let told = format!("{} {}: {}", info.name, parameter.key, parameter.kind.takes());
            assert!(least.is_none_or(|least| takes(info, parameter, least)), "{told}, but {least:?} is refused");
            assert!(less.is_none_or(|less| !takes(info, parameter, less)), "{told}, but {less:?} is taken");
        }
    }
}
