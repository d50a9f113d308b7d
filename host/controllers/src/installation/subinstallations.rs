//! Sub-installations: created and updated from the templates of the blueprint, orphans deleted (INS-24 … INS-26,
//! `landscaper.md` §5.8).

use std::{collections::BTreeMap, sync::Arc};

use kube::{ResourceExt, core::ObjectMeta};
use orangery_api::{
    FINALIZER, annotation,
    installation::{
        BlueprintSource, InlineBlueprint, Installation, InstallationSpec, Optimization, SubinstallationCache,
    },
    job::NamePair,
    label,
    marks::Marks,
};
use orangery_core::{
    blueprint::{InstallationTemplate, TemplateBlueprint},
    error::{Code, Failure},
    name,
    phase::{Phase as _, installation::Installation as Phase},
    plan::installation::{self as plan, Existing},
    step::{Halt, Step},
};
use orangery_reconcile::WriteError;

use super::Run;
use crate::object::controller_reference;

impl Run<'_> {
    /// Brings the sub-installation objects to their templates.
    pub(super) async fn ensure_subinstallations(&mut self, templates: &[InstallationTemplate]) -> Step<()> {
        let objects = self.subinstallations();
        let existing: Vec<Existing> = objects
            .iter()
            .map(|object| Existing {
                object: object.name_any(),
                template: object.annotation(annotation::SUBINSTALLATION_NAME).map(str::to_owned),
                deleting: object.is_deleting(),
            })
            .collect();
        let decided = plan::subinstallations(templates.iter().map(|template| template.name.as_str()), &existing);
        if let Err(Halt::Wait(_)) = &decided {
            // One whose template is back is still being deleted: it needs this job to go on.
            for object in objects.iter().filter(|object| object.is_deleting()) {
                self.trigger_subinstallation(object, Phase::INIT_DELETE).await?;
            }
        }
        let plan = decided?;
        let mut active = Vec::new();
        for template in templates {
            let present = plan
                .update
                .get(&template.name)
                .and_then(|name| objects.iter().find(|object| object.name_any() == *name));
            let object_name = self.ensure_subinstallation(template, present).await?;
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

    async fn ensure_subinstallation(
        &self,
        template: &InstallationTemplate,
        present: Option<&Arc<Installation>>,
    ) -> Step<String> {
        let writer = self.host.writer(&self.host.stores.installations);
        let spec = self.subinstallation_spec(template)?;
        let labels = BTreeMap::from([(label::ENCOMPASSED_BY.to_owned(), self.name())]);
        let mut annotations = BTreeMap::from([(annotation::SUBINSTALLATION_NAME.to_owned(), template.name.clone())]);
        if let Some(cached) = self.draft.annotation(annotation::CACHE_HELM_CHARTS) {
            annotations.insert(annotation::CACHE_HELM_CHARTS.to_owned(), cached.to_owned());
        }
        if let Some(before) = present {
            let mut after = Installation::clone(before);
            after.spec = spec;
            after.metadata.labels = Some(labels);
            after.metadata.annotations = Some(annotations);
            writer.update(before, &after).await.map_err(|error| error.halt("UpdateSubinstallation"))?;
            return Ok(before.name_any());
        }
        let prefix = name::subinstallation_prefix(&template.name);
        let suffix = name::generated_suffix(&[&self.draft.uid().unwrap_or_default(), &template.name, &self.job]);
        let object_name = format!("{prefix}{suffix}");
        let object = Installation {
            metadata: ObjectMeta {
                name: Some(object_name.clone()),
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

    fn subinstallation_spec(&self, template: &InstallationTemplate) -> Step<InstallationSpec> {
        let TemplateBlueprint::Inline(filesystem) = &template.blueprint else {
            return Err(Halt::Stall(
                Failure::new(
                    "ReadBlueprint",
                    "BlueprintNotInline",
                    format!(
                        "the sub-installation {:?} takes its blueprint from a component version, which is not supported yet; \
                         write the blueprint's files into blueprint.filesystem",
                        template.name
                    ),
                )
                .with_code(Code::ConfigurationProblem),
            ));
        };
        Ok(InstallationSpec {
            context: self.draft.spec.context.clone(),
            component_descriptor: self.draft.spec.component_descriptor.clone(),
            blueprint: BlueprintSource {
                reference: None,
                inline: Some(InlineBlueprint { filesystem: filesystem.clone() }),
            },
            imports: template.imports.clone().into(),
            import_data_mappings: template.import_data_mappings.clone(),
            exports: template.exports.clone().into(),
            export_data_mappings: template.export_data_mappings.clone(),
            optimization: template.optimization.map(|promise| Optimization {
                has_no_sibling_imports: promise.has_no_sibling_imports,
                has_no_sibling_exports: promise.has_no_sibling_exports,
            }),
            verification: None,
            automatic_reconcile: None,
        })
    }
}
