//! Executions of type `Wasm`: the blueprint brings its engine along, as a file of its own or as an artifact of a registry.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use super::TemplateExecution;
use crate::{
    plugins::Plugins,
    template_engine::{TemplateContext, TemplateEngine},
};
use orangery_core::{
    error::{Code, Fault},
    port::BoxFuture,
};
use orangery_ocm::{Artifact, ComponentReference, ComponentReferenceError, Files, LayerFuture};

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

    /// The engine of an execution of type `Wasm`, from where it is.
    ///
    /// # Errors
    ///
    /// Why there is none; whether it is an engine is found out when it renders.
    pub async fn bundled_engine(
        &self,
        plugins: &dyn Plugins,
        context: &TemplateContext,
    ) -> Result<Arc<dyn TemplateEngine>, Fault> {
        let invalid = |message: String| Fault::invalid(Code::ConfigurationProblem, message);
        let place = self.own_component().map_err(|error| invalid(error.to_string()))?;
        let component: Arc<dyn Artifact> = match &place {
            OwnComponent::File(path) => Arc::new(ComponentFile::of(&context.files, path).map_err(invalid)?),
            OwnComponent::Artifact(reference) => context.artifacts.component(reference).await?,
        };
        Ok(plugins.bundled_engine(&place.to_string(), component))
    }
}

/// A component that is a file of a blueprint, and is read when it is asked for.
pub struct ComponentFile {
    files: Arc<dyn Files>,
    path: String,
    /// Digest and size, once they were asked for.
    sum: OnceLock<(String, u64)>,
}

impl ComponentFile {
    /// The file at a path.
    ///
    /// # Errors
    ///
    /// There is no such file, in one sentence.
    pub fn of(files: &Arc<dyn Files>, path: &str) -> Result<Self, String> {
        files.check(path)?;
        Ok(Self { files: Arc::clone(files), path: path.to_owned(), sum: OnceLock::new() })
    }

    fn sum(&self) -> &(String, u64) {
        // What cannot be read says so where it is read.
        self.sum.get_or_init(|| self.files.digest(&self.path).unwrap_or_default())
    }
}

impl Artifact for ComponentFile {
    fn digest(&self) -> &str {
        &self.sum().0
    }

    fn media_type(&self) -> &'static str {
        "application/wasm"
    }

    fn size(&self) -> u64 {
        self.sum().1
    }

    fn content(&self) -> BoxFuture<'_, Result<Arc<Vec<u8>>, Fault>> {
        let content = self.files.read(&self.path);
        let content = content.map_err(|message| Fault::invalid(Code::ConfigurationProblem, message));
        Box::pin(async { content.map(Arc::new) })
    }

    fn layer<'a>(&'a self, _: &'a str) -> LayerFuture<'a> {
        Box::pin(async { Ok(None) })
    }
}
