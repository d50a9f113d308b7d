use serde_json::json;

use super::*;

fn object(name: &str, version: &str) -> Value {
    json!({"metadata": {"namespace": "a", "name": name, "resourceVersion": version}})
}

fn place(name: &str) -> NamespacedName {
    NamespacedName { namespace: Some("a".into()), name: name.into() }
}

fn waiter(name: &str) -> Waiter {
    Waiter { kind: "DeployItem".into(), namespace: "n".into(), name: name.into() }
}

fn present(name: &str, version: &str) -> Observed {
    Observed::Present(Arc::new(object(name, version)))
}

fn synced() -> KnownObjects {
    let mut known = KnownObjects::of(Some("a".into()));
    known.begin_list();
    known.end_list();
    known
}

#[test]
fn nothing_is_known_before_the_first_list() {
    let mut known = KnownObjects::of(None);
    known.wait(Some(place("x")), waiter("w"));
    assert_eq!(known.observed(&place("x")), Observed::Unknown);
    assert_eq!(known.failed("forbidden".into(), true), [waiter("w")]);
    assert_eq!(known.failed("forbidden".into(), true), []);
    assert_eq!(known.observed(&place("x")), Observed::Forbidden("forbidden".into()));
    known.begin_list();
    known.listed(object("x", "1"));
    assert_eq!(known.end_list(), [waiter("w")]);
    assert_eq!((known.observed(&place("x")), known.observed(&place("y"))), (present("x", "1"), Observed::Absent));
    assert_eq!(known.failed("broke off".into(), false), []);
    assert_eq!(known.observed(&place("x")), present("x", "1"));
}

#[test]
fn c_191_what_the_server_refuses_is_told_from_what_passes() {
    let mut known = KnownObjects::of(None);
    for (is_lasting, observed) in [(false, Observed::Unwatched("no".into())), (true, Observed::Forbidden("no".into()))]
    {
        known.failed("no".into(), is_lasting);
        assert_eq!((known.observed(&place("x")), known.all()), (observed.clone(), Err(observed)));
    }
}

#[test]
fn c_91_a_list_that_never_began_takes_nothing_away() {
    let mut known = synced();
    known.changed(object("x", "1"));
    assert_eq!(known.end_list(), []);
    assert_eq!(known.observed(&place("x")), present("x", "1"));
    let (first, second) = (known.begin_follower(), known.begin_follower());
    assert_eq!((known.is_followed_by(first), known.is_followed_by(second)), (false, true));
}

#[test]
fn c_181_a_watch_that_is_refused_is_told_once_until_a_list_comes() {
    let mut known = synced();
    known.wait(Some(place("x")), waiter("w"));
    known.changed(object("x", "1"));
    assert_eq!(known.refused("no token".into()), (true, vec![waiter("w")]));
    assert_eq!(known.observed(&place("x")), Observed::Forbidden("no token".into()));
    assert_eq!(known.refused("no token".into()), (false, vec![]));
    known.begin_list();
    known.listed(object("x", "1"));
    assert_eq!(known.end_list(), [waiter("w")]);
    assert_eq!(known.observed(&place("x")), present("x", "1"));
}

#[test]
fn only_those_concerned_are_woken() {
    let mut known = synced();
    known.wait(Some(place("x")), waiter("x"));
    known.wait(Some(place("y")), waiter("y"));
    known.wait(None, waiter("any"));
    assert_eq!(known.changed(object("x", "2")), [waiter("any"), waiter("x")]);
    assert_eq!(known.removed(&object("y", "3")), [waiter("any"), waiter("y")]);
    known.leave(&None, &waiter("any"));
    known.leave(&Some(place("x")), &waiter("x"));
    assert_eq!(known.changed(object("x", "4")), []);
}

#[test]
fn a_waiter_that_holds_twice_leaves_twice() {
    let mut known = synced();
    known.wait(None, waiter("w"));
    known.wait(None, waiter("w"));
    known.leave(&None, &waiter("w"));
    assert_eq!(known.changed(object("x", "2")), [waiter("w")]);
    known.leave(&None, &waiter("w"));
    assert_eq!(known.changed(object("x", "3")), []);
}

#[test]
fn an_older_word_never_hides_what_a_write_has_answered() {
    let mut known = synced();
    known.upsert(&object("x", "9"));
    known.changed(object("x", "5"));
    assert_eq!(known.observed(&place("x")), present("x", "9"));
    known.begin_list();
    known.upsert(&object("x", "11"));
    known.upsert(&object("y", "12"));
    known.listed(object("x", "10"));
    known.end_list();
    assert_eq!(known.observed(&place("x")), present("x", "11"));
    assert_eq!(known.observed(&place("y")), present("y", "12"), "the list had begun before it was made");
}

