//! Names that a cluster or a kubeconfig has, for completions. Whatever cannot be read has none.

use std::{fmt::Debug, path::PathBuf};

use k8s_openapi::api::core::v1::Namespace as CoreNamespace;
use kube::{Api, Client, Resource, ResourceExt, api::ListParams, config::Kubeconfig, core::NamespaceResourceScope};
use orangery_api::{
    deploy_item::DeployItem, execution::Execution, installation::Installation, job::Job as _, plan::Plan,
};
use orangery_core::name::Namespace;
use serde::de::DeserializeOwned;

use super::LiveNames;
use crate::connection::{Connection, NamespaceScope};

/// Objects that are asked for: more names help nobody at a prompt.
const PAGE: u32 = 500;

/// Which cluster and namespace the words so far name.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionWords {
    connection: Connection,
    scope: NamespaceScope,
}

impl ConnectionWords {
    /// The options of kubectl among the words, as far as they have values.
    pub(super) fn of(words: &[String]) -> Self {
        let value = |long: &str, short: Option<&str>| {
            let mut found = words.iter().enumerate().filter_map(|(place, word)| {
                if word == long || Some(word.as_str()) == short {
                    return words.get(place + 1).map(String::as_str);
                }
                let joined = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
                joined.or_else(|| {
                    let rest = short.and_then(|short| word.strip_prefix(short)).filter(|_| !word.starts_with("--"))?;
                    Some(rest.strip_prefix('=').unwrap_or(rest))
                })
            });
            found.rfind(|value| !value.is_empty()).map(str::to_owned)
        };
        let namespace = value("--namespace", Some("-n")).and_then(|text| text.parse::<Namespace>().ok());
        Self {
            connection: Connection {
                kubeconfig: value("--kubeconfig", None).map(PathBuf::from),
                context: value("--context", None),
            },
            scope: NamespaceScope { namespace },
        }
    }
}

/// The names, sorted; none where something fails.
pub(super) fn names(asked: LiveNames, words: &ConnectionWords) -> Vec<String> {
    if asked == LiveNames::Contexts {
        return usable(contexts(words.connection.kubeconfig.as_ref()));
    }
    let Ok(event_loop) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return Vec::new() };
    let found = event_loop.block_on(async {
        let client = words.connection.client().await.ok()?;
        let namespace = words.scope.namespace(&client);
        Some(of_cluster(asked, &client, &namespace).await)
    });
    event_loop.shutdown_background();
    usable(found.unwrap_or_default())
}

fn contexts(kubeconfig: Option<&PathBuf>) -> Vec<String> {
    let read = kubeconfig.map_or_else(Kubeconfig::read, Kubeconfig::read_from);
    read.map(|found| found.contexts.into_iter().map(|context| context.name).collect()).unwrap_or_default()
}

/// What a server says is a word of a prompt only where it is a name.
fn usable(mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '/' | ':' | '@' | '_'))
    });
    names.sort();
    names.dedup();
    names
}

async fn of_cluster(asked: LiveNames, client: &Client, namespace: &Namespace) -> Vec<String> {
    match asked {
        LiveNames::Contexts => Vec::new(),
        LiveNames::Namespaces => all::<CoreNamespace>(Api::all(client.clone())).await,
        LiveNames::Installations => within::<Installation>(client, namespace).await,
        LiveNames::Plans => {
            let (plans, installations) =
                futures::join!(within::<Plan>(client, namespace), within::<Installation>(client, namespace));
            plans.into_iter().chain(installations).collect()
        }
        LiveNames::Objects => {
            let (installations, executions, items) = futures::join!(
                within::<Installation>(client, namespace),
                within::<Execution>(client, namespace),
                within::<DeployItem>(client, namespace)
            );
            let of_kind = |kind: &str, names: &[String]| -> Vec<String> {
                names.iter().map(|name| format!("{kind}/{name}")).collect()
            };
            let whole = [
                of_kind("installation", &installations),
                of_kind("execution", &executions),
                of_kind("deployitem", &items),
                installations,
            ];
            whole.concat()
        }
        LiveNames::Jobs => {
            let api: Api<Installation> = Api::namespaced(client.clone(), namespace);
            let found = api.list(&ListParams::default().limit(PAGE)).await;
            let found = found.map(|list| list.items).unwrap_or_default();
            let jobs = found.iter().flat_map(|of| [of.job_id().to_string(), of.job_id_finished().to_string()]);
            jobs.collect()
        }
    }
}

async fn within<K>(client: &Client, namespace: &Namespace) -> Vec<String>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    all::<K>(Api::namespaced(client.clone(), namespace)).await
}

async fn all<K>(api: Api<K>) -> Vec<String>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let found = api.list_metadata(&ListParams::default().limit(PAGE)).await;
    found.map(|list| list.items.iter().map(ResourceExt::name_any).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::command::tests::server;

    #[track_caller]
    fn check(line: &str, expected: [Option<&str>; 3]) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let found = ConnectionWords::of(&words);
        let kubeconfig = found.connection.kubeconfig.map(|path| path.display().to_string());
        let namespace = found.scope.namespace.map(|namespace| namespace.to_string());
        assert_eq!(
            [kubeconfig.as_deref(), found.connection.context.as_deref(), namespace.as_deref()],
            expected,
            "{line}"
        );
    }

    #[test]
    fn c_403_names_are_those_of_the_cluster_that_the_line_names() {
        check("inspect", [None; 3]);
        check("inspect -n demo --context c --kubeconfig=/k x", [Some("/k"), Some("c"), Some("demo")]);
        check("inspect -ndemo -n", [None, None, Some("demo")]);
        check("inspect --namespace=a --namespace b --context", [None, None, Some("b")]);
        check("inspect -n=demo", [None, None, Some("demo")]);
        check("inspect -n Not_One", [None; 3]);
    }

    #[tokio::test]
    async fn c_403_what_cannot_be_read_has_no_names_and_what_is_no_name_is_no_word() {
        let list = |names: &[&str]| {
            let items: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
            json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}, "items": items})
        };
        let (client, _) = server(move |line| match line.contains("/installations") {
            true => (200, list(&["web", "b\u{1b}[31m", "api", "a b"])),
            false => (403, json!({"kind": "Status", "code": 403, "message": "no", "status": "Failure", "reason": "x"})),
        });
        let namespace = "default".into();
        let found = |asked| {
            let (client, namespace) = (&client, &namespace);
            async move { usable(of_cluster(asked, client, namespace).await) }
        };
        assert_eq!(found(LiveNames::Installations).await, ["api", "web"]);
        assert_eq!(found(LiveNames::Objects).await, ["api", "installation/api", "installation/web", "web"]);
        assert_eq!(found(LiveNames::Namespaces).await, Vec::<String>::new());
    }
}
