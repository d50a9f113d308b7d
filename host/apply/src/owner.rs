//! Whose an object is: the marks that the host puts on everything it writes, and what they mean for an object that is to be
//! deleted (C-36, C-137).

use std::borrow::Cow;

use orangery_core::name::{Namespace, ObjectName, is_path_segment, ownership_label};
use orangery_proposal::{
    inventory::{InventoryEntry, InventoryPolicy},
    overlay::overlay,
};
use serde_json::{Value, json};

/// The annotation that says which deploy item has written an object: `namespace/name/uid` of the item.
pub const OWNER_ANNOTATION: &str = "orangery.dev/owner";

/// The annotation that says which cluster the deploy item of the mark is in: `cluster/uid`, the uid of the Namespace `kube-system`
/// there, and that of the item. Where that is not the item of the mark, a build that does not know the annotation has written
/// the mark since, and it says nothing (C-137).
pub const OWNER_CLUSTER_ANNOTATION: &str = "orangery.dev/owner-cluster";

/// Its place in an object, as a JSON pointer.
pub(crate) const OWNER_CLUSTER: &str = "/metadata/annotations/orangery.dev~1owner-cluster";

/// The annotation by which Helm lets objects stay.
const RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// The deploy item that objects are written for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: ObjectName,
    /// Its uid: an item of the same name that comes later is another one.
    pub uid: String,
    /// The uid of the cluster that has the item; `None` where it is not known.
    pub cluster: Option<String>,
}

/// Where an object says whose it is: the field of its metadata, and the name in it. `labels` are those that name an item (C-36).
pub(crate) fn places_of_marks(labels: &[String]) -> impl Iterator<Item = (&'static str, &str)> {
    let annotations = [OWNER_ANNOTATION, OWNER_CLUSTER_ANNOTATION].map(|name| ("annotations", name));
    annotations.into_iter().chain(labels.iter().map(|label| ("labels", label.as_str())))
}

impl Owner {
    /// The value of [`OWNER_ANNOTATION`].
    pub fn mark(&self) -> String {
        format!("{}/{}/{}", self.namespace, self.name, self.uid)
    }

    /// The item that a mark names; `None` where it is no mark of the host.
    fn of_mark(mark: &str) -> Option<Self> {
        let parts: Vec<&str> = mark.split('/').collect();
        let [namespace, name, uid] = <[&str; 3]>::try_from(parts).ok()?;
        let named = is_path_segment(namespace) && is_path_segment(name) && !uid.is_empty();
        named.then(|| Self { namespace: namespace.into(), name: name.into(), uid: uid.to_owned(), cluster: None })
    }

    /// Whether the item is in another cluster than `other`, or in one that need not be the same.
    pub(crate) fn is_elsewhere(&self, other: &Self) -> bool {
        self.cluster.is_some() && self.cluster != other.cluster
    }

    /// The value of the ownership labels: its name, as far as that fits.
    pub(crate) fn label(&self) -> String {
        ownership_label(&self.name)
    }

    /// Puts the marks on an object that is written for the item, whatever stood there.
    pub(crate) fn put_on(&self, object: &mut Value) {
        overlay(object, &json!({"metadata": {"annotations": {OWNER_ANNOTATION: self.mark()}}}));
        if let Some(cluster) = &self.cluster {
            let of = format!("{cluster}/{}", self.uid);
            overlay(object, &json!({"metadata": {"annotations": {OWNER_CLUSTER_ANNOTATION: of}}}));
        }
    }

    /// What is written over a live object. Where the cluster is not known, what that says of it stays.
    pub(crate) fn over<'v>(&self, live: &Value, desired: &'v Value) -> Cow<'v, Value> {
        match annotation(live, OWNER_CLUSTER_ANNOTATION) {
            Some(known) if self.cluster.is_none() => {
                let mut kept = desired.clone();
                overlay(&mut kept, &json!({"metadata": {"annotations": {OWNER_CLUSTER_ANNOTATION: known}}}));
                Cow::Owned(kept)
            }
            Some(_) | None => Cow::Borrowed(desired),
        }
    }
}

/// Whose a live object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim<'o> {
    /// It has the mark of the item.
    Own,
    /// It has no mark, but the label by which the deployers of Landscaper know their objects.
    OwnByLabel,
    /// It has the mark of another item, or the label with its name.
    Other(&'o str),
    /// Nothing says that an item has written it.
    Nobody,
}

/// Whose a live object is.
pub(crate) fn claim<'o>(object: &'o Value, owner: &Owner, labels: &[String]) -> Claim<'o> {
    let mark = annotation(object, OWNER_ANNOTATION);
    if let Some(mark) = mark.filter(|mark| *mark != owner.mark()) {
        return Claim::Other(mark);
    }
    let found = object.pointer("/metadata/labels");
    let mut named = labels.iter().filter_map(|label| found?.get(label)?.as_str());
    match (named.clone().find(|name| *name != owner.label()), mark, named.next()) {
        // A deployer that knows no marks has taken it over.
        (Some(other), _, _) => Claim::Other(other),
        (None, Some(_), _) => Claim::Own,
        (None, None, Some(_)) => Claim::OwnByLabel,
        (None, None, None) => Claim::Nobody,
    }
}

