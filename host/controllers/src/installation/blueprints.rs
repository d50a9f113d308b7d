//! Blueprints, parsed once for each job of an Installation (INS-83).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use kube::ResourceExt;
use orangery_api::installation::Installation;
use orangery_core::{
    blueprint::{Blueprint, FileSystem},
    error::{Code, Failure},
    step::{Halt, Step},
};

/// A blueprint with its files.
pub(crate) struct Loaded {
    pub(crate) blueprint: Blueprint,
    pub(crate) files: Arc<FileSystem>,
}

/// The blueprints of the running jobs, by uid of the Installation and generation of its spec.
#[derive(Default)]
pub(crate) struct Blueprints {
    /// Protects the map; held for one look-up.
    loaded: Mutex<BTreeMap<String, (i64, Arc<Loaded>)>>,
}

impl Blueprints {
    /// The blueprint of an Installation.
    pub(super) fn load(&self, of: &Installation) -> Step<Arc<Loaded>> {
        let uid = of.uid().unwrap_or_default();
        let generation = of.metadata.generation.unwrap_or_default();
        if let Some((at, loaded)) = self.lock().get(&uid)
            && *at == generation
        {
            return Ok(Arc::clone(loaded));
        }
        let loaded = Arc::new(parse(of)?);
        self.lock().insert(uid, (generation, Arc::clone(&loaded)));
        Ok(loaded)
    }

    /// The job of an Installation has ended.
    pub(super) fn forget(&self, of: &Installation) {
        self.lock().remove(&of.uid().unwrap_or_default());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (i64, Arc<Loaded>)>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parse(of: &Installation) -> Step<Loaded> {
    let stall = |reason: &str, message: String| {
        Halt::Stall(Failure::new("ReadBlueprint", reason, message).with_code(Code::ConfigurationProblem))
    };
    let Some(inline) = &of.spec.blueprint.inline else {
        return Err(stall(
            "BlueprintNotInline",
            "spec.blueprint has no inline.filesystem; blueprints from component versions are not supported yet, write the \
             blueprint's files into spec.blueprint.inline.filesystem"
                .to_owned(),
        ));
    };
    let files = FileSystem::parse(&inline.filesystem).map_err(|error| stall("InvalidBlueprint", error.to_string()))?;
    let blueprint = Blueprint::parse(&files).map_err(|error| stall("InvalidBlueprint", error.to_string()))?;
    Ok(Loaded { blueprint, files: Arc::new(files) })
}
