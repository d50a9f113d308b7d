//! What is refused of an item where signatures are required, whoever asks for it.

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use orangery_api::deploy_item::DeployItem;
use orangery_apply::ItemState;
use orangery_cluster::ClusterPool;
use orangery_core::{error::Fault, port::BoxFuture};
use orangery_policy::{Policy, TrustedSigner};
use orangery_proposal::{
    Item,
    deployer::{Deployer, PluginIdentity, Reads},
    grant::Grants,
    item::NextCall,
};
use serde_json::{Value, json};

use super::*;
use crate::{controller_context::tests::host, deploy_item::gather::request::ItemJob};

const PEM: &str = "-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----\n";

static NO_GRANTS: LazyLock<Grants> = LazyLock::new(Grants::default);

/// A component that is not called.
struct Uncalled(PluginIdentity);

impl Deployer for Uncalled {
    fn identity(&self) -> &PluginIdentity {
        &self.0
    }

    fn grants(&self) -> &Grants {
        &NO_GRANTS
    }

    fn ownership_labels(&self) -> &[String] {
        &[]
    }

    fn plan<'a>(&'a self, item: &'a Item, _: Reads) -> BoxFuture<'a, Result<Proposal, Fault>> {
        unreachable!("{}: nothing is planned here", item.name)
    }

    fn uninstall<'a>(&'a self, item: &'a Item, _: Reads) -> BoxFuture<'a, Result<Option<Proposal>, Fault>> {
        unreachable!("{}: nothing is planned here", item.name)
    }
}

/// An item in its job, where these rules of signatures count.
fn gathered(signatures: Value, is_signed: bool, is_pinned: bool) -> GatheredItem {
    let host = host();
    let policy = json!({"profile": "compatible", "namespaces": {"names": ["*"]}, "signatures": signatures});
    host.policies.put_policy("p".to_owned(), Policy::read("p", &policy));
    let item = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u"}, "spec": {"type": "x/y"}});
    let mut item: DeployItem = serde_json::from_value(item).unwrap();
    if is_signed {
        SignedOrigin::new("example.org/app".into(), "release".into(), TrustedSigner::PublicKey(PEM)).mark(
            &host,
            &item.clone(),
            &mut item,
        );
    }
    let identity = PluginIdentity { name: "mine".into(), version: "1".into(), digest: "sha256:0".into(), is_pinned };
    let job = ItemJob { id: "job".into(), begun: Timestamp::UNIX_EPOCH, limit: None };
    let pool = Arc::new(ClusterPool::new(|_| {}));
    GatheredItem::new(&host, &pool, (Arc::new(item), None), Arc::new(Uncalled(identity)), job)
}

/// What was asked for, where a policy refuses it.
fn refused(step: Step<()>) -> Option<String> {
    let halt = step.err()?;
    let Halt::Stall(failure) = halt else { panic!("{halt:?}") };
    let (asked, line) = failure.message.split_once(" is refused by NamespacePolicy p, line ").unwrap();
    assert!(line.starts_with("spec.signatures.required; "), "{line}");
    Some(asked.to_owned())
}

fn required() -> Value {
    json!({"required": true, "trustedKeys": [{"publicKey": PEM}]})
}

const UNSIGNED: &str = "the deploy item a, which is not as an Installation with a signed blueprint has made it";

#[tokio::test]
async fn c_75_c_77_an_item_is_signed_and_its_component_pinned() {
    let origin = |signatures, is_signed, is_pinned| refused(gathered(signatures, is_signed, is_pinned).check_origin());
    assert_eq!(origin(required(), true, true), None);
    assert_eq!(origin(required(), false, true).as_deref(), Some(UNSIGNED));
    let unpinned = "the plugin mine, whose registration names no digest of its component";
    assert_eq!(origin(required(), true, false).as_deref(), Some(unpinned));
    assert_eq!(origin(json!({}), false, false), None);
}

/// A kept proposal, and what is done before an uninstall: nobody has asked where the item comes from on these ways.
#[tokio::test]
async fn c_75_nothing_is_written_for_an_unsigned_item_and_what_it_has_is_taken_away() {
    let proposal = |fields: Value| -> Proposal {
        let mut proposal = json!({"stages": [], "next": {"finish": {}}});
        orangery_proposal::overlay::overlay(&mut proposal, &fields);
        serde_json::from_value(proposal).unwrap_or_else(|error| panic!("{error}: {fields}"))
    };
    let key = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "n", "name": "x"});
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "n", "name": "x"}});
    let stage = |fields: Value| {
        let mut stage = json!({"name": "s", "gate": "accepted"});
        orangery_proposal::overlay::overlay(&mut stage, &fields);
        json!({"stages": [stage]})
    };
    let selection = json!({"matching": {"apiVersion": "v1", "kind": "Secret", "namespace": "n"}});
    let acts = [
        stage(json!({"writes": [{"object": object, "how": "apply"}]})),
        stage(json!({"removals": [{"key": key}]})),
        json!({"deletionOrder": [{"on": "target", "what": [selection]}]}),
    ];
    for act in &acts {
        let proposal = proposal(act.clone());
        let checked =
            |is_signed| refused(gathered(required(), is_signed, true).check_policy(&proposal, Purpose::Install));
        assert_eq!((checked(false).as_deref(), checked(true)), (Some(UNSIGNED), None), "{act}");
    }
    let own = proposal(json!({"deletionOrder": [{"on": "target", "what": ["namespaced", "clusterScoped"]}]}));
    assert_eq!(refused(gathered(required(), false, true).check_policy(&own, Purpose::Install)), None);
}

