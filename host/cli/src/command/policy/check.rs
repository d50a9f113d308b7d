//! `orangery policy check`: which existing objects a policy would refuse.

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, Client, ResourceExt, api::ListParams};
use orangery_api::{
    GROUP, annotation,
    context::Context,
    deploy_item::DeployItem,
    installation::Installation,
    marks::Marks,
    namespace_policy::POLICY_GROUP,
    stored_state::{MOST_UNSEALED, STORED_CONTENT, StoredState},
    target::Target,
};
use orangery_cluster::server_of;
use orangery_core::{
    error::Fault,
    name::{Namespace, ObjectName},
};
use orangery_policy::{EffectivePolicy, Policy, PolicyRequest, PolicySet, PolicySubject, Profile};
use orangery_proposal::inventory::Inventory;
use orangery_registry::NamedContent;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{addresses, charts, known};
use crate::{
    call::{CallError, CallSubject},
    command_error::CommandError,
    connection::Connection,
    default_policy::profile,
    exit::Exit,
    folder, listed,
    terminal::Terminal,
};

const HELP: &str = "\
Examples:
  orangery policy check team-a.yaml

The policies of the file are taken as if they were applied, beside those of the cluster. Looked at are Installations (inline
and unsigned blueprints, and repositories of component versions that they name), deploy items (their types, whether a signed
blueprint made them, where their charts come from, and all objects that they have deployed, also where they lie in Secrets of the
item) and Targets whose kubeconfig stands in them. What a job would do that has not run yet is not known: where servers and chart
repositories lead, what comes by chart.resourceRef, and the types of templates. Servers of Targets, and of charts and component
versions, that are named by their address are held against the networks of the policy; names are not resolved. The exit code is 1
when something would be refused.";

/// Tells which existing objects a policy would refuse, before it is applied. Nothing is written.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = format!("{HELP}\n\n{}", crate::exit::EXIT_CODES))]
pub struct PolicyCheck {
    /// A file or folder with NamespacePolicies
    pub file: PathBuf,
    /// What the operator takes for namespaces that no NamespacePolicy selects
    #[arg(long, value_name = "PROFILE", default_value = "restricted", value_parser = profile())]
    pub default_policy: Profile,
    /// Which cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl PolicyCheck {
    /// Reads what there is, and prints what would be refused.
    pub async fn execute(self, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let client = self.connection.client().await?;
        self.on(&client, terminal).await
    }

    pub(crate) async fn on(&self, client: &Client, terminal: &mut Terminal) -> Result<Exit, CommandError> {
        let mut policies = known::policies(client).await?;
        let mut is_unusable = false;
        for manifest in folder::read(std::slice::from_ref(&self.file))? {
            if manifest.kind != "NamespacePolicy" || !manifest.api_version.starts_with(POLICY_GROUP) {
                terminal.warning(format_args!("{}: {} is no NamespacePolicy", manifest.origin, manifest.kind));
                continue;
            }
            let policy = Policy::read(&manifest.name, manifest.object.get("spec").unwrap_or(&Value::Null));
            if let Err(why) = policy.lines() {
                terminal.line(format_args!(
                    "{}: NamespacePolicy {} cannot be used: {why}",
                    manifest.origin, manifest.name
                ))?;
                is_unusable = true;
            }
            policies.insert(manifest.name.into(), policy);
        }
        let found = Existing::read(client).await?.refused(&PolicySet::new(self.default_policy, policies.into_values()));
        for line in &found {
            terminal.line(line)?;
        }
        if found.is_empty() && !is_unusable {
            terminal.line("nothing that there is would be refused")?;
            return Ok(Exit::Ok);
        }
        Ok(Exit::Failed)
    }
}

/// What there is.
struct Existing {
    namespaces: BTreeMap<Namespace, BTreeMap<String, String>>,
    installations: Vec<Installation>,
    items: Vec<ExistingItem>,
    targets: Vec<Target>,
    contexts: Vec<Context>,
}

