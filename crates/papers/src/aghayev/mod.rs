//! Aghayev and Desnoyers 2015, "Skylight—A Window on Shingled Disk Operation": tests 1 to 11 on the three emulated
//! drives and on the 5 TB Seagate, each as its profile describes it.
//!
//! The volatile cache and look-ahead are off, as in §4.2. Where the paper turns them on, the text of the
//! experiment's method names the substitute.

mod fig04;
mod fig07;
mod fig08;
mod fig10;
mod fig12;
mod fig14;
mod fig15;
mod fig17;
mod fig18;
pub(super) mod observed;
mod section6;
mod table2;
mod table3;
mod under_test;

use super::Experiment;

/// The experiments, in the paper's order.
pub(crate) const ALL: &[&Experiment] = &[
    &fig04::EXPERIMENT,
    &fig07::EXPERIMENT,
    &fig08::EXPERIMENT,
    &fig10::EXPERIMENT,
    &fig12::EXPERIMENT,
    &fig14::EXPERIMENT,
    &table2::EXPERIMENT,
    &fig15::EXPERIMENT,
    &fig17::EXPERIMENT,
    &fig18::EXPERIMENT,
    &table3::EXPERIMENT,
    &section6::EXPERIMENT,
];
