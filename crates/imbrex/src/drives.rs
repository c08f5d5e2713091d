//! Making drives from the text that names them (`imr-1t+track-map:interval=5000`): finds the profile, builds the layer, grows the drive
//! to the workload, and chooses the baseline to compare it with.

use std::path::Path;

use imbrex_device::drive::{EmulatedDrive, Making, header_of};
use imbrex_disk::{Profile, Sectors};
use imbrex_layer::{LayerInfo, registry};
use imbrex_sim::{Drive, DriveError, DriveSpec};

use crate::error::Failure;

/// What to do with a workload that reaches past the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FitChoice {
    /// Give the same geometry more tracks (and say so).
    Grow,
    /// Take addresses modulo the capacity.
    Wrap,
    /// Scale addresses to the capacity.
    Scale,
    /// Refuse.
    Error,
}

impl FitChoice {
    /// All choices, in the order in which they are described.
    pub const ALL: [FitChoice; 4] = [FitChoice::Grow, FitChoice::Wrap, FitChoice::Scale, FitChoice::Error];

    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            FitChoice::Grow => "grow",
            FitChoice::Wrap => "wrap",
            FitChoice::Scale => "scale",
            FitChoice::Error => "error",
        }
    }

    /// What it does, in a few words.
    pub fn help(self) -> &'static str {
        match self {
            FitChoice::Grow => "Give the same geometry more tracks (and say so)",
            FitChoice::Wrap => "Take addresses modulo the capacity",
            FitChoice::Scale => "Scale addresses to the capacity",
            FitChoice::Error => "Refuse",
        }
    }

    /// The choice called `word`.
    pub fn named(word: &str) -> Option<FitChoice> {
        FitChoice::ALL.into_iter().find(|choice| choice.word() == word)
    }
}

/// A drive, and how to make it again (each run needs a fresh one).
#[derive(Clone, Debug)]
pub struct DrivePlan {
    spec: DriveSpec,
    profile: Profile,
    /// Bytes of workload it has to hold, where it may grow.
    grow_to_bytes: Option<u64>,
    /// Bytes it offers: kept, since laying out a large drive takes a second.
    capacity_bytes: u64,
    /// Whether the program added it, to compare with.
    pub is_baseline: bool,
}

/// One drive of every kind, from the registries: each layer on the first profile made for it, or else on the first whose
/// tracks overlap as the layer takes it. What runs without `--drive`.
pub fn one_of_every_kind() -> Vec<String> {
    let profiles: Vec<_> = Profile::names().into_iter().filter_map(Profile::named).collect();
    let drive_for = |info: &LayerInfo| {
        let made_for_it = profiles.iter().find(|profile| profile.default_layer == info.name);
        let overlaps = |profile: &&Profile| {
            let recording = profile.disk().recording.name();
            recording != "conventional" && info.recordings.contains(&recording)
        };
        let profile = made_for_it.or_else(|| profiles.iter().find(overlaps))?;
        Some(format!("{}+{}", profile.name, info.name))
    };
    // A host that knows no zones and no distances would only destroy its own data on a host-managed drive.
    let translating = registry::all().into_iter().filter(|info| !info.host_managed);
    translating.filter_map(drive_for).collect()
}

impl DrivePlan {
    /// The drive that `text` names.
    pub fn parse(text: &str) -> Result<DrivePlan, Failure> {
        let spec = DriveSpec::parse(text)?;
        let profile = find_profile(&spec.profile)?;
        DrivePlan { spec, profile, grow_to_bytes: None, capacity_bytes: 0, is_baseline: false }.laid_out()
    }

    /// The same, its capacity known; what cannot be built is refused here.
    fn laid_out(mut self) -> Result<DrivePlan, Failure> {
        self.capacity_bytes = self.build()?.capacity_bytes();
        Ok(self)
    }

    /// The capacity in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Builds the drive, with nothing written to it yet.
    pub fn build(&self) -> Result<Drive, DriveError> {
        let drive = Drive::build(&self.spec, &self.profile)?;
        match self.grow_to_bytes {
            Some(bytes) if drive.capacity_bytes() < bytes => {
                let sectors = Sectors(bytes.div_ceil(drive.disk.sector_bytes as u64));
                drive.grown_to(sectors, &self.spec.parameters)
            }
            _ => Ok(drive),
        }
    }

