use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use jiff::{SignedDuration, Timestamp};
use orangery_cluster::{FeedEvent, NamespacedName};
use orangery_core::{automatic::Schedule, port::Clock};
use orangery_proposal::{
    ClusterRef, ObjectKey,
    inventory::{InventoryEntry, InventoryPolicy},
};

use super::{packed::WrittenObject, tracked::FedKind, versions::Told, *};

fn owner() -> Owner {
    Owner { namespace: "n".into(), name: "item".into(), uid: "u".to_owned(), cluster: None }
}

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}, "data": {"k": value}})
}

fn write(name: &str, value: &str, how: &str) -> ObjectWrite {
    serde_json::from_value(json!({"object": config_map(name, value), "how": how})).unwrap()
}

fn located(name: &str) -> LocatedObject {
    let (namespace, name) = (Some("n".into()), name.into());
    let key = ObjectKey { api_version: "v1".into(), kind: "ConfigMap".into(), namespace, name };
    LocatedObject { on: ClusterRef::Target, key }
}

/// A live object with this uid and these annotations and labels.
fn live(value: &str, uid: &str, metadata: &Value) -> Value {
    let mut live = config_map("a", value);
    overlay(&mut live, &json!({"metadata": {"uid": uid}}));
    overlay(&mut live, &json!({"metadata": metadata}));
    live
}

fn found(how: &str, live: Option<&Value>) -> DriftFinding {
    let (write, owner, labels) = (write("a", "v", how), owner(), ["l".to_owned()]);
    let kept = unasked_baseline(&write, &owner, &labels);
    compare((&write, Some("1"), &kept), live, (&owner, &labels), &Ignored::default())
}

fn marked() -> Value {
    json!({"annotations": {OWNER_ANNOTATION: "n/item/u"}, "labels": {"l": "item"}})
}

#[test]
fn c_60_only_what_has_the_mark_of_the_item_is_the_items() {
    let taken = |why: &str| DriftFinding::TakenOver(why.to_owned());
    let table = [
        (marked(), "1", DriftFinding::AsWritten),
        (marked(), "2", DriftFinding::AsWritten),
        (json!({"labels": {"l": "item"}}), "1", taken("has lost the annotation orangery.dev/owner")),
        (json!({}), "1", taken("has lost the annotation orangery.dev/owner")),
        (json!({"labels": {"l": "item"}}), "2", taken("is another object, which somebody else has made")),
        (json!({}), "2", taken("is another object, which somebody else has made")),
        (json!({"annotations": {OWNER_ANNOTATION: "n/x/u"}}), "1", taken("belongs to DeployItem n/x now")),
        (json!({"annotations": {OWNER_ANNOTATION: "n/item/v"}}), "1", taken("belongs to DeployItem n/item now")),
        (
            json!({"annotations": {OWNER_ANNOTATION: "n/item/u"}, "labels": {"l": "x"}}),
            "1",
            taken("belongs to DeployItem x now"),
        ),
    ];
    for (metadata, uid, expected) in table {
        assert_eq!(found("replace", Some(&live("v", uid, &metadata))), expected, "{metadata} {uid}");
    }
}

#[test]
fn c_55_what_is_looked_at_follows_from_how_it_was_written() {
    let different = DriftFinding::Different(vec![Drift::Different("/data/k".to_owned())]);
    let theirs = live("theirs", "1", &marked());
    let mut without = live("v", "1", &marked());
    without["data"] = json!({});
    let missing = DriftFinding::Different(vec![Drift::Missing("/data/k".to_owned())]);
    for how in ["replace", "apply", "patch", "overlay"] {
        assert_eq!(
            (found(how, Some(&theirs)), found(how, Some(&without))),
            (different.clone(), missing.clone()),
            "{how}"
        );
    }
    // What is filled gives way, and what is only created is not looked into.
    assert_eq!((found("fill", Some(&theirs)), found("fill", Some(&without))), (DriftFinding::AsWritten, missing));
    assert_eq!(found("create", Some(&without)), DriftFinding::AsWritten);
    assert_eq!(found("create", None), DriftFinding::Missing);
    let mut leaving = theirs;
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(found("replace", Some(&leaving)), DriftFinding::BeingDeleted);
}

