use std::{cell::RefCell, sync::Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::*;
use orangery_core::name::Namespace;

fn object(meta: Value) -> ConfigMap {
    let mut meta = meta;
    meta["namespace"] = json!("ns");
    serde_json::from_value(json!({"metadata": meta})).unwrap()
}

fn version(name: &str, uid: &str, version: u64) -> ConfigMap {
    object(json!({"name": name, "uid": uid, "resourceVersion": version.to_string()}))
}

fn message_of(object: &ConfigMap) -> WatchedObject<ConfigMap> {
    serde_json::from_str(&serde_json::to_string(object).unwrap()).unwrap()
}

/// What is known, as `name uid version`.
fn known(store: &Store<ConfigMap>) -> Vec<String> {
    store.list(None).iter().map(|object| line(&object)).collect()
}

fn line(object: &ConfigMap) -> String {
    let meta = &object.metadata;
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{} {} {}", text(&meta.name), text(&meta.uid), text(&meta.resource_version))
}

/// Writes down every change as `before -> after`.
fn journal(store: &Store<ConfigMap>) -> Arc<Mutex<Vec<String>>> {
    let journal = Arc::new(Mutex::new(Vec::new()));
    let pages = Arc::clone(&journal);
    store.subscribe(move |change| {
        let side = |side: Option<&Arc<ConfigMap>>| side.map_or("-".to_owned(), |object| line(object));
        pages.lock().unwrap().push(format!("{} -> {}", side(change.before), side(change.after)));
    });
    journal
}

#[test]
fn c_99_a_very_long_text_is_kept_packed_and_one_that_does_not_pack_as_it_is() {
    let store = Store::new();
    let long = |name: &str, text: String| {
        let mut object = version(name, name, 1);
        object.data = Some([("text".to_owned(), text)].into());
        object
    };
    let mut state = 1_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b' ' + u8::try_from((state >> 33) % 95).unwrap())
    };
    let packs = long("packs", "x".repeat(1 << 20));
    let noise = long("noise", (0..1 << 20).map(|_| noise()).collect());
    let form = |object: &ConfigMap| {
        store.upsert(object.clone());
        assert_eq!(store.get(&Key::of(object)).as_deref(), Some(object), "it is read as it was");
        store.form(&Key::of(object)).unwrap()
    };
    let StoredForm::Packed(packed) = form(&packs) else { panic!("it is not packed") };
    assert!(packed.bytes.len() < 16 << 10, "{}", packed.bytes.len());
    let long = StoredForm::<ConfigMap>::Packed(packed).long().unwrap();
    assert!(long.text > 1 << 20 && long.memory > 1 << 20, "{long:?}");
    assert!(matches!(form(&noise), StoredForm::Folded(_)));
    assert!(matches!(form(&version("short", "short", 1)), StoredForm::Whole(_)));
}

#[test]
fn a_write_is_visible_at_once_and_its_echo_is_no_news() {
    let store = Store::new();
    let journal = journal(&store);
    store.upsert(version("a", "u", 5));
    store.hear(&message_of(&version("a", "u", 5))).unwrap();
    assert_eq!(known(&store), ["a u 5"]);
    assert_eq!(*journal.lock().unwrap(), ["- -> a u 5"]);
}

#[test]
fn a_stale_event_does_not_turn_an_object_back() {
    let store = Store::new();
    store.upsert(version("a", "u", 10));
    store.hear(&message_of(&version("a", "u", 9))).unwrap();
    assert_eq!(known(&store), ["a u 10"]);
    store.hear(&message_of(&version("a", "u", 11))).unwrap();
    assert_eq!(known(&store), ["a u 11"]);
}

#[test]
fn a_stale_answer_returns_the_newest_version() {
    let store = Store::new();
    store.upsert(version("a", "u", 10));
    assert_eq!(line(&store.upsert(version("a", "u", 9))), "a u 10");
}

#[test]
fn versions_are_compared_as_numbers() {
    let store = Store::new();
    store.upsert(version("a", "u", 9));
    store.upsert(version("a", "u", 10));
    assert_eq!(known(&store), ["a u 10"]);
}

#[test]
fn a_late_answer_does_not_resurrect_what_was_deleted() {
    let store = Store::new();
    let journal = journal(&store);
    store.upsert(version("a", "u", 1));
    store.forget_meta(&version("a", "u", 3).metadata);
    store.upsert(version("a", "u", 2));
    store.hear(&message_of(&version("a", "u", 4))).unwrap();
    assert_eq!(known(&store), Vec::<String>::new());
    assert_eq!(*journal.lock().unwrap(), ["- -> a u 1", "a u 1 -> -"]);
}

