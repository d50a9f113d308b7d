//! Executions of type `Wasm`: the blueprint brings its engine along, as a file of its own or as an artifact of a registry.

use std::{fmt, sync::Arc};

use super::TemplateExecution;
use crate::{
    plugins::Plugins,
    template_engine::{TemplateContext, TemplateEngine},
};
use orangery_core::error::{Code, Fault};
use orangery_ocm::{ComponentReference, ComponentReferenceError};

/// The type of such executions.
pub const BUNDLED_ENGINE: &str = "Wasm";

/// Where the component of an execution is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnComponent {
    /// A file of the blueprint.
    File(String),
    /// An artifact of a registry.
    Artifact(ComponentReference),
}

impl fmt::Display for OwnComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OwnComponent::File(path) => f.write_str(path),
            OwnComponent::Artifact(reference) => reference.fmt(f),
        }
    }
}

impl TemplateExecution {
    /// Whether the blueprint brings the engine along.
    pub fn is_own(&self) -> bool {
        self.engine == BUNDLED_ENGINE
    }

    /// Where the engine of an execution of type `Wasm` is. Reading a blueprint has checked it.
    ///
    /// # Errors
    ///
    /// Neither a file nor a reference with a digest.
    pub fn own_component(&self) -> Result<OwnComponent, ComponentReferenceError> {
        match &self.file {
            Some(file) => Ok(OwnComponent::File(file.clone())),
            None => self.template.parse().map(OwnComponent::Artifact),
        }
    }

    /// The engine of an execution of type `Wasm`, read from where it is.
    ///
    /// # Errors
    ///
    /// Why there are no bytes; whether they are an engine is found out when it renders.
    pub async fn bundled_engine(
        &self,
        plugins: &dyn Plugins,
        context: &TemplateContext,
    ) -> Result<Arc<dyn TemplateEngine>, Fault> {
        let invalid = |message: String| Fault::invalid(Code::ConfigurationProblem, message);
        let place = self.own_component().map_err(|error| invalid(error.to_string()))?;
        let bytes = match &place {
            OwnComponent::File(path) => context.files.read(path).map_err(invalid)?,
            OwnComponent::Artifact(reference) => context.artifacts.component(reference).await?,
        };
        Ok(plugins.bundled_engine(&place.to_string(), bytes))
    }
}