#[test]
fn c_58_a_manifest_has_the_last_write_of_each_object_but_for_hooks_and_what_goes_with_the_job() {
    let proposal = |writes: Vec<ObjectWrite>| part(writes);
    let first = proposal(vec![write("a", "1", "replace"), write("b", "1", "apply")]);
    let mut hook = write("h", "1", "replace");
    overlay(&mut hook.object, &json!({"metadata": {"annotations": {HOOK: "pre-install"}}}));
    let mut record = write("r", "1", "replace");
    record.object["type"] = json!(RELEASE);
    let brief = ObjectWrite { owned: Ownership::Ephemeral, ..write("e", "1", "replace") };
    let second = proposal(vec![write("a", "2", "patch"), hook, record, brief, write("gone", "1", "replace")]);
    let entry = || InventoryEntry { policy: InventoryPolicy::Manage, uid: None, before_deletion: None };
    let names = ["a", "b", "h", "r", "e"];
    let inventory = Inventory(names.into_iter().map(|name| (located(name), entry())).collect());
    let kept = manifest(Some(&first), &second, &inventory);
    assert_eq!(kept, proposal(vec![write("a", "2", "overlay"), write("b", "1", "apply")]));
    let planned: BTreeSet<LocatedObject> = [located("a")].into();
    assert!(writes_all(&second, &planned) && !writes_all(&first, &[located("h")].into()));
    assert!(writes_all(&first, &BTreeSet::new()));
}

/// A write of these data.
fn of(data: Value, how: Value) -> ObjectWrite {
    let mut object = config_map("a", "v");
    object["data"] = data;
    serde_json::from_value(json!({"object": object, "how": how})).unwrap()
}

/// As a strategy writes a manifest, and then the patch after deployment.
#[test]
fn c_58_what_is_laid_over_an_object_is_kept_with_what_lies_below_it() {
    let entry = InventoryEntry { policy: InventoryPolicy::Manage, uid: None, before_deletion: None };
    let inventory = Inventory([(located("a"), entry)].into());
    let kept = |writes: Vec<ObjectWrite>| manifest(None, &part(writes), &inventory);
    let patch = || of(json!({"b": "after"}), json!("overlay"));
    let whole = json!({"a": "1", "b": "after"});
    for (how, expected) in [("replace", "overlay"), ("patch", "overlay"), ("overlay", "overlay"), ("apply", "apply")] {
        let both = vec![of(json!({"a": "1", "b": "2"}), json!(how)), patch()];
        let one = part(vec![of(whole.clone(), json!(expected))]);
        assert_eq!(kept(both.clone()), one, "{how}");
        assert_eq!(manifest(Some(&kept(both)), &part(vec![patch()]), &inventory), one, "in the next proposal, {how}");
    }
    // What gives way to others does so still; where the object is gone, all of it is made anew.
    for how in ["fill", "create"] {
        let one = kept(vec![of(json!({"a": "1", "b": "2"}), json!(how)), patch()]);
        let made = of(whole.clone(), json!("overlay")).object;
        assert_eq!(one, part(vec![ObjectWrite { at_creation: Some(made), ..patch() }]), "{how}");
    }
    let merged = vec![
        of(json!({"a": "1", "b": "2"}), json!("replace")),
        of(json!({"c": "3"}), json!({"merge": {"data": {"b": "2"}}})),
    ];
    assert_eq!(kept(merged), part(vec![of(json!({"a": "1", "c": "3"}), json!("overlay"))]));
    let mut filled = of(json!({"a": "1", "b": ""}), json!("replace"));
    filled.at_creation = Some(json!({"metadata": {"annotations": {"x": "y"}}}));
    let mut expected = of(json!({"a": "1", "b": "2"}), json!("overlay"));
    expected.at_creation = Some(json!({"metadata": {"annotations": {"x": "y"}}}));
    assert_eq!(kept(vec![filled, of(json!({"a": "2", "b": "2"}), json!("fill"))]), part(vec![expected]));
    // A part alone does not say what was written.
    let planned: BTreeSet<LocatedObject> = [located("a")].into();
    assert!(
        !writes_all(&part(vec![patch()]), &planned) && writes_all(&part(vec![of(json!({}), json!("patch"))]), &planned)
    );
}

