//! What is written is read again; what others changed is not.

use orangery_apply::ClusterIdentity;
use orangery_core::step::Halt;
use orangery_proposal::{ClusterRef, overlay::overlay};

use super::*;
use crate::seal::tests::Bench;

/// `tests/golden/hello-manifest`.
fn recorded() -> Value {
    json!({
        "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2",
        "kind": "ProviderStatus",
        "managedResources": [{"policy": "manage", "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "cm",
            "namespace": "g-hello-manifest", "uid": "47ec1d9f-e855-40fd-87c0-0a45df91ce9e"}}],
    })
}

/// A state that was written, and the status of it.
fn written(state: &ItemState, bench: &Bench) -> Value {
    masked(state, bench, &Masker::default())
}

/// The same without what a masker finds.
fn masked(state: &ItemState, bench: &Bench, masker: &Masker) -> Value {
    of(state, None, bench, masker).status.unwrap()
}

fn of(state: &ItemState, before: Option<&Value>, bench: &Bench, masker: &Masker) -> WrittenStatus {
    write(state, &state.credentials, (&"item".into(), before, &"j".into()), bench.sealer("u"), masker)
}

fn state(status: &Value, job: &str, bench: &Bench) -> (ItemState, Option<SealError>) {
    let ReadStatus { state, seal_error, .. } = read(Some(status), None, &job.into(), bench.sealer("u")).unwrap();
    (state, seal_error)
}

/// One cluster of this uid, and one of which only the address is known.
fn clusters(uid: &str) -> BTreeMap<ClusterRef, ClusterIdentity> {
    BTreeMap::from([
        (ClusterRef::Target, ClusterIdentity::Uid(uid.to_owned())),
        (ClusterRef::Host, ClusterIdentity::Address("cluster of the test".to_owned())),
    ])
}

/// A state with all that the host keeps.
fn whole() -> ItemState {
    let progress = json!({"job": "j", "at": "pruning", "since": "1970-01-01T00:00:00Z"});
    let order = json!([{"on": "target", "what": ["namespaced"], "force": true}]);
    let inventory = Inventory::read(recorded().get(MANAGED_RESOURCES)).unwrap();
    ItemState {
        former: BTreeMap::from([("old".to_owned(), inventory.clone())]),
        inventory,
        progress: serde_json::from_value(progress).unwrap(),
        stored: Some(StoredProposal { digest: "sha256:0".into(), secrets: vec!["s".into()] }),
        manifest: Some(StoredProposal { digest: "sha256:1".into(), secrets: vec!["m".into()] }),
        status: Some(json!({"apiVersion": "a/v1", "kind": "K", "mine": 1})),
        deletion_order: serde_json::from_value(order).unwrap(),
        clusters: clusters("c"),
        credentials: BTreeMap::from([("c".to_owned(), "orangery-cluster-c".to_owned())]),
        notes: Vec::new(),
    }
}

#[test]
fn c_37_a_status_of_landscaper_is_adopted_and_nothing_vouches_for_it() {
    let bench = Bench::new(1);
    let (state, seal_error) = state(&recorded(), "job", &bench);
    assert_eq!(seal_error, Some(SealError::Unsealed));
    assert_eq!((state.inventory.0.len(), &state.progress, &state.stored), (1, &None, &None));
    let mut status = written(&state, &bench);
    let own = status.as_object_mut().unwrap().remove(HOST).unwrap();
    assert_eq!(status, recorded());
    assert!(own["seal"].is_string(), "from now on it is sealed");
}

#[test]
fn what_is_written_is_read_again_and_only_the_own_job_goes_on() {
    let bench = Bench::new(1);
    let status = written(&whole(), &bench);
    assert_eq!(state(&status, "j", &bench), (whole(), None));
    let other = ItemState { progress: None, ..whole() };
    assert_eq!(state(&status, "k", &bench), (other, None));
}

/// Two lists, as they stand in the statuses of earlier builds: of a cluster that is in both the uid counts.
#[test]
fn c_35_c_321_what_an_earlier_build_kept_of_clusters_is_read() {
    let bench = Bench::new(1);
    let mut status = written(&whole(), &bench);
    let (clusters, servers) =
        (json!([{"on": "target", "uid": "c"}]), json!([{"on": "host", "address": "cluster of the test"}]));
    assert_eq!((&status[HOST]["clusters"], &status[HOST]["servers"]), (&clusters, &servers));
    status[HOST]["servers"] =
        json!([{"on": "host", "address": "cluster of the test"}, {"on": "target", "address": "a"}]);
    let additions: Additions = serde_json::from_value(status[HOST].clone()).unwrap();
    assert_eq!(additions.known_clusters(), whole().clusters);
}

