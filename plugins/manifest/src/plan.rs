//! From a configuration to a proposal: one stage of objects, its gate, the exports, then the patches after deployment.

use orangery_sdk::{
    Completion, Gate, ObjectWrite, Problem, Proposal, Stage, Write,
    lenient::{Place, check_continuous_reconcile},
};
use serde_json::{Value, json};

use crate::{
    deletion, exports,
    manifests::{Manifest, Version, manifests},
    readiness,
};

/// The group of the configuration and of the status.
const GROUP: &str = "manifest.deployer.landscaper.gardener.cloud";

/// What a configuration asks for.
pub(crate) fn plan(config: &Value) -> Result<Proposal, Problem> {
    let config = Place::root(config);
    let version = match config.version(GROUP, &["v1alpha1", "v1alpha2"])? {
        "v1alpha1" => Version::V1Alpha1,
        _ => Version::V1Alpha2,
    };
    check_continuous_reconcile(&config)?;
    let strategy = strategy(&config)?;
    let manifests = manifests(&config, version)?;
    let writes = manifests.iter().filter_map(|manifest| manifest.write(strategy.clone())).collect();
    let stages = stages(writes, readiness::gate(&config)?);
    let completion = Completion { exports: exports::rules(&config)?, afterwards: afterwards(&manifests) };
    let mut proposal = Proposal::finish(stages, completion);
    proposal.status = Some(json!({"apiVersion": format!("{GROUP}/v1alpha2"), "kind": "ProviderStatus"}).to_string());
    proposal.deletion_order = deletion::order(&config, "deletionGroups")?;
    proposal.pruning_order = deletion::order(&config, "deletionGroupsDuringUpdate")?;
    Ok(proposal)
}

/// How objects that exist are updated (`docs/wire.md` §8.1). An unknown strategy fails at once; the original retries it
/// until the timeout (golden case manifest-strategy-bogus).
fn strategy(config: &Place<'_>) -> Result<Write, Problem> {
    if config.text_of("updateStrategy")?.is_none() {
        return Ok(Write::Replace);
    }
    let known = [
        ("update", &Write::Replace),
        ("patch", &Write::Patch),
        ("merge", &Write::Fill),
        ("mergeOverwrite", &Write::Overlay),
    ];
    Ok(config.required("updateStrategy")?.one_of(&known)?.clone())
}

fn stages(writes: Vec<ObjectWrite>, gate: Gate) -> Vec<Stage> {
    let waits_for_others = match &gate {
        Gate::Ready(checks) => checks.iter().any(|check| !readiness::is_default(check)),
        Gate::Accepted | Gate::Completed(_) | Gate::Gone => false,
    };
    if writes.is_empty() && !waits_for_others {
        return Vec::new();
    }
    vec![Stage::new("manifests", writes, gate)]
}

fn afterwards(manifests: &[Manifest]) -> Vec<Stage> {
    let patches: Vec<_> = manifests.iter().filter_map(Manifest::patch_after_deployment).collect();
    if patches.is_empty() { Vec::new() } else { vec![Stage::new("patches after deployment", patches, Gate::Accepted)] }
}
