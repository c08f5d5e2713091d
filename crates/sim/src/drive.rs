//! A drive: a profile, a layer over its disk, and the host side. The text `PROFILE[+LAYER][:key=value,…]` names a
//! drive.
//!
//! Keys with a dot (`geometry.surfaces`, `mechanics.seek.max_ms`) override the profile; the other keys are parameters
//! of the layer.

use imbrex_disk::profile::Host;
use imbrex_disk::recording::distances::CaveatDistances;
use imbrex_disk::{Profile, ProfileError, Sectors, SharedDisk};
use imbrex_layer::parameters::other_form;
use imbrex_layer::{ConfigError, Layer, Parameters, registry};
use imbrex_units::quantity;

/// The reason why a drive cannot be built or grown.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The text that names the drive has a wrong form, or the drive cannot grow to the wanted size.
    #[error("drive '{drive}': {reason}")]
    Words {
        /// Text of the drive, as the user gave it.
        drive: String,
        /// Text that states the fault and, if possible, how to correct it.
        reason: String,
    },
    /// An override makes the profile wrong.
    #[error("drive '{drive}': {source}")]
    Profile {
        /// Text of the drive, as the user gave it.
        drive: String,
        /// Fault of the profile that an override caused.
        source: ProfileError,
    },
    /// The layer does not exist or does not fit the disk, or a parameter of the layer is wrong.
    #[error("drive '{drive}': {source}")]
    Layer {
        /// Text of the drive, as the user gave it.
        drive: String,
        /// Fault of the layer's name or parameters.
        source: ConfigError,
    },
}

/// The parts of a text `PROFILE[+LAYER][:key=value,…]` that names a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriveSpec {
    /// The whole text that names the drive, as given: `PROFILE[+LAYER][:key=value,…]`.
    pub text: String,
    /// Profile: the name of a built-in profile, or the path of a TOML file.
    pub profile: String,
    /// Name of the translation layer; `None` if the text names none: then the profile's default layer is used.
    pub layer: Option<String>,
    /// Overrides of the profile that the text sets: pairs of key and value whose key has a dot.
    pub profile_overrides: Vec<(String, String)>,
    /// Parameters of the layer that the text sets: pairs of key and value whose key has no dot.
    pub parameters: Vec<(String, String)>,
}

impl DriveSpec {
    /// Parses `PROFILE[+LAYER][:key=value,…]`. Whether profile, layer and keys exist is not checked here.
    ///
    /// # Errors
    ///
    /// [`DriveError::Words`] if the profile or the layer is empty, a setting is not `key=value`, a key is given twice,
    /// or two keys give the same quantity in different units.
    pub fn parse(text: &str) -> Result<DriveSpec, DriveError> {
        let words = |reason: String| DriveError::Words { drive: text.into(), reason };
        let (head, settings) = match text.split_once(':') {
            Some((head, settings)) => (head, settings),
            None => (text, ""),
        };
        let (profile, layer) = match head.split_once('+') {
            Some((profile, layer)) => (profile, Some(layer.to_string())),
            None => (head, None),
        };
        if profile.is_empty() || layer.as_deref() == Some("") {
            return Err(words(
                "expected PROFILE[+LAYER][:key=value,…], such as cassuto-307g+s-blocks:sections=500".into(),
            ));
        }
        let mut spec = DriveSpec {
            text: text.into(),
            profile: profile.into(),
            layer,
            profile_overrides: Vec::new(),
            parameters: Vec::new(),
        };
        for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
            let Some((key, value)) = setting.split_once('=') else {
                return Err(words(format!("'{setting}' is not key=value")));
            };
            let (key, value) = (key.trim(), value.trim());
            let mut given = spec.profile_overrides.iter().chain(&spec.parameters).map(|(key, _)| key.as_str());
            let is_same = |given: &str| is_one_key(given, key) || Some(given) == other_form(key);
            if let Some(other) = given.find(|&given| is_same(given)) {
                let problem = if other == key { "is given twice" } else { "gives the same quantity: give one of them" };
                return Err(words(format!("'{setting}' beside {other}, which {problem}")));
            }
            let list = if key.contains('.') { &mut spec.profile_overrides } else { &mut spec.parameters };
            list.push((key.into(), value.into()));
        }
        Ok(spec)
    }
}

/// Returns whether two keys set one value: whether they are equal, or keys of a profile that differ in the unit of a time
/// alone.
fn is_one_key(one: &str, other: &str) -> bool {
    fn stem(key: &str) -> Option<&str> {
        ["_ns", "_us", "_ms"].iter().find_map(|unit| key.strip_suffix(unit)).filter(|stem| stem.contains('.'))
    }
    one == other || stem(one).is_some_and(|one| Some(one) == stem(other))
}

/// Initial divisor of the margin by which a drive is grown beyond proportion: a 512th of its size. The margin is needed
/// because guards and whole regions do not scale exactly. It is doubled as long as the drive's capacity does not grow.
const MARGIN_LEAST: u64 = 512;

