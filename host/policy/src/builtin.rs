//! The lines of the profiles: what counts where no policy says otherwise.

use std::sync::LazyLock;

use crate::{
    pattern::Pattern,
    profile::Profile,
    spec::{
        BlueprintRules, HostClusterRules, ItemRules, ItemTypeRule, KindLists, KindPattern, PolicySpec, Quotas,
        SourceRules, TargetRules,
    },
    trust::SignatureRules,
};

/// Deploy items of one namespace that may be under way at once under [`Profile::Restricted`].
const RESTRICTED_ITEMS: u32 = 100;

static RESTRICTED: LazyLock<PolicySpec> = LazyLock::new(|| PolicySpec {
    profile: Profile::Restricted,
    blueprints: BlueprintRules { components: Some(false), ..open().blueprints },
    targets: TargetRules {
        host_cluster: HostClusterRules { allow: Some(false) },
        cluster_scoped: Some(false),
        credentials: Some(vec![Pattern::from("serviceAccount")]),
        ..open().targets
    },
    quotas: Quotas { items: Some(RESTRICTED_ITEMS) },
    ..open()
});

static COMPATIBLE: LazyLock<PolicySpec> = LazyLock::new(|| PolicySpec { profile: Profile::Compatible, ..open() });

/// Everything is allowed.
fn open() -> PolicySpec {
    let any = || Some(vec![Pattern::any()]);
    let all_items =
        ItemTypeRule { item_type: Pattern::any(), registries: None, hosts: None, namespaces: None, kinds: None };
    PolicySpec {
        blueprints: BlueprintRules { inline: Some(true), components: Some(true), templates: any() },
        signatures: SignatureRules { required: Some(false), trusted_keys: Some(Vec::new()) },
        sources: SourceRules { registries: any(), hosts: any() },
        items: ItemRules { types: Some(vec![all_items]) },
        targets: TargetRules {
            host_cluster: HostClusterRules { allow: Some(true) },
            servers: any(),
            namespaces: any(),
            cluster_scoped: Some(true),
            kinds: KindLists { allow: Some(vec![KindPattern::any()]), deny: Some(Vec::new()) },
            credentials: any(),
        },
        quotas: Quotas { items: Some(0) },
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
            "blueprints": {"inline": true, "components": true, "templates": ["*"]},
            "signatures": {"required": false, "trustedKeys": []},
            "sources": {"registries": ["*"], "hosts": ["*"]},
            "items": {"types": [{"type": "*"}]},
            "targets": {
                "hostCluster": {"allow": true},
                "servers": ["*"],
                "namespaces": ["*"],
                "clusterScoped": true,
                "kinds": {"allow": [{"group": "*", "kind": "*"}], "deny": []},
                "credentials": ["*"],
            },
            "quotas": {"items": 0},
        });
        assert_eq!(serde_json::to_value(Profile::Compatible.spec()).unwrap(), compatible);
        let mut restricted = compatible;
        restricted["profile"] = json!("restricted");
        restricted["blueprints"]["components"] = json!(false);
        restricted["targets"]["hostCluster"]["allow"] = json!(false);
        restricted["targets"]["clusterScoped"] = json!(false);
        restricted["targets"]["credentials"] = json!(["serviceAccount"]);
        restricted["quotas"]["items"] = json!(100);
        assert_eq!(serde_json::to_value(Profile::Restricted.spec()).unwrap(), restricted);
    }

    #[test]
    fn a_policy_that_names_no_profile_is_restricted() {
        let empty: PolicySpec = serde_json::from_value(json!({})).unwrap();
        assert_eq!(empty.profile, Profile::Restricted);
    }
}
