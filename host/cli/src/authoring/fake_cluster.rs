//! A cluster kept in memory: it answers reads from objects, and takes what proposals write as a cluster does in which all goes well.

mod kinds;
mod selector;

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use orangery_core::{
    error::{Code, Fault},
    port::BoxFuture,
};
use orangery_proposal::{
    ClusterRef, Next, ObjectKey, ObjectWrite, Ownership, Proposal, Selection, Stage, Write,
    check::key_of,
    deployer::{ApiResource, Clusters},
    inventory::LocatedObject,
    overlay::{fill, overlay, replacement, three_way},
};
use serde_json::Value;

/// The version that it says it has.
pub const VERSION: &str = "v1.33.0";

/// The objects of an item's clusters. Every kind is served, what is written is there at once and ready, and content that the
/// host would place into an object is left out.
#[derive(Debug, Default)]
pub struct FakeCluster {
    objects: Mutex<BTreeMap<LocatedObject, Value>>,
}

impl FakeCluster {
    /// A target cluster with these objects.
    ///
    /// # Errors
    /// One sentence that names what an object lacks.
    pub fn of(objects: &[Value]) -> Result<Self, String> {
        let located = |object: &Value| {
            let key = key_of(object)?;
            Ok((LocatedObject { on: ClusterRef::Target, key }, object.clone()))
        };
        let objects = objects.iter().map(located).collect::<Result<_, String>>()?;
        Ok(Self { objects: Mutex::new(objects) })
    }

    /// Another one with the same objects.
    pub fn copy(&self) -> Self {
        Self { objects: Mutex::new(self.locked().clone()) }
    }

    /// The objects of the target, sorted by group, kind, namespace and name.
    pub fn objects(&self) -> Vec<Value> {
        let objects = self.locked();
        let of_target = objects.iter().filter(|(located, _)| located.on == ClusterRef::Target);
        of_target.map(|(_, object)| object.clone()).collect()
    }

    /// Carries out the stages of a proposal, and what comes after them; of what it wrote, what lives for its job alone goes again
    /// where the job ends with it.
    pub fn carry_out(&self, proposal: &Proposal) {
        proposal.stages.iter().for_each(|stage| self.carry_out_stage(stage, usize::MAX));
        let Next::Finish(completion) = &proposal.next else { return };
        completion.afterwards.iter().for_each(|stage| self.carry_out_stage(stage, usize::MAX));
        let stages = proposal.stages.iter().chain(&completion.afterwards);
        let ephemeral = stages.flat_map(|stage| &stage.writes).filter(|write| write.owned == Ownership::Ephemeral);
        ephemeral.filter_map(located).for_each(|located| drop(self.locked().remove(&located)));
    }

    /// Carries out the removals of a stage, and as many of its writes.
    pub fn carry_out_stage(&self, stage: &Stage, writes: usize) {
        for removal in &stage.removals {
            self.locked().remove(&LocatedObject { on: removal.on.clone(), key: removal.key.clone() });
        }
        for write in stage.writes.iter().take(writes) {
            // What is no object is refused by the check before anything is carried out.
            let Some(located) = located(write) else { continue };
            let mut objects = self.locked();
            let object = written(objects.get(&located), write);
            objects.insert(located, object);
        }
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<LocatedObject, Value>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, on: &ClusterRef, key: &ObjectKey) -> Option<Value> {
        self.locked().get(&LocatedObject { on: on.clone(), key: key.clone() }).cloned()
    }

    fn select(&self, on: &ClusterRef, what: &Selection) -> Result<Vec<Value>, Fault> {
        let objects = self.locked();
        let of_kind = objects.iter().filter(|(located, _)| {
            let key = &located.key;
            let in_namespace = what.namespace.is_none() || what.namespace == key.namespace;
            let is_named = what.names.is_empty() || what.names.contains(&key.name);
            located.on == *on
                && (key.group(), &key.kind) == (what.api_version.group(), &what.kind)
                && in_namespace
                && is_named
        });
        let mut found = Vec::new();
        for (_, object) in of_kind {
            if selector::selects(what.labels.as_deref(), what.fields.as_deref(), object).map_err(unusable)? {
                found.push(object.clone());
            }
        }
        Ok(found)
    }
}

fn unusable(why: String) -> Fault {
    Fault::invalid(Code::ConfigurationProblem, why)
}

fn located(write: &ObjectWrite) -> Option<LocatedObject> {
    Some(LocatedObject { on: write.on.clone(), key: key_of(&write.object).ok()? })
}

/// What a write makes of the object that is there.
fn written(live: Option<&Value>, write: &ObjectWrite) -> Value {
    let desired = &write.object;
    let Some(live) = live else {
        let mut created = desired.clone();
        if let Some(more) = &write.at_creation {
            overlay(&mut created, more);
        }
        return created;
    };
    match &write.how {
        Write::Create => live.clone(),
        Write::Replace | Write::Patch => replacement(live, desired),
        Write::Merge(earlier) => three_way(earlier, live, desired),
        Write::Fill => {
            let mut filled = live.clone();
            fill(&mut filled, desired);
            filled
        }
        Write::Apply | Write::ApplyAs(_) | Write::Overlay => {
            let mut applied = live.clone();
            overlay(&mut applied, desired);
            applied
        }
    }
}

