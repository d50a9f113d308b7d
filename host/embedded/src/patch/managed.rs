//! `metadata.managedFields`: who owns which fields, kept up by every write.

use serde_json::{Value, json};

use super::{
    fields::{FieldSet, compare},
    shape::Shape,
};
use crate::object;

/// How many managers that only update are told apart; older ones share an entry, as on the real server.
const MOST_UPDATERS: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// The writer, through which version and subresource, and when.
#[derive(Clone, Debug)]
pub(crate) struct Author {
    pub(crate) manager: String,
    pub(crate) api_version: String,
    /// `status`, `scale`, or empty.
    pub(crate) subresource: &'static str,
    /// Whether the status is written by itself: who writes the object owns nothing of it.
    pub(crate) status_apart: bool,
    /// RFC 3339, whole seconds.
    pub(crate) now: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ManagedOperation {
    Apply,
    Update,
}

/// What one manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ManagedFields {
    pub(super) manager: String,
    pub(super) operation: ManagedOperation,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: String,
    pub(super) fields: FieldSet,
}

impl ManagedFields {
    /// Whether it is the entry of this author for this kind of write.
    pub(super) fn is_of(&self, author: &Author, operation: ManagedOperation) -> bool {
        self.manager == author.manager && self.operation == operation && self.subresource == author.subresource
    }

    /// How conflicts name the manager.
    pub(super) fn title(&self) -> String {
        let part = if self.subresource.is_empty() {
            String::new()
        } else {
            format!(" with subresource \"{}\"", self.subresource)
        };
        match self.operation {
            ManagedOperation::Apply => format!("\"{}\"{part}", self.manager),
            ManagedOperation::Update => format!("\"{}\"{part} using {}", self.manager, self.api_version),
        }
    }
}

/// Reads the `managedFields` of an object.
pub(super) fn read(object: &Value) -> Vec<ManagedFields> {
    object::at(object, &["metadata", "managedFields"]).map(entries).unwrap_or_default()
}

fn entries(managed_fields: &Value) -> Vec<ManagedFields> {
    let entry = |entry: &Value| {
        let field = |name: &str| object::text(entry, &[name]).unwrap_or_default().to_owned();
        ManagedFields {
            manager: field("manager"),
            operation: if field("operation") == "Apply" { ManagedOperation::Apply } else { ManagedOperation::Update },
            api_version: field("apiVersion"),
            subresource: field("subresource"),
            time: field("time"),
            fields: entry.get("fieldsV1").map(FieldSet::from_json).unwrap_or_default(),
        }
    };
    object::items(managed_fields, &[]).iter().filter(|e| e.get("fieldsV1").is_some()).map(entry).collect()
}

/// Writes `managedFields`, without managers that own nothing any more.
pub(super) fn write(object: &mut Value, mut entries: Vec<ManagedFields>) {
    entries.retain(|entry| !entry.fields.is_empty());
    let order = |entry: &ManagedFields| {
        let update = entry.operation == ManagedOperation::Update;
        (update, entry.time.clone(), entry.manager.clone(), entry.api_version.clone(), entry.subresource.clone())
    };
    entries.sort_by_key(order);
    forget_ancient(&mut entries);
    let entry = |entry: &ManagedFields| {
        let mut written = json!({
            "manager": entry.manager,
            "operation": match entry.operation { ManagedOperation::Apply => "Apply", ManagedOperation::Update => "Update" },
            "apiVersion": entry.api_version,
            "time": entry.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": entry.fields.to_json(),
        });
        if !entry.subresource.is_empty() {
            object::set(&mut written, &["subresource"], json!(entry.subresource));
        }
        written
    };
    let entries: Vec<Value> = entries.iter().map(entry).collect();
    if entries.is_empty() {
        object::take(object, &["metadata", "managedFields"]);
    } else {
        object::set(object, &["metadata", "managedFields"], Value::Array(entries));
    }
}

/// Of entries in their order, in which those of updates are the last.
fn forget_ancient(entries: &mut Vec<ManagedFields>) {
    let first = entries.partition_point(|entry| entry.operation == ManagedOperation::Apply);
    let Some(many) = (entries.len() - first).checked_sub(MOST_UPDATERS).filter(|many| *many > 0) else { return };
    let ancient: Vec<ManagedFields> = entries.drain(first..first + many).collect();
    if let Some(heir) = entries.get_mut(first) {
        ancient.iter().for_each(|old| heir.fields.unite(&old.fields));
        heir.manager = ANCIENT.to_owned();
    }
}

