//! What was measured of two later drives.

/// What was measured of a drive.
pub(super) struct LaterDrive {
    /// Its profile.
    pub profile: &'static str,
    /// The cache, in GiB.
    pub cache_gib: u64,
    /// GiB written until it stalls, by size of write in KiB.
    pub effective_gib: &'static [(u64, f64)],
    /// Hours without commands before it cleans.
    pub idle_hours: u64,
    /// Hours in which a full cache drains.
    pub drain_hours: f64,
    /// MB/s into the cache.
    pub megabytes_per_second: f64,
}

/// Both.
pub(super) const DRIVES: [LaterDrive; 2] = [
    LaterDrive {
        profile: "seagate-st8000as0022",
        cache_gib: 28,
        effective_gib: &[(4, 0.73), (32, 5.83), (64, 11.7), (128, 23.3), (256, 28.0), (1024, 28.0)],
        idle_hours: 3,
        drain_hours: 5.0,
        megabytes_per_second: 120.0,
    },
    LaterDrive {
        profile: "seagate-st8000dm004",
        cache_gib: 48,
        effective_gib: &[(4, 1.41), (32, 11.3), (64, 22.5), (128, 45.0), (256, 48.0), (1024, 48.0)],
        idle_hours: 2,
        drain_hours: 9.0,
        megabytes_per_second: 102.0,
    },
];

/// How their figures are marked.
pub(super) const SOURCE: &str = "2026, unrefereed";
