//! Computes the [`Shape`] that the parameters give on a disk: sizes from shares, guards as wide as writes reach, and a
//! place for every ring.
//!
//! The first shape ignores where strokes end (a stroke is a stretch of tracks that the arm passes in one direction). If
//! its rings cannot be placed, the payload shrinks or the guard widens, and the placement is repeated.

use imbrex_disk::{Disk, Pba, Sectors};

use super::cached::CACHE_RING_SECTORS_MAX;
use super::placement::{Misfit, RingStarts, place};
use super::shape::Shape;
use crate::parameters::{ConfigError, Parameters};

/// Number of tracks of the disk at which the reach of a write is sampled.
const SAMPLED_TRACKS: u64 = 256;
/// Number of ends of a write that are tried on each sampled track.
const SAMPLED_ENDS: u64 = 32;
/// Greatest length of an S-block in sectors: the end of an S-block at any stored 31-bit position still fits in 32 bits.
const SBLOCK_SECTORS_MAX: u64 = (1 << 30) - 1;
/// Most S-blocks of a disk: each takes 4 bytes of memory.
const SBLOCKS_MAX: u64 = 1 << 26;
/// Most attempts to place the rings, each with a wider guard or a smaller payload.
const ATTEMPTS: usize = 64;

impl Shape {
    /// Returns the sizes of the sections that `parameters` request on `disk`, and the places of the rings of all
    /// sections.
    ///
    /// # Errors
    ///
    /// A value is not possible, or the rings do not fit on the disk.
    pub(super) fn of(disk: &Disk, parameters: &Parameters) -> Result<(Shape, Vec<RingStarts>), ConfigError> {
        let mut asked = GeometryRequest::new(disk, parameters);
        for _ in 0..ATTEMPTS {
            let shape = asked.shape()?;
            match place(disk, &shape) {
                Ok(starts) => return Ok((shape, starts)),
                Err(Misfit::Reach { sectors }) => asked.interference = sectors,
                Err(Misfit::Short { sectors }) => asked.shrink(sectors)?,
            }
        }
        Err(ConfigError(format!(
            "no place found for {} sections: each ring has to lie within a stroke; use more, smaller sections",
            asked.sections
        )))
    }
}

/// The parameters in sectors.
struct GeometryRequest {
    disk_sectors: u64,
    payload: Option<u64>,
    /// Sectors that no ring can use, because they lie at the end of a stroke. They reduce the payload unless the
    /// payload is given.
    unusable: u64,
    sections: u64,
    sblock_sectors: u64,
    sblock_share: f64,
    cache_share: f64,
    guard: Option<u64>,
    interference: u64,
}

impl GeometryRequest {
    fn new(disk: &Disk, parameters: &Parameters) -> GeometryRequest {
        let sectors = |key: &str| parameters.bytes(key) / disk.sector_bytes as u64;
        GeometryRequest {
            disk_sectors: disk.geometry.sectors().0,
            payload: Some(sectors("size")).filter(|&size| size > 0),
            unusable: 0,
            sections: parameters.count("sections"),
            sblock_sectors: sectors("sblock_size"),
            sblock_share: parameters.share("sblock_share"),
            cache_share: parameters.share("cache_share"),
            guard: Some(sectors("guard")).filter(|&guard| guard > 0),
            interference: sampled_interference(disk),
        }
    }

    /// Returns Λ, the length of a guard band: the given one, or the shortest that protects the source of a copy.
    fn guard(&self) -> u64 {
        self.guard.unwrap_or(self.interference + self.sblock_sectors)
    }

    /// Reduces the payload by the sectors that the disk lacks, at least by one S-block for each section.
    ///
    /// # Errors
    ///
    /// A payload that the user gave is not reduced: the error says how many sectors are missing.
    fn shrink(&mut self, missing: u64) -> Result<(), ConfigError> {
        self.unusable += missing.max(self.sections * self.sblock_sectors);
        match self.payload {
            None => Ok(()),
            Some(payload) => Err(ConfigError(format!(
                "size of {payload} sectors does not fit the disk's {}: with its guards it lacks {missing}; lower size",
                self.disk_sectors
            ))),
        }
    }

