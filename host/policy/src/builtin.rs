//! The lines of the profiles: what counts where no policy says otherwise.

use std::sync::LazyLock;

use orangery_core::network::Network;

use crate::{
    egress::{Cidr, EgressRules},
    pattern::Pattern,
    plan_rule::PlanRules,
    profile::Profile,
    spec::{
        Approval, BlueprintRules, DataObjectRules, HostClusterRules, ItemRules, ItemTypeRule, KindLists, KindPattern,
        PolicySpec, Quotas, RecordingRules, SecretDataRule, SourceRules, TargetRules,
    },
    trust::SignatureRules,
};

/// What a namespace may have under [`Profile::Restricted`]: alone it gets no more places for calls than this anyway (C-43).
const RESTRICTED_QUOTAS: Quotas = Quotas {
    items: Some(100),
    calls: Some(32),
    memory_mib: Some(2048),
    fetched_mib_per_hour: Some(4096),
    min_reconcile_interval_seconds: Some(60),
};

/// As much as there is.
const NO_QUOTAS: Quotas = Quotas {
    items: Some(0),
    calls: Some(0),
    memory_mib: Some(0),
    fetched_mib_per_hour: Some(0),
    min_reconcile_interval_seconds: Some(0),
};

static RESTRICTED: LazyLock<PolicySpec> = LazyLock::new(|| PolicySpec {
    profile: Profile::Restricted,
    blueprints: BlueprintRules { components: Some(false), unsealed_states: Some(false), ..open().blueprints },
    targets: TargetRules {
        host_cluster: HostClusterRules { allow: Some(false), ..open().targets.host_cluster },
        cluster_scoped: Some(false),
        credentials: Some(vec![Pattern::from("serviceAccount")]),
        ..open().targets
    },
    egress: EgressRules { networks: Some(Vec::new()) },
    data_objects: DataObjectRules { secret_data: Some(SecretDataRule::Encrypted) },
    quotas: RESTRICTED_QUOTAS,
    ..open()
});

static COMPATIBLE: LazyLock<PolicySpec> = LazyLock::new(|| PolicySpec { profile: Profile::Compatible, ..open() });

/// Everything is allowed.
fn open() -> PolicySpec {
    let any = || Some(vec![Pattern::any()]);
    let all_items =
        ItemTypeRule { item_type: Pattern::any(), registries: None, hosts: None, namespaces: None, kinds: None };
    PolicySpec {
        blueprints: BlueprintRules {
            inline: Some(true),
            components: Some(true),
            templates: any(),
            unsealed_states: Some(true),
        },
        signatures: SignatureRules { required: Some(false), trusted_keys: Some(Vec::new()) },
        sources: SourceRules { registries: any(), hosts: any(), redirects: Some(Vec::new()) },
        items: ItemRules { types: Some(vec![all_items]) },
        targets: TargetRules {
            host_cluster: HostClusterRules { allow: Some(true), service_account: Some(String::new()) },
            servers: any(),
            namespaces: any(),
            cluster_scoped: Some(true),
            kinds: KindLists { allow: Some(vec![KindPattern::any()]), deny: Some(Vec::new()) },
            credentials: any(),
        },
        egress: EgressRules { networks: Some([Network::ALL_V4, Network::ALL_V6].map(Cidr::from).to_vec()) },
        data_objects: DataObjectRules { secret_data: Some(SecretDataRule::Readable) },
        quotas: NO_QUOTAS,
        recordings: RecordingRules { one_in: Some(0) },
        approval: Some(Approval::None),
        plans: PlanRules {
            rules: Some(Vec::new()),
            job_rules: Some(Vec::new()),
            require_other_approver: Some(false),
            without_approval: Some(Vec::new()),
        },
        ..PolicySpec::default()
    }
}

impl Profile {
    /// Its lines.
    pub fn spec(self) -> &'static PolicySpec {
        match self {
            Self::Restricted => &RESTRICTED,
            Self::Compatible => &COMPATIBLE,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The lines of the profiles, whole: a change is one that users see.
    #[test]
    fn the_profiles_say_every_line() {
        let compatible = json!({
            "profile": "compatible",
            "priority": 0,
            "blueprints": {"inline": true, "components": true, "templates": ["*"], "unsealedStates": true},
            "signatures": {"required": false, "trustedKeys": []},
            "sources": {"registries": ["*"], "hosts": ["*"], "redirects": []},
            "items": {"types": [{"type": "*"}]},
            "targets": {
                "hostCluster": {"allow": true, "serviceAccount": ""},
                "servers": ["*"],
                "namespaces": ["*"],
                "clusterScoped": true,
                "kinds": {"allow": [{"group": "*", "kind": "*"}], "deny": []},
                "credentials": ["*"],
            },
            "egress": {"networks": ["0.0.0.0/0", "::/0"]},
            "dataObjects": {"secretData": "Readable"},
            "quotas": {
                "items": 0,
                "calls": 0,
                "memoryMiB": 0,
                "fetchedMiBPerHour": 0,
                "minReconcileIntervalSeconds": 0,
            },
            "recordings": {"oneIn": 0},
            "approval": "None",
            "plans": {"rules": [], "jobRules": [], "requireOtherApprover": false, "withoutApproval": []},
        });
        assert_eq!(serde_json::to_value(Profile::Compatible.spec()).unwrap(), compatible);
        let mut restricted = compatible;
        restricted["profile"] = json!("restricted");
        restricted["blueprints"]["components"] = json!(false);
        restricted["blueprints"]["unsealedStates"] = json!(false);
        restricted["targets"]["hostCluster"]["allow"] = json!(false);
        restricted["targets"]["clusterScoped"] = json!(false);
        restricted["targets"]["credentials"] = json!(["serviceAccount"]);
        restricted["egress"]["networks"] = json!([]);
        restricted["dataObjects"]["secretData"] = json!("Encrypted");
        restricted["quotas"] = json!({
            "items": 100,
            "calls": 32,
            "memoryMiB": 2048,
            "fetchedMiBPerHour": 4096,
            "minReconcileIntervalSeconds": 60,
        });
        assert_eq!(serde_json::to_value(Profile::Restricted.spec()).unwrap(), restricted);
    }

    #[test]
    fn a_policy_that_names_no_profile_is_restricted() {
        let empty: PolicySpec = serde_json::from_value(json!({})).unwrap();
        assert_eq!(empty.profile, Profile::Restricted);
    }
}
