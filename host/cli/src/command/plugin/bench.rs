//! `orangery plugin bench`: what the recorded cases of a component cost, and what those of another version cost.

use std::{num::NonZeroU16, path::PathBuf, time::Duration};

use clap::Args;
use serde::Serialize;

use super::{folder_of, inspect::size};
use crate::{
    authoring::{
        bench::{CaseCost, MeasuredComponent, measure},
        cases,
        loaded::ComponentPaths,
    },
    command_error::CommandError,
    exit::Exit,
    form::OutputFormat,
    terminal::Terminal,
};

const HELP: &str = "\
Examples:
  orangery plugin bench mine.wasm                        the cases in ./cases
  orangery plugin bench mine.wasm --against before.wasm  two versions side by side: below 1 is less than before
  orangery plugin bench mine.wasm -o json                for programs

Each case is run as `orangery plugin test` runs it: every call in an instance of its own, in a process without credentials, with
the grants and limits of the registration. Figures are of all calls of a case: making the instances and calling them, the medians
of --runs; linear memory in the end; and fuel, the steps of the component, which are the same on every machine and are counted
in a run of its own with code that counts. Starting a process and compiling are part of none. The exit code is 1 when a case
does not pass.

Output of -o json and -o yaml (fields are added, never renamed or removed):
  runs
  component, against   {file, digest, size}
  cases                a list of {name, problems, cost, against, ratio}; cost and against are {calls, instantiateNanoseconds,
                       callNanoseconds, memoryBytes, fuel}, ratio is {instantiate, call, memory, fuel}, null where nothing was
                       spent before";

/// Measures what the recorded cases of a component cost: instances, calls, memory and fuel.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PluginBench {
    /// The component (.wasm)
    pub file: PathBuf,
    /// Another version of it (.wasm), to compare with
    #[arg(long, value_name = "OTHER")]
    pub against: Option<PathBuf>,
    /// Folder of the cases
    #[arg(long, value_name = "FOLDER", default_value = "cases")]
    pub cases: PathBuf,
    /// The registration (.yaml) [default: plugin.yaml beside the cases or the component; else everything is granted]
    #[arg(long, value_name = "FILE")]
    pub registration: Option<PathBuf>,
    /// How often each case is run
    #[arg(long, value_name = "NUMBER", default_value = "20")]
    pub runs: NonZeroU16,
    /// How it is written [default: for people]
    #[arg(short, long, value_enum, value_name = "FORM")]
    pub output: Option<OutputFormat>,
}

/// The output of `-o json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PluginBenchOutput<'a> {
    runs: u16,
    component: BenchedComponent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<BenchedComponent<'a>>,
    cases: Vec<BenchedCase<'a>>,
}

#[derive(Serialize)]
struct BenchedComponent<'a> {
    file: String,
    digest: &'a str,
    size: u64,
}

#[derive(Serialize)]
struct BenchedCase<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    problems: &'a [String],
    cost: BenchedCost,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<BenchedCost>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<CostRatio>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BenchedCost {
    calls: usize,
    instantiate_nanoseconds: u64,
    call_nanoseconds: u64,
    memory_bytes: u64,
    fuel: u64,
}

/// Each figure by that of the other version.
#[derive(Serialize)]
struct CostRatio {
    instantiate: Option<f64>,
    call: Option<f64>,
    memory: Option<f64>,
    fuel: Option<f64>,
}

impl PluginBench {
    /// Runs the cases, and prints what they cost.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let folders = cases::all(&self.cases)?;
        let near = [folder_of(&self.cases), folder_of(&self.file)];
        let of = |file| ComponentPaths { file, registration: self.registration.as_deref(), near: &near };
        let runs = self.runs.get();
        let measured = measure(of(&self.file), &folders, usize::from(runs)).await?;
        let against = match &self.against {
            Some(other) => Some(measure(of(other), &folders, usize::from(runs)).await?),
            None => None,
        };
        match self.output {
            Some(form) => form.write(&document(runs, &measured, against.as_ref()), terminal)?,
            None => {
                text(&measured, against.as_ref()).iter().try_for_each(|line| terminal.line(line))?;
            }
        }
        let passes = measured.cases.iter().all(|case| case.problems.is_empty());
        Ok(if passes { Exit::Ok } else { Exit::Failed })
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn cost(case: &CaseCost) -> BenchedCost {
    BenchedCost {
        calls: case.calls,
        instantiate_nanoseconds: nanoseconds(case.instantiate),
        call_nanoseconds: nanoseconds(case.call),
        memory_bytes: case.memory,
        fuel: case.fuel,
    }
}

/// How much of the other one, to two places; `None` where that is nothing.
fn ratio(of: u64, other: u64) -> Option<f64> {
    (other > 0).then(|| (of as f64 / other as f64 * 100.0).round() / 100.0)
}

fn document<'a>(
    runs: u16,
    measured: &'a MeasuredComponent,
    against: Option<&'a MeasuredComponent>,
) -> PluginBenchOutput<'a> {
    let component = |of: &'a MeasuredComponent| BenchedComponent {
        file: of.file.display().to_string(),
        digest: &of.digest,
        size: of.size,
    };
    let benched = |(at, case): (usize, &'a CaseCost)| {
        let (cost_of, other) = (cost(case), against.and_then(|against| against.cases.get(at)).map(cost));
        let ratio = other.as_ref().map(|other| CostRatio {
            instantiate: ratio(cost_of.instantiate_nanoseconds, other.instantiate_nanoseconds),
            call: ratio(cost_of.call_nanoseconds, other.call_nanoseconds),
            memory: ratio(cost_of.memory_bytes, other.memory_bytes),
            fuel: ratio(cost_of.fuel, other.fuel),
        });
        BenchedCase { name: &case.name, problems: &case.problems, cost: cost_of, against: other, ratio }
    };
    let cases = measured.cases.iter().enumerate().map(benched).collect();
    PluginBenchOutput { runs, component: component(measured), against: against.map(component), cases }
}

