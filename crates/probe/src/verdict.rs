//! Verdicts: properties with value, unit, confidence and evidence (`imbrex.probe/1`).

use serde::Serialize;

use crate::models::Statement;

/// The value of a property of a probed drive.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A number, in the unit of the property.
    Number(f64),
    /// One of a few categories, such as `shingled` for the property `type`.
    Word(&'static str),
    /// The experiments that ran do not determine the value.
    CannotTell,
}

/// The certainty of the value of a property, in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The value is a guess, or there is no value.
    Low,
    /// The value explains the measurements, and another might as well.
    Medium,
    /// No other known value explains the measurements.
    High,
}

/// A property of the probed drive, as an experiment concluded it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Property {
    /// Name of the property, such as `rotation` or `cache_bytes`.
    pub name: &'static str,
    /// Value of the property: a number, a category, or [`Value::CannotTell`] if the experiments do not determine it.
    pub value: Value,
    /// Unit of a numeric value, such as `ms` or `B`; empty for a category.
    pub unit: &'static str,
    /// Certainty of the value: low (a guess, or no value), medium (another value might explain the measurements too),
    /// or high (no other known value explains them).
    pub confidence: Confidence,
    /// Whether a numeric value is only a lower bound: the true value is this number or more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// The reason for the value, in words for people.
    pub because: String,
    /// Names of the series of measurements in [`Verdict::series`] that support the value; may be empty.
    pub evidence: Vec<&'static str>,
}

/// A series of measurements, which is the evidence for properties.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Series {
    /// Name of the series, which properties cite as evidence.
    pub name: &'static str,
    /// Meaning of the first number of each point, with its unit, such as `operation` (a number) or `MiB`.
    pub x: &'static str,
    /// Meaning of the second number of each point, with its unit, such as `latency_ms`.
    pub y: &'static str,
    /// The points, each a pair of numbers with the meanings `x` and `y`. A series of over 1024 points is thinned:
    /// of each stretch, the points with the lowest and the highest second number remain.
    pub points: Vec<(f64, f64)>,
}

/// A fact that the target reports about itself without measurement, such as its model.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fact {
    /// Name of the fact, such as `model`.
    pub name: &'static str,
    /// Value of the fact, as the target reports it.
    pub value: String,
}

/// Positions of the head while a series was measured; only emulated drives can report them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Head {
    /// Name of the series during which the positions were recorded.
    pub series: &'static str,
    /// Number of tracks of one surface of the drive, from the outer to the inner diameter.
    pub tracks: u32,
    /// The positions in order of time, at most 1024: seconds since the start of the series, and the track, counted from
    /// 0 at the outer diameter.
    pub points: Vec<(f64, f64)>,
}

/// The result of a probe, in the form in which it is written as JSON.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Verdict {
    /// Name and version of the format of the verdict as JSON: `imbrex.probe/1`.
    pub schema: &'static str,
    /// Name of the target, as the user gave it.
    pub target: String,
    /// Size of the target in bytes.
    pub size_bytes: u64,
    /// Facts that the target reports about itself, without measurement.
    pub facts: Vec<Fact>,
    /// Whether the target's clock is the virtual one of an emulated drive.
    pub is_virtual: bool,
    /// Duration of the probe in nanoseconds on the target's clock.
    pub target_ns: u64,
    /// The properties that experiments concluded, in the order of their latest conclusion. No two have the same name.
    pub properties: Vec<Property>,
    /// Conditions under which the target's times say less than those of a single drive, one sentence each, such as a
    /// coarse clock. With any of them, no property has high confidence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
    /// Advice to the user of the probed drive, for example about its use in a RAID, one paragraph each.
    pub advice: Vec<String>,
    /// Experiments that did not run or did not finish, each as `NAME: reason`.
    pub left_out: Vec<String>,
    /// The error because of which the probe ended early; `None` if it did not. The properties found until then remain
    /// valid. Reaching the time budget is no such error.
    pub ended: Option<String>,
    /// The series of measurements, which are the evidence for the properties.
    pub series: Vec<Series>,
    /// Positions of the head over time. At most one entry belongs to each of `series`, and has up to 1024 positions.
    /// Empty for a target that cannot report positions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heads: Vec<Head>,
    /// A statement on the model that the drive reports; `None` if nothing is stated.
    pub statement: Option<Statement>,
}

impl Verdict {
    /// Returns the property called `name`; `None` if no experiment has added it. A property without a determined value
    /// is returned too.
    pub fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.name == name)
    }

    /// Returns the category of the property called `name`; `None` if it is not known, or is a number.
    pub fn word(&self, name: &str) -> Option<&'static str> {
        match self.property(name)?.value {
            Value::Word(word) => Some(word),
            Value::Number(_) | Value::CannotTell => None,
        }
    }

    /// Returns the number of the property called `name`, in the property's unit; `None` if it is not known, or is a
    /// category.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.property(name)?.value {
            Value::Number(number) => Some(number),
            Value::Word(_) | Value::CannotTell => None,
        }
    }

    /// Adds a property, whose value is no lower bound, at the end of the verdict's properties. Replaces an earlier
    /// property of that name. If an experiment looked for the rotation and did not find it, or if there are
    /// [`Verdict::conditions`], high confidence becomes medium.
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
        // Every other test compares times with the rotation. Without it, the comparison may mislead.
        let lacks_rotation = self.property("rotation").is_some_and(|rotation| rotation.value == Value::CannotTell);
        let confidence = if lacks_rotation { confidence.min(Confidence::Medium) } else { confidence };
        self.properties.retain(|property| property.name != name);
        self.properties.push(Property { name, value, unit, confidence, at_least: false, because, evidence });
        if !self.conditions.is_empty() {
            self.doubt(name);
        }
    }

    /// Adds a condition, and lowers the high confidence of all present and later properties to medium.
    pub(crate) fn add_condition(&mut self, condition: String) {
        if self.conditions.contains(&condition) {
            return;
        }
        self.conditions.push(condition);
        for name in self.properties.iter().map(|property| property.name).collect::<Vec<_>>() {
            self.doubt(name);
        }
    }

    /// Lowers the confidence in the property called `name` from high to medium, and gives the conditions as the reason.
    fn doubt(&mut self, name: &str) {
        let found = self.properties.iter_mut().find(|property| property.name == name);
        if let Some(property) = found.filter(|property| property.confidence == Confidence::High) {
            property.confidence = Confidence::Medium;
            property.because += &format!("; but {}", self.conditions.join(", and "));
        }
    }

    /// Adds a property at the end of the verdict's properties, with high confidence, or with medium confidence if an
    /// experiment looked for the rotation and did not find it. With `at_least`, the value is a lower bound. Replaces an
    /// earlier property of that name.
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
        self.set_bound(name, at_least);
    }

    /// Records whether the value of the property called `name` is only a lower bound.
    pub(crate) fn set_bound(&mut self, name: &str, at_least: bool) {
        if let Some(property) = self.properties.iter_mut().find(|property| property.name == name) {
            property.at_least = at_least;
        }
    }
}