    fn shape(&self) -> Result<Shape, ConfigError> {
        let refuse = |reason: String| Err(ConfigError(reason));
        if self.sections == 0 || self.sblock_sectors == 0 {
            return refuse("s-blocks needs sections of at least one, and an S-block of at least one sector".into());
        }
        if self.sblock_sectors > SBLOCK_SECTORS_MAX {
            return refuse(format!("sblock_size of {} sectors: at most {SBLOCK_SECTORS_MAX}", self.sblock_sectors));
        }
        if self.guard() < self.interference + self.sblock_sectors {
            let least = self.interference + self.sblock_sectors;
            return refuse(format!(
                "guard of {} sectors: at least {least} are needed, the interference distance ({}) and an S-block ({}); \
                 leave it out to have that",
                self.guard(),
                self.interference,
                self.sblock_sectors
            ));
        }
        let guards = self.sections.saturating_mul(2 * (self.guard() + self.interference));
        let room = self.disk_sectors.saturating_sub(guards).saturating_sub(self.unusable);
        let payload = self.payload.unwrap_or(room);
        if payload > room || room == 0 {
            return refuse(format!(
                "size of {payload} sectors and guards of {guards} do not fit the disk's {}: lower size, or use fewer \
                 sections (now {})",
                self.disk_sectors, self.sections
            ));
        }
        self.cut(payload / self.sections)
    }

    /// Divides a section of `payload` sectors into native S-blocks, spare S-blocks and cache.
    fn cut(&self, payload: u64) -> Result<Shape, ConfigError> {
        let share_of = |share: f64| (share * payload as f64).round() as u64;
        let cache_sectors = share_of(self.cache_share);
        let spare_sblocks = share_of(self.sblock_share) / self.sblock_sectors;
        let sblocks = payload.saturating_sub(cache_sectors) / self.sblock_sectors;
        if sblocks.saturating_mul(self.sections) > SBLOCKS_MAX {
            return Err(ConfigError(format!(
                "sblock_size of {} sectors makes {} S-blocks: at most {SBLOCKS_MAX}; use larger ones",
                self.sblock_sectors,
                sblocks.saturating_mul(self.sections)
            )));
        }
        if cache_sectors + self.guard() > CACHE_RING_SECTORS_MAX {
            return Err(ConfigError(format!(
                "{} sections make caches of {cache_sectors} sectors, with a guard of {}: at most {CACHE_RING_SECTORS_MAX} \
                 together; use more sections, or a smaller cache_share",
                self.sections,
                self.guard()
            )));
        }
        if spare_sblocks < 2 {
            return Err(ConfigError(format!(
                "{} sections leave {spare_sblocks} spare S-blocks of {} sectors each (a section has {payload}): \
                 at least two are needed; use fewer sections, smaller S-blocks or a larger sblock_share",
                self.sections, self.sblock_sectors
            )));
        }
        if cache_sectors == 0 || sblocks <= spare_sblocks {
            return Err(ConfigError(format!(
                "a section of {payload} sectors with a cache of {cache_sectors} and {spare_sblocks} spare S-blocks of \
                 {} sectors leaves nothing: use fewer sections, or other shares",
                self.sblock_sectors
            )));
        }
        Ok(Shape {
            sections: self.sections,
            sblock_sectors: self.sblock_sectors,
            native_sblocks: sblocks - spare_sblocks,
            spare_sblocks,
            cache_sectors,
            guard_sectors: self.guard(),
            interference_sectors: self.interference,
        })
    }
}

