//! `imbrex probe`: what is inside this drive?

use comfy_table::{presets, ContentArrangement, Table};
use imbrex_layer::parameters::parse_duration_ns;
use imbrex_probe::{experiments, probe, Options, Property, Simulated, Value, Verdict};

use crate::args::ProbeArgs;
use crate::error::{ExitCode, Failure};
use crate::progress::Bars;
use crate::simulate::drives::DrivePlan;
use crate::{human, interrupt, output};

/// Runs the command.
pub fn run(args: &ProbeArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let Some(words) = args.target.strip_prefix("sim:") else {
        return Err(Failure::usage(format!("'{}' is no target this version knows", args.target))
            .or_try("sim:DRIVE, such as sim:seagate-st5000as0011"));
    };
    let names: Vec<_> = experiments::all().iter().map(|experiment| experiment.name).collect();
    if let Some(unknown) = args.tests.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(Failure::usage(format!("no test is called '{unknown}'; there are: {}", names.join(", "))));
    }
    let budget_ns = match &args.budget {
        None => u64::MAX,
        Some(text) => parse_duration_ns(text)
            .ok_or_else(|| Failure::usage(format!("--budget {text}: expected a time such as 30m or 2h")))?,
    };
    let mut target = Simulated::new(DrivePlan::parse(words)?.build()?);
    let bars = Bars::new(quiet);
    let bar = bars.steps(&args.target);
    let mut options = Options {
        may_write: true,
        only: args.tests.clone(),
        budget_ns,
        seed: args.seed,
        progress: &mut |name| {
            bar.set_message(name.to_string());
            bar.tick();
            !interrupt::requested()
        },
    };
    let verdict = probe(&mut target, &mut options).map_err(Failure::failed)?;
    bar.finish_and_clear();
    if args.json {
        output::line(&serde_json::to_string_pretty(&verdict).map_err(Failure::failed)?)?;
    } else {
        print(&verdict)?;
    }
    Ok(if interrupt::requested() { ExitCode::Failed } else { ExitCode::Done })
}

fn print(verdict: &Verdict) -> Result<(), Failure> {
    output::line(&format!(
        "{}: {}, {} on its clock",
        verdict.target,
        human::bytes(verdict.size_bytes),
        human::duration_ns(verdict.target_ns)
    ))?;
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["property", "value", "confidence", "because"]);
    for property in &verdict.properties {
        let confidence = format!("{:?}", property.confidence).to_lowercase();
        table.add_row([property.name.replace('_', " "), shown(property), confidence, property.because.clone()]);
    }
    output::line(&table.to_string())?;
    for left_out in &verdict.left_out {
        output::line(&format!("left out  {left_out}"))?;
    }
    Ok(())
}

fn shown(property: &Property) -> String {
    match &property.value {
        Value::Word(word) => word.to_string(),
        Value::CannotTell => "cannot tell".into(),
        Value::Number(number) if property.unit == "B" => human::bytes(*number as u64),
        Value::Number(number) if number.fract() == 0.0 => format!("{} {}", human::count(*number as u64), property.unit),
        Value::Number(number) => format!("{number:.2} {}", property.unit),
    }
}