/// Whether an object is the item's: by its mark, or by its label where it has no mark.
pub(crate) fn is_of_item(object: &Value, owner: &Owner, labels: &[String]) -> bool {
    matches!(claim(object, owner, labels), Claim::Own | Claim::OwnByLabel)
}

/// The item whose mark a live object has, where that is another one and nothing says that a third has taken it over.
pub(crate) fn marked_by(object: &Value, owner: &Owner, labels: &[String]) -> Option<Owner> {
    let item = annotation(object, OWNER_ANNOTATION).and_then(Owner::of_mark)?;
    if item.mark() == owner.mark() {
        return None;
    }
    let item = Owner { cluster: cluster_of(object, &item.uid).map(str::to_owned), ..item };
    let found = object.pointer("/metadata/labels");
    let mut named = labels.iter().filter_map(|label| found?.get(label)?.as_str());
    named.all(|name| name == item.label() || name == owner.label()).then_some(item)
}

/// The uid of the cluster of the item whose mark a live object has, where a build that says so has written it last.
fn cluster_of<'o>(object: &'o Value, item_uid: &str) -> Option<&'o str> {
    let (cluster, of) = annotation(object, OWNER_CLUSTER_ANNOTATION)?.split_once('/')?;
    (of == item_uid && !cluster.is_empty()).then_some(cluster)
}

/// Whose a live object is that has the mark of another item, in words.
fn belongs(live: &Value, mark: &str, owner: &Owner) -> String {
    let marked = Owner::of_mark(mark);
    let cluster = marked.as_ref().and_then(|marked| cluster_of(live, &marked.uid));
    let (of, shown) = (item(mark), |text: &str| text.escape_debug().take(128).collect::<String>());
    match (cluster, marked) {
        (Some(cluster), _) if owner.cluster.as_deref() != Some(cluster) => format!(
            "it belongs to {of} of another host, whose cluster has the uid {}; where that host is gone, delete it by hand",
            shown(cluster)
        ),
        (_, Some(marked)) if (&marked.namespace, &marked.name) == (&owner.namespace, &owner.name) => format!(
            "it belongs to {of} with the uid {}, an earlier one of this name, as of before a backup was restored, or one of another \
             host; delete it by hand where it is not needed",
            shown(&marked.uid)
        ),
        _ => format!("it belongs to {of}"),
    }
}

/// What is to be deleted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deleted<'e> {
    /// An object of the inventory.
    Member(&'e InventoryEntry),
    /// An object that a stage removes.
    Removal,
    /// An object that a selection takes in, whoever made it.
    Selected,
}

impl Deleted<'_> {
    /// Whether no write of the object is without an answer, as far as the inventory knows.
    pub(crate) fn is_answered(&self) -> bool {
        !matches!(self, Deleted::Member(InventoryEntry { uid: None, .. }))
    }

    /// Why a live object stays where it is; `None` where it is to be deleted.
    pub(crate) fn stays(&self, live: &Value, owner: &Owner, labels: &[String]) -> Option<String> {
        match (self, claim(live, owner, labels)) {
            (Deleted::Selected, _) => None,
            (Deleted::Member(_) | Deleted::Removal, Claim::Other(mark)) => Some(belongs(live, mark, owner)),
            (Deleted::Removal, Claim::Own | Claim::OwnByLabel | Claim::Nobody) => None,
            (Deleted::Member(_), Claim::Nobody) => Some(format!(
                "nothing says that this item has written it (annotation {OWNER_ANNOTATION}); delete it by hand where it is \
                 not needed"
            )),
            (Deleted::Member(InventoryEntry { uid: Some(uid), .. }), Claim::OwnByLabel) if is_another(live, uid) => {
                Some("it is another object than the one that this item has written".to_owned())
            }
            (Deleted::Member(entry), Claim::Own | Claim::OwnByLabel) => (entry.policy != InventoryPolicy::Ephemeral
                && is_kept(live))
            .then(|| format!("its annotation {RESOURCE_POLICY} is keep")),
        }
    }
}

fn is_another(live: &Value, uid: &str) -> bool {
    live.pointer("/metadata/uid").and_then(Value::as_str) != Some(uid)
}

/// Whether an object is to stay as Helm says, which takes the word in any case and with spaces around it.
fn is_kept(live: &Value) -> bool {
    annotation(live, RESOURCE_POLICY).is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
}

fn annotation<'o>(object: &'o Value, name: &str) -> Option<&'o str> {
    object.pointer("/metadata/annotations").and_then(|annotations| annotations.get(name)).and_then(Value::as_str)
}

/// The item of a mark, in words. A mark may be anything that somebody wrote.
pub(crate) fn item(mark: &str) -> String {
    let named = mark.rsplit_once('/').map_or(mark, |(named, _uid)| named);
    format!("DeployItem {}", named.escape_debug().take(128).collect::<String>())
}

#[cfg(test)]
mod tests;
