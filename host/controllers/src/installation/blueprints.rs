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
    port::Surroundings,
    step::{Halt, Step},
};
use orangery_render::Definitions;
use serde_json::Value;

use crate::host::Host;

/// A blueprint, and what its templates see and may reach.
pub(crate) struct Loaded {
    pub(crate) blueprint: Blueprint,
    pub(crate) surroundings: Surroundings,
    pub(crate) definitions: Definitions,
}

/// The blueprints of the running jobs, by uid of the Installation.
#[derive(Default)]
pub(crate) struct Blueprints {
    /// Protects the map; held for one look-up.
    loaded: Mutex<BTreeMap<String, Kept>>,
}

/// A blueprint of one job, as the spec had it at a generation.
struct Kept {
    job: String,
    generation: i64,
    loaded: Arc<Loaded>,
}

impl Blueprints {
    /// The blueprint of an Installation in a job.
    pub(super) fn load(&self, host: &Host, of: &Installation, job: &str) -> Step<Arc<Loaded>> {
        let uid = of.uid().unwrap_or_default();
        let generation = of.metadata.generation.unwrap_or_default();
        if let Some(kept) = self.lock().get(&uid)
            && (kept.generation, kept.job.as_str()) == (generation, job)
        {
            return Ok(Arc::clone(&kept.loaded));
        }
        let loaded = Arc::new(parse(host, of, job)?);
        self.lock().insert(uid, Kept { job: job.to_owned(), generation, loaded: Arc::clone(&loaded) });
        Ok(loaded)
    }

    /// The job of an Installation has ended.
    pub(super) fn forget(&self, of: &Installation) {
        self.lock().remove(&of.uid().unwrap_or_default());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Kept>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parse(host: &Host, of: &Installation, job: &str) -> Step<Loaded> {
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
    let surroundings = Surroundings { chance: host.key.of_job(of, job), ..Surroundings::of_files(Arc::new(files)) };
    Ok(Loaded { blueprint, surroundings, definitions: definitions(of) })
}

/// What templates see of the Installation itself (`landscaper.md` §4.3).
fn definitions(of: &Installation) -> Definitions {
    let json = |value: serde_json::Result<Value>| value.unwrap_or_default();
    Definitions {
        blueprint: json(serde_json::to_value(&of.spec.blueprint)),
        component_descriptor: of.spec.component_descriptor.as_ref().map(|source| json(serde_json::to_value(source))),
        descriptor: Value::Null,
        components: Value::Array(Vec::new()),
    }
}
