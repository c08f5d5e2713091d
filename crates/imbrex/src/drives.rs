//! Builds drives from the texts that name them (`imr-1t+track-map:interval=5000`): finds the profile, builds the layer,
//! grows the drive to the workload, and chooses the baseline drive for comparison.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use imbrex_device::drive::{EmulatedDrive, Making, header_of};
use imbrex_disk::{Profile, Sectors};
use imbrex_layer::parameters::{FORMS, Parameters};
use imbrex_layer::{LayerInfo, registry};
use imbrex_sim::{Drive, DriveError, DriveSpec};
use serde::{Deserialize, Serialize};

use crate::error::Failure;
use imbrex_units::names::suggestion;
use imbrex_units::quantity;

/// Treatment of a workload that addresses sectors past the end of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FitChoice {
    /// Give the disk more tracks of the same geometry until the workload fits, and tell the user.
    Grow,
    /// Take each address modulo the capacity of the drive.
    Wrap,
    /// Scale all addresses by the ratio of the drive's capacity to the end of the workload.
    Scale,
    /// Refuse the workload with an error.
    Error,
}

impl FitChoice {
    /// All choices, in the order of the help text.
    pub const ALL: [FitChoice; 4] = [FitChoice::Grow, FitChoice::Wrap, FitChoice::Scale, FitChoice::Error];

    /// Returns the name of the choice as the user writes it after `--fit`.
    pub fn word(self) -> &'static str {
        match self {
            FitChoice::Grow => "grow",
            FitChoice::Wrap => "wrap",
            FitChoice::Scale => "scale",
            FitChoice::Error => "error",
        }
    }

    /// Returns a one-line description of the choice for the help text.
    pub fn help(self) -> &'static str {
        match self {
            FitChoice::Grow => "Give the same geometry more tracks (and say so)",
            FitChoice::Wrap => "Take addresses modulo the capacity",
            FitChoice::Scale => "Scale addresses to the capacity",
            FitChoice::Error => "Refuse",
        }
    }

    /// Returns the choice that `word` names (see [`FitChoice::word`]), or `None` if there is none.
    pub fn named(word: &str) -> Option<FitChoice> {
        FitChoice::ALL.into_iter().find(|choice| choice.word() == word)
    }
}

/// A parsed drive text, such as `imr-1t+track-map`, from which any number of identical empty drives can be built. Each
/// run needs a new drive.
#[derive(Clone, Debug)]
pub struct DrivePlan {
    spec: DriveSpec,
    profile: Profile,
    /// Bytes of workload that the drive has to hold, if it was chosen to grow.
    grow_to_bytes: Option<u64>,
    /// Profile with the overrides of the drive's text applied, before growth.
    resolved: Profile,
    /// Capacity in bytes. It is cached because only a built drive has one.
    capacity_bytes: u64,
    /// Whether the program added this drive as the baseline that others are compared with. `false` for a drive that the
    /// user requested for simulation.
    pub is_baseline: bool,
}

/// Sections of a profile that a baseline lacks: the overlap of tracks, the flash, and the parameters of layers.
const NOT_OF_BASELINES: [&str; 3] = ["recording.", "flash.", "layer."];

/// Contents of the TOML files of drive profiles, each read once, by path. A sweep reads all profiles before its first
/// point runs, and passes them to points that run on other machines. So a file that is changed later, or is missing on
/// another machine, changes no result.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct ProfileFiles {
    texts: BTreeMap<String, String>,
}

impl ProfileFiles {
    /// Reads and keeps the profile file that the drive text `text` names. Does nothing if the text names a built-in
    /// profile, cannot be parsed, or names a file that was read before or cannot be read. Building the drive then
    /// reports the error.
    pub fn read(&mut self, text: &str) {
        let Some(file) = profile_file(text) else { return };
        let name = file.to_string_lossy().into_owned();
        if self.texts.contains_key(&name) {
            return;
        }
        if let Ok(text) = std::fs::read_to_string(&file) {
            self.texts.insert(name, text);
        }
    }

    /// Returns a copy of those of the files that the drive texts `texts` name. Ignores texts that cannot be parsed.
    pub fn of<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> ProfileFiles {
        let names = texts.into_iter().filter_map(|text| Some(DriveSpec::parse(text).ok()?.profile));
        let found = names.filter_map(|name| self.texts.get_key_value(&name));
        ProfileFiles { texts: found.map(|(name, text)| (name.clone(), text.clone())).collect() }
    }
}

