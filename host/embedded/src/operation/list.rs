//! Listing objects, in pages.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    cluster::EmbeddedCluster,
    refusal::{Refusal, RefusalReason},
    resource::Served,
    selector::ListSelector,
    store::{ObjectName, ObjectVersion},
};

/// What a list asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListQuery {
    pub(crate) selector: ListSelector,
    /// At most this many; 0 means all.
    pub(crate) limit: usize,
    pub(crate) token: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) version_match: Option<String>,
}

/// A list, or a page of one.
#[derive(Debug)]
pub(crate) struct ListPages {
    /// The list's own metadata.
    pub(crate) meta: Value,
    pub(crate) entries: Vec<Arc<ObjectVersion>>,
}

/// The objects that a query selects.
///
/// A page after the first shows the present state but bears the revision of the first page: whoever watches from there
/// is told everything that changed between the pages.
pub(crate) fn listing(
    cluster: &EmbeddedCluster,
    served: &Served,
    namespace: Option<&str>,
    query: &ListQuery,
) -> Result<ListPages, Refusal> {
    let token = query.token.as_deref().filter(|token| !token.is_empty()).map(read_token).transpose()?;
    let after = token.as_ref().map(|(_, name)| name);
    let page = cluster.store.list(served.label(), namespace, after);
    check_version(query, page.revision)?;
    let revision = token.as_ref().map_or(page.revision, |(revision, _)| *revision);
    let mut selected = page.entries.into_iter().filter(|(name, entry)| query.selector.matches(name, entry));
    let mut meta = json!({"resourceVersion": revision.to_string()});
    if query.limit == 0 {
        return Ok(ListPages { meta, entries: selected.map(|(_, entry)| entry).collect() });
    }
    let text: Vec<(ObjectName, Arc<ObjectVersion>)> = selected.by_ref().take(query.limit).collect();
    let left = selected.count();
    if let Some((last, _)) = text.last().filter(|_| left > 0) {
        crate::object::set(&mut meta, &["continue"], json!(write_token(revision, last)));
        // With a selector the real server does not say how many are left.
        if query.selector.is_empty() {
            crate::object::set(&mut meta, &["remainingItemCount"], json!(left));
        }
    }
    Ok(ListPages { meta, entries: text.into_iter().map(|(_, entry)| entry).collect() })
}

fn check_version(query: &ListQuery, revision: u64) -> Result<(), Refusal> {
    let Some(asked) = query.resource_version.as_deref().filter(|text| !text.is_empty() && *text != "0") else {
        return Ok(());
    };
    let asked: u64 =
        asked.parse().map_err(|_| Refusal::bad_request(format!("invalid resource version \"{asked}\"")))?;
    match query.version_match.as_deref() {
        Some("Exact") if asked < revision => Err(Refusal::expired(asked, revision)),
        _ if asked > revision => Err(too_new(asked, revision)),
        _ => Ok(()),
    }
}

/// The client has seen another server, or this one before its memory was lost.
pub(super) fn too_new(asked: u64, revision: u64) -> Refusal {
    Refusal::new(RefusalReason::Expired, format!("Too large resource version: {asked}, current: {revision}"))
}

fn write_token(revision: u64, last: &ObjectName) -> String {
    let token = json!([revision, last.namespace, last.name]).to_string();
    data_encoding::BASE64URL_NOPAD.encode(token.as_bytes())
}

fn read_token(token: &str) -> Result<(u64, ObjectName), Refusal> {
    let decoded = data_encoding::BASE64URL_NOPAD.decode(token.as_bytes()).ok();
    let parsed: Option<(u64, String, String)> = decoded.and_then(|json| serde_json::from_slice(&json).ok());
    let (revision, namespace, name) =
        parsed.ok_or_else(|| Refusal::bad_request(format!("continue key is not valid: {token}")))?;
    Ok((revision, ObjectName::new(&namespace, &name)))
}
