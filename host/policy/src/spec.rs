//! A policy as administrators write it: one field for each line.

use orangery_core::name::ObjectName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    egress::EgressRules,
    pattern::Pattern,
    plan_rule::PlanRules,
    profile::Profile,
    selector::NamespaceSelector,
    trust::{SignatureRules, TrustedKey, TrustedSigner},
};

/// What the objects of the selected namespaces may do. A field that is left out is that of the profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicySpec {
    /// Where fields that are left out come from.
    #[serde(default)]
    pub profile: Profile,
    /// Of the policies that select a namespace those with the highest priority count. Of several, each has to allow what is
    /// asked.
    #[serde(default)]
    pub priority: i32,
    /// Which namespaces are selected.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub namespaces: NamespaceSelector,
    /// What blueprints may bring.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub blueprints: BlueprintRules,
    /// What has to be signed, and by whose keys.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub signatures: SignatureRules,
    /// Where content may come from.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub sources: SourceRules,
    /// Which deploy items are worked on.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub items: ItemRules,
    /// What deploy items may reach and write.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub targets: TargetRules,
    /// What may be connected to.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub egress: EgressRules,
    /// What DataObjects may hold.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub data_objects: DataObjectRules,
    /// How much of the operator the namespace may have.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub quotas: Quotas,
    /// What is recorded of the calls of components for the namespace.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub recordings: RecordingRules,
    /// Whether jobs wait until somebody has approved what they write, as a Plan of each deploy item (C-49, C-311). What external deployers
    /// write nobody can approve: under `Required` their items are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// What has to hold of all that deploy items are about to write (C-318).
    #[serde(default, skip_serializing_if = "is_usual")]
    pub plans: PlanRules,
}

/// Whether jobs need an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Approval {
    /// They need none.
    None,
    /// Nothing is written without one.
    Required,
}

fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What blueprints may bring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlueprintRules {
    /// Whether an Installation may have its blueprint written into it (`spec.blueprint.inline`), or its component descriptor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<bool>,
    /// Whether blueprints may bring components of WebAssembly: executions of type `Wasm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub components: Option<bool>,
    /// Types of template executions, such as `GoTemplate`, but `Wasm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub templates: Option<Vec<Pattern>>,
    /// Whether templates go on from a state that this operator has not written as it is, as one of Landscaper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsealed_states: Option<bool>,
}

/// Where content may come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SourceRules {
    /// Repositories of registries, such as `ghcr.io/acme/*`: of component versions and of artifacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registries: Option<Vec<Pattern>>,
    /// Hosts of chart repositories and web servers, such as `charts.example.org`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<Pattern>>,
    /// Hosts beside those of `hosts` that registries and servers may lead to, by a redirect or to their token service, such as
    /// `pkg-containers.githubusercontent.com`: registries keep content elsewhere. Nothing else of these hosts is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirects: Option<Vec<Pattern>>,
}

/// Which deploy items are worked on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ItemRules {
    /// Types of deploy items. The first entry that an item's type matches counts for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<Vec<ItemTypeRule>>,
}

/// One sort of deploy items, and what they may not have though the namespace may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ItemTypeRule {
    /// The type, such as `landscaper.gardener.cloud/helm`.
    #[serde(rename = "type")]
    pub item_type: Pattern,
    /// As `sources.registries`, for these items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registries: Option<Vec<Pattern>>,
    /// As `sources.hosts`, for these items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<Pattern>>,
    /// As `targets.namespaces`, for these items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<Pattern>>,
    /// As `targets.kinds.allow`, for these items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<KindPattern>>,
}

/// What deploy items may reach and write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TargetRules {
    /// The cluster that the operator runs in.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub host_cluster: HostClusterRules,
    /// Addresses of clusters, as scheme, host and port: `https://*.example.org:6443`. The port is always there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<Pattern>>,
    /// Namespaces on target clusters that objects may be written in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<Pattern>>,
    /// Whether objects may be written that are in no namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_scoped: Option<bool>,
    /// Kinds of objects that may be written.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub kinds: KindLists,
    /// Kinds of credentials that templates may have issued for a Target: `serviceAccount`, `shootAdmin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Vec<Pattern>>,
}

/// The cluster that the operator runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostClusterRules {
    /// Whether items may reach it without a Target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<bool>,
    /// The service account of the namespace as which the operator acts there, also where it asks for tokens of accounts that
    /// Targets name; empty: the one that the operator is started with. The operator has to have the right to impersonate it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub service_account: Option<String>,
}

/// Kinds of objects: what an entry of `deny` matches is refused, else it has to match one of `allow`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KindLists {
    /// What may be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<KindPattern>>,
    /// What may not be written though it matches `allow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny: Option<Vec<KindPattern>>,
}

/// Some kinds of some API groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KindPattern {
    /// The API group, such as `apps`; `core` is the one without a name.
    #[serde(default = "Pattern::any")]
    pub group: Pattern,
    /// The kind, such as `Deployment`.
    #[serde(default = "Pattern::any")]
    pub kind: Pattern,
}

impl KindPattern {
    /// All kinds of all groups.
    pub(crate) fn any() -> Self {
        Self { group: Pattern::any(), kind: Pattern::any() }
    }