    /// As given with `--drive`.
    pub fn label(&self) -> &str {
        &self.spec.text
    }

    /// Whether its layer is the identity.
    pub fn is_conventional(&self) -> bool {
        self.spec.layer.as_deref().unwrap_or(&self.profile.default_layer) == "conventional"
    }

    /// What the conventional drive of like geometry is called.
    pub fn baseline_label(&self) -> String {
        format!("{}+conventional", self.spec.profile)
    }

    /// The conventional drive of like geometry.
    pub fn baseline(&self) -> Result<DrivePlan, Failure> {
        let mut spec = DriveSpec::parse(&self.baseline_label())?;
        spec.profile_overrides = self.spec.profile_overrides.clone();
        // What is said of the recording holds for the overlap that the baseline is without.
        spec.profile_overrides.retain(|(key, _)| !key.starts_with("recording."));
        let (profile, grow_to_bytes) = (self.profile.clone(), self.grow_to_bytes);
        DrivePlan { spec, profile, grow_to_bytes, capacity_bytes: 0, is_baseline: true }.laid_out()
    }

    /// Makes it hold `workload_bytes`, or says why it cannot.
    pub fn fit(&mut self, choice: FitChoice, workload_bytes: u64) -> Result<Option<String>, Failure> {
        let capacity_bytes = self.capacity_bytes;
        if capacity_bytes >= workload_bytes {
            return Ok(None);
        }
        let reaches = format!(
            "the workload reaches to {}, past the end of {} ({})",
            crate::human::bytes(workload_bytes),
            self.label(),
            crate::human::bytes(capacity_bytes)
        );
        match choice {
            FitChoice::Error => Err(Failure::failed(reaches).or_try("--fit grow, wrap or scale, or a larger drive")),
            FitChoice::Grow => {
                self.grow_to_bytes = Some(workload_bytes);
                self.capacity_bytes = self.build()?.capacity_bytes();
                let grown = crate::human::bytes(self.capacity_bytes);
                Ok(Some(format!("{reaches}: it gets more tracks, {grown} in all (--fit grow)")))
            }
            FitChoice::Wrap => Ok(Some(format!("{reaches}: addresses wrap round (--fit wrap)"))),
            FitChoice::Scale => Ok(Some(format!("{reaches}: addresses are scaled to it (--fit scale)"))),
        }
    }
}

/// The drive that `text` names, as new.
pub fn fresh(text: &str) -> Result<Drive, Failure> {
    Ok(build(text)?.0)
}

/// The drive that `text` names, as new, with the words that it was made of.
pub fn build(text: &str) -> Result<(Drive, DriveSpec), Failure> {
    let spec = DriveSpec::parse(text)?;
    let drive = Drive::build(&spec, &find_profile(&spec.profile)?)?;
    Ok((drive, spec))
}

/// The drive that `text` names, as new, with bytes in memory and a clock of its own: to be served, or used as it is.
pub fn emulated(text: &str) -> Result<EmulatedDrive, Failure> {
    let (drive, spec) = build(text)?;
    let header = header_of(&drive, &spec, &Making::default())?;
    Ok(EmulatedDrive::in_memory_of(header, drive)?)
}

/// The profile called `name`, or in the file of that name.
pub fn find_profile(name: &str) -> Result<Profile, Failure> {
    if let Some(profile) = Profile::named(name) {
        return Ok(profile);
    }
    if !name.ends_with(".toml") {
        return Err(Failure::usage(format!("no profile is called '{name}'"))
            .or_try(format!("one of {}, or a TOML file of your own", Profile::names().join(", "))));
    }
    let text = std::fs::read_to_string(Path::new(name))
        .map_err(|error| Failure::failed(format!("cannot read the profile {name}: {error}")))
        .map_err(|failure| failure.or_try("a file that is there, or a name of `imbrex list profiles`"))?;
    Profile::parse(name, &text, &[]).map_err(Failure::usage)
}
