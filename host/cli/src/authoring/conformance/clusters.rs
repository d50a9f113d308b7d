//! Clusters that answer something else than what was asked for.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use orangery_core::{
    error::{Code, Fault},
    port::BoxFuture,
};
use orangery_proposal::{
    ClusterRef, ObjectKey, Selection,
    deployer::{ApiResource, Clusters},
};
use serde_json::{Value, json};

use super::session::{ConformanceSession, Shortfall};

/// What a cluster answers instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    OtherKinds,
    MissingFields,
    HugeLists,
    Later,
    Denied,
}

/// As many objects has a list without an end.
const MANY: usize = 5_000;

struct LyingCluster {
    lie: Lie,
    was_asked: AtomicBool,
}

pub(super) async fn lied_to(session: &ConformanceSession<'_>, lie: Lie) -> Result<(), Shortfall> {
    let cluster = Arc::new(LyingCluster { lie, was_asked: AtomicBool::new(false) });
    let answer = session.answer(&session.item, Some(cluster.clone())).await?;
    if !cluster.was_asked.load(Ordering::Relaxed) {
        return Err(Shortfall::NotApplicable("nothing is read for this sample".to_owned()));
    }
    match (lie, answer) {
        (Lie::Later, Err(Fault::Invalid(problem) | Fault::Denied(problem))) => Err(Shortfall::Failed(format!(
            "a cluster that cannot be read now fails the item for good: {problem}; hand the fault `later` on"
        ))),
        (Lie::Denied, Err(Fault::Later(problem))) => Err(Shortfall::Failed(format!(
            "a read that is not granted is tried again until the item's time is up: {problem}; hand the fault `denied` on"
        ))),
        _ => Ok(()),
    }
}

impl LyingCluster {
    /// The fault that it answers with; none where it answers.
    fn asked(&self) -> Result<(), Fault> {
        self.was_asked.store(true, Ordering::Relaxed);
        match self.lie {
            Lie::Later => Err(Fault::later(Code::Unfinished, "the cluster cannot be reached")),
            Lie::Denied => Err(Fault::denied("reading this is not granted")),
            Lie::OtherKinds | Lie::MissingFields | Lie::HugeLists => Ok(()),
        }
    }

    fn object(&self, key: &ObjectKey) -> Value {
        let ObjectKey { api_version, kind, namespace, name } = key;
        match self.lie {
            Lie::OtherKinds => json!({
                "apiVersion": "example.org/v9", "kind": "Stranger", "metadata": {"name": "stranger", "namespace": "elsewhere"},
                "data": ["not", "a", "map"], "spec": "text", "status": 7,
            }),
            Lie::HugeLists => json!({
                "apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace},
                "data": {"large": "eA==".repeat(1 << 18)},
            }),
            Lie::MissingFields | Lie::Later | Lie::Denied => json!({}),
        }
    }
}

impl Clusters for LyingCluster {
    fn get<'a>(&'a self, _: &'a ClusterRef, key: &'a ObjectKey) -> BoxFuture<'a, Result<Option<Value>, Fault>> {
        Box::pin(async move { self.asked().map(|()| Some(self.object(key))) })
    }

    fn get_many<'a>(
        &'a self,
        _: &'a ClusterRef,
        keys: &'a [ObjectKey],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
        // Of many large objects one is enough: together they are more than a call may be told.
        let empty = |index: usize| self.lie == Lie::HugeLists && index > 0;
        Box::pin(async move {
            self.asked()?;
            let answer = |(index, key)| if empty(index) { None } else { Some(self.object(key)) };
            Ok(keys.iter().enumerate().map(answer).collect())
        })
    }

    fn list<'a>(&'a self, _: &'a ClusterRef, what: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async move {
            self.asked()?;
            let Selection { api_version, kind, namespace, .. } = what;
            let key = |name: String| ObjectKey {
                api_version: api_version.clone(),
                kind: kind.clone(),
                namespace: namespace.clone(),
                name: name.into(),
            };
            Ok(match self.lie {
                Lie::HugeLists => {
                    let object = |index| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": format!("n{index}")}});
                    (0..MANY).map(object).collect()
                }
                Lie::MissingFields => vec![json!({}), json!([]), json!("text"), Value::Null],
                Lie::OtherKinds | Lie::Later | Lie::Denied => vec![self.object(&key("stranger".to_owned()))],
            })
        })
    }

    fn version<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async { self.asked().map(|()| "none that anybody knows".to_owned()) })
    }

    fn discover<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
        Box::pin(async {
            self.asked()?;
            let resource = |index: usize| ApiResource {
                api_version: "example.org/v9".into(),
                kind: format!("Stranger{index}").into(),
                plural: String::new(),
                namespaced: index.is_multiple_of(2),
            };
            Ok(match self.lie {
                Lie::HugeLists => (0..MANY).map(resource).collect(),
                Lie::OtherKinds => vec![resource(1)],
                Lie::MissingFields | Lie::Later | Lie::Denied => Vec::new(),
            })
        })
    }
}
