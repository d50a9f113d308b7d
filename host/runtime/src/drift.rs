//! `orangery drift`: what is not as deploy items have written it, as their clusters have it now.

use std::sync::Arc;

use kube::ResourceExt as _;
use orangery_api::{deploy_item::DeployItem, job::Job as _};
use orangery_blueprint::plugins::Plugins;
use orangery_cli::{
    DriftArguments, Exit, Terminal,
    call::CallError,
    command::drift::{DriftDocument, DriftEntry},
    command_error::CommandError,
    components,
    connection::ConnectionError,
};
use orangery_controllers::{
    ActingAccounts, ControllerContext, HostKey,
    deploy_item::{ItemDrift, drift_of},
    read_secret_values, stores,
};
use orangery_core::port::Rng as _;
use orangery_ocm::Unavailable;

use crate::{
    caller::{own_connection, policies, read_policies, refusal},
    components::ComponentsError,
    machine::{OsChance, SystemClock},
};

/// Why it is not known what has drifted. All of it ends with 1, for 2 means drift.
#[derive(Debug, thiserror::Error)]
pub enum DriftError {
    /// A component cannot be registered.
    #[error(transparent)]
    Components(#[from] ComponentsError),
    /// No cluster is meant.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The cluster does not answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The output.
    #[error(transparent)]
    Command(#[from] CommandError),
}

/// Carries `orangery drift` out.
///
/// # Errors
/// Why it is not known.
pub async fn execute(arguments: DriftArguments, terminal: &mut Terminal) -> Result<Exit, DriftError> {
    let plugins = components::of_command(arguments.plugins.as_deref())?;
    let (client, own_server) = own_connection(&arguments.connection).await?;
    let namespace = arguments.scope.namespace(&client);
    let items = arguments.items(&client, &namespace).await?;
    let plugins: Arc<dyn Plugins> = plugins;
    let key = HostKey::unknown(&OsChance.secret());
    let (clock, components) = (Arc::new(SystemClock), Arc::new(Unavailable));
    let mut host = ControllerContext::new((client, stores()), plugins, components, clock, Arc::new(OsChance), key);
    // What may be looked at is for the rights of whoever asks.
    host.accounts = ActingAccounts::caller();
    host.policies = policies(arguments.default_policy, own_server);
    let host = Arc::new(host);
    if let Some(unknown) = read_policies(&host, &namespace).await {
        terminal.warning(unknown);
    }
    read_secret_values(&host, &namespace).await;
    let masker = host.secrets.masker(&namespace);
    let (mut entries, mut has_failed) = (Vec::new(), false);
    for item in items {
        let entry = DriftEntry {
            namespace: namespace.clone(),
            name: item.name_any().into(),
            compared: false,
            count: 0,
            objects: Vec::new(),
            skipped: None,
        };
        entries.push(match skipped(&host, &item) {
            Some(why) => {
                has_failed = true;
                DriftEntry { skipped: Some(why), ..entry }
            }
            None => match drift_of(&host, DeployItem::clone(&item)).await {
                Ok(ItemDrift { drifted, count, is_compared }) => {
                    DriftEntry { compared: is_compared, count, objects: drifted, ..entry }
                }
                Err(halt) => {
                    has_failed = true;
                    DriftEntry { skipped: Some(masker.mask(&refusal(&halt)).into_owned()), ..entry }
                }
            },
        });
    }
    let document = DriftDocument::new(entries);
    document.write(&arguments, terminal)?;
    Ok(match (has_failed, document.has_drift()) {
        (true, _) => Exit::Failed,
        (false, true) => Exit::Drifted,
        (false, false) => Exit::Ok,
    })
}

/// Why an item is not looked at.
fn skipped(host: &ControllerContext, item: &DeployItem) -> Option<String> {
    if host.deployer_of(item).is_none() {
        return Some(format!("no component of this host deploys its type {:?}", item.spec.type_));
    }
    if !item.job_finished() {
        return Some("its job is under way".to_owned());
    }
    (item.phase() != "Succeeded").then(|| "its last job has not succeeded".to_owned())
}
