//! What commands have in common that look at deploy items with the rights, and in the network, of whoever calls them (C-128).

use kube::Client;
use orangery_cli::connection::{Connection, ConnectionError};
use orangery_cluster::server_at;
use orangery_controllers::{ControllerContext, NamespacePolicies, read_namespace_policies};
use orangery_core::{name::Namespace, step::Halt};
use orangery_policy::Profile;

/// The connection of a command, and the server that it leads to.
pub(crate) async fn own_connection(connection: &Connection) -> Result<(Client, Option<String>), ConnectionError> {
    let config = connection.config().await?;
    let server = server_at(&config.cluster_url.to_string()).ok();
    Ok((Client::try_from(config).map_err(ConnectionError::Client)?, server))
}

/// No policies yet, and what counts where none selects a namespace.
pub(crate) fn policies(default: Option<Profile>, own_server: Option<String>) -> NamespacePolicies {
    default.map_or_else(|| NamespacePolicies::of_command(own_server), NamespacePolicies::new)
}

/// Reads the policies that count for a namespace. What is to be said where they cannot be read.
pub(crate) async fn read_policies(host: &ControllerContext, namespace: &Namespace) -> Option<String> {
    let error = read_namespace_policies(host, namespace).await.err()?;
    Some(format!("NamespacePolicies cannot be read, so what they refuse is not known here: {error}"))
}

/// Why there is no answer, in the words that a job would end or wait with.
pub(crate) fn refusal(halt: &Halt) -> String {
    match halt {
        Halt::Wait(wait) => wait.to_string(),
        Halt::Retry(failure) | Halt::Stall(failure) => failure.message.clone(),
    }
}
