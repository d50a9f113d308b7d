//! What the recorded cases of a component cost: each call in an instance of its own, in a process of its own, as for the operator.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use orangery_plugin::{CallCost, CallCosts, CodeCounts};

use crate::{
    authoring::{
        cases::{self, CallLog, CaseKind, Expectation},
        loaded::{ComponentPaths, LoadedComponent},
    },
    command_error::CommandError,
};

/// What a case costs: the sums over its calls, which are several where a job goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseCost {
    /// The case: the name of its folder.
    pub name: String,
    /// What is wrong with its answer; empty where it passes.
    pub problems: Vec<String>,
    /// How often the component is called.
    pub calls: usize,
    /// Making the instances: the median of all runs.
    pub instantiate: Duration,
    /// The calls themselves, answers of the host included: the median of all runs.
    pub call: Duration,
    /// Bytes of linear memory in the end of the call that has most.
    pub memory: u64,
    /// Steps, counted in a run of its own, with code that counts.
    pub fuel: u64,
}

/// What the cases of a component cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredComponent {
    /// Its file.
    pub file: PathBuf,
    /// `sha256:…` of it.
    pub digest: String,
    /// Bytes.
    pub size: u64,
    /// In the order of the cases.
    pub cases: Vec<CaseCost>,
}

/// Runs each case so often, and once more with code that counts its steps.
///
/// # Errors
/// As [`LoadedComponent::read`].
pub async fn measure(
    of: ComponentPaths<'_>,
    cases: &[(PathBuf, CaseKind)],
    runs: usize,
) -> Result<MeasuredComponent, CommandError> {
    let timed = CallCosts::of(CodeCounts::Nothing);
    let component = LoadedComponent::measured(of, timed.clone())?;
    let mut measured = Vec::new();
    for case in cases {
        let mut all = Vec::new();
        for _ in 0..runs {
            all.push(run(&component, case, &timed).await);
        }
        measured.push(all);
    }
    let inspection = component.inspection;
    let counted = CallCosts::of(CodeCounts::Fuel);
    let component = LoadedComponent::measured(of, counted.clone())?;
    let mut costs = Vec::new();
    for (case, runs) in cases.iter().zip(measured) {
        let fuel = run(&component, case, &counted).await;
        costs.push(summed(&case.0, runs, &fuel.costs));
    }
    Ok(MeasuredComponent { file: of.file.to_owned(), digest: inspection.digest, size: inspection.size, cases: costs })
}

/// A run of a case.
struct CaseRun {
    problems: Vec<String>,
    costs: Vec<CallCost>,
}

async fn run(component: &LoadedComponent, (folder, kind): &(PathBuf, CaseKind), costs: &CallCosts) -> CaseRun {
    let log = Arc::new(CallLog::default());
    let report = cases::run(component, folder, *kind, Expectation::Holds, &log).await;
    CaseRun { problems: report.problems, costs: costs.take() }
}

fn summed(folder: &Path, runs: Vec<CaseRun>, fuel: &[CallCost]) -> CaseCost {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let median = |of: fn(&CallCost) -> Duration| {
        let mut sums: Vec<Duration> = runs.iter().map(|run| run.costs.iter().map(of).sum()).collect();
        sums.sort_unstable();
        sums.get(sums.len() / 2).copied().unwrap_or_default()
    };
    CaseCost {
        name,
        instantiate: median(|cost| cost.instantiate),
        call: median(|cost| cost.call),
        calls: runs.first().map_or(0, |run| run.costs.len()),
        memory: runs.iter().flat_map(|run| &run.costs).map(|cost| cost.memory).max().unwrap_or(0),
        fuel: fuel.iter().map(|cost| cost.fuel).sum(),
        problems: runs.into_iter().next().map(|run| run.problems).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_353_of_several_runs_the_median_counts_and_of_several_calls_the_sum() {
        let cost = |instantiate, call, memory, fuel| CallCost {
            instantiate: Duration::from_micros(instantiate),
            call: Duration::from_micros(call),
            memory,
            fuel,
        };
        let run = |costs: Vec<CallCost>| CaseRun { problems: vec!["wrong".to_owned()], costs };
        let runs = vec![
            run(vec![cost(1, 10, 5, 0), cost(2, 20, 9, 0)]),
            run(vec![cost(100, 1_000, 5, 0), cost(100, 1_000, 7, 0)]),
            run(vec![cost(2, 15, 5, 0), cost(2, 20, 7, 0)]),
        ];
        let expected = CaseCost {
            name: "hello".to_owned(),
            problems: vec!["wrong".to_owned()],
            calls: 2,
            instantiate: Duration::from_micros(4),
            call: Duration::from_micros(35),
            memory: 9,
            fuel: 30,
        };
        assert_eq!(summed(Path::new("cases/hello"), runs, &[cost(0, 0, 0, 10), cost(0, 0, 0, 20)]), expected);
        assert_eq!(summed(Path::new("a"), Vec::new(), &[]).calls, 0);
    }
}