/// Returns `amount` scaled by the ratio of `sectors` to `capacity`.
fn scaled(amount: u64, sectors: Sectors, capacity: Sectors) -> u128 {
    u128::from(amount) * u128::from(sectors.0) / u128::from(capacity.0.max(1))
}

/// A simulated drive that is ready to serve: a profile, its disk, and a translation layer over the disk.
pub struct Drive {
    /// Text of the drive, as the user gave it: `PROFILE[+LAYER][:key=value,…]`. A caller of [`Drive::assemble`] may
    /// give another name.
    pub label: String,
    /// Description of the drive's disk and host side, with the overrides of the user applied.
    pub profile: Profile,
    /// Disk of the drive: geometry, mechanics and recording, without contents.
    pub disk: SharedDisk,
    /// Translation layer of the drive, with its state.
    pub layer: Box<dyn Layer>,
    /// All parameters of the layer as pairs of key and value: those set by the user or the profile, and those with
    /// default values.
    pub parameters: Vec<(String, String)>,
    /// Host side of the drive: queue, scheduler, volatile caches and controller times.
    pub host: Host,
}

impl std::fmt::Debug for Drive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Drive({}+{})", self.profile.name, self.layer.name())
    }
}

impl Drive {
    /// Builds the drive that `spec` names. `profile` is the profile that `spec` names, without the overrides. If `spec`
    /// names no layer, the default of the profile is used. With the layer `conventional`, the disk becomes the
    /// conventional disk of like geometry: its tracks do not overlap.
    ///
    /// # Errors
    ///
    /// [`DriveError::Profile`] if an override is wrong; [`DriveError::Layer`] if the layer or a parameter is wrong.
    pub fn build(spec: &DriveSpec, profile: &Profile) -> Result<Drive, DriveError> {
        let profile = profile
            .with(&spec.profile_overrides)
            .map_err(|source| DriveError::Profile { drive: spec.text.clone(), source })?;
        let layer = spec.layer.clone().unwrap_or_else(|| profile.default_layer.clone());
        // `+conventional` on a disk whose tracks overlap means a drive of like geometry without the overlap.
        let profile = if layer == "conventional" { profile.conventional() } else { profile };
        Drive::assemble(&spec.text, profile, &layer, &spec.parameters)
    }

    /// Builds a drive from a profile, the name of a layer, and parameters of the layer that override those of the
    /// profile. `label` is the name of the drive in results and errors.
    ///
    /// # Errors
    ///
    /// [`DriveError::Layer`] if the layer does not exist or does not fit the disk, or a parameter is wrong.
    pub fn assemble(
        label: &str,
        profile: Profile,
        layer_name: &str,
        parameters: &[(String, String)],
    ) -> Result<Drive, DriveError> {
        let refused = |source| DriveError::Layer { drive: label.into(), source };
        let mut given = profile.parameters_for(layer_name);
        // A form of a quantity that the user gives replaces the profile's other form of it.
        given.retain(|(key, _)| !parameters.iter().any(|(other, _)| Some(other.as_str()) == other_form(key)));
        given.extend_from_slice(parameters);
        let disk = profile.disk();
        let layer = registry::build(layer_name, &disk, &given).map_err(refused)?;
        let info = registry::named(layer_name).expect("it has just been built");
        let effective = Parameters::new(info.parameters, &given).map_err(refused)?;
        Ok(Drive {
            label: label.into(),
            host: profile.host.clone(),
            parameters: effective.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            profile,
            disk,
            layer,
        })
    }

    /// Returns this drive, enlarged until its layer offers the host at least `sectors` sectors of the drive's own size.
    /// The larger drive is new and empty, and its layer is built with `parameters`; its parameter `size`, if it has
    /// one, grows with the disk. A drive that is large enough is returned unchanged.
    ///
    /// # Errors
    ///
    /// [`DriveError::Words`] if no disk of that size can be laid out; [`DriveError::Layer`] if the layer refuses the
    /// larger disk or a parameter.
    pub fn grown_to(self, sectors: Sectors, parameters: &[(String, String)]) -> Result<Drive, DriveError> {
        let mut drive = self;
        let mut margin = MARGIN_LEAST;
        while drive.layer.capacity() < sectors {
            let grown = drive.grown_once(sectors, margin, parameters)?;
            if grown.layer.capacity() > drive.layer.capacity() {
                drive = grown;
            } else if margin > 1 {
                // A layer that divides its disk into coarse shares may offer no more sectors on a slightly larger disk.
                margin /= 2;
            } else {
                let reason = format!("cannot grow to {} sectors: a disk of that size cannot be laid out", sectors.0);
                return Err(DriveError::Words { drive: drive.label, reason });
            }
        }
        Ok(drive)
    }