/// Returns the greatest number of sectors past the end of a write that the write destroys, sampled at many ends of
/// writes on tracks all over the disk.
fn sampled_interference(disk: &Disk) -> u64 {
    let sectors = disk.geometry.sectors().0;
    if disk.recording.is_harmless() || sectors == 0 {
        return 0;
    }
    let ends = (0..SAMPLED_TRACKS).flat_map(|sample| {
        let track = disk.geometry.track_of(Pba((sectors as u128 * sample as u128 / SAMPLED_TRACKS as u128) as u64));
        (1..=SAMPLED_ENDS)
            .map(move |end| (track.start, track.start + Sectors((track.sectors.0 * end).div_ceil(SAMPLED_ENDS))))
    });
    ends.map(|(start, end)| disk.guard_after(start, end).0).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    //! Goal: the sizes of Cassuto 2010 §V.D, and the refusals. The expected values are computed by hand.

    use super::*;

    /// Returns the parameters of a disk of 307.2 GB with S-blocks of 2000 sectors of 512 B, and an assumed interference
    /// of 64 sectors.
    fn cassuto(sections: u64) -> GeometryRequest {
        GeometryRequest {
            disk_sectors: 700_000_000,
            payload: Some(600_000_000),
            sections,
            sblock_sectors: 2000,
            sblock_share: 0.01,
            cache_share: 0.01,
            unusable: 0,
            guard: None,
            interference: 64,
        }
    }

    #[test]
    fn fifteen_hundred_sections_leave_two_spare_sblocks() {
        // A section has 400,000 sectors, and 1 % of them is 4000: two spare S-blocks, and 500 cached blocks of 4 KiB.
        let shape = cassuto(1500).shape().expect("fits");
        assert_eq!((shape.native_sblocks, shape.spare_sblocks, shape.cache_sectors), (196, 2, 4000));
        assert_eq!(shape.capacity(), Sectors(588_000_000));
        assert_eq!(shape.sections * shape.cache_sectors / 8, 750_000);
        assert_eq!(shape.copy_sectors(), 2000);
    }

    #[test]
    fn too_many_sections_are_refused_with_the_remedy() {
        let refusal = cassuto(1501).shape().unwrap_err().to_string();
        assert!(refusal.contains("1 spare S-blocks") && refusal.contains("fewer sections"), "{refusal}");
    }

    #[test]
    fn a_cache_longer_than_its_positions_can_say_is_refused() {
        // A section of 214,748,364,800 sectors has 2³¹ sectors of cache at 1 %, and a guard of 20,064 behind it.
        let asked = |payload| GeometryRequest {
            disk_sectors: 1 << 40,
            payload: Some(payload),
            sblock_sectors: 20_000,
            ..cassuto(1)
        };
        let refusal = asked(214_748_364_800).shape().unwrap_err().to_string();
        assert!(refusal.contains("2147483648 sectors, with a guard of 20064: at most 2147483647"), "{refusal}");
        // The shape fits with a cache that is 20,065 sectors shorter.
        let fits = asked(214_748_364_800 - 2_006_500).shape().expect("it fits");
        assert_eq!(fits.cache_sectors + fits.guard_sectors, (1 << 31) - 1);
    }

    #[test]
    fn a_guard_that_cannot_protect_a_copy_is_refused() {
        let asked = GeometryRequest { guard: Some(2063), ..cassuto(1500) };
        assert!(asked.shape().unwrap_err().to_string().contains("at least 2064"));
    }

    #[test]
    fn guards_lie_outside_the_size() {
        // Guards: 1500 × 2 × (2064 + 64) = 6,384,000 sectors beside the payload.
        let fits = GeometryRequest { disk_sectors: 606_384_000, ..cassuto(1500) };
        assert_eq!(fits.shape().expect("fits exactly").physical_sectors() * 1500, 606_384_000);
        let short = GeometryRequest { disk_sectors: 606_383_999, ..cassuto(1500) };
        assert!(short.shape().unwrap_err().to_string().contains("do not fit"));
    }
}
