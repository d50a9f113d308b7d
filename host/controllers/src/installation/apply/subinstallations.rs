//! Sub-installations: created and updated from the templates of the blueprint, orphans deleted (INS-24 … INS-26).

use std::collections::{BTreeMap, BTreeSet};

use kube::{ResourceExt, core::ObjectMeta};
use orangery_api::{
    FINALIZER, annotation, convert,
    installation::{Installation, SubinstallationCache},
    job::NamePair,
    label,
    marks::Marks,
};
use orangery_core::{
    name::{self, ObjectName},
    plan::{
        installation::{self as plan, Existing},
        renamed::renamed,
    },
    step::{Halt, Step, Verdict},
};
use orangery_reconcile::{Key, WriteError};
use orangery_render::Subinstallation;

use super::super::{gather::related::related, reconciliation::InstallationReconciliation};
use crate::{
    event,
    object::{add_finalizer, controller_reference, uid_of},
    tree::{check_room, end_of_making},
};

impl InstallationReconciliation<'_> {
    /// Those that are called otherwise now go on under their new name, with their objects below: what is deleted and made anew loses
    /// what is in it (C-168). Until the name is written the object is an orphan, and from then on that of its template.
    pub(in crate::installation) async fn rename_subinstallations(&self, wanted: &[Subinstallation]) -> Step<()> {
        let mut objects = self.subinstallations();
        let made: BTreeSet<String> =
            objects.iter().filter_map(|object| template_of(&object).map(str::to_owned)).collect();
        let mut missing: Vec<&Subinstallation> = wanted.iter().collect();
        missing.retain(|sub| !made.contains(&sub.template.name));
        objects.retain(|object| {
            let template = template_of(object);
            let has_left = template.is_some() && !wanted.iter().any(|sub| template == Some(sub.template.name.as_str()));
            has_left && !object.is_deleting()
        });
        let names: Vec<String> = objects.iter().map(|object| object.name_any()).collect();
        let origins = objects.iter().map(|object| convert::origin(&object.spec));
        let templates = missing.iter().map(|sub| {
            let spec = convert::subinstallation(&self.draft.spec, &sub.template, sub.child.as_ref());
            (sub.template.name.as_str(), convert::origin(&spec))
        });
        let pairs = renamed(templates.collect(), names.iter().map(String::as_str).zip(origins).collect());
        let writer = self.host.writer(&self.host.stores.installations);
        for object in objects {
            let name = object.name_any();
            let (Some(before), Some(template)) = (template_of(&object), pairs.get(&name)) else { continue };
            let mut after = Installation::clone(&object);
            after.annotations_mut().insert(annotation::SUBINSTALLATION_NAME.to_owned(), template.clone());
            writer.update(&object, &after).await.map_err(|error| error.halt("RenameSubinstallation"))?;
            let note =
                format!("sub-installation {before} is called {template} now; Installation {name} goes on with it");
            event::tell(self.host, &self.draft, "SubinstallationRenamed", &note);
        }
        Ok(())
    }

    /// Brings the sub-installation objects to their templates. Those that are made when they start are left as they are.
    pub(in crate::installation) async fn ensure_subinstallations(&mut self, wanted: &[Subinstallation]) -> Step<()> {
        let wanted: Vec<&Subinstallation> =
            wanted.iter().filter(|sub| !self.is_made_late(&sub.template.name)).collect();
        let mut objects = self.subinstallations();
        objects.retain(|object| !self.is_late(object));
        let existing: Vec<Existing> = objects
            .iter()
            .map(|object| Existing {
                object: object.name_any(),
                template: template_of(&object).map(str::to_owned),
                deleting: object.is_deleting(),
            })
            .collect();
        let decided = plan::subinstallations(wanted.iter().map(|sub| sub.template.name.as_str()), &existing);
        if let Err(Halt::Wait(_)) = &decided {
            // One whose template is back is still being deleted: it needs this job to go on.
            objects.retain(|object| object.is_deleting());
            for object in objects.iter() {
                self.trigger_leaving(&object).await?;
            }
            if let (_, Ok(Verdict::Failed(failure))) = plan::orphans(&related(objects), &self.workflow.job) {
                return Err(Halt::Stall(failure));
            }
        }
        let plan = decided?;
        let mut active = Vec::new();
        for sub in wanted {
            let template = &sub.template;
            let present = plan.update.get(&template.name).map(|name| self.beside(name.as_str()));
            let object_name = self.ensure_subinstallation(sub, present.as_ref()).await?;
            active.push(NamePair { spec_name: template.name.clone(), object_name });
        }
        for orphan in &plan.orphan {
            self.delete_orphan(orphan).await?;
        }
        let orphaned =
            self.subinstallations().iter().filter(|sub| sub.is_deleting()).map(|sub| sub.name_any()).collect();
        self.draft.status.get_or_insert_default().sub_inst_cache =
            Some(SubinstallationCache { active_subs: active, orphaned_subs: orphaned });
        Ok(())
    }

    /// The key of an object of this name in the namespace.
    fn beside(&self, name: &str) -> Key {
        Key { name: name.into(), ..self.key.clone() }
    }

    pub(in crate::installation) async fn ensure_subinstallation(
        &self,
        sub: &Subinstallation,
        present: Option<&Key>,
    ) -> Step<ObjectName> {
        let writer = self.host.writer(&self.host.stores.installations);
        let template = &sub.template;
        let spec = convert::subinstallation(&self.draft.spec, template, sub.child.as_ref());
        let labels = BTreeMap::from([(label::ENCOMPASSED_BY.to_owned(), self.key.name.to_string())]);
        let mut annotations = BTreeMap::from([(annotation::SUBINSTALLATION_NAME.to_owned(), template.name.clone())]);
        if let Some(cached) = self.draft.annotation(annotation::CACHE_HELM_CHARTS) {
            annotations.insert(annotation::CACHE_HELM_CHARTS.to_owned(), cached.to_owned());
        }
        let stores = &self.host.stores;
        if let Some(before) = present.and_then(|key| stores.installations.get(key)) {
            let mut after = Installation::clone(&before);
            after.spec = spec;
            after.metadata.labels = Some(labels);
            after.metadata.annotations = Some(annotations);
            add_finalizer(&mut after);
            writer.update(&before, &after).await.map_err(|error| error.halt("UpdateSubinstallation"))?;
            return Ok(before.name_any().into());
        }
        if let Some(end) = end_of_making(stores, &self.key, &self.workflow.job) {
            return Err(Halt::Stall(end.failure(None)));
        }
        check_room(stores, &self.key, &template.name).map_err(Halt::Stall)?;
        let prefix = name::subinstallation_prefix(&template.name);
        let object_name = name::subinstallation(&template.name, uid_of(&self.draft), &self.workflow.job);
        let object = Installation {
            metadata: ObjectMeta {
                name: Some(object_name.to_string()),
                generate_name: Some(prefix),
                namespace: self.draft.namespace(),
                labels: Some(labels),
                annotations: Some(annotations),
                finalizers: Some(vec![FINALIZER.to_owned()]),
                owner_references: Some(vec![controller_reference(&self.draft)]),
                ..ObjectMeta::default()
            },
            spec,
            status: None,
        };
        match writer.create(&object).await {
            // This job made it before a crash: the name is that of this template in this job.
            Ok(_) | Err(WriteError::AlreadyExists { .. }) => Ok(object_name),
            Err(error) => Err(error.halt("CreateSubinstallation")),
        }
    }
}

/// The template that a sub-installation was made from; `None` where somebody has taken that off.
fn template_of(sub: &Installation) -> Option<&str> {
    sub.annotation(annotation::SUBINSTALLATION_NAME)
}