#[test]
fn a_new_object_of_an_old_name_replaces_the_old_one() {
    let store = Store::new();
    store.upsert(version("a", "old", 1));
    store.upsert(version("a", "new", 4));
    store.forget_meta(&version("a", "old", 3).metadata);
    store.upsert(version("a", "old", 2));
    assert_eq!(known(&store), ["a new 4"]);
}

#[test]
fn an_older_object_of_the_same_name_is_not_believed() {
    let store = Store::new();
    store.upsert(version("a", "new", 4));
    assert_eq!(line(&store.upsert(version("a", "old", 2))), "a old 2");
    assert_eq!(known(&store), ["a new 4"]);
}

#[test]
fn an_answer_without_finalizers_left_is_gone_and_one_with_them_stays() {
    let deleted = |version: u64, finalizers: Value| {
        object(json!({"name": "a", "uid": "u", "resourceVersion": version.to_string(),
            "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}))
    };
    let store = Store::new();
    store.upsert(version("a", "u", 1));
    store.upsert(deleted(2, json!(["f"])));
    assert_eq!(known(&store), ["a u 2"]);
    store.upsert(deleted(3, json!([])));
    assert_eq!(known(&store), Vec::<String>::new());
}

/// A real server answers the write that takes the last finalizer with the version that was written over.
#[test]
fn c_127_the_answer_that_ends_an_object_has_the_version_that_was_known() {
    let deleted = |uid: &str, version: u64, finalizers: Value| {
        object(json!({"name": "a", "uid": uid, "resourceVersion": version.to_string(),
            "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}))
    };
    let store = Store::new();
    store.upsert(deleted("u", 2, json!(["f"])));
    let journal = journal(&store);
    for (uid, version) in [("u", 1), ("other", 2)] {
        store.upsert(deleted(uid, version, json!([])));
        assert_eq!(known(&store), ["a u 2"], "{uid} {version}");
    }
    store.begin_list(None);
    store.upsert(deleted("u", 2, json!([])));
    assert_eq!((known(&store), journal.lock().unwrap().clone()), (vec![], vec!["a u 2 -> -".to_owned()]));
    store.end_list(None);
    assert_eq!(journal.lock().unwrap().len(), 1);
}

#[test]
fn c_127_an_answer_that_is_no_news_keeps_nothing_that_a_list_does_not_name() {
    let store = Store::new();
    store.upsert(version("a", "u", 2));
    store.begin_list(None);
    store.upsert(version("a", "u", 2));
    store.end_list(None);
    assert_eq!(known(&store), Vec::<String>::new());
}

#[test]
fn a_list_forgets_what_it_does_not_name_but_not_what_was_written_meanwhile() {
    let store = Store::new();
    for name in ["named", "unnamed"] {
        store.upsert(version(name, name, 1));
    }
    store.begin_list(None);
    store.hear_listed(None, &message_of(&version("named", "named", 1))).unwrap();
    store.upsert(version("written", "written", 7));
    store.hear_listed(None, &message_of(&version("written", "written", 6))).unwrap();
    let journal = journal(&store);
    store.end_list(None);
    assert_eq!(known(&store), ["named named 1", "written written 7"]);
    assert_eq!(*journal.lock().unwrap(), ["unnamed unnamed 1 -> -"]);
    store.upsert(version("unnamed", "unnamed", 2));
    assert_eq!(known(&store), ["named named 1", "written written 7"]);
}

#[test]
fn c_91_a_list_of_restored_storage_counts_although_its_versions_are_older() {
    let store = Store::new();
    store.upsert(version("a", "a", 90));
    store.upsert(version("gone", "gone", 91));
    store.forget(&version("gone", "gone", 91));
    store.upsert(version("new", "new", 92));
    let journal = journal(&store);
    store.begin_list(None);
    store.hear_listed(None, &message_of(&version("a", "a", 5))).unwrap();
    store.hear_listed(None, &message_of(&version("gone", "gone", 6))).unwrap();
    store.end_list(None);
    assert_eq!(known(&store), ["a a 5", "gone gone 6"]);
    assert_eq!(*journal.lock().unwrap(), ["a a 90 -> a a 5", "- -> gone gone 6", "new new 92 -> -"]);
    store.hear(&message_of(&version("a", "a", 7))).unwrap();
    assert_eq!(known(&store), ["a a 7", "gone gone 6"]);
}

#[test]
fn c_91_a_read_that_is_older_than_what_was_known_before_it_says_that_the_storage_was_restored() {
    let restorations = Restorations::default();
    let (store, other) = (Store::<ConfigMap>::of(&restorations), Store::<ConfigMap>::of(&restorations));
    let told = other.restorations();
    let before = store.upsert(version("a", "u", 90));
    store.upsert_read(Some(&before), version("a", "u", 91));
    store.upsert_read(Some(&before), version("a", "u", 90));
    assert_eq!(known(&store), ["a u 91"], "a write has answered while it was read");
    assert!(!told.has_changed().unwrap());
    let before = store.get(&Key::new("ns", "a")).unwrap();
    store.upsert_read(Some(&before), version("a", "u", 5));
    assert_eq!(known(&store), ["a u 5"]);
    assert!(told.has_changed().unwrap());
}

#[test]
fn a_list_of_one_namespace_says_nothing_about_others() {
    let store = Store::new();
    for namespace in ["listed", "other"] {
        let mut object = version("a", namespace, 1);
        object.metadata.namespace = Some(namespace.to_owned());
        store.upsert(object);
    }
    store.begin_list(Some(&"listed".into()));
    store.end_list(Some(&"listed".into()));
    assert_eq!(known(&store), ["a other 1"]);
}

#[test]
fn a_malformed_object_is_an_error_and_stays_as_it_was_known_even_through_a_list() {
    let store = Store::new();
    store.upsert(version("a", "u", 1));
    let malformed =
        json!({"metadata": {"namespace": "ns", "name": "a", "uid": "u", "resourceVersion": "2"}, "data": 7});
    store.begin_list(None);
    store.hear_listed(None, &serde_json::from_str(&malformed.to_string()).unwrap()).unwrap_err();
    store.end_list(None);
    assert_eq!(known(&store), ["a u 1"]);
}

#[test]
fn what_nobody_reads_is_not_kept() {
    let store = Store::new();
    let kept = store.upsert(object(json!({"name": "a", "uid": "u", "resourceVersion": "1",
        "managedFields": [{"manager": "kubectl"}], "annotations": {LAST_APPLIED: "{}"}})));
    assert_eq!(*kept, version("a", "u", 1));
}

#[test]
fn lists_are_of_one_namespace_and_sorted() {
    let store = Store::new();
    for (namespace, name) in [("b", "x"), ("a-b", "x"), ("a", "y"), ("a", "x")] {
        let mut object = version(name, &format!("{namespace}{name}"), 1);
        object.metadata.namespace = Some(namespace.to_owned());
        store.upsert(object);
    }
    let keys = |namespace: Option<&Namespace>| -> Vec<String> {
        let listed: Vec<String> =
            store.list(namespace).iter().map(|object| Key::of(object.as_ref()).to_string()).collect();
        assert_eq!(store.keys(namespace).iter().map(Key::to_string).collect::<Vec<_>>(), listed);
        listed
    };
    assert_eq!(keys(Some(&"a".into())), ["a/x", "a/y"]);
    assert_eq!(keys(None), ["a/x", "a/y", "a-b/x", "b/x"]);
}

#[test]
fn an_index_follows_every_change_and_keeps_nothing_behind() {
    let coloured = |name: &str, version: u64, colours: &str| {
        object(
            json!({"name": name, "uid": name, "resourceVersion": version.to_string(), "labels": {"colours": colours}}),
        )
    };
    let store = Store::new();
    store.upsert(coloured("c", 1, "red"));
    let store = store.with_index("colour", |object: &ConfigMap| {
        let colours = object.metadata.labels.as_ref().and_then(|labels| labels.get("colours"));
        colours.map(|colours| colours.split('-').map(str::to_owned).collect()).unwrap_or_default()
    });
    let found = |colour: &str| -> Vec<String> {
        let keys = store.indexed_keys("colour", &"ns".into(), colour);
        assert_eq!(
            store
                .indexed("colour", &"ns".into(), colour)
                .iter()
                .map(|found| Key::of(found.as_ref()))
                .collect::<Vec<_>>(),
            keys
        );
        keys.into_iter().map(|key| key.name.into()).collect()
    };
    store.upsert(coloured("b", 1, "red-green"));
    store.upsert(coloured("a", 1, "red"));
    assert_eq!((found("red"), found("green")), (vec!["a".into(), "b".into(), "c".into()], vec!["b".into()]));
    store.upsert(coloured("b", 2, "blue"));
    store.forget(&coloured("c", 1, "red"));
    assert_eq!((found("red"), found("green"), found("blue")), (vec!["a".into()], vec![], vec!["b".into()]));
    store.begin_list(None);
    store.end_list(None);
    assert_eq!(store.read().index_size(), 0);
}

thread_local! {
    /// The store whose index is computed in this thread, and whether each time nobody was kept from it.
    static WATCHED: RefCell<(Option<Store<ConfigMap>>, Vec<bool>)> = const { RefCell::new((None, Vec::new())) };
}

#[test]
fn c_296_nobody_is_kept_from_a_store_while_values_of_an_index_are_computed() {
    fn values(object: &ConfigMap) -> Vec<String> {
        WATCHED.with_borrow_mut(|(store, free)| {
            free.extend(store.iter().map(|store| store.shared.known.try_write().is_ok()));
        });
        object.metadata.resource_version.iter().cloned().collect()
    }
    let store = Store::new().with_index("versions", values);
    WATCHED.set((Some(store.clone()), Vec::new()));
    store.upsert(version("a", "u", 1));
    store.hear(&message_of(&version("a", "u", 2))).unwrap();
    store.forget(&version("a", "u", 2));
    let (_store, free) = WATCHED.take();
    assert_eq!(free, [true, true], "once for each version, and never under the lock");
}

#[test]
fn c_296_what_was_known_is_read_when_the_lock_of_the_store_is_free_again() {
    let store = Store::new().compacting(|_: &ConfigMap| true);
    let taken_in = |number: u64| {
        let new = store.new_version(version("a", "u", number));
        store.write().upsert(new)
    };
    drop(taken_in(1));
    let as_text = |form: Option<StoredForm<ConfigMap>>| matches!(form, Some(StoredForm::Folded(_)));
    let UpsertOutcome::Changed { before, .. } = taken_in(2) else { panic!("it is the newest") };
    assert!(as_text(before));
    let UpsertOutcome::Unchanged { newest, .. } = taken_in(1) else { panic!("it is no news") };
    assert!(as_text(newest));
    let gone = store.write().forget(&version("a", "u", 2).metadata);
    assert!(as_text(gone));
}

#[test]
fn a_store_that_folds_tells_and_finds_the_same() {
    fn marked(object: &ConfigMap) -> Vec<String> {
        object.metadata.labels.iter().flat_map(|labels| labels.keys().cloned()).collect()
    }
    let of = |version: u64, label: &str| {
        object(json!({"name": "a", "uid": "u", "resourceVersion": version.to_string(), "labels": {label: "x"}}))
    };
    // Folded, whole while it is `busy`, and folded again.
    let seen = |store: Store<ConfigMap>| {
        let store = store.with_index("marks", marked);
        let journal = journal(&store);
        let mut found = Vec::new();
        for (version, label) in [(1, "idle"), (2, "busy"), (3, "idle"), (4, "idle")] {
            store.upsert(of(version, label));
            store.upsert(of(1, "stale"));
            store.hear(&message_of(&of(version, "echo"))).unwrap();
            let key = Key::new("ns", "a");
            let mut each = Vec::new();
            store.for_each(|object| each.push(object.clone()));
            found.push((
                store.get(&key),
                each,
                store.list(Some(&"ns".into())).into_iter().collect::<Vec<_>>(),
                store.indexed("marks", &"ns".into(), label).into_iter().collect::<Vec<_>>(),
            ));
        }
        store.forget(&of(4, "idle"));
        let changes = journal.lock().unwrap().clone();
        (found, changes, store.read().index_size())
    };
    let folds = |object: &ConfigMap| !marked(object).contains(&"busy".to_owned());
    let (whole, folded) = (seen(Store::new()), seen(Store::new().compacting(folds)));
    assert_eq!(folded.0[0].0.as_deref(), Some(&of(1, "idle")));
    assert_eq!(folded, whole);
}

#[tokio::test]
async fn a_store_is_synced_after_the_first_list() {
    let store = Store::<ConfigMap>::new();
    assert!(!store.is_synced());
    store.mark_synced();
    store.synced().await;
    assert!(store.is_synced());
}

/// Adds a value once an object has none.
fn add_value(object: &ConfigMap) -> Option<ConfigMap> {
    let data = Some([("deferred".to_owned(), String::new())].into());
    object.data.is_none().then(|| ConfigMap { data, ..object.clone() })
}

#[test]
fn c_216_a_deferred_change_is_seen_at_once_and_in_each_version_until_the_server_has_it() {
    let store = Store::new();
    let key = Key::of(&version("a", "u", 5));
    store.defer(&key, add_value);
    store.upsert(version("a", "u", 5));
    assert_eq!(store.get(&key).unwrap().data, None, "of what is not known nothing is deferred");
    let journal = journal(&store);
    let has = || store.get(&key).is_some_and(|object| object.data.is_some());
    store.defer(&key, add_value);
    assert!(has());
    store.hear(&message_of(&version("a", "u", 6))).unwrap();
    assert!(has(), "another version that does not have it");
    let known = store.get(&key).unwrap();
    assert_eq!(store.written_status(known.as_ref()), Some(ServerStatus(None)));
    assert_eq!(store.written_status(&version("a", "u", 5)), None, "of a version that is known no more");
    // A late answer to a write of before.
    assert_eq!(line(&store.upsert(version("a", "u", 5))), "a u 6");
    assert!(has());
    store.upsert(add_value(&version("a", "u", 7)).unwrap());
    assert_eq!((has(), store.written_status(store.get(&key).unwrap().as_ref())), (true, None), "it is written");
    store.upsert(version("a", "u", 8));
    assert!(!has(), "somebody has taken it away: it is not put there once more");
    assert_eq!(*journal.lock().unwrap(), ["a u 5 -> a u 5", "a u 5 -> a u 6", "a u 6 -> a u 7", "a u 7 -> a u 8"]);
}

#[test]
fn c_216_a_deferred_change_is_of_one_object_and_goes_with_it() {
    let store = Store::new();
    let key = Key::of(&version("a", "u", 5));
    store.upsert(version("a", "u", 5));
    store.defer(&key, add_value);
    store.upsert(version("a", "another", 6));
    assert_eq!(store.get(&key).unwrap().data, None, "another object of its name");
    store.defer(&key, add_value);
    store.forget(&version("a", "another", 6));
    assert!(store.shared.deferred.is_empty());
    store.upsert(version("a", "third", 7));
    assert_eq!(store.get(&key).unwrap().data, None);
    store.defer(&key, |_| None);
    assert!(store.shared.deferred.is_empty(), "it does not apply");
}

#[test]
fn c_216_a_version_that_comes_while_others_hear_of_the_one_before_keeps_the_deferred_change() {
    let store = Store::new();
    let key = Key::of(&version("a", "u", 5));
    store.upsert(version("a", "u", 5));
    store.defer(&key, add_value);
    let (heard, inner) = (Arc::new(Mutex::new(false)), store.clone());
    store.subscribe(move |_| {
        if !std::mem::replace(&mut *heard.lock().unwrap(), true) {
            inner.upsert(version("a", "u", 7));
        }
    });
    store.upsert(version("a", "u", 6));
    let known = store.get(&key).unwrap();
    assert_eq!((line(&known), known.data.is_some()), ("a u 7".to_owned(), true));
    assert_eq!(store.written_status(&known), Some(ServerStatus(None)));
}

#[test]
fn c_216_c_91_a_deferred_change_is_lost_with_the_storage_of_the_server_and_so_seen_to_be() {
    let known = |take: &dyn Fn(&Store<ConfigMap>, &ConfigMap)| {
        let store = Store::new();
        let key = Key::of(&version("a", "u", 7));
        store.upsert(version("a", "u", 7));
        store.defer(&key, add_value);
        take(&store, &store.get(&key).unwrap());
        let known = store.get(&key).unwrap();
        (line(&known), known.data.is_some(), store.has_deferred(&known))
    };
    let lost = ("a u 3".to_owned(), false, false);
    assert_eq!(known(&|store, before| store.upsert_read(Some(before), version("a", "u", 3))), lost);
    let listed = known(&|store, _| {
        store.begin_list(None);
        store.hear_listed(None, &message_of(&version("a", "u", 3))).unwrap();
        store.end_list(None);
    });
    assert_eq!(listed, lost);
}
