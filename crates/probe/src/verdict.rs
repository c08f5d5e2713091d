//! Verdicts: properties with value, unit, confidence and evidence (`imbrex.probe/1`).

use serde::Serialize;

/// What a property turned out to be.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A number, in the property's unit.
    Number(f64),
    /// A category.
    Word(&'static str),
    /// The tests that ran do not tell.
    CannotTell,
}

/// How sure the probe is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// It is a guess.
    Low,
    /// It fits, and so might something else.
    Medium,
    /// Nothing else known fits.
    High,
}

/// One thing that is now known.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Property {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub value: Value,
    /// Unit of a number.
    pub unit: &'static str,
    /// How sure the probe is.
    pub confidence: Confidence,
    /// Whether the number is a bound: what was asked about is this, or more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Why, in words.
    pub because: String,
    /// Names of the series behind it.
    pub evidence: Vec<&'static str>,
}

/// Measurements behind a property.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Series {
    /// Its name.
    pub name: &'static str,
    /// What the first column is.
    pub x: &'static str,
    /// What the second is.
    pub y: &'static str,
    /// The points.
    pub points: Vec<(f64, f64)>,
}

/// A fact that the target tells of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fact {
    /// Such as `model`.
    pub name: &'static str,
    /// As the target has it.
    pub value: String,
}

/// Where the head was while a series was measured: only of drives that can tell.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Head {
    /// The name of the series.
    pub series: &'static str,
    /// Tracks from the outer to the inner diameter.
    pub tracks: u32,
    /// Seconds since the first operation of the series, tracks from the outer diameter.
    pub points: Vec<(f64, f64)>,
}

/// What a probe found.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Verdict {
    /// Schema of this document.
    pub schema: &'static str,
    /// The target.
    pub target: String,
    /// Bytes it offers.
    pub size_bytes: u64,
    /// What it tells of itself.
    pub facts: Vec<Fact>,
    /// Whether its clock is that of a simulation.
    pub is_virtual: bool,
    /// Time spent on the target's clock, nanoseconds.
    pub target_ns: u64,
    /// In the order in which they were found.
    pub properties: Vec<Property>,
    /// What follows for whoever uses the drive, in plain words.
    pub advice: Vec<String>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
    /// Why the probe ended before its end, if it did: what is known until then stands.
    pub ended: Option<String>,
    /// Evidence.
    pub series: Vec<Series>,
    /// The head beside the evidence, for emulated drives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heads: Vec<Head>,
}

impl Verdict {
    /// A property by name.
    pub fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.name == name)
    }

    /// A property's category.
    pub fn word(&self, name: &str) -> Option<&'static str> {
        match self.property(name)?.value {
            Value::Word(word) => Some(word),
            Value::Number(_) | Value::CannotTell => None,
        }
    }

    /// A property's number.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.property(name)?.value {
            Value::Number(number) => Some(number),
            Value::Word(_) | Value::CannotTell => None,
        }
    }

    /// Adds a property, in place of one of that name.
    pub fn conclude(
        &mut self,
        name: &'static str,
        value: Value,
        unit: &'static str,
        confidence: Confidence,
        because: String,
        evidence: &[&'static str],
    ) {
        let evidence = evidence.to_vec();
        self.properties.retain(|property| property.name != name);
        self.properties.push(Property { name, value, unit, confidence, at_least: false, because, evidence });
    }

    /// Adds a number that is certain, or a bound if `at_least`.
    pub fn conclude_bound(
        &mut self,
        name: &'static str,
        value: Value,
        unit: &'static str,
        at_least: bool,
        because: String,
        evidence: &[&'static str],
    ) {
        self.conclude(name, value, unit, Confidence::High, because, evidence);
        self.properties.last_mut().expect("it was added").at_least = at_least;
    }
}
