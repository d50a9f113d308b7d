//! What uses a Target, a Context or a Secret, and so keeps it from going (ORC-36, C-67).

use std::collections::BTreeSet;

use kube::{Api, Client, Resource as _, ResourceExt as _, api::PartialObjectMeta};
use orangery_api::{
    GROUP,
    context::{Context, DEFAULT_CONTEXT},
    deploy_item::DeployItem,
    target::Target,
};
use orangery_core::name::{ApiVersion, Kind, Namespace, ObjectName};
use serde::Serialize;

use crate::{
    call::{CallError, CallSubject},
    command::inspect,
    command_error::CommandError,
    exit::Exit,
    form::OutputFormat,
    terminal::Terminal,
    tree::Objects,
};

/// A kind whose objects stay while they are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsedKind {
    /// A cluster to deploy to.
    Target,
    /// Where components come from.
    Context,
    /// The credentials behind Targets.
    Secret,
}

/// The output of `-o json` and `-o yaml`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UsersOutput<'a> {
    api_version: ApiVersion,
    kind: Kind,
    object: UsedObject<'a>,
    used_by: Vec<UsingObject>,
}

#[derive(Serialize)]
struct UsedObject<'a> {
    kind: Kind,
    namespace: &'a Namespace,
    name: &'a ObjectName,
    deleting: bool,
}

/// What uses an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct UsingObject {
    kind: Kind,
    name: ObjectName,
}

impl UsedKind {
    fn kind(self) -> Kind {
        match self {
            Self::Target => Kind::from(Target::kind(&())),
            Self::Context => Kind::from(Context::kind(&())),
            Self::Secret => Kind::from_static("Secret"),
        }
    }

    /// What uses an object of this kind, sorted.
    fn users(self, name: &ObjectName, objects: &Objects, targets: &[Target]) -> BTreeSet<UsingObject> {
        let user = |kind: &str, name: String| UsingObject { kind: Kind::from(kind), name: name.into() };
        let items = objects.deploy_items.iter();
        let of_items = |uses: &dyn Fn(&DeployItem) -> bool| -> BTreeSet<UsingObject> {
            items.clone().filter(|item| uses(item)).map(|item| user("DeployItem", item.name_any())).collect()
        };
        match self {
            Self::Target => {
                // One that goes without being uninstalled where its Target is gone keeps none.
                let lets_go = |item: &DeployItem| {
                    item.spec.on_delete.as_ref().is_some_and(|on_delete| on_delete.skip_uninstall_if_cluster_removed)
                };
                let mut users = of_items(&|item| {
                    !lets_go(item) && item.spec.target.as_ref().is_some_and(|target| target.name == *name)
                });
                let gated =
                    objects.executions.iter().filter(|of| of.spec.gate_targets.iter().any(|on| on == name.as_str()));
                users.extend(gated.map(|execution| user("Execution", execution.name_any())));
                let gated = objects.installations.iter().filter(|installation| {
                    let workflow = installation.status.as_ref().and_then(|status| status.workflow.as_ref());
                    workflow.is_some_and(|workflow| workflow.gate_targets.iter().any(|on| on == name.as_str()))
                });
                users.extend(gated.map(|installation| user("Installation", installation.name_any())));
                users
            }
            Self::Context => of_items(&|item| {
                let context = &item.spec.context;
                name.as_str() == if context.is_empty() { DEFAULT_CONTEXT } else { context.as_str() }
            }),
            Self::Secret => {
                let refers = |target: &&Target| {
                    target.spec.secret_ref.as_ref().is_some_and(|secret| secret.name.as_str() == name.as_str())
                };
                targets.iter().filter(refers).map(|target| user("Target", target.name_any())).collect()
            }
        }
    }
}

/// Reads who uses an object, and shows it.
pub(super) async fn show(
    (used, namespace, name): (UsedKind, &Namespace, &ObjectName),
    client: &Client,
    output: Option<OutputFormat>,
    terminal: &mut Terminal,
) -> Result<Exit, CommandError> {
    let kind = used.kind();
    let deleting = is_deleting(used, client, namespace, name).await?;
    let objects = inspect::read(client, namespace).await?;
    let targets = match used {
        UsedKind::Secret => inspect::list::<Target>(client, namespace).await?,
        UsedKind::Target | UsedKind::Context => Vec::new(),
    };
    let targets: Vec<Target> = targets.iter().map(|target| Target::clone(target)).collect();
    let users = used.users(name, &objects, &targets);
    if let Some(form) = output {
        let document = UsersOutput {
            api_version: ApiVersion::from_static("orangery.dev/v1alpha1"),
            kind: Kind::from_static("Why"),
            object: UsedObject { kind, namespace, name, deleting },
            used_by: users.into_iter().collect(),
        };
        form.write(&document, terminal)?;
        return Ok(Exit::Ok);
    }
    for line in lines(&kind, name, deleting, &users) {
        terminal.line(line)?;
    }
    Ok(Exit::Ok)
}

