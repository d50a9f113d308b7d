use super::*;

fn owner(name: &str, uid: &str, cluster: Option<&str>) -> Owner {
    Owner { namespace: "n".into(), name: name.into(), uid: uid.to_owned(), cluster: cluster.map(str::to_owned) }
}

/// What a job of an item writes over an object.
fn written(mut live: Value, owner: &Owner) -> Value {
    owner.put_on(&mut live);
    live
}

fn why(live: &Value, owner: &Owner) -> Option<String> {
    Deleted::Removal.stays(live, owner, &[])
}

#[test]
fn c_137_the_marks_name_the_item_and_its_cluster() {
    let live = written(json!({}), &owner("item", "u", Some("here")));
    let marks = json!({OWNER_ANNOTATION: "n/item/u", OWNER_CLUSTER_ANNOTATION: "here/u"});
    assert_eq!(live, json!({"metadata": {"annotations": marks}}));
    assert_eq!(
        OWNER_CLUSTER.rsplit('/').next().map(|name| name.replace("~1", "/")).as_deref(),
        Some(OWNER_CLUSTER_ANNOTATION)
    );
    // Where the cluster is not known, nothing is said of it.
    let unknown = written(json!({}), &owner("item", "u", None));
    assert_eq!(unknown, json!({"metadata": {"annotations": {OWNER_ANNOTATION: "n/item/u"}}}));
}

#[test]
fn c_137_the_item_itself_is_known_by_its_uid_whatever_is_said_of_its_cluster() {
    let item = owner("item", "u", Some("here"));
    for cluster in [None, Some("here"), Some("there")] {
        let live = written(json!({}), &owner("item", "u", cluster));
        assert_eq!((claim(&live, &item, &[]), marked_by(&live, &item, &[])), (Claim::Own, None), "{cluster:?}");
    }
}

#[test]
fn c_137_an_item_of_another_cluster_is_told_from_one_of_this() {
    let item = owner("item", "u", Some("here"));
    let live = |cluster| written(json!({}), &owner("other", "v", cluster));
    let elsewhere = |live: &Value| marked_by(live, &item, &[]).map(|other| other.is_elsewhere(&item));
    let found = [Some("here"), Some("there"), None].map(|cluster| elsewhere(&live(cluster)));
    assert_eq!(found, [Some(false), Some(true), Some(false)]);
    // An operator that does not know where it is itself takes nobody for one of its own.
    let lost = owner("item", "u", None);
    assert_eq!(marked_by(&live(Some("here")), &lost, &[]).map(|other| other.is_elsewhere(&lost)), Some(true));
    // An earlier build, or an operator that knows no cluster, has written its own mark over it since.
    let over = written(live(Some("there")), &owner("third", "w", None));
    assert_eq!(elsewhere(&over), Some(false));
    assert_eq!(why(&over, &item).as_deref(), Some("it belongs to DeployItem n/third"));
}

#[test]
fn c_137_why_an_object_stays_names_the_other_host_or_the_earlier_item() {
    let item = owner("item", "u", Some("here"));
    let reasons =
        [owner("other", "v", Some("here")), owner("item", "v", Some("here")), owner("item", "v", Some("there\n"))]
            .map(|other| why(&written(json!({}), &other), &item).unwrap());
    assert_eq!(
        reasons,
        [
            "it belongs to DeployItem n/other",
            "it belongs to DeployItem n/item with the uid v, an earlier one of this name, as of before a backup was restored, or \
             one of another host; delete it by hand where it is not needed",
            "it belongs to DeployItem n/item of another host, whose cluster has the uid there\\n; where that host is gone, delete \
             it by hand",
        ]
    );
}

#[test]
fn c_137_an_operator_that_does_not_know_its_cluster_leaves_what_is_said_of_it() {
    let (live, desired) = (written(json!({}), &owner("item", "u", Some("here"))), json!({"data": {}}));
    let marks = json!({"data": {}, "metadata": {"annotations": {OWNER_CLUSTER_ANNOTATION: "here/u"}}});
    let over = |cluster, live: &Value| owner("item", "u", cluster).over(live, &desired).into_owned();
    assert_eq!(
        [over(None, &live), over(None, &json!({})), over(Some("there"), &live)],
        [marks, desired.clone(), desired.clone()]
    );
}
