//! `orangery run --observe`: what the next job of every root would do, as this operator and its components would do it. Nothing is
//! written (C-319).

use std::{collections::BTreeMap, sync::Arc};

use kube::{Api, Client, ResourceExt as _, api::ListParams};
use orangery_api::{GROUP, installation::Installation};
use orangery_blueprint::plugins::Plugins;
use orangery_cli::{
    Exit, RunArguments, Terminal,
    call::{CallError, CallSubject},
    command::plan::TreePlan,
    command_error::CommandError,
    offline::LiveNamespace,
};
use orangery_controllers::{NamespacePolicies, read_secret_values};
use orangery_core::name::{Kind, Namespace, ObjectName};
use orangery_ocm::ComponentVersions;

use super::{PlanError, planning_host, tree::TreePlanning};
use crate::{
    caller::read_policies,
    components::{self, Bundled, ContainerItems},
};

/// Installations that are asked for at once.
const PAGE: u32 = 500;

/// Plans the next job of every root, namespace by namespace, and tells it.
///
/// # Errors
/// [`PlanError`]: a component cannot be registered, or the cluster does not answer. What cannot be planned of a root is told, and the
/// others are planned all the same; the exit code is 1 then.
pub async fn observe(arguments: &RunArguments, terminal: &mut Terminal) -> Result<Exit, PlanError> {
    let bundled = if arguments.mock_deployer { Bundled::WithMock } else { Bundled::Productive };
    let containers = ContainerItems::read(arguments.container_deployer.as_deref())?;
    let plugins: Arc<dyn Plugins> =
        components::load(arguments.plugins.as_deref(), bundled, containers, arguments.call_processes)?;
    let versions = arguments.repositories.open(&[])?;
    let client = arguments.connection.client().await?;
    let (mut planned, mut failed) = (0_usize, 0_usize);
    let roots = roots(&client, &arguments.namespaces).await?;
    let namespaces = roots.len();
    for (namespace, roots) in roots {
        let observed = ObservedNamespace { client: &client, plugins: &plugins, versions: &versions, namespace };
        for plan in observed.plans(arguments, roots).await? {
            planned += 1;
            match plan {
                Ok(plan) => {
                    failed += usize::from(plan.fails());
                    plan.write_lines(true, terminal)?;
                }
                Err((root, why)) => {
                    failed += 1;
                    let namespace = &observed.namespace;
                    tell(terminal, format_args!("installation {namespace}/{root} is not planned: {why}"))?;
                }
            }
            tell(terminal, format_args!(""))?;
        }
    }
    let summary = format_args!(
        "{planned} roots in {namespaces} namespaces: {failed} would fail or cannot be planned; nothing was written"
    );
    tell(terminal, summary)?;
    Ok(if failed == 0 { Exit::Ok } else { Exit::Failed })
}

fn tell(terminal: &mut Terminal, line: std::fmt::Arguments<'_>) -> Result<(), CommandError> {
    terminal.line(line).map_err(CommandError::from)
}

/// The roots of these namespaces, or of all, by namespace.
async fn roots(client: &Client, namespaces: &[Namespace]) -> Result<BTreeMap<Namespace, Vec<Installation>>, CallError> {
    let mut apis: Vec<(Namespace, Api<Installation>)> = Vec::new();
    for namespace in namespaces {
        apis.push((namespace.clone(), Api::namespaced(client.clone(), namespace)));
    }
    if apis.is_empty() {
        apis.push((Namespace::default(), Api::all(client.clone())));
    }
    let mut roots: BTreeMap<Namespace, Vec<Installation>> = BTreeMap::new();
    for (namespace, api) in apis {
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let page = api.list(&params).await.map_err(|error| {
                let (kind, name) = (Kind::from_static("Installation"), ObjectName::default());
                CallError::of(CallSubject { kind: &kind, group: GROUP, namespace: &namespace, name: &name }, error)
            })?;
            for root in page.items.into_iter().filter(Installation::is_root) {
                roots.entry(root.namespace().unwrap_or_default().into()).or_default().push(root);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => break,
            }
        }
    }
    Ok(roots)
}

/// A namespace that is looked at.
struct ObservedNamespace<'a> {
    client: &'a Client,
    plugins: &'a Arc<dyn Plugins>,
    versions: &'a Arc<dyn ComponentVersions>,
    namespace: Namespace,
}

/// A plan, or why there is none of this root.
type PlannedRoot = Result<TreePlan, (ObjectName, String)>;

impl ObservedNamespace<'_> {
    async fn plans(&self, arguments: &RunArguments, roots: Vec<Installation>) -> Result<Vec<PlannedRoot>, PlanError> {
        let mut plans = Vec::new();
        for root in roots {
            let name: ObjectName = root.name_any().into();
            let policies = NamespacePolicies::new(arguments.default_policy);
            let parts = (Arc::clone(self.plugins), Arc::clone(self.versions));
            let host = planning_host(self.client, parts, policies);
            read_secret_values(&host, &self.namespace).await;
            let notes: Vec<String> = read_policies(&host, &self.namespace).await.into_iter().collect();
            let live = LiveNamespace::read(self.client, &self.namespace).await?;
            let objects = live.objects.clone();
            let (versions, namespace) = (Arc::clone(self.versions), self.namespace.clone());
            let planning = TreePlanning { host, versions, namespace, live };
            plans.push(match planning.jobs(objects, vec![root]).await {
                Ok(plans) => Ok(planning.with_job_rules(name, plans, notes).await),
                Err(PlanError::Refused(why)) => Err((name, why)),
                Err(error) => return Err(error),
            });
        }
        Ok(plans)
    }
}
