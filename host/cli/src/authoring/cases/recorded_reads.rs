//! The clusters of a case: recorded answers first, then the objects of its target. What neither has is a fault that names it.

use std::sync::Arc;

use orangery_blueprint::recorded::unrecorded;
use orangery_core::{
    error::{Code, Fault},
    name::{ApiVersion, Kind},
    port::BoxFuture,
};
use orangery_proposal::{
    ClusterRef, ObjectKey, Selection,
    deployer::{ApiResource, Clusters},
    recorded::{ReadQuestion, RecordedRead},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::CallLog;
use crate::authoring::fake_cluster::FakeCluster;

/// What one call may read of clusters.
pub(super) struct RecordedReads {
    pub(super) reads: Vec<RecordedRead>,
    /// The objects of the target; `None` where only what is recorded is answered.
    pub(super) target: Option<Arc<FakeCluster>>,
    pub(super) log: Arc<CallLog>,
}

/// A kind as it is recorded.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordedKind {
    api_version: ApiVersion,
    kind: Kind,
    plural: String,
    namespaced: bool,
}

impl RecordedReads {
    /// The recorded answer; `None` where there is none.
    fn recorded<T: DeserializeOwned>(&self, asked: &ReadQuestion) -> Option<Result<T, Fault>> {
        let found = self.reads.iter().find(|recorded| recorded.read == *asked)?;
        Some(match &found.fault {
            Some(fault) => Err(fault.clone().into()),
            None => serde_json::from_value(found.answer.clone()).map_err(|error| {
                let why = format!("the recorded answer has another form than the read: {error}");
                Fault::invalid(Code::InternalProblem, why)
            }),
        })
    }

    /// The cluster of objects behind a reference; a fault where there is none.
    fn objects(&self, on: &ClusterRef, asked: &ReadQuestion) -> Result<&FakeCluster, Fault> {
        let target = self.target.as_deref().filter(|_| *on == ClusterRef::Target);
        target.ok_or_else(|| unrecorded(asked))
    }

    async fn find(&self, on: &ClusterRef, key: &ObjectKey) -> Result<Option<Value>, Fault> {
        let asked = ReadQuestion::Get { on: on.clone(), key: key.clone() };
        match self.recorded::<Option<Value>>(&asked) {
            Some(answer) => answer,
            None => self.objects(on, &asked)?.get(on, key).await,
        }
    }
}

impl Clusters for RecordedReads {
    fn get<'a>(&'a self, on: &'a ClusterRef, key: &'a ObjectKey) -> BoxFuture<'a, Result<Option<Value>, Fault>> {
        self.log.note("cluster.get");
        Box::pin(self.find(on, key))
    }

    fn get_many<'a>(
        &'a self,
        on: &'a ClusterRef,
        keys: &'a [ObjectKey],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
        self.log.note("cluster.get-many");
        Box::pin(futures::future::try_join_all(keys.iter().map(|key| self.find(on, key))))
    }

    fn list<'a>(&'a self, on: &'a ClusterRef, what: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        self.log.note("cluster.list");
        Box::pin(async move {
            let asked = ReadQuestion::List { on: on.clone(), what: what.clone() };
            match self.recorded(&asked) {
                Some(answer) => answer,
                None => self.objects(on, &asked)?.list(on, what).await,
            }
        })
    }

    fn version<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
        self.log.note("cluster.version");
        Box::pin(async move {
            let asked = ReadQuestion::Version { on: on.clone() };
            match self.recorded(&asked) {
                Some(answer) => answer,
                None => self.objects(on, &asked)?.version(on).await,
            }
        })
    }

    fn discover<'a>(&'a self, on: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
        self.log.note("cluster.discover");
        Box::pin(async move {
            let asked = ReadQuestion::Discover { on: on.clone() };
            let Some(answer) = self.recorded::<Vec<RecordedKind>>(&asked) else {
                return self.objects(on, &asked)?.discover(on).await;
            };
            let kind = |RecordedKind { api_version, kind, plural, namespaced }| ApiResource {
                api_version,
                kind,
                plural,
                namespaced,
            };
            Ok(answer?.into_iter().map(kind).collect())
        })
    }
}
