//! Making a file system: the place of its hot zone ([`crate::hot`]), and whether the files there are in the store, too.

use imbrex_units::quantity::Rounding;

use super::make_options::{HotOn, MakeOptions, Parts, size_of_blocks};
use crate::format::hot_part::{HotPart, room_on};
use crate::hot::{Keeping, split};

/// Returns the option to add for files in the hot zone. If the zone is mirrored with the metadata and
/// [`Keeping::OPTION`] is not given, files in the zone are stored only there (`alone`). Fails if `alone` is given for a
/// zone that is not mirrored.
pub(super) fn hot_option(parts: Parts<'_>, options: &MakeOptions) -> Result<Vec<(String, String)>, String> {
    let said = options.options.iter().find(|(key, _)| key == Keeping::OPTION).map(|(_, value)| value.as_str());
    let (keeping, is_mirrored) = (Keeping::named(said)?, parts.metadata.len() > 1);
    if keeping == Keeping::Alone && options.hot_on == HotOn::Drives {
        return Err("hot_files=alone needs --hot-on meta: a hot zone on drives holds copies".into());
    }
    if keeping == Keeping::Alone && !is_mirrored {
        return Err("hot_files=alone needs a mirrored hot zone: give --meta twice".into());
    }
    let is_default = options.hot_blocks > 0 && is_mirrored && said.is_none() && options.hot_on == HotOn::Metadata;
    Ok(Vec::from_iter(is_default.then(|| (Keeping::OPTION.to_string(), "alone".to_string()))))
}

/// Returns the parts of the hot zone on the drives; none unless [`HotOn::Drives`] is chosen. Fails if the metadata are
/// on the drive, too, or the drives have too little room.
pub(in crate::core) fn hot_parts(parts: Parts<'_>, options: &MakeOptions) -> Result<Vec<HotPart>, String> {
    if options.hot_on == HotOn::Metadata || options.hot_blocks == 0 {
        return Ok(Vec::new());
    }
    if parts.metadata.is_empty() {
        return Err(
            "has the metadata on it, and the hot zone with them: --hot-on drives is for metadata on a device of their \
                    own"
            .into(),
        );
    }
    let rooms: Vec<u64> = parts.drives.iter().map(|drive| room_on(&drive.geometry())).collect();
    split(options.hot_blocks, &rooms).ok_or_else(|| {
        let wanted = size_of_blocks(options.hot_blocks, Rounding::Nearest);
        let most = size_of_blocks(rooms.iter().sum(), Rounding::Down);
        format!(
            "and the other drives cannot give a hot zone of {wanted}: {most} at most, in conventional zones and on half of each \
             conventional disk"
        )
    })
}