/// Returns the file of the profile that the drive text `text` names. Returns `None` if the profile is built in or if the
/// text cannot be parsed.
pub fn profile_file(text: &str) -> Option<PathBuf> {
    let name = DriveSpec::parse(text).ok()?.profile;
    Profile::named(&name).is_none().then(|| name.into())
}

/// The word that stands for one drive of every kind ([`one_of_every_kind`]).
pub const ALL: &str = "all";

/// Name of the built-in workload whose drives are [`DEMO`], if no other is asked for.
pub(crate) const DEMO_WORKLOAD: &str = "demo";

/// The drives of the demonstration: a conventional one, one as it is sold, and two layers for each kind of overlap that
/// the papers describe.
pub(crate) const DEMO: [&str; 6] = [
    "cmr-7200",
    "seagate-st8000as0022",
    "cassuto-307g+set-associative",
    "cassuto-307g+s-blocks",
    "imr-1t+imr-rmw",
    "imr-1t+track-map",
];

/// Returns the texts of the drives for which the word [`ALL`] stands, and which `imbrex simulate` runs without `--drive` on
/// all workloads but the demonstration: one for each layer that is not host-managed. Its profile is the first built-in one whose default layer it is. If there is none, it is the first
/// built-in profile whose recording the layer supports, other than conventional recording. A layer without such a
/// profile is left out.
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
    // Host-managed layers are left out: a workload that ignores zones and distances would only destroy its own data.
    let translating = registry::all().into_iter().filter(|info| !info.host_managed);
    translating.filter_map(drive_for).collect()
}

impl DrivePlan {
    /// Parses the drive text `PROFILE[+LAYER][:key=value,…]`, finds its profile (a built-in one or a TOML file), and
    /// builds the drive once to learn its capacity.
    ///
    /// # Errors
    ///
    /// If the text cannot be parsed, the profile does not exist, or the drive cannot be built.
    pub fn parse(text: &str) -> Result<DrivePlan, Failure> {
        DrivePlan::parse_with(text, &ProfileFiles::default())
    }

    /// Parses the drive text `PROFILE[+LAYER][:key=value,…]`, and builds the drive once to learn its capacity. If
    /// `files` has the profile file that the text names, the file on disk is not read.
    ///
    /// # Errors
    ///
    /// If the text cannot be parsed, the profile does not exist, or the drive cannot be built.
    pub fn parse_with(text: &str, files: &ProfileFiles) -> Result<DrivePlan, Failure> {
        let spec = DriveSpec::parse(text)?;
        let profile = match files.texts.get(&spec.profile) {
            Some(text) => own_profile(&spec.profile, text)?,
            None => find_profile(&spec.profile)?,
        };
        DrivePlan::laid_out(spec, profile)
    }

    /// Returns the plan of the drive that `spec` names, whose profile is `profile`. Builds the drive once to learn its
    /// capacity. A drive that cannot be built is an error.
    fn laid_out(spec: DriveSpec, profile: Profile) -> Result<DrivePlan, Failure> {
        check_overrides(&spec, &profile)?;
        let drive = Drive::build(&spec, &profile)?;
        let capacity_bytes = drive.capacity_bytes();
        let resolved = drive.profile;
        Ok(DrivePlan { spec, profile, grow_to_bytes: None, resolved, capacity_bytes, is_baseline: false })
    }

    /// Returns the capacity in bytes that the drive's layer offers to the host, after growth by [`DrivePlan::fit`].
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Builds a new drive without data, grown as [`DrivePlan::fit`] decided.
    ///
    /// # Errors
    ///
    /// If the disk or the layer cannot be built with these parameters, or if the disk cannot grow enough.
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

    /// Returns the text of the drive as the user gave it. Of a baseline that the program derived from a drive, returns
    /// the text of [`DrivePlan::baseline_label`].
    pub fn label(&self) -> &str {
        &self.spec.text
    }

    /// Returns whether the layer is `conventional`, which maps each sector to itself.
    pub fn is_conventional(&self) -> bool {
        self.spec.layer.as_deref().unwrap_or(&self.profile.default_layer) == "conventional"
    }