#[test]
fn c_55_a_job_that_goes_by_itself_is_not_missed_with_a_patch_over_it_either() {
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {"ttlSecondsAfterFinished": 1}});
    let whole = ObjectWrite::new(job.clone(), Write::Overlay);
    let mut patch = whole.clone();
    patch.object["spec"] = json!({"suspend": false});
    assert!(is_cleared_away(&whole) && !is_cleared_away(&patch));
    patch.at_creation = Some(job);
    assert!(is_cleared_away(&patch));
}

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

fn tracked() -> (Arc<AtomicUsize>, TrackedManifest) {
    let woken = Arc::<AtomicUsize>::default();
    let (count, owner) = (Arc::clone(&woken), owner());
    let wake = Arc::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let objects = vec![(located("a"), write("a", "v", "replace"), Some("1".to_owned()))];
    let clock: Arc<dyn Clock> = Arc::new(Still);
    let labels = ["l".to_owned()];
    let tracked =
        TrackedManifest::new(DriftRules::default(), (&owner, &labels), (&clock, wake), Default::default(), objects);
    (woken, tracked)
}

/// The object with a value in a version.
fn version(value: &str, version: u64) -> Value {
    let mut live = live(value, "1", &marked());
    live["metadata"]["resourceVersion"] = json!(version.to_string());
    live
}

/// The server was asked what it makes of the write.
fn ask(tracked: &TrackedManifest, live: &Value) {
    let written = tracked.written(&located("a")).unwrap();
    let kept = unasked_baseline(&written.write, &owner(), &["l".to_owned()]);
    tracked.asked(&located("a"), (written, tracked.version(&located("a"))), kept, live);
}

/// A watch tells this of the object.
fn tell(tracked: &TrackedManifest, live: &Value) {
    tracked.take(&located("a"), Told::Is(live));
}

/// A feed tells this.
fn feed(tracked: &TrackedManifest, event: FeedEvent<'_>) {
    let (api_version, kind) = ("v1".into(), "ConfigMap".into());
    let of = FedKind { number: 0, on: ClusterRef::Target, api_version, kind, namespace: Some("n".into()) };
    tracked.observe(&of, event);
}

fn place() -> NamespacedName {
    NamespacedName { namespace: Some("n".into()), name: "a".into() }
}

fn findings(tracked: &TrackedManifest) -> Vec<DriftFinding> {
    tracked.drifted().into_values().map(|drifted| drifted.finding).collect()
}

#[test]
fn c_59_what_is_older_than_what_is_known_says_nothing_unless_a_list_has_it() {
    let (woken, tracked) = tracked();
    let wakes = || woken.swap(0, Ordering::SeqCst);
    assert!(!tracked.is_complete());
    tell(&tracked, &version("v", 5));
    assert_eq!((tracked.is_complete(), tracked.drifted().len(), wakes()), (true, 0, 1));
    tell(&tracked, &version("theirs", 7));
    assert_eq!((tracked.is_unasked(), tracked.drifted().len(), wakes()), (true, 0, 1), "the server is asked first");
    ask(&tracked, &version("theirs", 7));
    assert_eq!((tracked.is_unasked(), tracked.drifted().len()), (false, 1));
    tracked.corrected(&located("a"), &version("v", 9), Timestamp::UNIX_EPOCH);
    assert_eq!(tracked.drifted().len(), 0);
    tell(&tracked, &version("theirs", 7));
    assert_eq!((tracked.drifted().len(), wakes()), (0, 0), "the watch is behind the answer of the write");
    // Storage was restored: versions go backward.
    feed(&tracked, FeedEvent::ListBegins);
    feed(&tracked, FeedEvent::Listed(&place(), &version("theirs", 3)));
    assert_eq!((tracked.drifted().len(), wakes()), (1, 1));
}

