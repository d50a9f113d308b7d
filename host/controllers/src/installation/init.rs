//! `Init`: everything is read, rendered and created; nothing works yet (INS-19 … INS-26).

use std::collections::BTreeMap;

use orangery_api::context::{Context, DEFAULT_CONTEXT};
use orangery_core::{
    blueprint::{self, InstallationTemplate, ItemTemplate, TemplateExecution},
    digest,
    error::{Code, Failure},
    import::{self, Imported},
    plan::installation::{self as plan, Peer},
    schema::Schemas,
    step::{Halt, Step, Until, Verdict},
    template::ExecutionKind,
};
use orangery_reconcile::Key;
use serde_json::{Map, Value};

use super::{
    Run,
    blueprints::Loaded,
    children::peer,
    objects::{definitions, import_failed},
    sibling,
    sources::{absorb, get},
};

/// The template type that data mappings are written in (`landscaper.md` §4.6).
const MAPPING_ENGINE: &str = "Spiff";

pub(super) fn stall(operation: &str, reason: &str, message: impl Into<String>) -> Halt {
    Halt::Stall(Failure::new(operation, reason, message).with_code(Code::ConfigurationProblem))
}

impl Run<'_> {
    /// `Init`.
    pub(super) async fn init(&mut self) -> Step<Verdict> {
        self.check_context().await?;
        let loaded = self.blueprints.load(&self.draft)?;
        self.check_predecessors()?;
        self.delete_old_exports().await?;
        let imported = self.read_imports().await?;
        let values = self.bind_imports(&loaded, &imported).await?;
        let records = import::copies(&loaded.blueprint.imports, &values, &self.names().scope())
            .map_err(|error| import_failed("CreateImports", &error))?;
        self.write_records(&records).await?;
        let inputs = self.inputs(&values);
        let templates = self.render_subinstallations(&loaded, &inputs, &values).await?;
        self.ensure_subinstallations(&templates).await?;
        let items = self.render_items(&loaded, &inputs).await?;
        self.ensure_execution(&items, &imported).await?;
        self.recheck(&imported).await?;
        let generation = self.draft.metadata.generation;
        let status = self.draft.status.get_or_insert_default();
        status.imports_hash = import::imports_hash(&imported);
        status.job_generation = generation;
        Ok(Verdict::Done)
    }

    async fn check_context(&self) -> Step<()> {
        let name = &self.draft.spec.context;
        let key = Key { namespace: self.namespace(), name: name.clone() };
        if self.host.stores.contexts.get(&key).is_some() {
            return Ok(());
        }
        if name == DEFAULT_CONTEXT {
            // Made for every namespace; it is on its way.
            return Err(Halt::wait("Context", name, Until::Exists));
        }
        let stores = &self.host.stores;
        if absorb(&stores.contexts, get::<Context>(&self.host.client, &key.namespace, name).await?) {
            return Ok(());
        }
        Err(stall(
            "ReadContext",
            "ContextNotFound",
            format!(
                "Context {}/{name} does not exist; create it or correct spec.context, then reconcile again",
                key.namespace
            ),
        ))
    }

    fn check_predecessors(&self) -> Step<()> {
        if self.draft.spec.optimization.as_ref().is_some_and(|promise| promise.has_no_sibling_imports) {
            return Ok(());
        }
        let siblings = sibling::predecessors(self.host, &self.draft);
        let peers: Vec<Peer> = siblings.iter().map(|sibling| peer(sibling)).collect();
        plan::predecessors(&peers, self.draft.is_root(), &self.job)
    }

    /// The imports as the blueprint asks for them: mappings, defaults, schemas, then the import executions.
    pub(super) async fn bind_imports(
        &self,
        loaded: &Loaded,
        imported: &BTreeMap<String, Imported>,
    ) -> Step<Map<String, Value>> {
        let mut mapped = Map::new();
        let scope = import::values(imported);
        for (name, template) in &self.draft.spec.import_data_mappings {
            let value =
                self.render_mapping(loaded, ExecutionKind::ImportMapping, (name, template), scope.clone()).await?;
            mapped.insert(name.clone(), value);
        }
        let schemas = Schemas { local_types: &loaded.blueprint.local_types, files: loaded.files.as_ref() };
        let names = self.names();
        let mut values = import::bind(&loaded.blueprint.imports, imported, &mapped, &schemas, &names.scope())
            .map_err(|error| import_failed("ValidateImports", &error))?;
        for execution in &loaded.blueprint.import_executions {
            let output =
                self.render(loaded, ExecutionKind::Import, execution, Value::Object(self.inputs(&values))).await?;
            let output = blueprint::decode_imports(&output).map_err(|error| invalid(execution, &error.to_string()))?;
            if !output.errors.is_empty() {
                let errors = output.errors.join("; ");
                return Err(stall(
                    "RunImportExecutions",
                    "ImportsRefused",
                    format!("import execution {:?} refuses the imports: {errors}", execution.name),
                ));
            }
            values.extend(output.bindings);
        }
        Ok(values)
    }

    pub(super) async fn render_mapping(
        &self,
        loaded: &Loaded,
        kind: ExecutionKind,
        (name, template): (&str, &Value),
        scope: Map<String, Value>,
    ) -> Step<Value> {
        let execution = TemplateExecution {
            name: name.to_owned(),
            engine: MAPPING_ENGINE.to_owned(),
            file: None,
            template: digest::compact(template),
        };
        self.render(loaded, kind, &execution, Value::Object(scope)).await
    }

    /// What every execution is given.
    pub(super) fn inputs(&self, imports: &Map<String, Value>) -> Map<String, Value> {
        let mut inputs = definitions(&self.draft);
        inputs.insert("imports".to_owned(), Value::Object(imports.clone()));
        inputs
    }

    async fn render_subinstallations(
        &self,
        loaded: &Loaded,
        inputs: &Map<String, Value>,
        values: &Map<String, Value>,
    ) -> Step<Vec<InstallationTemplate>> {
        let mut templates = Vec::new();
        for execution in &loaded.blueprint.subinstallation_executions {
            let output =
                self.render(loaded, ExecutionKind::Subinstallation, execution, Value::Object(inputs.clone())).await?;
            templates.extend(
                blueprint::decode_subinstallations(&output).map_err(|error| invalid(execution, &error.to_string()))?,
            );
        }
        templates.extend(loaded.blueprint.subinstallations.iter().cloned());
        let given = values.keys().map(String::as_str).collect();
        blueprint::without_unsatisfied(&mut templates, &loaded.blueprint.imports, &given);
        blueprint::check_templates(&templates, &loaded.blueprint.imports)
            .map_err(|error| stall("RenderSubinstallations", "InvalidSubinstallations", error.to_string()))?;
        Ok(templates)
    }

    async fn render_items(&self, loaded: &Loaded, inputs: &Map<String, Value>) -> Step<Vec<ItemTemplate>> {
        let mut items = Vec::new();
        for execution in &loaded.blueprint.deploy_executions {
            let output = self.render(loaded, ExecutionKind::Deploy, execution, Value::Object(inputs.clone())).await?;
            items.extend(blueprint::decode_items(&output).map_err(|error| invalid(execution, &error.to_string()))?);
        }
        Ok(items)
    }

    /// The second look: what changed while this phase worked sends it back to its begin (`landscaper.md` §3.2).
    async fn recheck(&self, imported: &BTreeMap<String, Imported>) -> Step<()> {
        self.check_predecessors()?;
        let now = self.read_imports().await?;
        if import::imports_hash(&now) == import::imports_hash(imported) {
            return Ok(());
        }
        Err(Halt::Retry(Failure::new(
            "CheckImportsHash",
            "ImportsChanged",
            "an import changed while the blueprint was rendered; it is rendered again",
        )))
    }
}

fn invalid(execution: &TemplateExecution, message: &str) -> Halt {
    stall(
        "RenderTemplate",
        "InvalidTemplateOutput",
        format!("execution {:?} ({}): {message}", execution.name, execution.engine),
    )
}
