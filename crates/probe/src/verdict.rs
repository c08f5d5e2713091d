//! Verdicts: properties with value, unit, confidence and evidence (`imbrex.probe/1`).

use serde::Serialize;

/// The value of a property.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A number, in the property's unit.
    Number(f64),
    /// A category.
    Word(&'static str),
    /// The value cannot be determined from the tests that ran.
    CannotTell,
}

/// How sure the probe is of a property.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// A guess.
    Low,
    /// The value explains the measurements, and another might as well.
    Medium,
    /// No other known value explains the measurements.
    High,
}

/// A property of the drive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Property {
    /// Name.
    pub name: &'static str,
    /// Value.
    pub value: Value,
    /// Unit of a number.
    pub unit: &'static str,
    /// How sure the probe is of the value.
    pub confidence: Confidence,
    /// Whether the number is a lower bound: the true value is this number or more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// The reason, in words.
    pub because: String,
    /// Names of the series that support the value.
    pub evidence: Vec<&'static str>,
}

/// A series of measurements, the evidence for a property.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Series {
    /// Name.
    pub name: &'static str,
    /// Meaning of the first number of each point, such as `operation` or `MiB`.
    pub x: &'static str,
    /// Meaning of the second number of each point, such as `latency_ms`.
    pub y: &'static str,
    /// The points, each a pair of numbers.
    pub points: Vec<(f64, f64)>,
}

/// A fact that the target reports about itself, such as its model.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fact {
    /// Name of the fact, such as `model`.
    pub name: &'static str,
    /// Value, as the target reports it.
    pub value: String,
}

/// Positions of the head while a series was measured: only for drives that can report them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Head {
    /// Name of the series.
    pub series: &'static str,
    /// Number of tracks from the outer to the inner diameter.
    pub tracks: u32,
    /// Points: seconds since the first operation of the series, and tracks from the outer diameter.
    pub points: Vec<(f64, f64)>,
}

/// The findings of a probe.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Verdict {
    /// Name and version of the format of this document: `imbrex.probe/1`.
    pub schema: &'static str,
    /// Name of the target.
    pub target: String,
    /// Size of the target, bytes.
    pub size_bytes: u64,
    /// Facts that the target reports about itself.
    pub facts: Vec<Fact>,
    /// Whether the target's clock is that of a simulation.
    pub is_virtual: bool,
    /// Duration of the probe, nanoseconds on the target's clock.
    pub target_ns: u64,
    /// Properties, in the order in which they were found.
    pub properties: Vec<Property>,
    /// Advice to the drive's user, in plain words.
    pub advice: Vec<String>,
    /// Tests that did not run or did not finish, each with the reason.
    pub left_out: Vec<String>,
    /// Why the probe ended early, if it did; the properties found until then remain valid.
    pub ended: Option<String>,
    /// Series of measurements: the evidence.
    pub series: Vec<Series>,
    /// Positions of the head during the series, for emulated drives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heads: Vec<Head>,
}

impl Verdict {
    /// Returns the property called `name`.
    pub fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.name == name)
    }

    /// Returns the category of the property called `name`.
    pub fn word(&self, name: &str) -> Option<&'static str> {
        match self.property(name)?.value {
            Value::Word(word) => Some(word),
            Value::Number(_) | Value::CannotTell => None,
        }
    }

    /// Returns the number of the property called `name`.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.property(name)?.value {
            Value::Number(number) => Some(number),
            Value::Word(_) | Value::CannotTell => None,
        }
    }

    /// Adds a property; replaces an earlier one of that name.
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

    /// Adds a number with high confidence: an exact one, or a lower bound if `at_least`.
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
