//! The world `deployer-with-uninstall`, generated: a component exports one world. Its words are those of the SDK.

use orangery_sdk::{DeployerWithUninstall as _, Fault, Imports, Item, Problem, Proposal, StageFailure};

use crate::Container;

wit_bindgen::generate!({
    world: "deployer-with-uninstall",
    path: "../../wit/deployer/0.1.0",
    with: {
        "orangery:deployer/types@0.1.0": orangery_sdk::bindings::deployer::orangery::deployer::types,
        "orangery:deployer/plan@0.1.0": orangery_sdk::bindings::deployer::orangery::deployer::plan,
        "orangery:deployer/cluster@0.1.0": orangery_sdk::bindings::deployer::orangery::deployer::cluster,
        "orangery:deployer/artifacts@0.1.0": orangery_sdk::bindings::deployer::orangery::deployer::artifacts,
        "orangery:deployer/log@0.1.0": orangery_sdk::bindings::deployer::orangery::deployer::log,
    },
});

use self::exports::orangery::deployer::{deploy, uninstall, validate};

/// The same item in the words of the SDK.
fn item(of: deploy::Item) -> Item {
    let failure =
        |failed: deploy::Failure| StageFailure { stage: failed.stage, key: failed.key, problem: failed.problem };
    Item {
        namespace: of.namespace,
        name: of.name,
        uid: of.uid,
        item_type: of.item_type,
        generation: of.generation,
        context: of.context,
        target: of.target,
        job: of.job,
        config: of.config,
        annotations: of.annotations,
        configuration: of.configuration,
        status: of.status,
        checkpoint: of.checkpoint,
        failed: of.failed.map(failure),
        now: of.now,
        seed: of.seed,
        timeout: of.timeout,
    }
}

impl deploy::Guest for Container {
    fn plan(of: deploy::Item) -> Result<Proposal, Fault> {
        <Container as orangery_sdk::Deployer>::plan(item(of), &Imports)
    }
}

impl uninstall::Guest for Container {
    fn plan(of: deploy::Item) -> Result<Proposal, Fault> {
        Container::uninstall(item(of), &Imports)
    }
}

impl validate::Guest for Container {
    fn schema() -> String {
        <Container as orangery_sdk::DeployerWithUninstall>::schema().to_string()
    }

    fn check(config: String) -> Vec<Problem> {
        match serde_json::from_str(&config) {
            Ok(config) => <Container as orangery_sdk::DeployerWithUninstall>::check(&config),
            Err(error) => vec![Problem::configuration("", format!("the configuration is not JSON: {error}"))],
        }
    }
}

export!(Container);
