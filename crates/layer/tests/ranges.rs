//! Goal: a parameter's range, as it is listed, is true: the least value is taken by some toy, and what is less by none. Method: every
//! layer on its toys, with the least of every count and share, and nothing where that is more.

use imbrex_layer::parameters::{ParameterInfo, ParameterKind};
use imbrex_layer::verify::toy;
use imbrex_layer::{LayerInfo, registry};

/// Whether a toy takes `value`.
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
