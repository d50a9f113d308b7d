//! From a configuration to what the job does.

use orangery_sdk::{
    Completion, ExportRule, ExportSource, Next, Problem, Proposal,
    lenient::{Place, check_continuous_reconcile},
};
use serde_json::Value;

/// The group of the configuration and of the status.
const GROUP: &str = "mock.deployer.landscaper.gardener.cloud";

/// How long until an unfinished item is looked at again: the original's interval (`docs/wire.md` §7.2).
const AGAIN_IN_MILLISECONDS: u64 = 5000;

/// What a mock configuration asks for.
pub(crate) fn plan(config: &Value) -> Result<Proposal, Problem> {
    let config = Place::root(config);
    config.version(GROUP, &["v1alpha1"])?;
    check_continuous_reconcile(&config)?;
    let initial_phase = config.text_of("initialPhase")?;
    let phase = config.text_of("phase")?.or(initial_phase).unwrap_or("Succeeded");
    let exports = exports(&config)?;
    let next = match phase {
        "Succeeded" => Next::Finish(Completion { exports, afterwards: Vec::new() }),
        "Failed" => Next::Fail(Problem {
            // The original writes no error at all: the failure is asked for.
            code: "ERR_FOR_INFO_ONLY".to_owned(),
            message: "the configuration of this mock item asks for phase Failed".to_owned(),
            at: None,
        }),
        _ => Next::AgainIn((AGAIN_IN_MILLISECONDS, Vec::new())),
    };
    let mut proposal = Proposal::new(Vec::new(), next);
    if let Some(status) = config.field("providerStatus")? {
        status.object()?;
        // The API server takes no status whose type is no text.
        for name in ["apiVersion", "kind"] {
            status.text_of(name)?;
        }
        proposal.status = Some(status.value().to_string());
    }
    Ok(proposal)
}

fn exports(config: &Place<'_>) -> Result<Vec<ExportRule>, Problem> {
    let Some(export) = config.field("export")? else { return Ok(Vec::new()) };
    export.object()?;
    Ok(vec![ExportRule { key: String::new(), source: ExportSource::Value(export.value().to_string()) }])
}