#[test]
fn c_60_the_answer_of_a_write_that_comes_after_the_end_of_its_object_brings_it_not_back() {
    let (_, tracked) = tracked();
    tell(&tracked, &version("v", 9));
    tracked.read(&located("a"), 9, None);
    tracked.corrected(&located("a"), &version("v", 9), Timestamp::UNIX_EPOCH);
    assert_eq!(findings(&tracked), [DriftFinding::Missing]);
    tracked.corrected(&located("a"), &version("v", 11), Timestamp::UNIX_EPOCH);
    assert_eq!(findings(&tracked), []);
}

#[test]
fn c_59_a_list_that_began_before_a_write_says_nothing_of_what_was_written() {
    let (_, tracked) = tracked();
    feed(&tracked, FeedEvent::ListBegins);
    feed(&tracked, FeedEvent::Unlisted(&place()));
    feed(&tracked, FeedEvent::ListEnds);
    assert_eq!(findings(&tracked), [DriftFinding::Missing]);
    // Another item has the feed list once more, while this one makes its object anew.
    feed(&tracked, FeedEvent::ListBegins);
    tracked.corrected(&located("a"), &version("v", 10), Timestamp::UNIX_EPOCH);
    feed(&tracked, FeedEvent::Unlisted(&place()));
    feed(&tracked, FeedEvent::ListEnds);
    feed(&tracked, FeedEvent::Is(&place(), &version("v", 10)));
    assert_eq!(findings(&tracked), []);
    // An older version that it names is as old.
    feed(&tracked, FeedEvent::ListBegins);
    tracked.corrected(&located("a"), &version("v", 12), Timestamp::UNIX_EPOCH);
    feed(&tracked, FeedEvent::Listed(&place(), &version("theirs", 11)));
    assert!(!tracked.is_unasked());
    // The next list says what there is.
    feed(&tracked, FeedEvent::ListBegins);
    feed(&tracked, FeedEvent::Unlisted(&place()));
    assert_eq!(findings(&tracked), [DriftFinding::Missing]);
    feed(&tracked, FeedEvent::Is(&place(), &version("v", 12)));
    assert_eq!(findings(&tracked), [], "the watch goes on from the list");
    // The watch is behind the answer of a write.
    tracked.corrected(&located("a"), &version("v", 20), Timestamp::UNIX_EPOCH);
    feed(&tracked, FeedEvent::Gone(&place(), 15));
    assert_eq!(findings(&tracked), []);
    feed(&tracked, FeedEvent::Gone(&place(), 21));
    assert_eq!(findings(&tracked), [DriftFinding::Missing]);
}

#[test]
fn c_59_what_was_read_before_something_was_told_says_not_that_there_is_nothing() {
    let (_, tracked) = tracked();
    let before = tracked.version(&located("a"));
    feed(&tracked, FeedEvent::Is(&place(), &version("v", 5)));
    tracked.read(&located("a"), before, None);
    assert_eq!((findings(&tracked), tracked.is_complete()), (vec![], true));
    tracked.read(&located("a"), 5, None);
    assert_eq!(findings(&tracked), [DriftFinding::Missing]);
}