/// What a release in the cluster says is nobody's word there, whoever wrote the item.
#[tokio::test]
async fn c_192_an_uninstall_writes_nothing_that_nobody_vouches_for_and_removes_the_items_own() {
    let proposed: Proposal = serde_json::from_value(json!({
        "stages": [
            {"name": "hook", "gate": {"completed": []}, "writes": [{"object": {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"namespace": "n", "name": "hook"}}, "how": "apply"}]},
            {"name": "delete", "gate": "accepted", "removals": [{"key": {"apiVersion": "v1", "kind": "ConfigMap",
                "namespace": "n", "name": "x"}}]},
        ],
        "deletionOrder": [{"on": "target", "what": ["namespaced", {"matching": {"apiVersion": "v1", "kind": "Secret"}}]}],
        "next": {"finish": {}},
    }))
    .unwrap();
    let bounded = |signatures: Value, is_signed| {
        let item = gathered(signatures, is_signed, true);
        let bounded = item.bounded_uninstall(proposed.clone());
        assert_eq!(refused(item.check_policy(&bounded, Purpose::Uninstall)), None);
        let left: Vec<&str> = bounded.stages.iter().map(|stage| stage.name.as_str()).collect();
        (left.join(" "), bounded.deletion_order[0].what.len(), item.removes_its_own_alone(Purpose::Uninstall))
    };
    assert_eq!(bounded(json!({}), false), ("hook delete".to_owned(), 2, false));
    assert_eq!(bounded(required(), true), ("delete".to_owned(), 2, true));
    assert_eq!(bounded(required(), false), ("delete".to_owned(), 1, true));
    assert!(!gathered(required(), true, true).removes_its_own_alone(Purpose::Install));
}

/// The revision that an atomic release goes back to lies where others may write.
#[tokio::test]
async fn c_192_where_signatures_are_required_nothing_goes_back_to_what_lies_in_the_cluster() {
    let failed: StageFailure = serde_json::from_value(
        json!({"stage": "ready", "problem": {"code": "ERR_TIMEOUT", "message": "it is not ready"}}),
    )
    .unwrap();
    let told = |signatures, failed| {
        let halt = gathered(signatures, true, true).check_recovery(failed).err()?;
        halt.failure().map(|failure| (failure.message.clone(), failure.codes.iter().cloned().collect::<Vec<_>>()))
    };
    let sentence = "stage ready failed: it is not ready; the item does not go back to what was there, as no signature covers what \
                    lies in the cluster, and a NamespacePolicy requires them (spec.signatures.required); mend the cause and \
                    reconcile again";
    assert_eq!(told(required(), Some(&failed)), Some((sentence.to_owned(), vec![Code::PolicyViolation])));
    assert_eq!((told(required(), None), told(json!({}), Some(&failed))), (None, None));
}

#[tokio::test]
async fn c_270_an_order_of_another_origin_keeps_what_selects_objects_of_the_item_alone_where_signatures_are_required() {
    let order = || -> Vec<DeletionGroup> {
        let selection = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        let what = json!(["namespaced", {"managed": selection}, {"matching": selection}]);
        serde_json::from_value(json!([{"on": "target", "what": what}, {"on": "target", "what": ["clusterScoped"]}]))
            .unwrap()
    };
    let kept = |signatures: Value, is_of_origin| {
        let (mut kept, gathered) = (order(), gathered(signatures, true, true));
        let notes = gathered.retain_vouched(&mut kept, is_of_origin);
        (kept.iter().map(|group| group.what.len()).collect::<Vec<_>>(), notes)
    };
    let sentence = "what is selected in the target cluster and not of this item alone stays: it was selected for what is not the signed \
                    content of this item now; reconcile it before it is deleted";
    assert_eq!(kept(required(), false), (vec![2, 1], vec![sentence.to_owned()]));
    assert_eq!(kept(required(), true), (vec![3, 1], Vec::new()), "it was written for this origin");
    assert_eq!(kept(json!({}), false), (vec![3, 1], Vec::new()), "nobody has to vouch for it");
}

/// An item below an Installation, with what the policy of its namespace and `spec.approval` say of approvals.
fn below(policy: &str, approval: Option<&str>) -> GatheredItem {
    below_with(json!({"approval": policy}), approval)
}

