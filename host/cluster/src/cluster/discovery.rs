//! What a cluster is and serves: its uid, the versions of a group, and the kinds of a version. Asked for at first use, once
//! for all of a namespace who need it, and kept for all; a kind that is not among them is asked for once more, so that a definition written
//! meanwhile is found.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource, APIResourceList};
use orangery_core::{
    memory,
    name::{ApiVersion, Kind, ObjectName},
};
use orangery_proposal::{ObjectKey, deployer::ApiResource};
use orangery_turns::HeldBytes;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    ANSWER_WITHIN, ApiServer, Cluster, Precondition,
    shared_answers::{Asker, SharedAnswers},
    version_path,
};
use crate::{Call, Error, object_memory::share_of, path::segment};

/// How long a uid stays unknown that the credentials may not read.
const UNKNOWN_FOR: Duration = Duration::from_secs(60);

/// Kinds of one version that are known (C-282). Those of the greatest known groups are some 200.
const MOST_KINDS: usize = 2_000;

/// Versions of one group that are asked for a kind.
const MOST_VERSIONS: usize = 32;

/// Bytes of the name of a kind, of its plural, and of the uid of a cluster.
const LONGEST_NAME: usize = 253;

/// Bytes of kinds of one version for which there is always room.
const SMALL: u64 = 64 << 10;

/// What is known of one cluster.
#[derive(Default)]
pub(super) struct Discovery {
    /// Its uid; `None` where the credentials may not know it.
    uid: SharedAnswers<(), Option<String>>,
    /// By group.
    versions: SharedAnswers<ApiVersion, Versions>,
    /// By group and version, then kind.
    kinds: SharedAnswers<ApiVersion, Kinds>,
}

type Versions = Arc<Vec<ApiVersion>>;
type Kinds = Arc<ServedKinds>;

/// The kinds of a version, and what they take of the memory that all clusters share (C-282).
#[derive(Default)]
struct ServedKinds {
    by_kind: BTreeMap<Kind, ServedKind>,
    #[expect(dead_code, reason = "it is held for as long as the kinds are known")]
    held: Option<HeldBytes>,
}

/// A kind, and what can be done with its objects.
#[derive(Clone)]
struct ServedKind {
    resource: Arc<ApiResource>,
    is_deletable: bool,
}

impl ServedKind {
    /// Bytes of memory that it takes.
    fn memory(&self) -> u64 {
        let ApiResource { api_version, kind, plural, .. } = &*self.resource;
        let texts = [api_version.len(), kind.len(), kind.len(), plural.len()].map(memory::of_text);
        size_of::<(Kind, Self, ApiResource)>() as u64 + texts.iter().sum::<u64>()
    }
}

impl Discovery {
    /// A version that was known is not served any more.
    pub(super) fn forget(&self, api_version: &ApiVersion) {
        self.kinds.forget(|known| known == api_version);
    }

    /// A definition was written: everything may be served differently now.
    pub(super) fn forget_all(&self) {
        self.kinds.forget(|api_version| api_version.contains('/'));
    }
}

impl Cluster {
    /// What the cluster is, whatever its address and its credentials are: the uid of its Namespace `kube-system` (C-35).
    /// Asked once; `None` where the credentials may not read it.
    ///
    /// # Errors
    /// The cluster cannot be asked.
    pub async fn uid(&self) -> Result<Option<String>, Error> {
        match self.server.discovery.uid.known_since(&()) {
            Some((Some(uid), _)) => return Ok(Some(uid)),
            // The right to read it may have been granted since.
            Some((None, since)) if since.elapsed() < UNKNOWN_FOR => return Ok(None),
            Some((None, _)) | None => {}
        }
        let key = key("v1", "Namespace", "kube-system");
        let request = Arc::clone(&self.server).uid(self.unbounded(), key.clone());
        self.shared(&key, self.server.discovery.uid.ask(&(), self.call.tenant(), request)).await.map(|(uid, _)| uid)
    }

