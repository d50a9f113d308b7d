//! Passes a name of a mebibyte to a host call.

use orangery_guests::{ClusterRef, Fault, Item, ObjectKey, Proposal, cluster, writing};

fn plan(_: Item) -> Result<Proposal, Fault> {
    let key = ObjectKey {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: Some("default".into()),
        name: "a".repeat(1 << 20),
    };
    cluster::get(&ClusterRef::Target, &key)?;
    Ok(writing(vec![]))
}

orangery_guests::guest!(plan);