impl Clusters for FakeCluster {
    fn get<'a>(&'a self, on: &'a ClusterRef, key: &'a ObjectKey) -> BoxFuture<'a, Result<Option<Value>, Fault>> {
        Box::pin(async move { Ok(self.find(on, key)) })
    }

    fn get_many<'a>(
        &'a self,
        on: &'a ClusterRef,
        keys: &'a [ObjectKey],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>, Fault>> {
        Box::pin(async move { Ok(keys.iter().map(|key| self.find(on, key)).collect()) })
    }

    fn list<'a>(&'a self, on: &'a ClusterRef, what: &'a Selection) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async move { self.select(on, what) })
    }

    fn version<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async { Ok(VERSION.to_owned()) })
    }

    fn discover<'a>(&'a self, _: &'a ClusterRef) -> BoxFuture<'a, Result<Vec<ApiResource>, Fault>> {
        Box::pin(async { Ok(kinds::served(&self.objects())) })
    }
}

#[cfg(test)]
mod tests {
    use orangery_proposal::{Completion, Gate, ObjectRemoval};
    use serde_json::json;

    use super::*;

    fn object(name: &str, data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "a"}, "data": data})
    }

    fn after(how: Write, desired: Value) -> Value {
        let cluster = FakeCluster::of(&[object("x", json!({"a": "1", "b": ""}))]).unwrap();
        let stage = Stage {
            name: "s".into(),
            removals: vec![],
            writes: vec![ObjectWrite::new(object("x", desired), how)],
            gate: Gate::Accepted,
            timeout: None,
        };
        cluster.carry_out_stage(&stage, 1);
        cluster.objects()[0]["data"].clone()
    }

    #[test]
    fn c_252_a_write_makes_of_an_object_what_a_cluster_would() {
        let desired = json!({"a": "2", "b": "2", "c": "2"});
        assert_eq!(after(Write::Create, desired.clone()), json!({"a": "1", "b": ""}));
        assert_eq!(after(Write::Fill, desired.clone()), json!({"a": "1", "b": "2", "c": "2"}));
        assert_eq!(after(Write::Replace, json!({"c": "2"})), json!({"c": "2"}));
        assert_eq!(after(Write::Patch, json!({"c": "2"})), json!({"c": "2"}));
        assert_eq!(after(Write::Apply, json!({"c": "2"})), json!({"a": "1", "b": "", "c": "2"}));
        let earlier = object("x", json!({"a": "1"}));
        assert_eq!(after(Write::Merge(earlier), json!({"c": "2"})), json!({"b": "", "c": "2"}));
    }

    #[test]
    fn c_252_a_proposal_is_carried_out_and_what_lives_for_its_job_goes_again() {
        let cluster = FakeCluster::of(&[object("old", json!({}))]).unwrap();
        let write = |name: &str, owned| ObjectWrite {
            owned,
            at_creation: Some(json!({"data": {"made": "yes"}})),
            ..ObjectWrite::new(object(name, json!({})), Write::Apply)
        };
        let key = key_of(&object("old", json!({}))).unwrap();
        let stage = Stage {
            name: "s".into(),
            removals: vec![ObjectRemoval { key, on: ClusterRef::Target, force: false }],
            writes: vec![write("new", Ownership::Managed), write("hook", Ownership::Ephemeral)],
            gate: Gate::Accepted,
            timeout: None,
        };
        let half = cluster.copy();
        half.carry_out_stage(&stage, 1);
        let names = |cluster: &FakeCluster| -> Vec<String> {
            cluster.objects().iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!((names(&half), names(&cluster)), (vec!["new".to_owned()], vec!["old".to_owned()]));
        let proposal = Proposal {
            stages: vec![stage],
            next: Next::Finish(Completion::default()),
            recover: None,
            status: None,
            deletion_order: vec![],
            pruning_order: vec![],
        };
        let goes_on = Proposal { next: Next::ContinueWith(vec![]), ..proposal.clone() };
        half.carry_out(&goes_on);
        assert_eq!(names(&half), ["hook", "new"]);
        cluster.carry_out(&proposal);
        assert_eq!(cluster.objects(), [object("new", json!({"made": "yes"}))]);
    }

    #[tokio::test]
    async fn c_252_reads_are_answered_from_the_objects_of_their_cluster() {
        let labelled = |name: &str, label: &str| {
            let mut object = object(name, json!({}));
            object["metadata"]["labels"] = json!({"app": label});
            object
        };
        let cluster = FakeCluster::of(&[labelled("b", "web"), labelled("a", "web"), labelled("c", "db")]).unwrap();
        let what = |labels: Option<&str>| Selection {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("a".into()),
            names: vec![],
            labels: labels.map(str::to_owned),
            fields: None,
        };
        let list = async |on: ClusterRef, what: Selection| cluster.list(&on, &what).await;
        let all = list(ClusterRef::Target, what(Some("app in (web)"))).await.unwrap();
        assert_eq!(all, [labelled("a", "web"), labelled("b", "web")]);
        assert_eq!(list(ClusterRef::Host, what(None)).await, Ok(vec![]));
        let named = Selection { names: vec!["c".into()], ..what(None) };
        assert_eq!(list(ClusterRef::Target, named).await, Ok(vec![labelled("c", "db")]));
        assert!(list(ClusterRef::Target, what(Some("app in"))).await.is_err());
        let keys = ["c", "z"].map(|name| key_of(&object(name, json!({}))).unwrap());
        let got = cluster.get_many(&ClusterRef::Target, &keys).await;
        assert_eq!(got, Ok(vec![Some(labelled("c", "db")), None]));
        assert!(FakeCluster::of(&[json!({"kind": "ConfigMap"})]).unwrap_err().contains("needs"));
    }
}
