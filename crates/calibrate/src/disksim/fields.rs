//! Access to a block's parameters by name; the parameters that were never read are listed at the end.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::ImportError;
use super::syntax::{Block, Parameter, Value};

/// A block that is being read.
pub(super) struct Fields<'a> {
    block: &'a Block,
    asked: RefCell<BTreeSet<String>>,
}

impl<'a> Fields<'a> {
    /// Returns access to the parameters of `block`.
    pub(super) fn new(block: &'a Block) -> Fields<'a> {
        Fields { block, asked: RefCell::default() }
    }

    /// Returns the file and line at which the block begins.
    pub(super) fn place(&self) -> &str {
        &self.block.place
    }

    /// Returns the parameter called `name`, and marks it as read.
    pub(super) fn parameter(&self, name: &str) -> Option<&'a Parameter> {
        self.asked.borrow_mut().insert(name.to_string());
        self.block.get(name)
    }

    /// Returns the parameters that were not read.
    pub(super) fn rest(&self) -> Vec<&'a Parameter> {
        let asked = self.asked.borrow();
        self.block.parameters.iter().filter(|parameter| !asked.contains(&parameter.name)).collect()
    }

    /// Adds a note for each parameter of `unused` that the block has, with the reason why it is not used.
    pub(super) fn note_unused(&self, unused: &[(&str, &str)], notes: &mut Vec<String>) {
        for (name, why) in unused {
            if self.parameter(name).is_some() {
                notes.push(format!("'{name}' is not used: {why}"));
            }
        }
    }

    /// Returns a number, if the parameter exists.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, ImportError> {
        self.parameter(name).map(|parameter| number(&parameter.value, parameter)).transpose()
    }

    /// Returns a number; a missing parameter is an error.
    pub(super) fn needed(&self, name: &str) -> Result<f64, ImportError> {
        self.number(name)?.ok_or_else(|| self.missing(name))
    }

    /// Returns a whole number that is not negative, if the parameter exists.
    pub(super) fn whole(&self, name: &str) -> Result<Option<u64>, ImportError> {
        let Some(parameter) = self.parameter(name) else { return Ok(None) };
        whole(&parameter.value, parameter).map(Some)
    }

    /// Returns a whole number that is not negative; a missing parameter is an error.
    pub(super) fn needed_whole(&self, name: &str) -> Result<u64, ImportError> {
        self.whole(name)?.ok_or_else(|| self.missing(name))
    }

    /// Returns whether a switch is on; a missing one is off.
    pub(super) fn is_on(&self, name: &str) -> Result<bool, ImportError> {
        Ok(self.number(name)?.is_some_and(|value| value != 0.0))
    }

    /// Returns a time in nanoseconds from a parameter in milliseconds; 0 if the parameter is missing.
    pub(super) fn ns(&self, name: &str) -> Result<u64, ImportError> {
        let Some(parameter) = self.parameter(name) else { return Ok(0) };
        nanoseconds(number(&parameter.value, parameter)?, parameter)
    }

    /// Returns a time in nanoseconds that may be negative, from a parameter in milliseconds; 0 if the parameter is
    /// missing.
    pub(super) fn signed_ns(&self, name: &str) -> Result<i64, ImportError> {
        let Some(parameter) = self.parameter(name) else { return Ok(0) };
        let milliseconds = number(&parameter.value, parameter)?;
        if milliseconds.abs() >= 1e6 {
            let reason = format!("{milliseconds} ms is no time a drive takes: expected -1,000,000 to 1,000,000");
            return Err(refuse(parameter, &reason));
        }
        Ok((milliseconds * 1e6).round() as i64)
    }

    /// Returns a word, if the parameter exists.
    pub(super) fn word(&self, name: &str) -> Result<Option<&'a str>, ImportError> {
        match self.parameter(name) {
            None => Ok(None),
            Some(Parameter { value: Value::Word(word), .. }) => Ok(Some(word)),
            Some(parameter) => Err(refuse(parameter, "expected a word")),
        }
    }

    /// Returns a nested block, if the parameter exists.
    pub(super) fn block(&self, name: &str) -> Result<Option<&'a Block>, ImportError> {
        match self.parameter(name) {
            None => Ok(None),
            Some(Parameter { value: Value::Block(block), .. }) => Ok(Some(block)),
            Some(parameter) => Err(refuse(parameter, "expected a block between braces, or 'source FILE'")),
        }
    }

    /// Returns a list, empty if the parameter is missing.
    pub(super) fn list(&self, name: &str) -> Result<&'a [Value], ImportError> {
        match self.parameter(name) {
            None => Ok(&[]),
            Some(Parameter { value: Value::List(values), .. }) => Ok(values),
            Some(parameter) => Err(refuse(parameter, "expected a list between brackets")),
        }
    }

    /// Returns a list of whole numbers.
    pub(super) fn wholes(&self, name: &str) -> Result<Vec<u64>, ImportError> {
        let values = self.list(name)?;
        let Some(parameter) = self.block.get(name) else { return Ok(Vec::new()) };
        values.iter().map(|value| whole(value, parameter)).collect()
    }

    /// Returns a list of numbers.
    pub(super) fn numbers(&self, name: &str) -> Result<Vec<f64>, ImportError> {
        let values = self.list(name)?;
        let Some(parameter) = self.block.get(name) else { return Ok(Vec::new()) };
        values.iter().map(|value| number(value, parameter)).collect()
    }

    /// Returns the error for a missing parameter `name`.
    pub(super) fn missing(&self, name: &str) -> ImportError {
        ImportError { place: self.block.place.clone(), reason: format!("'{name}' is missing from this block") }
    }
}

fn number(value: &Value, parameter: &Parameter) -> Result<f64, ImportError> {
    match value {
        Value::Word(word) => match word.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(refuse(parameter, &format!("expected a number, found '{word}'"))),
        },
        _ => Err(refuse(parameter, "expected a number")),
    }
}

fn whole(value: &Value, parameter: &Parameter) -> Result<u64, ImportError> {
    let number = number(value, parameter)?;
    if number < 0.0 || number.fract() != 0.0 || number > 9e15 {
        return Err(refuse(parameter, &format!("expected a whole number from 0 on, found {number}")));
    }
    Ok(number as u64)
}

/// Converts milliseconds to nanoseconds.
pub(super) fn nanoseconds(milliseconds: f64, parameter: &Parameter) -> Result<u64, ImportError> {
    if !(0.0..1e6).contains(&milliseconds) {
        return Err(refuse(parameter, &format!("{milliseconds} ms is no time a drive takes: expected 0 to 1,000,000")));
    }
    Ok((milliseconds * 1e6).round() as u64)
}

/// Returns an error about `parameter`.
pub(super) fn refuse(parameter: &Parameter, reason: &str) -> ImportError {
    ImportError { place: parameter.place.clone(), reason: format!("'{}': {reason}", parameter.name) }
}