    /// The same, where it was asked before.
    pub fn known_uid(&self) -> Option<String> {
        self.server.discovery.uid.known_since(&()).and_then(|(uid, _)| uid)
    }

    /// How the server serves a kind: asked once for each group and version, and again for a kind that is not known.
    ///
    /// # Errors
    /// It does not serve the kind, or cannot be asked.
    pub async fn served(&self, api_version: &ApiVersion, kind: &Kind) -> Result<Arc<ApiResource>, Error> {
        self.served_kind(api_version, kind).await.map(|served| served.resource)
    }

    /// Whether single objects of a kind can be deleted: a Binding or a review is only created (C-199).
    ///
    /// # Errors
    /// As for [`Self::served`].
    pub async fn is_deletable(&self, resource: &ApiResource) -> Result<bool, Error> {
        self.served_kind(&resource.api_version, &resource.kind).await.map(|served| served.is_deletable)
    }

    async fn served_kind(&self, api_version: &ApiVersion, kind: &Kind) -> Result<ServedKind, Error> {
        let known = &self.server.discovery.kinds;
        if let Some(served) = known.known(api_version).and_then(|kinds| kinds.by_kind.get(kind).cloned()) {
            return Ok(served);
        }
        let key = key(api_version, "APIResourceList", api_version.as_str());
        loop {
            let request = Arc::clone(&self.server).kinds(self.unbounded(), key.clone());
            let asked = known.ask(&key.api_version, self.call.tenant(), request);
            let (kinds, asker) = self.shared(&key, asked).await?;
            if let Some(served) = kinds.by_kind.get(kind) {
                return Ok(served.clone());
            }
            // An answer that was asked for earlier may be older than the definition.
            if asker == Asker::Caller {
                return Err(Error::NotServed {
                    cluster: self.address().to_owned(),
                    api_version: api_version.clone(),
                    kind: kind.clone(),
                });
            }
        }
    }

