//! Creating objects.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Draft, WriteOutcome, WriteRequest, admit, prepare};
use crate::{
    cluster::{EmbeddedCluster, key},
    convert, crd, entropy,
    object::{self, meta},
    patch::managed,
    refusal::{Refusal, RefusalReason, StatusCause},
    resource::{Generation, ResourceOrigin},
    store::{Expect, ObjectVersion, StoreWrite, StoreWriteError},
};

/// How often a generated name is drawn again when it is taken.
const DRAWS: usize = 8;

impl EmbeddedCluster {
    /// Creates an object from the body of a request.
    pub(crate) async fn create(&self, call: &WriteRequest, mut body: Value) -> Result<WriteOutcome, Refusal> {
        prepare::check_identity(call, &mut body, None)?;
        if call.served.resource.origin == ResourceOrigin::Terminating {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Refusal::new(RefusalReason::MethodNotAllowed, why));
        }
        if !meta(&body, "resourceVersion").is_empty() {
            return Err(Refusal::bad_request("resourceVersion should not be set on objects to be created"));
        }
        let prefix = meta(&body, "generateName").to_owned();
        if !meta(&body, "name").is_empty() || prefix.is_empty() {
            return self.create_named(call, body, None).await;
        }
        let mut last = Refusal::new(RefusalReason::InternalError, "no name was drawn");
        for _ in 0..DRAWS {
            let mut named = body.clone();
            let kept = prefix.get(..prefix.len().min(58)).unwrap_or(&prefix);
            object::set(&mut named, &["metadata", "name"], json!(format!("{kept}{}", entropy::suffix())));
            match self.create_named(call, named, None).await {
                Err(refusal) if refusal.reason == RefusalReason::AlreadyExists => last = refusal,
                other => return other,
            }
        }
        Err(last)
    }

    /// Creates an object that has its name. `managed` are the managed fields of an apply.
    pub(super) async fn create_named(
        &self,
        call: &WriteRequest,
        body: Value,
        managed: Option<Value>,
    ) -> Result<WriteOutcome, Refusal> {
        let definitions = match call.served.label() {
            crd::SHELF => Some(self.definitions.lock().await),
            _ => None,
        };
        let Draft { object, warnings } = self.draft_new(call, body, managed)?;
        let name = meta(&object, "name").to_owned();
        let key = key(&call.served, &call.namespace, &name);
        if call.dry_run {
            if self.store.latest(&key).is_some() {
                return Err(call.refused(&StoreWriteError::Exists, &name));
            }
            if !key.name.namespace.is_empty() && !self.namespace_is_active(&call.namespace) {
                return Err(call.refused(&StoreWriteError::NoNamespace, &name));
            }
            let entry = ObjectVersion::unnumbered(&object);
            return Ok(WriteOutcome { entry: Arc::new(entry), created: true, warnings });
        }
        let definition = definitions.as_ref().map(|_| object.clone());
        let object = convert::stored(&call.served, object);
        let write = StoreWrite { key, expect: Expect::Absent, object, deletes: false };
        let entry = self.store.write(write).await.map_err(|error| call.refused(&error, &name))?;
        if let Some(definition) = definition {
            self.serve(&definition);
        }
        Ok(WriteOutcome { entry, created: true, warnings })
    }

    fn draft_new(&self, call: &WriteRequest, mut body: Value, managed: Option<Value>) -> Result<Draft, Refusal> {
        let name = meta(&body, "name").to_owned();
        if let Some(cause) = admit::name_problem(&call.served, &name) {
            let resource = &call.served.resource;
            return Err(Refusal::invalid(&resource.kind, &resource.group, &name, &[cause]));
        }
        let now = self.stamp();
        let fields = object::meta_mut(&mut body);
        for kept_by_the_server in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
            fields.remove(kept_by_the_server);
        }
        fields.insert("uid".to_owned(), json!(entropy::uuid().to_string()));
        fields.insert("creationTimestamp".to_owned(), json!(now));
        fields.remove("managedFields");
        let version = call.served.version();
        if version.generation != Generation::Never {
            fields.insert("generation".to_owned(), json!(1));
        }
        // A node tells its status as it registers.
        if version.status && call.served.label() != "nodes" {
            object::take(&mut body, &["status"]);
        }
        if !call.served.is_custom() {
            admit::complete_new(call.served.kind(), call.user.as_ref(), &mut body);
        }
        let draft = prepare::shape_up(self, call, None, body)?;
        let mut draft = prepare::mutate(self, call, None, draft)?;
        match managed {
            Some(managed) => object::set(&mut draft.object, &["metadata", "managedFields"], managed),
            None => managed::track_update(None, &mut draft.object, &call.author(now), call.shape()),
        }
        if call.served.label() == crd::SHELF {
            let resource = crd::resource(&draft.object);
            if resource.group.is_empty() {
                return Err(Refusal::invalid(
                    "CustomResourceDefinition",
                    "apiextensions.k8s.io",
                    &name,
                    &[StatusCause::required("spec.group", "")],
                ));
            }
            let finalizers = with_cleanup(&draft.object);
            object::set(&mut draft.object, &["metadata", "finalizers"], finalizers);
            prepare::establish(self, &mut draft.object);
        }
        prepare::admit(self, call, None, &mut draft)?;
        Ok(draft)
    }
}

fn with_cleanup(definition: &Value) -> Value {
    let mut finalizers: Vec<&str> = object::finalizers(definition);
    if !finalizers.contains(&crd::CLEANUP) {
        finalizers.push(crd::CLEANUP);
    }
    json!(finalizers)
}
