//! Targets and the Secrets behind them, written where they differ, and taken away where nothing needs them (C-372, C-373).

use std::{collections::BTreeMap, sync::Arc};

use data_encoding::BASE64;
use orangery_api::{
    annotation, label,
    marks::Marks as _,
    reference::LocalSecretReference,
    target::{KUBERNETES_CLUSTER, Target, TargetSpec},
};
use orangery_cluster::{Error, NamespacedName, Observed, Precondition};
use orangery_core::{
    name::ObjectName,
    plan::target_sync::{LeftTargets, ObjectMaker, left},
    step::{Halt, Step},
};
use orangery_proposal::ObjectKey;
use orangery_reconcile::Key;
use serde_json::{Value, json};

use super::{
    SyncCall, retry, secrets,
    source::{KUBECONFIG, ReferencedKubeconfig, WantedTarget, WantedTargets},
    stall,
};
use crate::{
    dependencies::{is_in_use, users},
    object::owner_reference,
    stores::StoredKind,
};

/// Secrets of others with wanted names that are watched, so that it is known when they go.
const WATCHED_OTHERS: usize = 4;

/// The marked Secrets of the namespace, by name.
pub(super) type MarkedSecrets = BTreeMap<ObjectName, Arc<Value>>;

impl SyncCall<'_> {
    /// Makes and changes what there should be. What fails is told, and holds up nothing else.
    pub(super) async fn apply(
        &mut self,
        reference: &ReferencedKubeconfig,
        wanted: &WantedTargets,
        own: &MarkedSecrets,
    ) {
        let mut others = 0;
        for (name, wanted) in &wanted.by_name {
            let done = match wanted {
                WantedTarget::Copy(text) => self.copied(name, text, own, &mut others).await,
                WantedTarget::Shoot => self.shoot(name, reference, own, &mut others).await,
                WantedTarget::Source => {
                    let of = LocalSecretReference {
                        name: self.sync.spec.secret_ref.name.clone(),
                        key: reference.key.clone(),
                    };
                    self.put_target(name, of, None).await
                }
            };
            if let Err(halt) = done {
                self.outcome.halts(halt);
            }
        }
    }

    async fn copied(&mut self, name: &ObjectName, text: &str, own: &MarkedSecrets, others: &mut usize) -> Step<()> {
        self.check_target(name)?;
        self.put_secret(name, text, own, others).await?;
        self.put_target(name, own_secret(name), None).await
    }

    /// Whether the Target of a name may be written: it is there and its own, or not there.
    pub(super) fn check_target(&self, name: &ObjectName) -> Step<Option<Arc<Target>>> {
        let key = Key::new(&self.key.namespace, name.clone());
        let target = self.host.stores.targets.get(&key);
        match target {
            Some(target) if !self.made(&target) => Err(self.is_of_another("Target", name)),
            target => Ok(target),
        }
    }

    fn is_of_another(&self, what: &str, name: &ObjectName) -> Halt {
        let message = format!(
            "{what} {}/{name} was not made by TargetSync {} and stays as it is; delete it, or have the expression leave out {name}",
            self.key.namespace, self.key.name
        );
        stall("NotOwned", message)
    }

    /// Writes the Secret behind a Target, unless it has this kubeconfig and nothing else.
    pub(super) async fn put_secret(
        &mut self,
        name: &ObjectName,
        text: &str,
        own: &MarkedSecrets,
        others: &mut usize,
    ) -> Step<()> {
        let key = self.secret_key(name);
        let data = json!({KUBECONFIG: BASE64.encode(text.as_bytes())});
        let Some(live) = own.get(name) else {
            let known = self.here.watches().observed(&secrets(), &self.place(name));
            if let Some(Observed::Present(_)) = known {
                return Err(self.is_anothers(name, others));
            }
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
                "metadata": {
                    "name": name, "namespace": self.key.namespace,
                    "labels": {label::TARGET_SYNC: label::TARGET_SYNC_OK},
                    "ownerReferences": [owner_reference(self.sync.as_ref())],
                },
            });
            return match self.here.create(&secrets(), &key, &secret).await {
                Ok(_) => {
                    self.outcome.wrote = true;
                    Ok(())
                }
                Err(Error::AlreadyExists { .. }) => Err(self.is_anothers(name, others)),
                Err(error) => Err(error.into()),
            };
        };
        if self.maker_of(live) == ObjectMaker::Other {
            return Err(self.is_of_another("Secret", name));
        }
        if live["data"] == data {
            return Ok(());
        }
        let mut secret = Value::clone(live);
        if let Some(fields) = secret.as_object_mut() {
            fields.insert("data".to_owned(), data);
        }
        match self.here.replace(&secrets(), &key, &secret).await {
            Ok(_) => {
                self.outcome.wrote = true;
                Ok(())
            }
            Err(error @ (Error::Conflict { .. } | Error::Missing { .. })) => Err(retry("Conflict", error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// The Secret of a name is somebody else's: it is watched from now on, where few are, so that it is known when it goes.
    fn is_anothers(&self, name: &ObjectName, others: &mut usize) -> Halt {
        *others += 1;
        if *others <= WATCHED_OTHERS {
            let _known = self.clusters.watch(&self.here, &secrets(), &self.place(name));
        }
        self.is_of_another("Secret", name)
    }

    fn place(&self, name: &ObjectName) -> NamespacedName {
        NamespacedName { namespace: Some(self.key.namespace.clone()), name: name.clone() }
    }

    fn secret_key(&self, name: &ObjectName) -> ObjectKey {
        let namespace = Some(self.key.namespace.clone());
        ObjectKey { api_version: "v1".into(), kind: "Secret".into(), namespace, name: name.clone() }
    }

    /// Writes a Target that refers to this Secret, unless it does. Labels and annotations of others stay.
    pub(super) async fn put_target(
        &mut self,
        name: &ObjectName,
        secret: LocalSecretReference,
        issued: Option<String>,
    ) -> Step<()> {
        let writer = self.host.writer(&self.host.stores.targets);
        let spec = TargetSpec { type_: KUBERNETES_CLUSTER.to_owned(), config: None, secret_ref: Some(secret) };
        let before = self.check_target(name)?;
        let mut target = match &before {
            Some(target) => Target::clone(target),
            None => {
                let mut target = Target::new(name, TargetSpec::default());
                target.metadata.namespace = Some(self.key.namespace.to_string());
                target.metadata.owner_references = Some(vec![owner_reference(self.sync.as_ref())]);
                let mark = (label::TARGET_SYNC.to_owned(), label::TARGET_SYNC_OK.to_owned());
                target.metadata.labels = Some([mark].into());
                target
            }
        };
        target.spec = spec;
        if let Some(issued) = issued {
            let annotations = target.metadata.annotations.get_or_insert_default();
            annotations.insert(annotation::LAST_TARGET_SYNC.to_owned(), issued);
        }
        let written = match &before {
            Some(before) if **before == target => return Ok(()),
            Some(before) => writer.update(before, &target).await,
            None => writer.create(&target).await,
        };
        written.map_err(|error| error.halt("WriteTarget"))?;
        self.outcome.wrote = true;
        Ok(())
    }

    /// Takes away what the other cluster has nothing for any more, where everything else went well and nothing uses it (C-373).
    pub(super) async fn remove(&mut self, wanted: &WantedTargets, own: &MarkedSecrets) -> Step<()> {
        let secrets = own.iter().filter(|(_, secret)| self.maker_of(secret) == ObjectMaker::Own);
        let mut names: Vec<ObjectName> = secrets.map(|(name, _)| name.clone()).collect();
        names.extend(self.own_targets());
        names.sort();
        names.dedup();
        let stores = &self.host.stores;
        let key = |name: &ObjectName| Key::new(&self.key.namespace, name.clone());
        let is_used = |name: &ObjectName| is_in_use(stores, StoredKind::Target, &key(name));
        let LeftTargets { removed, kept } = left(names, &wanted.names, self.outcome.is_well(), is_used);
        for name in &kept {
            let of = key(name);
            let by = users(stores, StoredKind::Target, &of).next();
            let by = by.map_or_else(|| "an object".to_owned(), |(kind, user)| format!("{} {}", kind.name(), user.name));
            self.outcome.errors.push(format!(
                "the other cluster has nothing for Target {of} any more, which stays as long as {by} uses it"
            ));
        }
        for name in &removed {
            if let Err(halt) = self.take_away(name, own).await {
                self.outcome.halts(halt);
            }
        }
        Ok(())
    }

    /// Deletes the Target of a name and the Secret behind it, where they are its own and not on their way already.
    pub(super) async fn take_away(&mut self, name: &ObjectName, own: &MarkedSecrets) -> Step<()> {
        let target = self.host.stores.targets.get(&Key::new(&self.key.namespace, name.clone()));
        if let Some(target) = target.filter(|target| self.made(target) && !target.is_deleting()) {
            let writer = self.host.writer(&self.host.stores.targets);
            writer.delete(&target).await.map_err(|error| error.halt("DeleteTarget"))?;
            self.outcome.wrote = true;
        }
        let secret = own.get(name).filter(|secret| self.maker_of(secret) == ObjectMaker::Own);
        let is_going = |secret: &Value| secret.pointer("/metadata/deletionTimestamp").is_some();
        if let Some(secret) = secret.filter(|secret| !is_going(secret)) {
            self.here.delete(&secrets(), &self.secret_key(name), &Precondition::of(secret), None).await?;
            self.outcome.wrote = true;
        }
        Ok(())
    }
}

/// The Secret of the Target of a name.
pub(super) fn own_secret(name: &ObjectName) -> LocalSecretReference {
    LocalSecretReference { name: name.to_string(), key: KUBECONFIG.to_owned() }
}
