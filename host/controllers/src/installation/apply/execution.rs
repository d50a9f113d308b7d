//! The Execution of an Installation: created, updated or removed with the rendered deploy items (INS-24, EXE-06).

use std::collections::{BTreeMap, BTreeSet};

use kube::{ResourceExt, core::ObjectMeta};
use orangery_api::{
    FINALIZER, annotation, convert,
    execution::{DeployItemTemplate, Execution, ExecutionSpec, within_limit},
    marks::{Marks, Operation},
    reference::ObjectReference,
};
use orangery_blueprint::{
    Blueprint, gate,
    import::{Imported, secret_data},
};
use orangery_core::{
    error::{Code, Failure},
    phase::{Phase as _, execution::Execution as ExecutionPhase},
    plan::installation as plan,
    step::{Halt, Step, Until, Verdict},
};
use orangery_reconcile::WriteError;
use orangery_render::DeployItem;
use serde_json::{Map, Value};

use super::super::{
    dependencies::EXECUTION, gather::related::related_execution, reconciliation::InstallationReconciliation,
};
use crate::{
    object::{add_finalizer, controller_reference, uid_of},
    secret_data::{ImportsHolder, hide_imports},
    signed_origin::SignedOrigin,
    stores::StoredKind,
};

/// Whether an Execution may have so many items (C-197).
fn check_number(items: usize) -> Step<()> {
    within_limit(items).map_err(|error| {
        let failure = Failure::new("EnsureExecution", "TooManyDeployItems", error.to_string());
        Halt::Stall(failure.with_code(Code::ConfigurationProblem))
    })
}

impl InstallationReconciliation<'_> {
    /// Brings the Execution to the rendered items. Without items there is none: one that exists is deleted, and its
    /// items with it (`tests/golden/zero-items-after-update`).
    pub(in crate::installation) async fn ensure_execution(
        &mut self,
        blueprint: &Blueprint,
        items: &[DeployItem],
        (values, imported): (&Map<String, Value>, &BTreeMap<String, Imported>),
    ) -> Step<()> {
        let item = |DeployItem { template, target, gates }: &DeployItem| {
            convert::deploy_item(template, target.as_deref(), gates, &self.key.namespace)
        };
        check_number(items.len())?;
        let templates: Vec<DeployItemTemplate> = items.iter().map(item).collect();
        // Nobody but gate expressions reads imports there, so nothing else of them is written.
        let imports = gate::read_imports(items.iter().map(|item| &item.gates), values, &blueprint.imports);
        let imports = self.hidden(StoredKind::Execution, imported, imports)?;
        let targets: BTreeSet<&str> = templates.iter().flat_map(DeployItemTemplate::gate_targets).collect();
        let targets: Vec<String> = targets.into_iter().map(str::to_owned).collect();
        let present = self.execution();
        if templates.is_empty() {
            self.draft.status.get_or_insert_default().execution_ref = None;
            return self.delete_execution(false).await;
        }
        if let Some(execution) = present.as_ref().filter(|execution| execution.is_deleting()) {
            self.trigger_execution(execution, ExecutionPhase::INIT_DELETE).await?;
            // One that could not be deleted in this job goes in another one.
            if let (_, Ok(Verdict::Failed(failure))) =
                plan::orphans(&[related_execution(execution)], &self.workflow.job)
            {
                return Err(Halt::Stall(failure));
            }
            return Err(EXECUTION.wait(execution.name_any(), Until::Gone));
        }
        let writer = self.host.writer(&self.host.stores.executions);
        let origin = self.origin()?;
        let (wanted, written) = match present {
            Some(before) => {
                let mut after = Execution::clone(&before);
                after.spec.set_items(&templates);
                self.specify(blueprint, (imports, targets), &mut after.spec);
                self.annotate(&mut after);
                add_finalizer(&mut after);
                if let Some(origin) = &origin {
                    origin.mark(self.host, before.as_ref(), &mut after);
                }
                let written = writer.update(&before, &after).await;
                (after, written)
            }
            None => {
                let mut execution = self.new_execution(templates);
                self.specify(blueprint, (imports, targets), &mut execution.spec);
                self.annotate(&mut execution);
                match writer.create(&execution).await {
                    Err(error @ WriteError::AlreadyExists { .. }) => {
                        return Err(error.halt("CreateExecution"));
                    }
                    written => (execution, written),
                }
            }
        };
        let halt = |error: WriteError| error.halt("EnsureExecution");
        let written = written.map_err(halt)?;
        if let Some(origin) = &origin {
            origin.mark_written(self.host, &writer, &wanted, written).await.map_err(halt)?;
        }
        self.draft.status.get_or_insert_default().execution_ref =
            Some(ObjectReference { name: self.key.name.clone(), namespace: self.key.namespace.clone() });
        Ok(())
    }

    /// What gate expressions read of imports, as it may stand in the object of this kind and of the name of the Installation (C-81).
    pub(in crate::installation) fn hidden(
        &self,
        kind: StoredKind,
        imported: &BTreeMap<String, Imported>,
        imports: BTreeMap<String, Value>,
    ) -> Step<BTreeMap<String, Value>> {
        let (host, holder) = (self.host, ImportsHolder { kind, key: &self.key });
        let secret =
            |value: &Value| secret_data(imported, value).max(host.secrets.secret_data(&self.key.namespace, value));
        hide_imports((&host.policies, host.key.encryption()), &holder, uid_of(&self.draft), secret, imports)
    }

    fn new_execution(&self, templates: Vec<DeployItemTemplate>) -> Execution {
        Execution {
            metadata: ObjectMeta {
                name: Some(self.key.name.to_string()),
                namespace: self.draft.namespace(),
                finalizers: Some(vec![FINALIZER.to_owned()]),
                owner_references: Some(vec![controller_reference(&self.draft)]),
                ..ObjectMeta::default()
            },
            spec: ExecutionSpec::new(self.draft.spec.context.clone(), templates),
            status: None,
        }
    }

    /// What the Installation asks for comes before what its blueprint does (C-01). `imports` and `targets` are what gate
    /// expressions read.
    fn specify(
        &self,
        blueprint: &Blueprint,
        (imports, targets): (BTreeMap<String, Value>, Vec<String>),
        execution: &mut ExecutionSpec,
    ) {
        let asked = &self.draft.spec;
        execution.context.clone_from(&asked.context);
        execution.failure_policy = asked.failure_policy.or(blueprint.failure_policy.map(Into::into));
        execution.max_parallel = asked.max_parallel.or(blueprint.max_parallel);
        execution.imports = imports;
        execution.gate_targets = targets;
    }

    /// The original writes the operation on every Execution, and clients may look for it; nothing here reads it. A mark of
    /// where its spec comes from is one of the spec before.
    fn annotate(&self, execution: &mut Execution) {
        let annotations = execution.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::OPERATION.to_owned(), Operation::Reconcile.to_string());
        if let Some(cached) = self.draft.annotation(annotation::CACHE_HELM_CHARTS) {
            annotations.insert(annotation::CACHE_HELM_CHARTS.to_owned(), cached.to_owned());
        }
        annotations.remove(annotation::SIGNED_ORIGIN);
    }

    /// The signed blueprint that the Execution is marked with, where signatures are required (C-75).
    fn origin(&self) -> Step<Option<SignedOrigin>> {
        let is_required = self.host.policies.of(&self.key.namespace)?.requires_signatures();
        Ok(is_required.then(|| self.shared.blueprints.origin(&self.draft)).flatten())
    }
}