    /// Returns the text of the baseline for this drive: its profile with the layer `conventional`, and the overrides of
    /// the profile that a conventional drive has too, such as `imr-1t+conventional:mechanics.seek.max_ms=9`.
    pub fn baseline_label(&self) -> String {
        let is_kept = |key: &str| !NOT_OF_BASELINES.iter().any(|section| key.starts_with(section));
        let kept = self.spec.profile_overrides.iter().filter(|(key, _)| is_kept(key));
        let kept: Vec<String> = kept.map(|(key, value)| format!("{key}={value}")).collect();
        let colon = if kept.is_empty() { "" } else { ":" };
        format!("{}+conventional{colon}{}", self.spec.profile, kept.join(","))
    }

    /// Returns the plan of the baseline for this drive, which [`DrivePlan::baseline_label`] names. It differs from the
    /// drive in recording and layer alone, and has no flash.
    ///
    /// # Errors
    ///
    /// If the baseline cannot be built.
    pub fn baseline(&self) -> Result<DrivePlan, Failure> {
        let spec = DriveSpec::parse(&self.baseline_label())?;
        // All overrides together are valid. Without those of the recording, a geometry may not be.
        let plan = DrivePlan::laid_out(spec, self.resolved.clone())?;
        Ok(DrivePlan { is_baseline: true, ..plan })
    }

    /// Returns whether this drive is the baseline of `drive`: a conventional drive of the same profile that differs from
    /// `drive` in recording, layer and flash alone. Compares the drives before growth.
    pub fn is_baseline_of(&self, drive: &DrivePlan) -> bool {
        self.is_conventional()
            && self.spec.profile == drive.spec.profile
            && self.resolved.has_same_conventional(&drive.resolved)
    }