    /// Returns the drive on a larger disk: scaled by the ratio of `sectors` to its capacity, plus one `margin`-th of
    /// the result.
    fn grown_once(&self, sectors: Sectors, margin: u64, parameters: &[(String, String)]) -> Result<Drive, DriveError> {
        let wanted = scaled(self.disk.geometry.sectors().0, sectors, self.layer.capacity());
        let target = Sectors(u64::try_from(wanted + wanted / u128::from(margin)).unwrap_or(u64::MAX - 1) + 1);
        let mut given = parameters.to_vec();
        given.extend(self.scaled_size(sectors, margin));
        Drive::assemble(&self.label, self.profile.grown(target), self.layer.name(), &given)
    }

    /// Returns the layer's parameter `size`, scaled for a drive of `sectors`, if the layer has one. Otherwise the layer
    /// would take the old part of a larger disk, and offer no more sectors.
    fn scaled_size(&self, sectors: Sectors, margin: u64) -> Option<(String, String)> {
        let (key, text) = self.parameters.iter().find(|(key, _)| key == "size")?;
        let bytes = quantity::bytes(text).filter(|&bytes| bytes > 0)?;
        let wanted = scaled(bytes, sectors, self.layer.capacity());
        // The size grows with the disk, but gets only a quarter of the disk's margin.
        let wanted = wanted + wanted / (4 * u128::from(margin));
        u64::try_from(wanted).ok().map(|wanted| (key.clone(), wanted.to_string()))
    }

    /// Returns the capacity that the layer offers to the host, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.layer.capacity().0 * self.disk.sector_bytes as u64
    }

    /// Returns the capacity divided by that of a conventional drive with equally many surfaces: the profile's density
    /// gain times the share of the physical sectors that the layer offers to the host.
    pub fn capacity_gain(&self) -> f64 {
        self.profile.density_gain * self.layer.capacity().0 as f64 / self.disk.geometry.sectors().0 as f64
    }

    /// Returns the distances within which a write may destroy other sectors (DNOR and DID, Singh 2014 §3.2). Returns
    /// `None` unless this is a caveat disk whose host manages the damage.
    pub fn caveat_distances(&self) -> Option<CaveatDistances> {
        self.disk.recording.caveat_distances().filter(|_| self.layer.is_host_managed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_are_taken_apart() {
        let spec = DriveSpec::parse("imr-1t+track-cache:cache_tracks=500,mechanics.seek.max_ms=9").expect("is right");
        assert_eq!((spec.profile.as_str(), spec.layer.as_deref()), ("imr-1t", Some("track-cache")));
        assert_eq!(spec.parameters, [("cache_tracks".to_string(), "500".to_string())]);
        assert_eq!(spec.profile_overrides, [("mechanics.seek.max_ms".to_string(), "9".to_string())]);
        assert!(DriveSpec::parse("+s-blocks").is_err());
        assert!(DriveSpec::parse("cmr-7200:speed").unwrap_err().to_string().contains("'speed' is not key=value"));
    }

    /// The profile gives `cache_size`, which has precedence over `cache_share` within the layer.
    #[test]
    fn a_users_form_of_a_quantity_replaces_the_profiles_other_form() {
        let profile = Profile::named("emulated-smr-1").expect("it is built in");
        let capacity = |text: &str| {
            let spec = DriveSpec::parse(text).expect("is right");
            Drive::build(&spec, &profile).expect("it can be built").layer.capacity().0
        };
        let plain = capacity("emulated-smr-1");
        let shares = ["1%", "2%", "5%"].map(|share| capacity(&format!("emulated-smr-1:cache_share={share}")));
        assert!(shares[0] > shares[1] && shares[1] > shares[2], "{shares:?}");
        assert!(!shares.contains(&plain), "{shares:?} and {plain}");
        let tracks = ["20", "80"].map(|tracks| format!("emulated-smr-1:region_tracks={tracks}"));
        assert_ne!(capacity(&tracks[0]), capacity(&tracks[1]));
    }

    #[test]
    fn two_forms_or_one_key_twice_are_refused() {
        for (settings, said) in [
            ("cache_share=1%,cache_size=1GiB", "'cache_size=1GiB' beside cache_share, which gives the same quantity"),
            ("region_tracks=2,region_size=1m", "'region_size=1m' beside region_tracks"),
            ("log_bands=2,free_share=1%", "'free_share=1%' beside log_bands"),
            ("cache_share=1%,cache_share=2%", "'cache_share=2%' beside cache_share, which is given twice"),
            ("mechanics.settle_ns=1,mechanics.settle_ns=2", "beside mechanics.settle_ns, which is given twice"),
            (
                "mechanics.settle_ns=1,mechanics.settle_ms=2",
                "beside mechanics.settle_ns, which gives the same quantity",
            ),
            ("mechanics.seek.max_us=9,mechanics.seek.max_ms=2", "beside mechanics.seek.max_us, which gives the same"),
        ] {
            let error =
                DriveSpec::parse(&format!("emulated-smr-1:{settings}")).expect_err("one is too many").to_string();
            assert!(error.contains(said), "{settings}: {error}");
        }
    }
}
