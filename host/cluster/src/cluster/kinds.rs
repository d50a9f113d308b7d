//! The kinds that a cluster serves, by group and version. Asked for at first use and kept; a kind that is not among
//! them is asked for once more, so that a definition written meanwhile is found.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResourceList};
use orangery_proposal::{ObjectKey, deployer::ApiResource};

use super::{Cluster, segment, version_path};
use crate::Error;

/// Kinds by group and version, then kind.
#[derive(Default)]
pub(crate) struct Kinds {
    /// Protects what is known. Held for one lookup or one change, never across an await.
    known: Mutex<BTreeMap<String, KnownKinds>>,
}

type KnownKinds = Arc<BTreeMap<String, Arc<ApiResource>>>;

impl Kinds {
    pub(super) async fn find(
        &self,
        cluster: &Cluster,
        api_version: &str,
        kind: &str,
    ) -> Result<Arc<ApiResource>, Error> {
        if let Some(resource) = self.known(api_version).and_then(|known| known.get(kind).cloned()) {
            return Ok(resource);
        }
        let kinds = Arc::new(ask(cluster, api_version).await?);
        let found = kinds.get(kind).cloned();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(api_version.to_owned(), kinds);
        found.ok_or_else(|| not_served(cluster, api_version, kind))
    }

    /// The kind in one of the versions of its group that are served.
    pub(super) async fn find_in_group(
        &self,
        cluster: &Cluster,
        group: &str,
        kind: &str,
    ) -> Result<Option<Arc<ApiResource>>, Error> {
        for api_version in versions(cluster, group).await? {
            match self.find(cluster, &api_version, kind).await {
                Ok(resource) => return Ok(Some(resource)),
                Err(Error::NotServed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// A version that was known is not served any more.
    pub(super) fn forget(&self, api_version: &str) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(api_version);
    }

    /// A definition was written: everything may be served differently now.
    pub(super) fn forget_all(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).retain(|api_version, _| !api_version.contains('/'));
    }

    fn known(&self, api_version: &str) -> Option<KnownKinds> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(api_version).cloned()
    }
}

fn not_served(cluster: &Cluster, api_version: &str, kind: &str) -> Error {
    Error::NotServed {
        cluster: cluster.address().to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    }
}

/// The versions of a group that the server serves, the preferred one first.
async fn versions(cluster: &Cluster, group: &str) -> Result<Vec<String>, Error> {
    if group.is_empty() {
        return Ok(vec!["v1".to_owned()]);
    }
    let key = ObjectKey {
        api_version: group.to_owned(),
        kind: "APIGroup".to_owned(),
        namespace: None,
        name: group.to_owned(),
    };
    let request = http::Request::get(format!("/apis/{}", segment(group)))
        .body(Vec::new())
        .map_err(kube::core::request::Error::BuildRequest);
    let found: APIGroup = match cluster.ask(&key, request).await {
        Ok(found) => found,
        Err(Error::Missing { .. } | Error::NotServed { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let preferred = found.preferred_version.map(|version| version.group_version);
    let mut versions: Vec<String> = found.versions.into_iter().map(|version| version.group_version).collect();
    versions.sort_by_key(|version| Some(version) != preferred.as_ref());
    Ok(versions)
}

/// The kinds of one group and version; none where the server does not know it.
async fn ask(cluster: &Cluster, api_version: &str) -> Result<BTreeMap<String, Arc<ApiResource>>, Error> {
    let key = ObjectKey {
        api_version: api_version.to_owned(),
        kind: "APIResourceList".to_owned(),
        namespace: None,
        name: api_version.to_owned(),
    };
    let request = http::Request::get(version_path(api_version))
        .body(Vec::new())
        .map_err(kube::core::request::Error::BuildRequest);
    let list: APIResourceList = match cluster.ask(&key, request).await {
        Ok(list) => list,
        Err(Error::Missing { .. } | Error::NotServed { .. }) => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    // A name with a slash is a subresource.
    let resources = list.resources.into_iter().filter(|resource| !resource.name.contains('/'));
    Ok(resources
        .map(|resource| {
            let served = ApiResource {
                api_version: api_version.to_owned(),
                kind: resource.kind.clone(),
                plural: resource.name,
                namespaced: resource.namespaced,
            };
            (resource.kind, Arc::new(served))
        })
        .collect())
}