    /// Prepares the drive for a workload that reaches up to byte `workload_bytes` (exclusive). Only [`FitChoice::Grow`]
    /// changes the drive; with [`FitChoice::Wrap`] and [`FitChoice::Scale`], the simulation maps the addresses. Returns
    /// a remark for the user, or `None` if the workload fits already.
    ///
    /// # Errors
    ///
    /// If the workload does not fit and `choice` is [`FitChoice::Error`], or if the grown drive cannot be built.
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

/// Builds a new drive without data from the drive text `text`.
///
/// # Errors
///
/// If the text cannot be parsed, the profile does not exist, or the drive cannot be built.
pub fn fresh(text: &str) -> Result<Drive, Failure> {
    Ok(build(text)?.0)
}

/// Builds a new drive without data from the drive text `text`, and returns the drive with the parsed text.
///
/// # Errors
///
/// If the text cannot be parsed, the profile does not exist, or the drive cannot be built.
pub fn build(text: &str) -> Result<(Drive, DriveSpec), Failure> {
    let spec = DriveSpec::parse(text)?;
    let profile = find_profile(&spec.profile)?;
    check_overrides(&spec, &profile)?;
    let drive = Drive::build(&spec, &profile)?;
    Ok((drive, spec))
}

/// Builds a new emulated drive from the drive text `text`. It keeps the written bytes in memory and has a simulated
/// clock of its own.
///
/// # Errors
///
/// If the text cannot be parsed, the profile does not exist, the drive cannot be built, or the emulated drive cannot be
/// made of the drive.
pub fn emulated(text: &str) -> Result<EmulatedDrive, Failure> {
    let (drive, spec) = build(text)?;
    let header = header_of(&drive, &spec, &Making::default()).map_err(Failure::usage)?;
    Ok(EmulatedDrive::in_memory_of(header, drive)?)
}

/// Returns the built-in profile called `name`, or else reads the profile from the TOML file `name`.
///
/// # Errors
///
/// If no built-in profile has this name and it does not end in `.toml`, or if the file cannot be read or parsed.
pub fn find_profile(name: &str) -> Result<Profile, Failure> {
    if let Some(profile) = Profile::named(name) {
        return Ok(profile);
    }
    if !name.ends_with(".toml") {
        let meant = suggestion(name, Profile::names());
        return Err(Failure::usage(format!("no profile is called '{name}'{meant}"))
            .or_try(format!("one of {}, or a TOML file of your own", Profile::names().join(", "))));
    }
    let text = std::fs::read_to_string(Path::new(name))
        .map_err(|error| Failure::failed(format!("cannot read the profile {name}: {error}")))
        .map_err(|failure| failure.or_try("a file that is there, or a name of `imbrex list profiles`"))?;
    own_profile(name, &text)
}

/// Parses the TOML `text` of the profile file `name`, and checks its sections of layers.
fn own_profile(name: &str, text: &str) -> Result<Profile, Failure> {
    let profile = Profile::parse(name, text, &[]).map_err(Failure::usage)?;
    check_layers(&profile)?;
    Ok(profile)
}

/// Checks the parameters of layers that the text of a drive sets by dotted keys, such as `layer.s-blocks.sections=5`.
fn check_overrides(spec: &DriveSpec, profile: &Profile) -> Result<(), Failure> {
    if !spec.profile_overrides.iter().any(|(key, _)| key.starts_with("layer.")) {
        return Ok(());
    }
    // A wrong key elsewhere is reported when the drive is built.
    profile.with(&spec.profile_overrides).map_or(Ok(()), |profile| check_layers(&profile))
}

/// Checks the names, keys and values of a profile's sections of layers, of the layers not in use too.
fn check_layers(profile: &Profile) -> Result<(), Failure> {
    for layer in profile.layer_parameters.keys() {
        let refuse = |key: &str, reason: &str| Failure::usage(profile.refuse(&format!("layer.{layer}{key}"), reason));
        let Some(info) = registry::named(layer) else {
            let names: Vec<_> = registry::all().into_iter().map(|info| info.name).collect();
            let meant = suggestion(layer, names.iter().copied());
            return Err(refuse("", &format!("no layer is called '{layer}'{meant}; there are {}", names.join(", "))));
        };
        let given = profile.parameters_for(layer);
        for pair in &given {
            Parameters::new(info.parameters, std::slice::from_ref(pair))
                .map_err(|error| refuse(&format!(".{}", pair.0), &error.0))?;
        }
        let value = |key: &str| given.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        for (first, second) in FORMS {
            if value(second).is_some() && value(first).is_some_and(|value| quantity::bytes(value) != Some(0)) {
                let reason = format!(
                    "gives the same quantity as {first}, which this profile or its base sets: leave one out, or set \
                     {first} = \"0\""
                );
                return Err(refuse(&format!(".{second}"), &reason));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! Goal: nothing in a profile's sections of layers is ignored. Method: sections with one fault each, on every kind of
    //! fault, and every built-in profile.

    use super::*;

    fn refused(section: &str) -> String {
        let text = format!("base = \"cassuto-307g\"\nname = \"own\"\nsummary = \"ours\"\n{section}\n");
        own_profile("own.toml", &text).expect_err(section).message
    }

    #[test]
    fn faults_in_sections_of_layers_are_refused_with_file_and_line() {
        for (section, said) in [
            ("[layer.set_associative]\ncache_share = \"2%\"", "own.toml:4: layer.set_associative: no layer is called"),
            ("[layer.set_associative]\ncache_share = \"2%\"", "set-associative"),
            ("[layer.s-blocks]\nsektions = 3", "own.toml:5: layer.s-blocks.sektions: unknown parameter 'sektions'"),
            // Not in use: the profile's layer is another one.
            ("[layer.media-cache]\nidle = \"soon\"", "own.toml:5: layer.media-cache.idle"),
            (
                "[layer.set-associative]\ncache_size = \"1GiB\"\ncache_share = \"2%\"",
                "own.toml:6: layer.set-associative.cache_share: gives the same quantity as cache_size",
            ),
        ] {
            let message = refused(section);
            assert!(message.contains(said), "{message}");
        }
    }

    #[test]
    fn faults_in_parameters_of_layers_given_by_dotted_keys_are_refused() {
        for (setting, said) in [
            ("layer.set_associative.cache_share=2%", "layer.set_associative"),
            ("layer.s-blocks.sektions=5", "unknown parameter 'sektions'"),
        ] {
            for failure in [
                DrivePlan::parse(&format!("cassuto-307g:{setting}")).expect_err(setting),
                fresh(&format!("cassuto-307g:{setting}")).expect_err(setting),
            ] {
                assert!(failure.message.contains(said), "{}", failure.message);
            }
        }
        fresh("cassuto-307g:layer.s-blocks.sections=500").expect("right words");
    }

    #[test]
    fn built_in_profiles_and_a_form_that_is_switched_off_are_accepted() {
        for name in Profile::names() {
            let text = format!("base = \"{name}\"\nname = \"own\"\nsummary = \"ours\"\n");
            own_profile("own.toml", &text).unwrap_or_else(|failure| panic!("{name}: {}", failure.message));
        }
        let both = "[layer.set-associative]\ncache_size = \"0\"\ncache_share = \"2%\"";
        let text = format!("base = \"cassuto-307g\"\nname = \"own\"\nsummary = \"ours\"\n{both}\n");
        own_profile("own.toml", &text).expect("the first form is switched off");
    }
}
