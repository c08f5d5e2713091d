//! Golden plans on a toy, computed by hand; the paper's counts on plans without timing; its times on the mechanics.

mod golden;
mod later;
mod paper;
mod streams;
mod times;

use imbrex_disk::{Command, Profile};

use super::MediaCache;
use crate::context::Context;
use crate::layer::Layer;
use crate::parameters::Parameters;
use crate::plan::{GroupKind, Kind, Plan, StepOp};

/// One surface of tracks of four sectors: a block of Aghayev 2015 fig. 14 is one sector, a half track two.
const TOY: &str = "name = 'toy'
summary = 'toy'
default_layer = 'conventional'
[geometry]
layout = 'cylinder'
surfaces = 1
rotation_ns = 1000
zones = [{ tracks = 80, track_sectors = 4 }]
[mechanics]
rotation = 'exact'
seek = { model = 'linear', min_ns = 10, max_ns = 100 }
[recording]
";

const CONVENTIONAL: &str = "kind = 'conventional'";
/// Returns the layer on `profile`; the parameters `given` (`key=value,…`) override those of the profile.
fn on(profile: &Profile, given: &str) -> MediaCache {
    let pairs = given.split(',').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').expect("key=value"));
    let mut all = profile.parameters_for("media-cache");
    all.extend(pairs.map(|(key, value)| (key.to_string(), value.to_string())));
    let parameters = Parameters::new(super::INFO.parameters, &all).expect("good parameters");
    MediaCache::new(&Context { disk: profile.disk(), parameters }).expect("it fits")
}

fn toy(recording: &str, given: &str) -> MediaCache {
    let profile = Profile::parse("toy", &format!("{TOY}{recording}"), &[]).expect("a good profile");
    on(&profile, given)
}

/// Returns the 5 TB drive of Aghayev 2015.
fn seagate() -> Profile {
    Profile::named("seagate-st5000as0011").expect("it is built in")
}

/// Returns the plan of `commands`; checks the invariants after planning.
fn planned(layer: &mut MediaCache, commands: &[Command]) -> Plan {
    let mut plan = Plan::new();
    layer.plan(commands, &mut plan);
    layer.self_check().expect("invariants hold");
    plan
}

/// Returns the first waiting writes that the layer takes in one operation.
fn batch<'a>(layer: &MediaCache, waiting: &'a [Command]) -> &'a [Command] {
    let joined = (1..waiting.len()).find(|&count| !layer.joins(&waiting[..count], &waiting[count]));
    &waiting[..joined.unwrap_or(waiting.len())]
}

/// Returns how many writes of `sectors` to distinct places, `depth` at a time, the layer takes before it cleans.
fn writes_until_cleaning(layer: &mut MediaCache, sectors: u32, depth: usize) -> u64 {
    // A step that is coprime to the number of places visits each of them once.
    let places = layer.capacity().0 / sectors as u64;
    let step = (places / 7..).find(|&step| gcd(step, places) == 1).expect("there are primes");
    let mut number = 0;
    let (mut plan, mut waiting, mut written) = (Plan::new(), Vec::new(), 0);
    while !plan.phases.iter().any(|phase| phase.kind == GroupKind::Cleaning) {
        while waiting.len() < depth {
            waiting.push(Command::write(number % places * (step % places) % places * sectors as u64, sectors));
            number += 1;
        }
        let joined = batch(layer, &waiting).len();
        plan.clear();
        layer.plan(&waiting[..joined], &mut plan);
        waiting.drain(..joined);
        written += host_sectors_before_cleaning(&plan);
    }
    assert_eq!(written % sectors as u64, 0, "no write is torn by the count");
    written / sectors as u64
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn host_sectors_before_cleaning(plan: &Plan) -> u64 {
    let before = (0..plan.phases.len()).take_while(|&index| plan.phases[index].kind == GroupKind::Host);
    let steps = before.flat_map(|index| plan.steps_of(index));
    let written = steps.filter(|step| step.op == StepOp::Write && step.kind == Kind::Data);
    written.map(|step| step.sectors as u64).sum()
}