    /// How the server serves a kind of a group in any version, the preferred one first; `None` where it does not.
    ///
    /// # Errors
    /// It cannot be asked.
    pub async fn served_in_group(&self, group: &str, kind: &Kind) -> Result<Option<Arc<ApiResource>>, Error> {
        for api_version in self.versions(group).await?.iter() {
            match self.served(api_version, kind).await {
                Ok(resource) => return Ok(Some(resource)),
                Err(Error::NotServed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The versions of a group that the server serves, the preferred one first. Asked anew each time: versions come and go.
    async fn versions(&self, group: &str) -> Result<Versions, Error> {
        if group.is_empty() {
            return Ok(Arc::new(vec![ApiVersion::from_static("v1")]));
        }
        let key = key(group, "APIGroup", group);
        let request = Arc::clone(&self.server).versions(self.unbounded(), key.clone());
        let asked = self.server.discovery.versions.ask(&key.api_version, self.call.tenant(), request);
        self.shared(&key, asked).await.map(|(found, _)| found)
    }

    /// A call for all of the namespace who wait for an answer, each for as long as his own call takes.
    fn unbounded(&self) -> Call {
        self.call.tenant().iter().fold(Call::default(), Call::of)
    }

    /// An answer that others of the namespace may wait for as well.
    async fn shared<T>(&self, key: &ObjectKey, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let limit = self.call.left(ANSWER_WITHIN);
        if limit.is_zero() {
            return Err(Error::OutOfTime { cluster: self.address().to_owned(), key: Box::new(key.clone()) });
        }
        self.call.wait(limit, Box::pin(answer)).await.unwrap_or_else(|_elapsed| Err(self.server.unanswered(key, limit)))
    }
}

impl ApiServer {
    async fn uid(self: Arc<Self>, call: Call, key: ObjectKey) -> Result<Option<String>, Error> {
        match self.read(&call, &key, "/api/v1/namespaces/kube-system").await {
            Ok::<Value, _>(namespace) => {
                let is_uid = |uid: &String| !uid.is_empty() && uid.len() <= LONGEST_NAME;
                Ok(Some(Precondition::of(&namespace).uid).filter(is_uid))
            }
            Err(
                Error::Forbidden { .. } | Error::Unauthorized { .. } | Error::Missing { .. } | Error::NotServed { .. },
            ) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn versions(self: Arc<Self>, call: Call, key: ObjectKey) -> Result<Versions, Error> {
        let found: APIGroup = match self.read(&call, &key, &format!("/apis/{}", segment(&key.name))).await {
            Ok(found) => found,
            Err(Error::Missing { .. } | Error::NotServed { .. }) => return Ok(Arc::default()),
            Err(error) => return Err(error),
        };
        let preferred = found.preferred_version.map(|version| ApiVersion::from(version.group_version));
        let named = found.versions.into_iter().map(|version| version.group_version);
        let named = named.filter(|version| version.len() <= 2 * LONGEST_NAME).take(MOST_VERSIONS);
        let mut versions: Vec<ApiVersion> = named.map(ApiVersion::from).collect();
        versions.sort_by_key(|version| Some(version) != preferred.as_ref());
        Ok(Arc::new(versions))
    }

    /// The kinds of one group and version; none where the server does not know it.
    async fn kinds(self: Arc<Self>, call: Call, key: ObjectKey) -> Result<Kinds, Error> {
        let path = version_path(&key.api_version);
        let (list, mut held): (APIResourceList, HeldBytes) = match self.read_held(&call, &key, &path).await {
            Ok(answer) => answer,
            Err(Error::Missing { .. } | Error::NotServed { .. }) => return Ok(Arc::default()),
            Err(error) => return Err(error),
        };
        // A name with a slash is a subresource, and nothing that Kubernetes takes has a longer one.
        let fits = |resource: &APIResource| resource.name.len().max(resource.kind.len()) <= LONGEST_NAME;
        let is_kind = |resource: &APIResource| !resource.name.contains('/') && fits(resource);
        let resources = list.resources.into_iter().filter(is_kind).take(MOST_KINDS);
        let served = resources.map(|resource| {
            let kind = Kind::from(resource.kind);
            let is_deletable = resource.verbs.iter().any(|verb| verb == "delete");
            let resource = ApiResource {
                api_version: key.api_version.clone(),
                kind: kind.clone(),
                plural: resource.name,
                namespaced: resource.namespaced,
            };
            (kind, ServedKind { resource: Arc::new(resource), is_deletable })
        });
        let by_kind: BTreeMap<Kind, ServedKind> = served.collect();
        // Of what was answered, these are kept for as long as the cluster is known.
        let bytes = by_kind.values().map(ServedKind::memory).sum();
        if bytes <= SMALL {
            held.put(bytes);
        } else if !held.set(bytes) {
            let limit = share_of(held.of());
            return Err(Error::TooLarge { cluster: self.address.clone(), key: Box::new(key), limit });
        }
        Ok(Arc::new(ServedKinds { by_kind, held: Some(held) }))
    }

    async fn read<T: DeserializeOwned>(&self, call: &Call, key: &ObjectKey, path: &str) -> Result<T, Error> {
        self.read_held(call, key, path).await.map(|(answer, _held)| answer)
    }

    /// The same, with what holds its memory.
    async fn read_held<T: DeserializeOwned>(
        &self,
        call: &Call,
        key: &ObjectKey,
        path: &str,
    ) -> Result<(T, HeldBytes), Error> {
        let request = http::Request::get(path).body(Vec::new()).map_err(kube::core::request::Error::BuildRequest);
        self.ask(call, key, request).await
    }
}

/// What is asked for, in messages.
fn key(api_version: impl Into<ApiVersion>, kind: impl Into<Kind>, name: impl Into<ObjectName>) -> ObjectKey {
    ObjectKey { api_version: api_version.into(), kind: kind.into(), namespace: None, name: name.into() }
}