/// A deploy item with what it has deployed.
struct ExistingItem {
    item: DeployItem,
    /// Its inventory, or why that is not known.
    deployed: Result<Inventory, String>,
}

impl ExistingItem {
    /// An inventory that has no room in the status lies in Secrets of the item (C-94).
    async fn read(client: &Client, item: DeployItem) -> Self {
        Self { deployed: deployed(client, &item).await, item }
    }
}

/// What an item has deployed, or why that is not known.
pub(crate) async fn deployed(client: &Client, item: &DeployItem) -> Result<Inventory, String> {
    let status = item.status.as_ref().and_then(|status| status.provider_status.as_ref());
    let inventory = match StoredState::of(status) {
        None if StoredState::is_said(status) => {
            return Err("its status names Secrets that no state lies in; it was not written by the operator".to_owned());
        }
        None => Inventory::read(status.and_then(|status| status.get("managedResources"))),
        Some(stored) => {
            let compressed = pieces(client, item, &stored).await?;
            Inventory::read(stored.managed_resources(&compressed).as_ref())
        }
    };
    inventory.map_err(|error| error.to_string())
}

/// The most bytes of all pieces of a state: packed, it has less than it may have unpacked.
const MOST_OF_PIECES: usize = 64 << 20;

/// The pieces of a stored state, put together.
async fn pieces(client: &Client, item: &DeployItem, stored: &StoredState) -> Result<Vec<u8>, String> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &item.namespace().unwrap_or_default());
    let mut compressed = Vec::new();
    for name in &stored.secrets {
        let secret = secrets.get(name).await.map_err(|error| format!("Secret {name} cannot be read: {error}"))?;
        let piece = secret.data.and_then(|mut data| data.remove(STORED_CONTENT));
        compressed.extend(piece.map(|ByteString(piece)| piece).unwrap_or_default());
        if compressed.len() > MOST_OF_PIECES {
            return Err(format!("its Secrets have more than {} MiB", MOST_OF_PIECES >> 20));
        }
    }
    match stored.managed_resources(&compressed) {
        Some(_) => Ok(compressed),
        None => Err(format!(
            "Secrets {} are not what was stored, or take more than {} MiB of memory",
            stored.secrets.join(", "),
            MOST_UNSEALED >> 20
        )),
    }
}

impl Existing {
    async fn read(client: &Client) -> Result<Self, CallError> {
        let mut items = Vec::new();
        for item in all(client, "DeployItem").await? {
            items.push(ExistingItem::read(client, item).await);
        }
        Ok(Self {
            namespaces: known::namespaces(client).await?,
            installations: all(client, "Installation").await?,
            items,
            targets: all(client, "Target").await?,
            contexts: all(client, "Context").await?,
        })
    }

    /// What would be refused: one line for each object and reason, sorted.
    fn refused(&self, set: &PolicySet) -> Vec<String> {
        let counting = |namespace: Option<String>| {
            let namespace = Namespace::from(namespace.unwrap_or_default());
            let labels = self.namespaces.get(&namespace).cloned().unwrap_or_default();
            (set.of(&namespace, &labels), namespace)
        };
        let mut lines = Vec::new();
        for installation in &self.installations {
            let (policy, namespace) = counting(installation.namespace());
            let object = format!("Installation {namespace}/{}", installation.name_any());
            for request in installation.policy_requests() {
                note(&mut lines, &policy, &object, PolicySubject::Installation, request);
            }
            let of_descriptor = installation.spec.component_descriptor.as_ref();
            let reference = of_descriptor.and_then(|descriptor| descriptor.reference.as_ref());
            let repository = reference.and_then(|reference| reference.repository_context.as_ref());
            of_repository(&mut lines, (&policy, &namespace), &object, repository);
            if let (Some(context), Some(reference)) = (repository, reference) {
                let content = NamedContent::Component { context, name: &reference.component_name };
                let checked = content.check(&policy.sources(&namespace, PolicySubject::Installation));
                if let Err(Fault::Denied(problem)) = checked {
                    lines.push(format!("{object}: {}", problem.message));
                }
            }
        }
        for context in &self.contexts {
            let (policy, namespace) = counting(context.namespace());
            let object = format!("Context {namespace}/{}", context.name_any());
            of_repository(&mut lines, (&policy, &namespace), &object, context.spec.repository_context.as_ref());
        }
        for item in &self.items {
            let (policy, namespace) = counting(item.item.namespace());
            let object = format!("DeployItem {namespace}/{}", item.item.name_any());
            of_item(&mut lines, &policy, &object, item);
            let charts = charts::refused(&policy, &namespace, &item.item);
            lines.extend(charts.into_iter().map(|refused| format!("{object}: {refused}")));
        }
        for target in &self.targets {
            let (policy, namespace) = counting(target.namespace());
            of_target(&mut lines, &policy, &format!("Target {namespace}/{}", target.name_any()), target);
        }
        lines.sort();
        lines
    }
}

