//! Published measurements of two later drives.

/// Published measurements of a real drive.
pub(super) struct LaterDrive {
    /// Name of the profile that models the drive.
    pub profile: &'static str,
    /// Size of the drive's persistent cache, in GiB.
    pub cache_gib: u64,
    /// Effective size of the cache by write size: pairs of the size of a write in KiB and the GiB written until a write
    /// stalls.
    pub effective_gib: &'static [(u64, f64)],
    /// Number of hours without requests after which the drive begins to clean its cache.
    pub idle_hours: u64,
    /// Number of hours that the drive needs to empty a full cache.
    pub drain_hours: f64,
    /// Throughput of random writes into the cache, in MB/s (10⁶ bytes a second).
    pub megabytes_per_second: f64,
}

/// Measurements of both drives.
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

/// Mark of these measurements in reports.
pub(super) const SOURCE: &str = "2026, unrefereed";
