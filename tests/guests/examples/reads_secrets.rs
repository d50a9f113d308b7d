//! Reads a Secret, and answers what it is told.

use orangery_guests::{ClusterRef, Fault, Item, ObjectKey, Proposal, cluster, writing};

fn plan(of: Item) -> Result<Proposal, Fault> {
    let key = ObjectKey {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: Some(of.namespace),
        name: "password".into(),
    };
    let secret = cluster::get(&ClusterRef::Target, &key)?;
    Ok(writing(vec![secret.unwrap_or_default()]))
}

orangery_guests::guest!(plan);