#[test]
fn c_59_what_the_server_answers_of_an_older_version_is_asked_once_more() {
    let (woken, tracked) = tracked();
    tell(&tracked, &version("theirs", 5));
    let (before, written) = (tracked.version(&located("a")), tracked.written(&located("a")).unwrap());
    // It is changed back while the server is asked, and changed again.
    tell(&tracked, &version("others", 7));
    woken.store(0, Ordering::SeqCst);
    let kept = unasked_baseline(&written.write, &owner(), &["l".to_owned()]);
    tracked.asked(&located("a"), (written, before), kept, &version("v", 6));
    assert_eq!((tracked.is_unasked(), woken.load(Ordering::SeqCst)), (true, 1));
    ask(&tracked, &version("others", 7));
    assert_eq!((tracked.is_unasked(), tracked.drifted().len()), (false, 1));
}

#[test]
fn c_55_a_job_that_goes_when_it_is_done_is_not_missed_and_not_made_again() {
    let write = |ttl: Value| -> ObjectWrite {
        let object = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "namespace": "n"},
            "spec": {"ttlSecondsAfterFinished": ttl, "parallelism": 1}});
        serde_json::from_value(json!({"object": object, "how": "replace"})).unwrap()
    };
    let found = |write: &ObjectWrite, live: Option<&Value>| {
        let (owner, labels) = (owner(), ["l".to_owned()]);
        let kept = unasked_baseline(write, &owner, &labels);
        compare((write, Some("1"), &kept), live, (&owner, &labels), &Ignored::default())
    };
    assert_eq!(found(&write(json!(0)), None), DriftFinding::AsWritten);
    assert_eq!(found(&write(Value::Null), None), DriftFinding::Missing);
    let mut live = labelled(&write(json!(0)), &owner(), &["l".to_owned()]);
    overlay(&mut live, &json!({"metadata": {"uid": "1"}, "spec": {"parallelism": 2}}));
    let different = DriftFinding::Different(vec![Drift::Different("/spec/parallelism".to_owned())]);
    assert_eq!(found(&write(json!(0)), Some(&live)), different);
}

#[test]
fn c_35_an_object_of_a_version_that_is_not_served_any_more_is_there_and_its_fields_are_not_compared() {
    let mut other = live("theirs", "1", &marked());
    assert!(matches!(found("replace", Some(&other)), DriftFinding::Different(_)));
    other["apiVersion"] = json!("v2");
    assert_eq!(found("replace", Some(&other)), DriftFinding::AsWritten);
    other["metadata"]["annotations"] = json!({});
    assert!(matches!(found("replace", Some(&other)), DriftFinding::TakenOver(_)));
}

#[test]
fn c_59_a_watch_that_fails_begins_anew_and_says_why_where_nothing_is_known() {
    let (woken, tracked) = tracked();
    feed(&tracked, FeedEvent::Failed("no"));
    let why = "ConfigMap objects of the target cluster cannot be watched: no";
    assert_eq!((tracked.trouble().as_deref(), tracked.is_broken()), (Some(why), false));
    tell(&tracked, &version("v", 5));
    assert_eq!((tracked.trouble(), tracked.is_broken()), (None, true));
    assert_eq!(woken.load(Ordering::SeqCst), 2);
    // A list that comes in all the same tells all of it.
    feed(&tracked, FeedEvent::ListEnds);
    assert_eq!((tracked.is_broken(), woken.load(Ordering::SeqCst)), (false, 3));
}