#[test]
fn what_says_the_same_is_not_written_anew() {
    let bench = Bench::new(1);
    let sealer = bench.sealer("u");
    let masker = Masker::of(["hunter2-hunter2", "namespaced"]);
    let write = |before: Option<&Value>, job: &str| {
        let of = (&"item".into(), before, &job.into());
        let WrittenStatus { status, number, .. } = super::write(&whole(), &whole().credentials, of, sealer, &masker);
        (status, number)
    };
    let (first, number) = write(None, "j");
    sealer.written(number);
    assert_eq!(write(first.as_ref(), "j"), (first.clone(), 1));
    let (second, number) = write(first.as_ref(), "k");
    assert_eq!((second == first, number), (false, 2), "another job");
}

#[test]
fn c_37_c_110_of_a_status_that_somebody_changed_only_the_inventory_is_taken_over_and_what_it_says_of_clusters() {
    let bench = Bench::new(1);
    let status = written(&whole(), &bench);
    let inventory = whole().inventory;
    let adopted = |cluster: &str, former: &str| ItemState {
        inventory: inventory.clone(),
        status: whole().status,
        clusters: clusters(cluster),
        former: BTreeMap::from([(former.to_owned(), inventory.clone())]),
        ..ItemState::default()
    };
    for (at, value) in [
        ("/orangery/progress/at", json!("exporting")),
        ("/orangery/proposal/secrets", json!(["other"])),
        ("/orangery/deletionOrder/0/force", json!(false)),
        ("/orangery/clusters/0/uid", json!("d")),
        ("/orangery/former/0/uid", json!("new")),
        ("/orangery/credentials/c", json!("orangery-seed")),
        ("/orangery/job", json!("k")),
        ("/orangery/number", json!(7)),
    ] {
        let mut changed = status.clone();
        *changed.pointer_mut(at).unwrap() = value;
        let cluster = if at == "/orangery/clusters/0/uid" { "d" } else { "c" };
        let former = if at == "/orangery/former/0/uid" { "new" } else { "old" };
        assert_eq!(state(&changed, "j", &bench), (adopted(cluster, former), Some(SealError::Unsealed)), "{at}");
    }
    let mut planted = status.clone();
    let secret = json!({"resource": {"apiVersion": "v1", "kind": "Secret", "name": "s", "namespace": "other"},
        "patchBeforeDelete": {"data": {"k": "v"}}});
    planted["managedResources"].as_array_mut().unwrap().push(secret);
    let (found, seal_error) = state(&planted, "j", &bench);
    assert_eq!((found.inventory.0.len(), seal_error), (2, Some(SealError::Unsealed)));
    assert!(found.inventory.0.values().all(|entry| entry.before_deletion.is_none()));
}

#[test]
fn c_270_what_was_to_be_written_for_another_signed_origin_is_not_gone_on_with() {
    let bench = Bench::new(1);
    let of = |origin| {
        let of = (&"item".into(), None, &"j".into());
        write(&whole(), &whole().credentials, of, bench.sealer_for("u", origin), &Masker::default()).status.unwrap()
    };
    let without = ItemState { progress: None, stored: None, manifest: None, ..whole() };
    for written in [None, Some("one"), Some("two")] {
        for now in [None, Some("one"), Some("two")] {
            let found = read(Some(&of(written)), None, &"j".into(), bench.sealer_for("u", now)).unwrap();
            let is_same = written == now;
            let expected = if is_same { whole() } else { without.clone() };
            assert_eq!(
                (found.state, found.seal_error, found.is_of_origin),
                (expected, None, is_same),
                "{written:?} {now:?}"
            );
        }
    }
    // Which one it was for is sealed as well.
    let mut planted = of(Some("one"));
    planted["orangery"]["origin"] = of(Some("two"))["orangery"]["origin"].clone();
    let found = read(Some(&planted), None, &"j".into(), bench.sealer_for("u", Some("two"))).unwrap();
    assert_eq!(found.seal_error, Some(SealError::Unsealed));
}