fn lines(kind: &Kind, name: &ObjectName, deleting: bool, users: &BTreeSet<UsingObject>) -> Vec<String> {
    let word = kind.as_str().to_lowercase();
    let state = match (deleting, users.is_empty()) {
        (false, false) => "is in use; when it is deleted it stays until nothing uses it",
        (false, true) => "is used by nothing; when it is deleted it goes at once",
        (true, false) => "is being deleted, and stays until nothing uses it",
        (true, true) => {
            "is being deleted, and nothing uses it: the operator lets go of it, and other finalizers may hold it"
        }
    };
    let users = users.iter().map(|user| {
        let (kind, name) = (user.kind.as_str(), &user.name);
        format!(
            "  because {} {name} uses it",
            if kind == "DeployItem" { "deploy item".to_owned() } else { kind.to_lowercase() }
        )
    });
    [format!("{word} {name} {state}")].into_iter().chain(users).collect()
}

/// Whether an object is being deleted.
async fn is_deleting(
    used: UsedKind,
    client: &Client,
    namespace: &Namespace,
    name: &ObjectName,
) -> Result<bool, CommandError> {
    let (kind, client) = (used.kind(), client.clone());
    let (found, group) = match used {
        UsedKind::Target => {
            (Api::<Target>::namespaced(client, namespace).get_metadata_opt(name).await.map(marked), GROUP)
        }
        UsedKind::Context => {
            (Api::<Context>::namespaced(client, namespace).get_metadata_opt(name).await.map(marked), GROUP)
        }
        UsedKind::Secret => {
            let secrets = Api::<k8s_openapi::api::core::v1::Secret>::namespaced(client, namespace);
            (secrets.get_metadata_opt(name).await.map(marked), "")
        }
    };
    let subject = CallSubject { kind: &kind, group, namespace, name };
    let missing = || CallError::NotFound {
        kind: kind.as_str().to_lowercase().into(),
        namespace: namespace.clone(),
        name: name.clone(),
    };
    Ok(found.map_err(|error| CallError::of(subject, error))?.ok_or_else(missing)?)
}

fn marked<K>(found: Option<PartialObjectMeta<K>>) -> Option<bool> {
    found.map(|object| object.metadata.deletion_timestamp.is_some())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn item(name: &str, spec: serde_json::Value) -> Arc<DeployItem> {
        let mut spec = spec;
        spec["type"] = json!("t");
        Arc::new(serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap())
    }

    #[test]
    fn c_67_what_uses_an_object_is_named_and_what_lets_it_go_is_not() {
        let to = |target: &str| json!({"target": {"name": target, "namespace": "n"}});
        let mut free = to("cluster");
        free["onDelete"] = json!({"skipUninstallIfClusterRemoved": true});
        let deploy_items = vec![item("a", to("cluster")), item("b", to("other")), item("c", free)];
        let execution = json!({"metadata": {"name": "gated"}, "spec": {"gateTargets": ["cluster"]}});
        let executions = vec![Arc::new(serde_json::from_value(execution).unwrap())];
        let objects = Objects { deploy_items, executions, ..Objects::default() };
        let target = |secret: &str| -> Target {
            let spec = json!({"type": "t", "secretRef": {"name": secret}});
            serde_json::from_value(json!({"metadata": {"name": format!("of-{secret}")}, "spec": spec})).unwrap()
        };
        let targets = [target("x"), target("y")];
        let show = |used: UsedKind, name: &str, deleting: bool| {
            let name = name.into();
            lines(&used.kind(), &name, deleting, &used.users(&name, &objects, &targets))
        };
        assert_eq!(
            show(UsedKind::Target, "cluster", true),
            [
                "target cluster is being deleted, and stays until nothing uses it",
                "  because deploy item a uses it",
                "  because execution gated uses it",
            ]
        );
        assert_eq!(
            show(UsedKind::Target, "none", false),
            ["target none is used by nothing; when it is deleted it goes at once"]
        );
        assert_eq!(show(UsedKind::Context, "default", false).len(), 4);
        assert_eq!(
            show(UsedKind::Secret, "x", false),
            ["secret x is in use; when it is deleted it stays until nothing uses it", "  because target of-x uses it",]
        );
    }
}
