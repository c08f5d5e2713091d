//! The drives that the guide compares.

/// Drives of the guide: (name in the guide, name of the profile).
pub(super) const DRIVES: [(&str, &str); 12] = [
    ("cmr-7200", "cmr-7200"),
    ("cmr-5900", "cmr-5900"),
    ("st5000as0011", "seagate-st5000as0011"),
    ("st8000as0011", "seagate-st8000as0011"),
    ("st8000as0022", "seagate-st8000as0022"),
    ("st8000dm004", "seagate-st8000dm004"),
    ("emulated-smr-1", "emulated-smr-1"),
    ("emulated-smr-2", "emulated-smr-2"),
    ("emulated-smr-3", "emulated-smr-3"),
    ("cassuto-307g", "cassuto-307g"),
    ("imr-1t", "imr-1t"),
    ("imr-20t", "imr-20t"),
];