/// A table: a line for each case, or for each figure where two versions stand side by side.
fn text(measured: &MeasuredComponent, against: Option<&MeasuredComponent>) -> Vec<String> {
    let rows = match against {
        None => alone(measured),
        Some(against) => side_by_side(measured, against),
    };
    let mut lines = aligned(&rows);
    for (of, cases) in [Some(measured), against].into_iter().flatten().map(|of| (&of.file, &of.cases)) {
        for case in cases.iter().filter(|case| !case.problems.is_empty()) {
            let first = case.problems.first().map(String::as_str).unwrap_or_default();
            lines.push(format!("{}: {} does not pass: {first}", of.display(), case.name.escape_debug()));
        }
    }
    lines
}

fn alone(measured: &MeasuredComponent) -> Vec<Vec<String>> {
    let head = ["case", "calls", "instantiate", "call", "memory", "fuel"].map(str::to_owned).to_vec();
    let row = |case: &CaseCost| {
        let name = case.name.escape_debug().to_string();
        let [instantiate, call, memory, fuel] = figures(case).map(|(_, shown, _)| shown);
        vec![name, case.calls.to_string(), instantiate, call, memory, fuel]
    };
    [head].into_iter().chain(measured.cases.iter().map(row)).collect()
}

fn side_by_side(measured: &MeasuredComponent, against: &MeasuredComponent) -> Vec<Vec<String>> {
    let (this, other) = (measured.file.display().to_string(), against.file.display().to_string());
    let mut rows = vec![vec!["case".to_owned(), String::new(), this, other, "ratio".to_owned()]];
    for (case, before) in measured.cases.iter().zip(&against.cases) {
        let mut name = case.name.escape_debug().to_string();
        for ((figure, shown, of), (_, shown_before, of_before)) in figures(case).into_iter().zip(figures(before)) {
            let ratio = ratio(of, of_before).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
            rows.push(vec![std::mem::take(&mut name), figure.to_owned(), shown, shown_before, ratio]);
        }
    }
    rows
}

/// Each figure with its name, for people, and as a number.
fn figures(case: &CaseCost) -> [(&'static str, String, u64); 4] {
    let time = |name, duration| (name, shown_time(duration), nanoseconds(duration));
    [
        time("instantiate", case.instantiate),
        time("call", case.call),
        ("memory", size(case.memory), case.memory),
        ("fuel", grouped(case.fuel), case.fuel),
    ]
}

fn shown_time(duration: Duration) -> String {
    let microseconds = duration.as_secs_f64() * 1e6;
    if microseconds < 1_000.0 { format!("{microseconds:.0} µs") } else { format!("{:.1} ms", microseconds / 1e3) }
}

/// A number with a comma before each three of its digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Columns, each as wide as its widest cell.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn measured(file: &str, factor: u32, problems: &[&str]) -> MeasuredComponent {
        let case = CaseCost {
            name: "hello".to_owned(),
            problems: problems.iter().map(|problem| (*problem).to_owned()).collect(),
            calls: 1,
            instantiate: Duration::from_micros(40) * factor,
            call: Duration::from_micros(600) * factor,
            memory: u64::from(factor) << 20,
            fuel: 1_234_567 * u64::from(factor - 1),
        };
        MeasuredComponent { file: file.into(), digest: "sha256:0".to_owned(), size: 5, cases: vec![case] }
    }

    #[test]
    fn c_353_each_case_is_a_line_with_its_figures() {
        let expected = [
            "case   calls  instantiate  call    memory   fuel",
            "hello  1      80 µs        1.2 ms  2.0 MiB  1,234,567",
            "a.wasm: hello does not pass: /x: expected is 1, answered is 2",
        ];
        assert_eq!(text(&measured("a.wasm", 2, &["/x: expected is 1, answered is 2"]), None), expected);
    }

    #[test]
    fn c_353_two_versions_stand_side_by_side_with_ratios() {
        let (this, other) = (measured("a.wasm", 2, &[]), measured("b.wasm", 1, &[]));
        let expected = [
            "case                a.wasm     b.wasm   ratio",
            "hello  instantiate  80 µs      40 µs    2.00",
            "       call         1.2 ms     600 µs   2.00",
            "       memory       2.0 MiB    1.0 MiB  2.00",
            "       fuel         1,234,567  0        -",
        ];
        assert_eq!(text(&this, Some(&other)), expected);
        let cost = |factor: u64| {
            json!({"calls": 1, "instantiateNanoseconds": 40_000 * factor, "callNanoseconds": 600_000 * factor,
                   "memoryBytes": factor << 20, "fuel": 1_234_567 * (factor - 1)})
        };
        let component = |file: &str| json!({"file": file, "digest": "sha256:0", "size": 5});
        let ratio = json!({"instantiate": 2.0, "call": 2.0, "memory": 2.0, "fuel": null});
        let case = json!({"name": "hello", "cost": cost(2), "against": cost(1), "ratio": ratio});
        let expected =
            json!({"runs": 7, "component": component("a.wasm"), "against": component("b.wasm"), "cases": [case]});
        assert_eq!(serde_json::to_value(document(7, &this, Some(&other))).unwrap(), expected);
    }
}
