//! Tests of emulated drives, their images and their faults through the public interface.

mod bands;
mod bounds;
mod bytes;
mod caveat;
mod check;
mod common;
mod drive_power_loss;
mod faults;
mod figures;
mod hostile;
mod image_damage;
mod image_witnesses;
mod images;
mod journal_bound;
mod kills;
mod mutants;
mod open_damage;
mod opening;
mod power_loss;
mod thinking;
mod versions;
mod volatile;
mod zone_rules;
mod zoned;
