//! Goal: a measured geometry places sectors around spares and defects as its scheme requires, and a profile inherits
//! from its base. Method: a simple twin that lists every sector of a small zone and removes those that the scheme
//! takes; worked cases for the rest.

use imbrex_disk::geometry::{GeometryConfig, LayoutName, MeasuredConfig, MeasuredZone, SpareScheme, SurfaceOrder};
use imbrex_disk::{Geometry, Pba, Profile, Sectors};

const SURFACES: u64 = 2;
const CYLINDERS: u64 = 7;
const TRACK: u64 = 10;
const SLIPS: [u64; 3] = [3, 24, 67];
const SPARES: u64 = 2;
const RESERVED: u64 = 1;

fn config(spares: SpareScheme, order: SurfaceOrder) -> GeometryConfig {
    let zone = MeasuredZone {
        first_cylinder: 0,
        cylinders: CYLINDERS as u32,
        track_sectors: TRACK as u32,
        start_ns: 0,
        track_skew_ns: 3_000,
        cylinder_skew_ns: 4_000,
        reserved_sectors: RESERVED,
        spares: SPARES,
        slips: SLIPS.to_vec(),
        remaps: Vec::new(),
    };
    let measured = MeasuredConfig { order, spares, range_cylinders: Some(3), zones: vec![zone] };
    let plain = GeometryConfig::listed(SURFACES as u8, LayoutName::Cylinder, 10_000, &[]);
    GeometryConfig { measured: Some(measured), ..plain }
}

/// Returns the zone addresses of the user's sectors, in order, by a walk over all of them.
fn twin(scheme: SpareScheme) -> Vec<u64> {
    let all = SURFACES * CYLINDERS * TRACK;
    let cylinder = SURFACES * TRACK;
    let is_good = |address: &u64| !SLIPS.contains(address);
    let units = |unit: u64| (0..all).step_by(unit as usize).map(move |start| (start, (start + unit).min(all)));
    let first = |unit: u64, keep: u64| -> Vec<u64> {
        units(unit)
            .flat_map(|(start, end)| {
                let keep = if end - start == unit { keep } else { u64::MAX };
                (start..end).filter(is_good).take(keep as usize).collect::<Vec<_>>()
            })
            .collect()
    };
    let kept = match scheme {
        SpareScheme::None => (0..all).collect(),
        SpareScheme::Track => first(TRACK, TRACK - SPARES),
        SpareScheme::Cylinder => first(cylinder, cylinder - SPARES),
        SpareScheme::Range => first(3 * cylinder, 3 * cylinder - SPARES),
        SpareScheme::Zone => first(all, all - SPARES),
        SpareScheme::ZoneSlipToEnd => first(all, all - SPARES - SLIPS.len() as u64),
        SpareScheme::Disk => (0..all).filter(is_good).collect(),
        SpareScheme::CylinderSlipToEnd => {
            (0..all).filter(|address| address % cylinder < cylinder - SPARES).filter(is_good).collect()
        }
        SpareScheme::CylinderFrontSlipToEnd => {
            (0..all).filter(|address| address % cylinder >= SPARES).filter(is_good).collect()
        }
        SpareScheme::CylinderFront => units(cylinder)
            .flat_map(|(start, end)| {
                let good: Vec<u64> = (start..end).filter(is_good).collect();
                let spare = good.len() - (cylinder - SPARES) as usize;
                good[spare..].to_vec()
            })
            .collect::<Vec<_>>(),
        // The last two tracks; slips name tracks, which this twin does not have.
        SpareScheme::ZoneTracks => unreachable!("tested apart"),
    };
    kept.into_iter().skip(RESERVED as usize).collect()
}

#[test]
fn sectors_lie_where_a_walk_over_all_of_them_finds_them() {
    for scheme in [
        SpareScheme::None,
        SpareScheme::Track,
        SpareScheme::Cylinder,
        SpareScheme::Range,
        SpareScheme::Zone,
        SpareScheme::ZoneSlipToEnd,
        SpareScheme::Disk,
        SpareScheme::CylinderSlipToEnd,
        SpareScheme::CylinderFrontSlipToEnd,
        SpareScheme::CylinderFront,
    ] {
        let geometry = Geometry::new(&config(scheme, SurfaceOrder::Forward)).expect("can be built");
        let expected = twin(scheme);
        assert_eq!(geometry.sectors().0, expected.len() as u64, "{scheme:?}");
        for (pba, address) in expected.iter().enumerate() {
            let place = geometry.locate(Pba(pba as u64));
            let (cylinder, in_cylinder) = (address / (SURFACES * TRACK), address % (SURFACES * TRACK));
            let at = (place.radial_track as u64, place.surface as u64);
            assert_eq!(at, (cylinder, in_cylinder / TRACK), "{scheme:?}: PBA {pba} at {address}");
            assert_eq!(place.pba(), Pba(pba as u64), "{scheme:?}");
            assert_eq!(geometry.pba(place.radial_track, place.surface, place.sector), Pba(pba as u64), "{scheme:?}");
        }
        // Pieces end at gaps, and a piece passes in the time of its sectors.
        let mut next = Pba(0);
        while next.0 < geometry.sectors().0 {
            let piece = geometry.piece(next, Sectors(geometry.sectors().0 - next.0));
            assert_eq!(piece.transfer_ns as u64, piece.sectors as u64 * 1000, "{scheme:?}");
            let (first, last) = (next.0 as usize, next.0 as usize + piece.sectors as usize - 1);
            assert_eq!(expected[last] - expected[first], (last - first) as u64, "{scheme:?}: a piece without a gap");
            next = piece.extent().end();
        }
    }
}

#[test]
fn surfaces_turn_where_the_order_is_serpentine() {
    let geometry = Geometry::new(&config(SpareScheme::None, SurfaceOrder::Serpentine)).expect("can be built");
    let surface = |pba: u64| geometry.locate(Pba(pba)).surface;
    assert_eq!([0, 10, 20, 30, 40].map(surface), [0, 1, 1, 0, 0]);
}

#[test]
fn a_profile_takes_from_its_base_what_it_does_not_say() {
    let text = "base = \"cmr-7200\"\nname = \"mine\"\n[host]\nqueue = 4\n[mechanics.seek]\nmodel = \"linear\"\nmin_ns = 1\nmax_ns = 2\n";
    let profile = Profile::parse("mine.toml", text, &[]).expect("is right");
    let base = Profile::named("cmr-7200").expect("built in");
    assert_eq!((profile.name.as_str(), profile.host.queue), ("mine", 4));
    assert_eq!(profile.host.write_cache_bytes, base.host.write_cache_bytes);
    assert_eq!(profile.disk().geometry.sectors(), base.disk().geometry.sectors());
    assert_eq!(profile.disk().mechanics.seek(1).0, 1, "a table with a model is taken whole");
    let error = Profile::parse("mine.toml", "\nbase = \"none\"\n", &[]).expect_err("there is no such base").to_string();
    assert!(error.starts_with("mine.toml:2: base") && error.contains("no profile is called 'none'"), "{error}");
}