/// The fields that nobody owns because the server keeps them.
pub(super) fn drop_server_fields(set: &mut FieldSet) {
    set.remove(&["f:apiVersion"]);
    set.remove(&["f:kind"]);
    for field in [
        "f:name",
        "f:namespace",
        "f:uid",
        "f:resourceVersion",
        "f:generation",
        "f:creationTimestamp",
        "f:deletionTimestamp",
        "f:deletionGracePeriodSeconds",
        "f:managedFields",
        "f:selfLink",
        "f:generateName",
    ] {
        set.remove(&["f:metadata", field]);
    }
    // What was metadata alone is now an empty member.
    if set.below.get("f:metadata").is_some_and(|meta| meta.below.is_empty()) {
        set.below.remove("f:metadata");
    }
}

/// Notes in `new` who changed what compared with `old`. Whoever writes the object itself may say who owns what, or, by one
/// empty entry, that nobody owns anything.
pub(crate) fn track_update(old: Option<&Value>, new: &mut Value, author: &Author, shape: Shape<'_>) {
    let given = object::take(new, &["metadata", "managedFields"]).filter(|_| author.subresource.is_empty());
    let Some(old) = old else {
        let mut fields = FieldSet::of(new, shape);
        drop_server_fields(&mut fields);
        if author.status_apart {
            fields.remove(&["f:status"]);
        }
        write(new, vec![updated(author, fields)]);
        return;
    };
    let resets = given == Some(json!([{}]));
    let given = given.as_ref().map(entries).filter(|entries| resets || !entries.is_empty());
    let mut entries = given.unwrap_or_else(|| read(old));
    let mut bare = old.clone();
    object::take(&mut bare, &["metadata", "managedFields"]);
    let mut changes = compare(&bare, new, shape);
    drop_server_fields(&mut changes.changed);
    drop_server_fields(&mut changes.removed);
    for entry in &mut entries {
        entry.fields.subtract(&changes.removed);
        if !entry.is_of(author, ManagedOperation::Update) {
            entry.fields.subtract(&changes.changed);
        }
    }
    if !changes.changed.is_empty() {
        match entries.iter_mut().find(|entry| entry.is_of(author, ManagedOperation::Update)) {
            Some(entry) => {
                entry.fields.unite(&changes.changed);
                entry.time.clone_from(&author.now);
                entry.api_version.clone_from(&author.api_version);
            }
            None => entries.push(updated(author, changes.changed)),
        }
    }
    write(new, entries);
}

fn updated(author: &Author, fields: FieldSet) -> ManagedFields {
    ManagedFields {
        manager: author.manager.clone(),
        operation: ManagedOperation::Update,
        api_version: author.api_version.clone(),
        subresource: author.subresource.to_owned(),
        time: author.now.clone(),
        fields,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_295_managers_that_only_update_are_united_in_one_go() {
        const MANAGERS: usize = 50_000;
        let entry = |number: usize| {
            let fields = json!({"f:data": {format!("f:{number:06}"): {}}});
            json!({"manager": format!("m-{number:06}"), "operation": "Update", "time": "t", "fieldsType": "FieldsV1", "fieldsV1": fields})
        };
        let old = json!({"metadata": {}, "data": {}});
        let mut new = old.clone();
        object::set(&mut new, &["metadata", "managedFields"], (0..MANAGERS).map(entry).collect());
        let author = Author {
            manager: "m".to_owned(),
            api_version: "v1".to_owned(),
            subresource: "",
            status_apart: false,
            now: "t".to_owned(),
        };
        track_update(Some(&old), &mut new, &author, Shape::BUILTIN);
        let kept = read(&new);
        let managers: Vec<&str> = kept.iter().map(|entry| entry.manager.as_str()).collect();
        let last = (MANAGERS - MOST_UPDATERS + 1..MANAGERS).map(|number| format!("m-{number:06}"));
        assert_eq!(managers, [vec![ANCIENT.to_owned()], last.collect()].concat());
        let of_the_ancient = kept[0].fields.below["f:data"].below.len();
        assert_eq!(of_the_ancient, MANAGERS - MOST_UPDATERS + 1);
    }
}