#[test]
fn c_37_a_status_that_was_written_before_another_one_is_no_state_to_go_on_with() {
    let bench = Bench::new(1);
    let first = written(&ItemState { deletion_order: Vec::new(), ..whole() }, &bench);
    state(&first, "j", &bench);
    let second = written(&whole(), &bench);
    assert_eq!(state(&second, "j", &bench).1, None);
    assert_eq!(state(&first, "j", &bench).1, Some(SealError::Replayed));
}

#[test]
fn nothing_to_say_is_no_status() {
    let bench = Bench::new(1);
    let nothing = read(None, None, &"j".into(), bench.sealer("u")).unwrap();
    assert_eq!((&nothing.state, nothing.seal_error), (&ItemState::default(), None));
    let signed = read(None, None, &"j".into(), bench.sealer_for("u", Some("one"))).unwrap();
    assert!(signed.is_of_origin, "there is nothing that could be of another one");
    assert_eq!(of(&nothing.state, None, &bench, &Masker::default()).status, None);
    let stored = ItemState {
        stored: Some(StoredProposal { digest: "sha256:0".into(), secrets: vec![] }),
        ..ItemState::default()
    };
    let status = written(&stored, &bench);
    assert_eq!((&status["apiVersion"], &status["kind"]), (&json!("orangery.dev/v1alpha1"), &json!("ProviderStatus")));
    assert_eq!(status["orangery"]["proposal"], json!({"digest": "sha256:0", "secrets": []}));
}

#[test]
fn what_cannot_be_read_is_not_guessed() {
    let bench = Bench::new(1);
    for broken in [json!({"managedResources": "x"}), json!({"orangery": {"progress": {"at": "nowhere"}}})] {
        assert!(matches!(read(Some(&broken), None, &"j".into(), bench.sealer("u")), Err(Halt::Stall(_))), "{broken}");
    }
}

const VALUE: &str = "hunter2-\"hunter2\"";

/// A state that shows the value wherever a component may have put it.
fn telling() -> ItemState {
    let mut state = whole();
    let failed = json!({"stage": "s", "problem": {"code": "E", "message": format!("it is {VALUE}")}});
    state.progress = serde_json::from_value(json!({"job": "j", "at": {"recovering": failed},
        "since": "1970-01-01T00:00:00Z"}))
    .unwrap();
    state.status =
        Some(json!({"apiVersion": "a/v1", "kind": VALUE, "mine": VALUE, VALUE: [VALUE.to_owned() + "x", 1]}));
    for inventory in [&mut state.inventory, state.former.get_mut("old").unwrap()] {
        inventory.0.values_mut().for_each(|entry| entry.before_deletion = Some(json!({"data": {"k": VALUE}})));
    }
    state
}

#[test]
fn c_85_values_of_secrets_are_not_shown_and_what_is_read_again_has_them() {
    let bench = Bench::new(1);
    let masker = Masker::of([VALUE]);
    let status = masked(&telling(), &bench, &masker);
    assert!(!masker.finds(&status.to_string()), "{status:#}");
    assert_eq!(state(&status, "j", &bench), (telling(), None));
    let mut shown = status.clone();
    let own = shown.as_object_mut().unwrap().remove(HOST).unwrap();
    let mut expected = recorded();
    overlay(&mut expected, &json!({"apiVersion": "a/v1", "mine": "[masked]", "[masked]": ["[masked]x", 1]}));
    assert_eq!(shown, expected);
    let members: Vec<&str> = own.as_object().unwrap().keys().map(String::as_str).collect();
    let kept = ["clusters", "credentials", "hidden", "job", "manifest", "number", "proposal", "seal", "servers"];
    assert_eq!(members, kept);
    // Though it is not known to be secret any more.
    let later = of(&telling(), Some(&status), &bench, &Masker::default());
    assert_eq!(later.status.unwrap()["mine"], "[masked]");
    // Nothing is hidden that is not secret.
    let status = masked(&whole(), &bench, &masker);
    assert_eq!((&status, status.pointer("/orangery/hidden")), (&written(&whole(), &bench), None));
}

