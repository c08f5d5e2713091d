//! A block's parameters asked for one by one: what was never asked for is listed at the end.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::ImportError;
use super::syntax::{Block, Parameter, Value};

/// A block being read.
pub struct Fields<'a> {
    block: &'a Block,
    asked: RefCell<BTreeSet<String>>,
}

impl<'a> Fields<'a> {
    /// The parameters of `block`.
    pub fn new(block: &'a Block) -> Fields<'a> {
        Fields { block, asked: RefCell::default() }
    }

    /// Where the block begins.
    pub fn place(&self) -> &str {
        &self.block.place
    }

    /// The parameter called `name`, which counts as read.
    pub fn parameter(&self, name: &str) -> Option<&'a Parameter> {
        self.asked.borrow_mut().insert(name.to_string());
        self.block.get(name)
    }

    /// What nobody asked for.
    pub fn rest(&self) -> Vec<&'a Parameter> {
        let asked = self.asked.borrow();
        self.block.parameters.iter().filter(|parameter| !asked.contains(&parameter.name)).collect()
    }

    /// A number, if there.
    pub fn number(&self, name: &str) -> Result<Option<f64>, ImportError> {
        self.parameter(name).map(|parameter| number(&parameter.value, parameter)).transpose()
    }

    /// A number that has to be there.
    pub fn needed(&self, name: &str) -> Result<f64, ImportError> {
        self.number(name)?.ok_or_else(|| self.missing(name))
    }

    /// A whole number that is not negative, if there.
    pub fn whole(&self, name: &str) -> Result<Option<u64>, ImportError> {
        let Some(parameter) = self.parameter(name) else { return Ok(None) };
        whole(&parameter.value, parameter).map(Some)
    }

    /// Such a number that has to be there.
    pub fn needed_whole(&self, name: &str) -> Result<u64, ImportError> {
        self.whole(name)?.ok_or_else(|| self.missing(name))
    }

    /// Whether a switch is on; off where it is missing.
    pub fn is_on(&self, name: &str) -> Result<bool, ImportError> {
        Ok(self.number(name)?.is_some_and(|value| value != 0.0))
    }

    /// A time in milliseconds, zero where it is missing.
    pub fn ns(&self, name: &str) -> Result<u64, ImportError> {
        let Some(parameter) = self.parameter(name) else { return Ok(0) };
        nanoseconds(number(&parameter.value, parameter)?, parameter)
    }

    /// A word, if there.
    pub fn word(&self, name: &str) -> Result<Option<&'a str>, ImportError> {
        match self.parameter(name) {
            None => Ok(None),
            Some(Parameter { value: Value::Word(word), .. }) => Ok(Some(word)),
            Some(parameter) => Err(refuse(parameter, "expected a word")),
        }
    }

    /// A block inside, if there.
    pub fn block(&self, name: &str) -> Result<Option<&'a Block>, ImportError> {
        match self.parameter(name) {
            None => Ok(None),
            Some(Parameter { value: Value::Block(block), .. }) => Ok(Some(block)),
            Some(parameter) => Err(refuse(parameter, "expected a block between braces, or 'source FILE'")),
        }
    }

    /// A list, empty where it is missing.
    pub fn list(&self, name: &str) -> Result<&'a [Value], ImportError> {
        match self.parameter(name) {
            None => Ok(&[]),
            Some(Parameter { value: Value::List(values), .. }) => Ok(values),
            Some(parameter) => Err(refuse(parameter, "expected a list between brackets")),
        }
    }

    /// A list of whole numbers.
    pub fn wholes(&self, name: &str) -> Result<Vec<u64>, ImportError> {
        let values = self.list(name)?;
        let Some(parameter) = self.block.get(name) else { return Ok(Vec::new()) };
        values.iter().map(|value| whole(value, parameter)).collect()
    }

    /// A list of numbers.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>, ImportError> {
        let values = self.list(name)?;
        let Some(parameter) = self.block.get(name) else { return Ok(Vec::new()) };
        values.iter().map(|value| number(value, parameter)).collect()
    }

    /// What to say where `name` is missing.
    pub fn missing(&self, name: &str) -> ImportError {
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

/// Milliseconds as nanoseconds.
pub fn nanoseconds(milliseconds: f64, parameter: &Parameter) -> Result<u64, ImportError> {
    if !(0.0..1e6).contains(&milliseconds) {
        return Err(refuse(parameter, &format!("{milliseconds} ms is no time a drive takes: expected 0 to 1,000,000")));
    }
    Ok((milliseconds * 1e6).round() as u64)
}

/// An error about `parameter`.
pub fn refuse(parameter: &Parameter, reason: &str) -> ImportError {
    ImportError { place: parameter.place.clone(), reason: format!("'{}': {reason}", parameter.name) }
}