/// The same with these lines in the policy.
fn below_with(lines: Value, approval: Option<&str>) -> GatheredItem {
    let host = host();
    let mut policy = json!({"profile": "compatible", "namespaces": {"names": ["*"]}});
    orangery_proposal::overlay::overlay(&mut policy, &lines);
    host.policies.put_policy("p".to_owned(), Policy::read("p", &policy));
    let installation = |name: &str, metadata: Value| {
        let mut whole = json!({"name": name, "namespace": "n", "uid": name, "resourceVersion": "1"});
        orangery_proposal::overlay::overlay(&mut whole, &metadata);
        let object = json!({"metadata": whole, "spec": {"blueprint": {}, "approval": approval}});
        drop(host.stores.installations.upsert(serde_json::from_value(object).unwrap()));
    };
    let owner = json!({"apiVersion": orangery_api::API_VERSION, "kind": "Installation", "name": "top", "uid": "top"});
    installation("top", json!({}));
    installation("tree", json!({"ownerReferences": [owner]}));
    let labels = json!({(orangery_api::label::MANAGED_BY): "tree"});
    let metadata = json!({"name": "a", "namespace": "n", "uid": "u", "labels": labels});
    let status = json!({"jobID": "job", "jobIDGenerationTime": "2026-01-01T00:00:00Z"});
    let item = json!({"metadata": metadata, "spec": {"type": "x/y"}, "status": status});
    let item: DeployItem = serde_json::from_value(item).unwrap();
    let identity =
        PluginIdentity { name: "mine".into(), version: "1".into(), digest: "sha256:0".into(), is_pinned: false };
    let job = ItemJob { id: "job".into(), begun: Timestamp::UNIX_EPOCH, limit: None };
    let pool = Arc::new(ClusterPool::new(|_| {}));
    GatheredItem::new(&host, &pool, (Arc::new(item), None), Arc::new(Uncalled(identity)), job)
}

#[tokio::test]
async fn c_49_c_311_an_approval_is_required_by_the_policy_or_the_installation_and_the_time_is_that_of_the_job_then() {
    for (policy, approval, required) in [
        ("None", None, false),
        ("None", Some("None"), false),
        ("None", Some("Required"), true),
        ("Required", None, true),
        ("Required", Some("None"), true),
        ("Perhaps", None, true),
    ] {
        let gathered = below(policy, approval);
        assert_eq!(gathered.requires_approval, required, "{policy} {approval:?}");
        assert_eq!(gathered.root(), "top");
        let now = gathered.request(NextCall::default(), &ItemState::default()).now;
        let expected = if required { "2026-01-01T00:00:00Z" } else { "1970-01-01T00:00:00Z" };
        assert_eq!(now, expected, "{policy} {approval:?}");
    }
}

#[tokio::test]
async fn c_318_c_362_rules_are_over_an_item_or_over_its_job_and_these_have_plans() {
    let rule = |expression: &str| json!([{"name": "r", "expression": expression}]);
    let facts = |plans: Value, approval: Option<&str>| {
        let gathered = below_with(json!({"plans": plans}), approval);
        let rules = (gathered.has_plan_rules(), gathered.has_job_rules());
        (rules, gathered.requires_approval, gathered.has_plans())
    };
    assert_eq!(facts(json!({}), None), ((false, false), false, false));
    assert_eq!(facts(json!({"rules": rule("true")}), None), ((true, false), false, false));
    assert_eq!(facts(json!({"jobRules": rule("true")}), None), ((false, true), false, true));
    assert_eq!(facts(json!({}), Some("Required")), ((false, false), true, true));
    let digest =
        |expression: &str| below_with(json!({"plans": {"jobRules": rule(expression)}}), None).job_rules_digest();
    assert_eq!(digest("counts.delete < 9"), digest("counts.delete < 9"));
    assert_ne!(digest("counts.delete < 9"), digest("counts.delete < 8"));
    let gathered = below_with(json!({"plans": {"jobRules": rule("true")}}), None);
    assert_eq!(gathered.tree_job(), ("n".into(), "job".into()));
    let now = gathered.request(NextCall::default(), &ItemState::default()).now;
    assert_eq!(now, "2026-01-01T00:00:00Z", "what is planned ahead is asked as of the job");
}

#[tokio::test]
async fn c_318_rules_of_an_item_are_held_against_what_is_deleted_in_former_clusters() {
    let few = json!([{"name": "few", "expression": "counts.delete <= 1"}]);
    let gathered = below_with(json!({"plans": {"rules": few}}), None);
    let located = |name: &str| {
        let key = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "n", "name": name});
        let key = serde_json::from_value(key).unwrap();
        orangery_proposal::inventory::LocatedObject { on: orangery_proposal::ClusterRef::Target, key }
    };
    let left = |names: &[&str]| {
        let entries = names.iter().map(|name| (located(name), Default::default())).collect();
        [("u".to_owned(), orangery_proposal::inventory::Inventory(entries))].into()
    };
    let broken = async |known: &[&str], run: &[&str]| {
        let run = orangery_apply::DryRun { former: left(run), ..orangery_apply::DryRun::nothing() };
        let state = ItemState { former: left(known), ..ItemState::default() };
        gathered.broken_plan_rules(&run, &state).await.len()
    };
    assert_eq!(broken(&[], &[]).await, 0);
    assert_eq!(broken(&["a"], &["a"]).await, 0, "it is the same object");
    assert_eq!(broken(&["a"], &["b"]).await, 1);
    assert_eq!(broken(&[], &["a", "b"]).await, 1);
}