#[test]
fn c_60_what_is_due_follows_from_the_schedule_and_from_how_often_it_was_written() {
    let (_, tracked) = tracked();
    let at = |seconds: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
    let differs = |number: u64| {
        tell(&tracked, &version("theirs", number));
        ask(&tracked, &version("theirs", number));
    };
    assert_eq!(tracked.due(None, at(0)), (vec![], None));
    differs(1);
    assert_eq!(tracked.due(None, at(0)), (vec![located("a")], None));
    let hourly = Schedule::parse("", Some("1h"), Schedule::AFTER_SUCCESS).unwrap();
    assert_eq!(tracked.due(Some((&hourly, at(0))), at(3599)), (vec![], Some(at(3600))));
    assert_eq!(tracked.due(Some((&hourly, at(0))), at(3600)), (vec![located("a")], None));
    assert_eq!(tracked.due(Some((&hourly, at(-1800))), at(0)), (vec![], Some(at(1800))), "the hour began before");
    for (number, seconds) in [(2, 0), (4, 0)] {
        tracked.corrected(&located("a"), &version("v", number), at(seconds));
        differs(number + 1);
    }
    assert_eq!(tracked.due(None, at(0)), (vec![], Some(at(1))), "after the second in a row");
    tracked.refused(&located("a"), "no".to_owned(), at(1));
    assert_eq!(tracked.due(None, at(1)), (vec![], Some(at(3))), "a refusal counts, too");
    let drifted = &tracked.drifted()[&located("a")];
    assert_eq!((drifted.refused.as_deref(), drifted.corrected), (Some("no"), 3));
    // What is another's when it is about to be written is due no more, until the feed tells something of it.
    let before = tracked.drifted()[&located("a")].finding.clone();
    tracked.pause(&located("a"), &DriftFinding::Missing);
    assert_eq!(tracked.due(None, at(1_000)), (vec![located("a")], None), "something was told meanwhile");
    tracked.pause(&located("a"), &before);
    assert_eq!(tracked.due(None, at(1_000)), (vec![], None));
    tell(&tracked, &version("theirs", 8));
    assert_eq!(tracked.due(None, at(1_000)), (vec![located("a")], None));
    // What belongs to somebody else is never due.
    let mut theirs = version("theirs", 9);
    theirs["metadata"]["annotations"] = json!({OWNER_ANNOTATION: "n/x/u"});
    tell(&tracked, &theirs);
    assert_eq!(tracked.due(None, at(1_000_000)), (vec![], None));
}

#[test]
fn c_59_what_was_written_is_packed_and_comes_back() {
    let (_, tracked) = tracked();
    let WrittenObject { write, uid, .. } = tracked.written(&located("a")).unwrap();
    assert_eq!((write, uid.as_deref()), (self::write("a", "v", "replace"), Some("1")));
    assert!(tracked.bytes() > 0 && tracked.bytes() < 400, "{}", tracked.bytes());
}

#[test]
fn c_295_nobody_waits_for_a_comparison_and_what_was_told_meanwhile_counts() {
    let (woken, tracked) = tracked();
    let wakes = || woken.swap(0, Ordering::SeqCst);
    let (theirs, others) = (version("theirs", 5), version("v", 7));
    let begun = tracked.begin(&located("a"), Told::Is(&theirs)).expect("it is news");
    // It is compared now, and others look at the item: nothing is locked.
    assert_eq!((tracked.is_complete(), tracked.is_broken(), tracked.is_unasked()), (false, false, false));
    assert_eq!((tracked.drifted().len(), tracked.due(None, Timestamp::UNIX_EPOCH)), (0, (vec![], None)));
    tell(&tracked, &others);
    assert_eq!((tracked.is_complete(), tracked.is_unasked(), wakes()), (true, false, 1));
    assert!(!tracked.end(&located("a"), &begun), "what it has found is old");
    assert_eq!((tracked.is_complete(), tracked.is_unasked(), tracked.drifted().len()), (true, false, 0));
}

#[test]
fn c_295_what_is_compared_is_due_when_it_is_known_what_that_finds() {
    let (woken, tracked) = tracked();
    tell(&tracked, &version("theirs", 5));
    ask(&tracked, &version("theirs", 5));
    let due = || tracked.due(None, Timestamp::UNIX_EPOCH).0;
    assert_eq!(due(), [located("a")]);
    let theirs = version("theirs", 7);
    let begun = tracked.begin(&located("a"), Told::Is(&theirs)).expect("it is news");
    assert_eq!(due(), []);
    assert!(tracked.end(&located("a"), &begun), "it differs as before, and is due again");
    assert_eq!((due(), woken.load(Ordering::SeqCst)), (vec![located("a")], 1));
}