#[test]
fn c_91_a_list_of_restored_storage_counts_although_its_versions_are_older() {
    let mut known = synced();
    known.wait(Some(place("x")), waiter("x"));
    known.wait(Some(place("gone")), waiter("gone"));
    known.changed(object("x", "90"));
    known.changed(object("new", "91"));
    known.removed(&object("gone", "92"));
    known.begin_list();
    known.listed(object("x", "5"));
    known.listed(object("gone", "6"));
    assert_eq!(known.end_list(), [waiter("gone"), waiter("x")]);
    let found = ["x", "gone", "new"].map(|name| known.observed(&place(name)));
    assert_eq!(found, [present("x", "5"), present("gone", "6"), Observed::Absent]);
    // What is made from now on has versions that were given before.
    known.changed(object("x", "7"));
    known.removed(&object("gone", "8"));
    known.changed(object("new", "9"));
    let found = ["x", "gone", "new"].map(|name| known.observed(&place(name)));
    let gone = Observed::Gone(Arc::new(object("gone", "8")));
    assert_eq!(found, [present("x", "7"), gone, present("new", "9")]);
}

#[test]
fn a_late_answer_resurrects_nothing() {
    let mut known = synced();
    known.removed(&object("x", "7"));
    known.upsert(&object("x", "6"));
    assert_eq!(known.observed(&place("x")), Observed::Absent);
    known.upsert(&object("x", "8"));
    assert_eq!(known.observed(&place("x")), present("x", "8"));
}

#[test]
fn c_107_the_last_version_of_what_went_is_known_as_long_as_somebody_waits_for_it() {
    let mut known = synced();
    let none = known.bytes();
    let (x, y) = (|version: &str| object("x", version), place("y"));
    let gone = |version: &str| Observed::Gone(Arc::new(x(version)));
    known.wait(Some(place("x")), waiter("w"));
    known.changed(x("1"));
    known.changed(object("y", "1"));
    known.removed(&x("2"));
    known.removed(&object("y", "2"));
    assert_eq!((known.observed(&place("x")), known.observed(&y)), (gone("2"), Observed::Absent), "nobody waits for y");
    known.upsert(&x("3"));
    known.begin_list();
    known.end_list();
    assert_eq!(known.observed(&place("x")), gone("3"), "a list that does not name it");
    known.leave(&Some(place("x")), &waiter("w"));
    assert_eq!((known.observed(&place("x")), known.bytes()), (Observed::Absent, none));
}

#[test]
fn a_new_list_removes_what_it_does_not_name() {
    let mut known = synced();
    known.changed(object("x", "1"));
    known.begin_list();
    known.listed(object("y", "2"));
    known.end_list();
    assert_eq!(known.all().unwrap(), [Arc::new(object("y", "2"))]);
}

#[test]
fn answers_of_other_namespaces_are_not_taken_in() {
    let mut known = KnownObjects::of(Some("b".into()));
    known.upsert(&object("x", "1"));
    known.begin_list();
    known.end_list();
    assert_eq!(known.observed(&place("x")), Observed::Absent);
}

#[test]
fn managed_fields_are_not_kept() {
    let mut known = synced();
    known.upsert(&json!({"metadata": {"namespace": "a", "name": "x", "resourceVersion": "1", "managedFields": [1]}}));
    assert_eq!(known.observed(&place("x")), present("x", "1"));
}

#[test]
fn a_later_list_wakes_those_only_that_its_news_concern() {
    let mut known = KnownObjects::of(Some("a".into()));
    for name in ["same", "changed", "gone", "new"] {
        known.wait(Some(place(name)), waiter(name));
    }
    known.begin_list();
    for name in ["same", "changed", "gone"] {
        known.listed(object(name, "1"));
    }
    assert_eq!(known.end_list(), ["changed", "gone", "new", "same"].map(waiter));
    known.begin_list();
    for (name, version) in [("same", "1"), ("changed", "2"), ("new", "3")] {
        known.listed(object(name, version));
    }
    assert_eq!(known.end_list(), ["changed", "gone", "new"].map(waiter));
}

#[test]
fn limits_cluster_a_watch_counts_the_memory_of_its_objects_and_may_be_given_up() {
    let mut known = synced();
    let large = |name: &str, version: &str| {
        let mut object = object(name, version);
        object["data"] = json!({"text": "x".repeat(1 << 20)});
        object
    };
    for version in 1..=30 {
        known.changed(large("x", &version.to_string()));
    }
    let one = known.bytes();
    assert_eq!(one >> 20, 1, "one object, however often it changes");
    for number in 1..=9 {
        known.changed(large(&format!("y{number}"), "1"));
    }
    assert_eq!(known.bytes() >> 20, 10);
    for number in 1..=9 {
        known.removed(&large(&format!("y{number}"), "2"));
    }
    assert_eq!(known.bytes(), one, "what is gone is not counted");
    known.wait(None, waiter("i"));
    assert_eq!(known.give_up("too large".to_owned()), vec![waiter("i")]);
    assert_eq!(known.observed(&place("x")), Observed::Unwatched("too large".to_owned()));
    assert_eq!(known.all(), Err(Observed::Unwatched("too large".to_owned())));
    assert_eq!(known.bytes(), 0);
}

#[test]
fn limits_cluster_removals_without_end_are_not_all_remembered() {
    let mut known = synced();
    for number in 0..=MOST_EMPTIED {
        known.removed(&object(&format!("x{number}"), "1"));
    }
    assert_eq!(known.emptied.len(), 1);
}
