//! The state that a program keeps from job to job, in Secrets: a tar packed with gzip and cut into pieces, those of one run under
//! one UUID, in the form of the original.

use orangery_sdk::{ClusterRef, Fault, Host, Item, ObjectKey, ObjectRemoval, Selection};
use serde_json::Value;

use crate::names::{deployer_label, selector};

/// The annotation of ours with the time at which a piece was stored, in nanoseconds: creation times have whole seconds.
const STORED_AT: &str = "orangery.dev/state-stored-at";

/// The annotation of ours with the number of pieces: what was being stored when its pod ended is no state.
const PIECES: &str = "orangery.dev/state-pieces";

/// The annotation by which the host marks what an item has written: `namespace/name/uid` of the item.
const OWNER: &str = "orangery.dev/owner";

/// One Secret of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) name: String,
    /// Of all pieces of one run; empty where nothing was stored in it yet.
    uuid: String,
    number: u64,
    /// How many there are of the run; `None` where the original has stored it.
    count: Option<usize>,
    /// When it was stored: as its annotation says, or else as the API server says when it was made.
    stored: (String, u128),
}

/// All pieces of states that an item has: those of its labels, but for those of another item. An operator of another cluster may
/// deploy an item of the same name here.
pub(crate) fn pieces(item: &Item, (on, namespace): (&ClusterRef, &str), host: &impl Host) -> Result<Vec<Piece>, Fault> {
    let what = Selection {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: Some(namespace.to_owned()),
        names: Vec::new(),
        labels: Some(format!("{},{}=state", selector(item), deployer_label("type"))),
        fields: None,
    };
    let mark = format!("{}/{}/{}", item.namespace, item.name, item.uid);
    Ok(host.list(on, &what)?.iter().filter(|secret| is_of_item(secret, &mark)).map(piece).collect())
}

/// Whether a Secret has the mark of the item, or none, as those of the original.
fn is_of_item(secret: &Value, mark: &str) -> bool {
    let annotations = secret.pointer("/metadata/annotations");
    annotations.and_then(|annotations| annotations.get(OWNER)).is_none_or(|owner| owner == mark)
}

fn piece(secret: &Value) -> Piece {
    let text = |pointer: &str| secret.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let annotation = |name: &str| {
        let annotations = secret.pointer("/metadata/annotations");
        annotations.and_then(|annotations| annotations.get(name)).and_then(Value::as_str).unwrap_or_default()
    };
    let has_content = secret.pointer("/data/config").is_some();
    Piece {
        name: text("/metadata/name").to_owned(),
        uuid: if has_content { annotation(&deployer_label("uuid")).to_owned() } else { String::new() },
        number: annotation(&deployer_label("num")).parse().unwrap_or_default(),
        count: annotation(PIECES).parse().ok(),
        stored: (text("/metadata/creationTimestamp").to_owned(), annotation(STORED_AT).parse().unwrap_or_default()),
    }
}

/// The names of the newest state's pieces, in order; empty where there is none.
pub(crate) fn newest(pieces: &[Piece]) -> Vec<String> {
    let of_run = |uuid: &str| pieces.iter().filter(|piece| piece.uuid == uuid).count();
    let is_whole = |piece: &&Piece| piece.count.is_none_or(|count| count == of_run(&piece.uuid));
    let stored = pieces.iter().filter(|piece| !piece.uuid.is_empty()).filter(is_whole);
    let Some(newest) = stored.max_by(|a, b| a.stored.cmp(&b.stored)) else { return Vec::new() };
    let mut of_it: Vec<&Piece> = pieces.iter().filter(|piece| piece.uuid == newest.uuid).collect();
    of_it.sort_by_key(|piece| piece.number);
    of_it.into_iter().map(|piece| piece.name.clone()).collect()
}

/// The removal of pieces.
pub(crate) fn removals<'a>(
    pieces: impl Iterator<Item = &'a String>,
    (on, namespace): (&ClusterRef, &str),
) -> Vec<ObjectRemoval> {
    let removal = |name: &String| ObjectRemoval {
        key: ObjectKey {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.clone(),
        },
        on: on.clone(),
        force: false,
    };
    pieces.map(removal).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(name: &str, uuid: &str, number: u64, created: &str, stored: Option<u64>) -> Value {
        let mut annotations = json!({deployer_label("uuid"): uuid, deployer_label("num"): number.to_string()});
        if let Some(stored) = stored {
            annotations[STORED_AT] = json!(stored.to_string());
        }
        json!({"metadata": {"name": name, "creationTimestamp": created, "annotations": annotations}, "data": {"config": "eA=="}})
    }

    #[test]
    fn con_05_a_state_of_another_item_with_the_same_labels_is_passed_over() {
        let marked = |owner: &str| json!({"metadata": {"annotations": {OWNER: owner}}});
        let seen = [marked("ns/item/uid"), marked("ns/item/of-another-cluster"), json!({"metadata": {}})];
        assert_eq!(seen.map(|secret| is_of_item(&secret, "ns/item/uid")), [true, false, true]);
    }

    #[test]
    fn con_05_the_newest_state_counts_in_the_order_of_its_pieces() {
        let of = |secrets: &[Value]| newest(&secrets.iter().map(piece).collect::<Vec<_>>());
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let all = [
            secret("b1", "b", 1, new, None),
            secret("a0", "a", 0, old, None),
            secret("b0", "b", 0, new, None),
            secret("b10", "b", 10, new, None),
        ];
        assert_eq!(of(&all), ["b0", "b1", "b10"]);
        // Made within one second.
        let tied = [secret("d0", "d", 0, new, Some(9)), secret("c0", "c", 0, new, Some(10))];
        assert_eq!(of(&tied), ["c0"]);
        // One of two pieces was stored when the pod ended.
        let mut half = secret("f0", "f", 0, new, Some(11));
        half["metadata"]["annotations"][PIECES] = json!("2");
        assert_eq!(of(&[half.clone(), tied[1].clone()]), ["c0"]);
        let mut other = half.clone();
        other["metadata"]["name"] = json!("f1");
        other["metadata"]["annotations"][deployer_label("num")] = json!("1");
        assert_eq!(of(&[half, other]), ["f0", "f1"]);
        // Made for a run that has stored nothing.
        let mut empty = secret("e0", "e", 0, new, None);
        empty.as_object_mut().unwrap().remove("data");
        assert_eq!(of(&[empty, secret("a0", "a", 0, old, None)]), ["a0"]);
        assert_eq!(of(&[]), Vec::<String>::new());
    }
}
