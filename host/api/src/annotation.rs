//! Annotations of our kinds (`docs/wire.md` §2.1).

/// What is asked of the object: `reconcile`, `interrupt`, `test-reconcile`, …; see [`crate::marks::Operation`].
pub const OPERATION: &str = "landscaper.gardener.cloud/operation";
/// `"true"`: the tree goes, what it deployed stays.
pub const DELETE_WITHOUT_UNINSTALL: &str = "landscaper.gardener.cloud/delete-without-uninstall";
/// `"true"`: deletion does not wait for siblings that import the exports.
pub const DELETE_IGNORE_SUCCESSORS: &str = "landscaper.gardener.cloud/delete-ignore-successors";
/// A finished root whose generation was not observed gets `operation: reconcile`.
pub const RECONCILE_IF_CHANGED: &str = "landscaper.gardener.cloud/reconcile-if-changed";
/// `retry` marks an automatic reconcile, so that the retry counter is kept.
pub const RECONCILE_REASON: &str = "landscaper.gardener.cloud/reconcile-reason";
/// The value of [`RECONCILE_REASON`] that marks one.
pub const RETRY: &str = "retry";
/// RFC 3339, on a DeployItem at each create and update; informational.
pub const RECONCILE_TIME: &str = "landscaper.gardener.cloud/reconcile-time";
/// A token beside `operation: reconcile`, echoed in `status.lastHandledTrigger` (`docs/rules.md`, Conditions).
pub const TRIGGER: &str = "orangery.dev/trigger";
/// `"true"` on a root, handed down to deploy items: the Helm deployer caches charts.
pub const CACHE_HELM_CHARTS: &str = "landscaper.gardener.cloud/cache-helm-charts";
/// Toggled to make a watch event.
pub const TOUCH: &str = "landscaper.gardener.cloud/touch";
/// On a DeployItem: a copy of `spec.type`, for the event filters of deployers.
pub const DEPLOYER_TYPE: &str = "landscaper.gardener.cloud/deployer-type";
/// On a DeployItem: a copy of `spec.target.name`, or [`NO_TARGET_NAME`].
pub const DEPLOYER_TARGET_NAME: &str = "landscaper.gardener.cloud/deployer-target-name";
/// The value of [`DEPLOYER_TARGET_NAME`] for an item without a target.
pub const NO_TARGET_NAME: &str = ".noTargetName";
/// On a sub-Installation: the name of its template.
pub const SUBINSTALLATION_NAME: &str = "landscaper.gardener.cloud/subinstallation-name";
/// On a DeployItem: comma-separated item names, informational.
pub const DEPENDS_ON: &str = "execution.landscaper.gardener.cloud/dependsOn";
/// On a DataObject or Target that a controller wrote: the hash of its content (`docs/wire.md` §2.4).
pub const HASH: &str = "data.landscaper.gardener.cloud/hash";

/// On a DataObject or Target whose data reference cannot be the value of a label: the whole reference (C-150). Not in the
/// original.
pub const WHOLE_KEY: &str = "data.landscaper.gardener.cloud/whole-key";
/// On a DeployItem, the same of the item's name. Not in the original.
pub const WHOLE_ITEM_NAME: &str = "execution.landscaper.gardener.cloud/whole-name";

pub use orangery_blueprint::record::COPY_OF;

/// `"true"` on a root Installation: no job of it begins, but the one that deletes it (C-306). Not in the original.
pub const SUSPEND: &str = "orangery.dev/suspend";

/// `"true"` on a ServiceAccount: Targets of its namespace may name it (C-38). Not in the original.
pub const ALLOW_TARGETS: &str = "orangery.dev/allow-targets";

/// On an object that `orangery test` has created: the release whose test it is (C-74). Not in the original.
pub const TEST_OF: &str = "orangery.dev/test-of";

/// On an Execution or DeployItem of a namespace where signatures are required: the signed blueprint that its spec comes
/// from, with a seal of the operator (C-75). Not in the original.
pub const SIGNED_ORIGIN: &str = "orangery.dev/signed-origin";

/// On the Secret with the exports of an item: where in them values of Secrets stand, as a list of JSON pointers (C-195). Not in
/// the original.
pub const SECRET_EXPORTS: &str = "orangery.dev/secret-exports";

/// On the Secret with the state of a template: the seal of the operator that wrote it (C-202). Not in the original.
pub const STATE_SEAL: &str = "orangery.dev/state-seal";

/// The finalizer, and the label, of what is in use and stays until nobody uses it any more (ORC-36 … ORC-42). Not in
/// the original.
pub const GUARD: &str = "orangery.dev/in-use";

/// On what has the guard and is being deleted: who has begun to use it last (C-109). Not in the original.
pub const LAST_USER: &str = "orangery.dev/last-user";

/// The label of the Leases by which operators are active, so that they are found whatever their names are (C-234). Not in the
/// original.
pub const OPERATOR_LEASE: &str = "orangery.dev/operator";

/// By whom the spec was changed last, as they say themselves; an admission policy of the chart has it be true (C-367).
pub const CHANGED_BY: &str = "orangery.dev/changed-by";
/// On a TargetSync: the token in its Secret is renewed at once. Removed then.
pub const ROTATE_TOKEN: &str = "landscaper.gardener.cloud/rotate-token";
/// On a Target that a TargetSync has made for a shoot: when its kubeconfig was issued, RFC 3339.
pub const LAST_TARGET_SYNC: &str = "landscaper.gardener.cloud/lasttargetsync";

/// On a custom resource definition: the version of Orangery that it is of (C-410).
pub const VERSION: &str = "orangery.dev/version";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_29_every_key_is_a_legal_one() {
        let keys = [
            OPERATION,
            DELETE_WITHOUT_UNINSTALL,
            DELETE_IGNORE_SUCCESSORS,
            RECONCILE_IF_CHANGED,
            RECONCILE_REASON,
            RECONCILE_TIME,
            TRIGGER,
            CACHE_HELM_CHARTS,
            TOUCH,
            DEPLOYER_TYPE,
            DEPLOYER_TARGET_NAME,
            SUBINSTALLATION_NAME,
            DEPENDS_ON,
            HASH,
            WHOLE_KEY,
            WHOLE_ITEM_NAME,
            COPY_OF,
            SUSPEND,
            ALLOW_TARGETS,
            TEST_OF,
            SIGNED_ORIGIN,
            SECRET_EXPORTS,
            STATE_SEAL,
            LAST_USER,
            OPERATOR_LEASE,
        ];
        let is_part = |part: &str, more: &[char]| {
            let inside = |c: char| c.is_ascii_alphanumeric() || more.contains(&c);
            let ends = |c: char| c.is_ascii_alphanumeric();
            part.len() <= 63 && part.chars().all(inside) && part.starts_with(ends) && part.ends_with(ends)
        };
        for key in keys {
            let (prefix, name) = key.split_once('/').unwrap();
            assert!(is_part(name, &['-', '_', '.']) && is_part(prefix, &['-', '.']), "{key}");
            assert!(!prefix.chars().any(|c| c.is_ascii_uppercase()), "{key}");
        }
    }
}
