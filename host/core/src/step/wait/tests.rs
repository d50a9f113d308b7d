use super::*;

/// A Job of a target cluster.
fn target(namespace: Option<&str>, name: &str, until: Until) -> Waiting {
    Waiting::target(&"Job".into(), namespace.map(Into::into), &name.into(), until)
}

fn listed(waiting: Waiting) -> Vec<Waiting> {
    let (listed, more) = Wait::from(waiting).in_namespace(&"here".into()).listed();
    assert_eq!(more, 0);
    listed
}

/// One entry as a status names it.
fn entry(kind: &str, location: Location, which: Awaited, until: Until) -> Vec<Waiting> {
    vec![Waiting { kind: kind.into(), location, which, until, detail: None }]
}

#[test]
fn orc_08_each_place_gives_its_namespace_or_none() {
    let name = |name: &str| Awaited::Name(name.into());
    assert_eq!(
        listed(Waiting::beside("Target", "a", Until::Exists)),
        entry("Target", Location::Beside(Some("here".into())), name("a"), Until::Exists)
    );
    assert_eq!(
        listed(target(Some("there"), "a", Until::Finished).because("0 of 1")),
        entry("Job", Location::Target(Some("there".into())), name("a"), Until::Finished)
    );
    assert_eq!(listed(target(None, "a", Until::Gone)), entry("Job", Location::Target(None), name("a"), Until::Gone));
    assert_eq!(
        listed(Waiting::selected(&"Pod".into(), None, "with the labels a=b".into(), Until::Exists)),
        entry("Pod", Location::Target(None), Awaited::Selection("with the labels a=b".into()), Until::Exists)
    );
    assert_eq!(
        listed(Waiting::nowhere("Host", "maxParallel=1", Until::Room)),
        entry("Host", Location::Nowhere, name("maxParallel=1"), Until::Room)
    );
}

#[test]
fn the_message_names_namespaces_of_target_clusters_alone_and_says_why() {
    let text = [
        Waiting::beside("Target", "a", Until::Exists),
        target(Some("there"), "a", Until::Ready).because("0 of 1"),
        target(None, "a", Until::Gone),
        Waiting::selected(&"Pod".into(), Some("there".into()), "with the labels a=b".into(), Until::Exists),
        Waiting::nowhere("GateExpression", "a/when", Until::Met),
    ]
    .map(|waiting| Wait::from(waiting).in_namespace(&"here".into()).to_string());
    let expected = [
        "waiting for Target a to exist",
        "waiting for Job there/a (0 of 1) to become ready",
        "waiting for Job a to be gone",
        "waiting for Pod with the labels a=b to exist",
        "waiting for GateExpression a/when to be met",
    ];
    assert_eq!(text, expected);
}

#[test]
fn a_status_names_sixteen_and_counts_the_others() {
    let wait = |count: usize| {
        Wait::each((0..count).map(|n| Waiting::beside("DeployItem", format!("i{n:02}"), Until::Finished))).unwrap()
    };
    let all: Vec<Waiting> = wait(16).objects().iter().cloned().collect();
    assert_eq!(wait(16).listed(), (all.clone(), 0));
    assert_eq!(wait(19).listed(), (all, 3));
    assert_eq!(Wait::poll(Duration::ZERO).listed(), (vec![], 0));
}

#[test]
fn an_object_with_several_details_is_named_once() {
    let unready = |detail: &str| target(Some("there"), "a", Until::Ready).because(detail);
    let wait = Wait::each([unready("x"), unready("y")]).unwrap();
    assert_eq!(wait.objects().len(), 2);
    assert_eq!(wait.listed(), (vec![target(Some("there"), "a", Until::Ready)], 0));
}

#[test]
fn texts_of_components_are_cut_to_the_length_of_names() {
    let long = "ä".repeat(200);
    let name = "ä".repeat(126);
    assert_eq!(
        listed(Waiting::target(&long.clone().into(), Some(long.clone().into()), &long.clone().into(), Until::Exists)),
        entry(&name, Location::Target(Some(name.clone().into())), Awaited::Name(name.clone()), Until::Exists)
    );
}

#[test]
fn every_word_of_until_is_read_as_what_it_was_written_for() {
    let read = Until::ALL.map(|until| Until::parse(until.as_str()));
    assert_eq!(read, Until::ALL.map(Some));
    assert_eq!(["", "exists", "Whenever"].map(Until::parse), [None; 3]);
}