#[test]
fn c_110_what_lies_in_former_clusters_outlives_the_seal_unless_its_key_is_gone() {
    let bench = Bench::new(1);
    let status = masked(&telling(), &bench, &Masker::of([VALUE]));
    let mut tampered = status.clone();
    tampered["orangery"]["seal"] = json!("AAAA");
    let read = |bench: &Bench| read(Some(&tampered), None, &"j".into(), bench.sealer("u")).unwrap();
    let known = read(&bench);
    assert_eq!((known.state.former.len(), known.is_part_lost), (1, false), "it is encrypted for this item");
    assert!(known.state.former["old"].0.values().all(|entry| entry.before_deletion.is_none()), "and adopted");
    let lost = read(&Bench::new(2));
    assert_eq!((lost.state.former.len(), lost.is_part_lost), (0, true));
    let (shown, seal_error) = state(&written(&whole(), &bench), "j", &Bench::new(2));
    assert_eq!((shown.former, seal_error), (whole().former, Some(SealError::Unsealed)));
}

#[test]
fn c_85_what_is_hidden_counts_as_long_as_nobody_changes_it() {
    let bench = Bench::new(1);
    let status = masked(&telling(), &bench, &Masker::of([VALUE]));
    let other = masked(&telling(), &Bench::new(2), &Masker::of([VALUE]));
    for hidden in [Value::Null, json!("x"), other["orangery"]["hidden"].clone()] {
        let mut changed = status.clone();
        changed["orangery"]["hidden"] = hidden;
        let (found, seal_error) = state(&changed, "j", &bench);
        assert_eq!((found.inventory, seal_error), (whole().inventory, Some(SealError::Unsealed)));
        assert_eq!(found.status.unwrap()["mine"], "[masked]");
    }
}

/// A state of so many ConfigMaps, all of which are planned.
fn of_many(count: usize) -> ItemState {
    let list = (0..count).map(|number| {
        json!({"policy": "manage", "resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": format!("cm-{number}"),
            "namespace": "default", "uid": format!("47ec1d9f-e855-40fd-87c0-{number:012}")}})
    });
    let mut state = whole();
    state.inventory = Inventory::read(Some(&list.collect())).unwrap();
    if let Some(progress) = &mut state.progress {
        progress.planned = state.inventory.0.keys().cloned().collect();
    }
    state
}

#[test]
fn c_94_limits_state_what_has_no_room_in_the_status_lies_beside_it_under_its_seal() {
    let (bench, none) = (Bench::new(1), Masker::default());
    let few = of(&of_many(500), None, &bench, &none);
    assert!(few.large.is_none() && few.status.unwrap()["managedResources"].as_array().unwrap().len() == 500);
    let many = of_many(20_000);
    let WrittenStatus { status, large, .. } = of(&many, None, &bench, &none);
    let (status, large) = (status.unwrap(), large.unwrap());
    let size = status.to_string().len();
    assert!(size < 100_000, "{size} bytes of status");
    assert_eq!(status["managedResources"].as_array().unwrap().len(), 200, "the first of them are shown");
    let read = |status: &Value, content: Option<Hidden>| {
        let ReadStatus { state, seal_error, .. } =
            super::read(Some(status), content, &"j".into(), bench.sealer("u")).unwrap();
        (state, seal_error)
    };
    assert_eq!(read(&status, large.content()), (many.clone(), None));
    // It is stored once, and what says the same is not written anew.
    let again = of(&many, Some(&status), &bench, &none);
    assert_eq!(again.status.as_ref(), Some(&status));
    assert!(again.large.unwrap().is_stored());
    // A status that names other Secrets is none of ours, and the objects are looked at before they are deleted.
    let mut other = status.clone();
    other["orangery"]["large"]["digest"] = json!("sha256:0");
    let (found, seal_error) = read(&other, large.content());
    assert_eq!((found.inventory.0.len(), seal_error), (20_000, Some(SealError::Unsealed)));
    assert_eq!((found.progress, found.stored), (None, None));
    assert_eq!(secrets(Some(&other), bench.sealer("u")), BTreeSet::new());
    let named = secrets(Some(&status), bench.sealer("u"));
    assert_eq!(named, large.secrets().into_iter().chain(["m", "s"].map(str::to_owned)).collect());
}

#[test]
fn c_85_words_of_the_wire_and_too_many_values_break_nothing() {
    let bench = Bench::new(1);
    for masker in [
        Masker::of(["managedResources", "orangery", "providerStatus", "ProviderStatus", "namespace", "1970-01-01"]),
        Masker::of_too_many(),
    ] {
        let status = masked(&whole(), &bench, &masker);
        assert_eq!(state(&status, "j", &bench), (whole(), None), "{status:#}");
        assert_eq!(status["managedResources"], recorded()["managedResources"]);
    }
}