/// The server of a Target, as far as it stands in it.
fn of_target(lines: &mut Vec<String>, policy: &EffectivePolicy, object: &str, target: &Target) {
    let config = |at: &str| target.spec.config.as_ref().and_then(|config| config.pointer(at)).and_then(Value::as_str);
    let kubeconfig = config("/kubeconfig").and_then(|text| server_of(text).ok());
    if let Some(address) = &kubeconfig {
        note(lines, policy, object, PolicySubject::Installation, PolicyRequest::Server(address));
    }
    let server = kubeconfig.as_deref().or_else(|| config("/oidcConfig/server"));
    let refused = server.and_then(|server| addresses::refused(server, &policy.target_networks()));
    lines.extend(refused.map(|refused| format!("{object}: {refused}")));
}

/// A repository of component versions.
fn of_repository(
    lines: &mut Vec<String>,
    (policy, namespace): (&EffectivePolicy, &Namespace),
    object: &str,
    context: Option<&Value>,
) {
    let address = context.and_then(|context| context.get("baseUrl")).and_then(Value::as_str);
    let networks = policy.sources(namespace, PolicySubject::Installation).networks;
    let refused = address.and_then(|address| addresses::refused(address, &networks.registries));
    lines.extend(refused.map(|refused| format!("{object}: {refused}")));
}

fn of_item(lines: &mut Vec<String>, policy: &EffectivePolicy, object: &str, existing: &ExistingItem) {
    let ExistingItem { item, deployed } = existing;
    let of = PolicySubject::Item(&item.spec.type_);
    note(lines, policy, object, of, PolicyRequest::ItemType(&item.spec.type_));
    // Whether a mark is of the operator, the operator alone can say.
    if item.annotation(annotation::SIGNED_ORIGIN).is_none() {
        note(lines, policy, object, of, PolicyRequest::UnsignedItem(&item.name_any()));
    }
    match deployed {
        Ok(deployed) => {
            for located in deployed.0.keys() {
                note(lines, policy, object, of, PolicyRequest::Object(&located.key));
            }
        }
        Err(why) => lines.push(format!("{object}: what it has deployed is not known: {why}")),
    }
}

fn note(
    lines: &mut Vec<String>,
    policy: &EffectivePolicy,
    object: &str,
    subject: PolicySubject<'_>,
    request: PolicyRequest<'_>,
) {
    lines.extend(policy.check(subject, request).err().map(|violation| format!("{object}: {violation}")));
}