    /// Whether a kind of a group is meant; the group without a name is `core`.
    pub(crate) fn matches(&self, group: &str, of_kind: &str) -> bool {
        self.group.matches(if group.is_empty() { "core" } else { group }) && self.kind.matches(of_kind)
    }
}

/// What DataObjects may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DataObjectRules {
    /// What becomes of data of Secrets that an import, an export or its copy would hold: `Readable`, as Landscaper has it;
    /// `Encrypted` with the operator's key; `Refused`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_data: Option<SecretDataRule>,
}

/// What becomes of data of Secrets in DataObjects (C-81), the least strict first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum SecretDataRule {
    /// Whoever may read the DataObject may read it.
    Readable,
    /// The operator alone can read it.
    Encrypted,
    /// The job fails before it is written.
    Refused,
}

/// How much of the operator the namespace may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Quotas {
    /// Deploy items of components that may be under way at once; the others wait for a place. 0 and none at all: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub items: Option<u32>,
    /// Calls of components that may be under way at once; the others wait for their turn. 0: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub calls: Option<u32>,
    /// MiB of memory that calls of components may take together, by the limits of their registrations; the others wait for
    /// their turn, and a component that may take more by itself is refused. 0: any number.
    #[serde(default, rename = "memoryMiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub memory_mib: Option<u32>,
    /// MiB that may come from registries and web servers within an hour; what is beyond them is refused. 0: any number.
    #[serde(default, rename = "fetchedMiBPerHour", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub fetched_mib_per_hour: Option<u32>,
    /// The least number of seconds from one job that `spec.automaticReconcile` of an Installation starts to the next one, whatever
    /// it asks for. 0: as it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub min_reconcile_interval_seconds: Option<u32>,
}

/// What is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordingRules {
    /// Of so many calls of components one is recorded, without values of Secrets, where the operator keeps recordings. 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub one_in: Option<u32>,
}

impl PolicySpec {
    /// Its own keys: no profile has any.
    pub(crate) fn trusted_keys(&self) -> impl Iterator<Item = &TrustedKey> {
        self.signatures.trusted_keys.iter().flatten()
    }

    /// By what a signature of a component version is verified, with its number: the first entry that counts for both.
    pub(crate) fn key_for(&self, component: &str, signature: &str) -> Option<(usize, TrustedSigner<'_>)> {
        let mut keys = self.trusted_keys().enumerate();
        let (number, key) = keys.find(|(_, key)| key.counts_for(component, signature))?;
        Some((number, key.signer()?))
    }

    /// Why it cannot be used: one sentence with the place.
    pub fn fault(&self) -> Option<String> {
        let keys = self.trusted_keys().enumerate();
        let of_keys = keys
            .filter_map(|(number, key)| key.fault().map(|why| format!("spec.signatures.trustedKeys[{number}] {why}")));
        let account = self.targets.host_cluster.service_account.as_deref().unwrap_or_default();
        if !account.is_empty() && account.parse::<ObjectName>().is_err() {
            let why = "is no name of a ServiceAccount; use lower case letters, digits, - and .";
            return Some(format!("spec.targets.hostCluster.serviceAccount {why}"));
        }
        let of_plans = || self.egress.fault().or_else(|| self.plans.fault());
        let own = || self.namespaces.fault().or_else(|| of_keys.into_iter().next()).or_else(of_plans);
        own().or_else(|| {
            let lists = self.patterns();
            lists.into_iter().find_map(|(at, patterns)| {
                patterns.into_iter().find_map(Pattern::fault).map(|why| format!("{at} {why}"))
            })
        })
    }

    /// All patterns but those of namespaces that are selected, with their places.
    fn patterns(&self) -> Vec<(String, Vec<&Pattern>)> {
        fn plain(list: &Option<Vec<Pattern>>) -> Vec<&Pattern> {
            list.iter().flatten().collect()
        }
        fn pairs(list: &Option<Vec<KindPattern>>) -> Vec<&Pattern> {
            list.iter().flatten().flat_map(|one| [&one.group, &one.kind]).collect()
        }
        let (sources, targets) = (&self.sources, &self.targets);
        let mut all = vec![
            ("spec.blueprints.templates".to_owned(), plain(&self.blueprints.templates)),
            ("spec.sources.registries".to_owned(), plain(&sources.registries)),
            ("spec.sources.hosts".to_owned(), plain(&sources.hosts)),
            ("spec.sources.redirects".to_owned(), plain(&sources.redirects)),
            ("spec.targets.servers".to_owned(), plain(&targets.servers)),
            ("spec.targets.namespaces".to_owned(), plain(&targets.namespaces)),
            ("spec.targets.credentials".to_owned(), plain(&targets.credentials)),
            ("spec.targets.kinds.allow".to_owned(), pairs(&targets.kinds.allow)),
            ("spec.targets.kinds.deny".to_owned(), pairs(&targets.kinds.deny)),
        ];
        for (number, key) in self.trusted_keys().enumerate() {
            all.push((format!("spec.signatures.trustedKeys[{number}]"), key.patterns().collect()));
        }
        for (number, rule) in self.items.types.iter().flatten().enumerate() {
            let lists = [&rule.registries, &rule.hosts, &rule.namespaces].map(plain).into_iter().flatten();
            let kinds = pairs(&rule.kinds);
            let of_rule = lists.chain(kinds).chain([&rule.item_type]).collect();
            all.push((format!("spec.items.types[{number}]"), of_rule));
        }
        all
    }
}