async fn all<K>(client: &Client, named: &str) -> Result<Vec<K>, CallError>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned,
{
    let nowhere = Namespace::default();
    let subject =
        CallSubject { kind: &named.into(), group: GROUP, namespace: &nowhere, name: &ObjectName::from_static("") };
    let list = listed::page(client, None, &ListParams::default()).await;
    Ok(list.map_err(|error| CallError::of(subject, error))?.objects)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read<K: DeserializeOwned>(name: &str, fields: Value) -> K {
        let mut object = fields;
        object["metadata"] = json!({"namespace": "a", "name": name});
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn what_there_is_is_held_against_a_policy() {
        let kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
                          clusters: [{name: k, cluster: {server: 'https://elsewhere.org'}}]\n\
                          contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: {token: t}}]\n";
        let deployed = json!([{"resource": {"apiVersion": "v1", "kind": "Secret", "name": "x", "namespace": "b"}}]);
        let existing = Existing {
            namespaces: BTreeMap::from([("a".into(), BTreeMap::new())]),
            installations: vec![read("i", json!({"spec": {"blueprint": {"inline": {"filesystem": {}}}}}))],
            items: vec![ExistingItem {
                item: read("d", json!({"spec": {"type": "x/y"}})),
                deployed: Ok(Inventory::read(Some(&deployed)).unwrap()),
            }],
            targets: vec![read("t", json!({"spec": {"type": "k", "config": {"kubeconfig": kubeconfig}}}))],
            contexts: vec![],
        };
        let refused = |spec: Value| existing.refused(&PolicySet::new(Profile::Restricted, [Policy::read("p", &spec)]));
        assert_eq!(refused(json!({})), Vec::<String>::new());
        let unsigned = refused(json!({"namespaces": {"names": ["a"]}, "signatures": {"required": true}}));
        let lines: Vec<_> = unsigned.iter().map(|line| line.split(" is refused by ").next().unwrap()).collect();
        let item =
            "DeployItem a/d: the deploy item d, which is not as an Installation with a signed blueprint has made it";
        let blueprint = "Installation a/i: a blueprint that no signature covers (a ref into spec.componentDescriptor with \
                         spec.verification would be)";
        assert_eq!(lines, [item, blueprint]);
        let strict = json!({
            "namespaces": {"names": ["a"]},
            "blueprints": {"inline": false},
            "targets": {"servers": ["https://example.org:443"], "kinds": {"deny": [{"kind": "Secret"}]}},
        });
        let lines: Vec<String> =
            refused(strict).iter().map(|line| line.split("; ").next().unwrap_or_default().to_owned()).collect();
        assert_eq!(
            lines,
            [
                "DeployItem a/d: v1 Secret x in namespace b is refused by NamespacePolicy p, line spec.targets.kinds.deny",
                "Installation a/i: a blueprint that is written into its Installation is refused by NamespacePolicy p, line \
                 spec.blueprints.inline",
                "Target a/t: the cluster at https://elsewhere.org:443 is refused by NamespacePolicy p, line spec.targets.servers",
            ]
        );
    }

    /// What an existing item of this configuration would be refused.
    fn refused_chart(spec: &Value, of_type: &str, chart: &Value) -> Vec<String> {
        let item = json!({"spec": {"type": of_type, "config": {"name": "r", "chart": chart}}});
        let existing = Existing {
            namespaces: BTreeMap::from([("a".into(), BTreeMap::new())]),
            installations: vec![],
            items: vec![ExistingItem { item: read("d", item), deployed: Ok(Inventory::default()) }],
            targets: vec![],
            contexts: vec![],
        };
        let mut spec = spec.clone();
        spec["namespaces"] = json!({"names": ["a"]});
        existing.refused(&PolicySet::new(Profile::Compatible, [Policy::read("p", &spec)]))
    }

    const HELM: &str = "landscaper.gardener.cloud/helm";

    #[test]
    fn charts_of_items_are_held_against_where_content_may_come_from() {
        let sources = json!({"sources": {"registries": ["ghcr.io/acme/*"], "hosts": ["charts.example.org"]}});
        let refused = |chart: Value| refused_chart(&sources, HELM, &chart);
        let registry = |place: &str| {
            vec![format!(
                "DeployItem a/d: content of {place} is refused by NamespacePolicy p, line spec.sources.registries; take it from \
                 elsewhere, or have an administrator add a pattern for it to that line"
            )]
        };
        let host =
            |host: &str| registry(host).iter().map(|line| line.replace("registries", "hosts")).collect::<Vec<_>>();
        let of = |url: &str| json!({"helmChartRepo": {"helmChartRepoUrl": url, "helmChartName": "shop", "helmChartVersion": "1"}});
        let archive = |url: &str| json!({"archive": {"remote": {"url": url}}});
        let allowed = [
            json!({"ref": "ghcr.io/acme/shop:1"}),
            json!({"ref": "oci://ghcr.io/acme/shop:1"}),
            of("https://charts.example.org/stable"),
            of("oci://ghcr.io/acme"),
            archive("https://charts.example.org/shop-1.tgz"),
            json!({"archive": {"raw": "AAAA"}}),
            json!({"resourceRef": "Y29tcG9uZW50"}),
            json!({"ref": 1}),
            json!(null),
        ];
        for chart in allowed {
            assert_eq!(refused(chart.clone()), [""; 0], "{chart}");
        }
        assert_eq!(
            refused(json!({"ref": "docker.io/other/shop:1", "archive": null})),
            registry("docker.io/other/shop")
        );
        assert_eq!(refused(of("oci://docker.io/other")), registry("docker.io/other/shop"));
        assert_eq!(refused(of("https://elsewhere.org/stable")), host("elsewhere.org"));
        assert_eq!(refused(archive("https://elsewhere.org/shop-1.tgz")), host("elsewhere.org"));
        let other = json!({"ref": "docker.io/other/shop:1"});
        assert_eq!(refused_chart(&sources, "x/y", &other), [""; 0], "another deployer reads something else there");
        // The entry of the item's type counts as well.
        let rule = json!({"items": {"types": [{"type": HELM, "registries": ["ghcr.io/acme/*"]}, {"type": "*"}]}});
        let lines = refused_chart(&rule, HELM, &other);
        assert!(lines.len() == 1 && lines[0].contains("line spec.items.types[0].registries"), "{lines:?}");
        assert_eq!(refused_chart(&json!({}), HELM, &other), [""; 0]);
    }

    #[test]
    fn c_101_charts_of_servers_that_are_named_by_their_address_are_held_against_the_networks() {
        let spec = json!({"egress": {"networks": ["10.0.0.0/8"]}});
        let network = |chart: Value| {
            let lines = refused_chart(&spec, HELM, &chart);
            lines.iter().map(|line| line.split(", which").next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(network(json!({"ref": "10.0.0.5:5000/shop:1"})), [""; 0]);
        let inside = ["DeployItem a/d: 172.16.0.5 leads to 172.16.0.5, a private address"];
        assert_eq!(network(json!({"ref": "172.16.0.5:5000/shop:1"})), inside);
        assert_eq!(network(json!({"archive": {"remote": {"url": "https://172.16.0.5/shop.tgz"}}})), inside);
        let of = json!({"helmChartRepo": {"helmChartRepoUrl": "https://172.16.0.5", "helmChartName": "shop"}});
        assert_eq!(network(of), inside);
    }

    #[test]
    fn c_76_charts_that_no_digest_names_are_told_where_signatures_are_required() {
        let spec = json!({"signatures": {"required": true}});
        let told = |chart: Value| {
            let lines = refused_chart(&spec, HELM, &chart);
            let of_charts = lines
                .iter()
                .filter_map(|line| line.strip_prefix("DeployItem a/d: ")?.split_once(", which is not named"));
            of_charts.map(|(content, _)| content.to_owned()).collect::<Vec<_>>()
        };
        let digest = format!("ghcr.io/acme/shop@sha256:{}", "0".repeat(64));
        assert_eq!(told(json!({"ref": digest})), [""; 0]);
        assert_eq!(told(json!({"ref": "ghcr.io/acme/shop:1"})), ["ghcr.io/acme/shop:1"]);
        assert_eq!(told(json!({"archive": {"remote": {"url": "https://a.example/x"}}})), ["a file of a web server"]);
        let of = json!({"helmChartRepo": {"helmChartRepoUrl": "https://a.example", "helmChartName": "shop", "helmChartVersion": "2"}});
        assert_eq!(told(of), ["the chart shop 2"]);
    }

    #[test]
    fn repositories_of_component_versions_are_held_against_the_registries() {
        let context = |url: &str| json!({"type": "OCIRegistry", "baseUrl": url});
        let of = |name: &str, url: &str| {
            let reference = json!({"repositoryContext": context(url), "componentName": "acme.org/app", "version": "1"});
            read(name, json!({"spec": {"blueprint": {}, "componentDescriptor": {"ref": reference}}}))
        };
        let existing = Existing {
            namespaces: BTreeMap::from([("a".into(), BTreeMap::new())]),
            installations: vec![of("here", "ghcr.io/acme"), of("there", "docker.io/other")],
            items: vec![],
            targets: vec![],
            contexts: vec![],
        };
        let spec = json!({"namespaces": {"names": ["a"]}, "sources": {"registries": ["ghcr.io/acme/*"]}});
        let lines = existing.refused(&PolicySet::new(Profile::Compatible, [Policy::read("p", &spec)]));
        let expected = "Installation a/there: content of docker.io/other/component-descriptors/acme.org/app is refused by \
                        NamespacePolicy p, line spec.sources.registries; ";
        assert!(lines.len() == 1 && lines[0].starts_with(expected), "{lines:?}");
    }

    #[test]
    fn c_101_servers_that_are_named_by_their_address_are_held_against_the_networks() {
        let kubeconfig = |server: &str| {
            format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
                 clusters: [{{name: k, cluster: {{server: '{server}'}}}}]\n\
                 contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\nusers: [{{name: u, user: {{token: t}}}}]\n"
            )
        };
        let target = |name: &str, config: Value| read(name, json!({"spec": {"type": "k", "config": config}}));
        let context = json!({"type": "OCIRegistry", "baseUrl": "10.0.0.6:5000/components"});
        let of = |context: &Value| {
            let reference = json!({"repositoryContext": context, "componentName": "a/b", "version": "1"});
            json!({"spec": {"blueprint": {}, "componentDescriptor": {"ref": reference}}})
        };
        let existing = Existing {
            namespaces: BTreeMap::from([("a".into(), BTreeMap::new())]),
            installations: vec![read("i", of(&context))],
            items: vec![],
            targets: vec![
                target("public", json!({"kubeconfig": kubeconfig("https://192.0.1.1:6443")})),
                target("by-name", json!({"kubeconfig": kubeconfig("https://inside.example.org")})),
                target("inside", json!({"kubeconfig": kubeconfig("https://10.0.0.5:6443")})),
                target("oidc", json!({"oidcConfig": {"server": "https://[fd00::5]"}})),
            ],
            contexts: vec![read("default", json!({"repositoryContext": context}))],
        };
        let refused = |spec: Value| {
            let mut spec = spec;
            spec["namespaces"] = json!({"names": ["a"]});
            existing.refused(&PolicySet::new(Profile::Restricted, [Policy::read("p", &spec)]))
        };
        let line = "which is refused by NamespacePolicy p, line spec.egress.networks of its profile restricted; name another \
                    address, or have an administrator add";
        let [registry, cluster, oidc] = [("10.0.0.6", "32"), ("10.0.0.5", "32"), ("fd00::5", "128")]
            .map(|(at, length)| format!("{at} leads to {at}, a private address, {line} {at}/{length} to that line"));
        assert_eq!(
            refused(json!({})),
            [
                format!("Context a/default: {registry}"),
                format!("Installation a/i: {registry}"),
                format!("Target a/inside: {cluster}"),
                format!("Target a/oidc: {oidc}"),
            ]
        );
        let named = json!({
            "targets": {"servers": ["https://10.0.0.5:6443", "*"]}, "sources": {"registries": ["10.0.0.6:5000/*"]},
            "egress": {"networks": ["fd00::/8"]},
        });
        assert_eq!(refused(named), Vec::<String>::new());
        assert_eq!(refused(json!({"profile": "compatible"})), Vec::<String>::new());
    }
}
