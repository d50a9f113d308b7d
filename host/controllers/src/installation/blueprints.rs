//! Blueprints, parsed once for each job of an Installation (INS-83).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use kube::ResourceExt;
use orangery_api::installation::Installation;
use orangery_core::{
    blueprint::{Blueprint, FileSystem},
    component::{ComponentVersion, ResourceReference, Schema, list as component_list},
    error::{Code, Failure},
    port::{Components, Files, Nothing, Surroundings},
    step::{Halt, Step},
};
use orangery_reconcile::Key;
use orangery_render::Definitions;
use serde_json::Value;

use super::{
    artifacts::ContextArtifacts,
    component::{self, Opened},
    kubeconfigs::TargetKubeconfigs,
};
use crate::host::Host;

/// A blueprint, and what its templates see and may reach.
pub(crate) struct Loaded {
    pub(crate) blueprint: Blueprint,
    pub(crate) surroundings: Surroundings,
    pub(crate) definitions: Definitions,
    /// The component version that it belongs to.
    pub(crate) component: Option<Arc<dyn ComponentVersion>>,
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
    pub(super) async fn load(&self, host: &Arc<Host>, of: &Installation, job: &str) -> Step<Arc<Loaded>> {
        let uid = of.uid().unwrap_or_default();
        let generation = of.metadata.generation.unwrap_or_default();
        if let Some(kept) = self.lock().get(&uid)
            && (kept.generation, kept.job.as_str()) == (generation, job)
        {
            return Ok(Arc::clone(&kept.loaded));
        }
        let loaded = Arc::new(open(host, of, job).await?);
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

async fn open(host: &Arc<Host>, of: &Installation, job: &str) -> Step<Loaded> {
    let opened = component::open(host, of).await?;
    let component = opened.as_ref().map(|opened| Arc::clone(&opened.version));
    let files = files(of, component.as_deref()).await?;
    let blueprint = Blueprint::parse(files.as_ref()).map_err(|error| stall("InvalidBlueprint", error.to_string()))?;
    let namespace = of.namespace().unwrap_or_default();
    let context = Key { namespace: namespace.clone(), name: of.spec.context.clone() };
    let kubeconfigs = TargetKubeconfigs::new(host, namespace, &of.name_any());
    let surroundings = Surroundings {
        components: component
            .clone()
            .map_or_else(|| Arc::new(Nothing) as Arc<dyn Components>, ComponentVersion::templates),
        artifacts: Arc::new(ContextArtifacts::new(host, context)),
        kubeconfigs: Arc::new(kubeconfigs),
        chance: host.key.of_job(of, job),
        ..Surroundings::of_files(files)
    };
    let definitions = definitions(of, &blueprint, opened.as_ref())?;
    Ok(Loaded { blueprint, surroundings, definitions, component })
}

/// The files of the blueprint: written out, or a resource of the component version.
async fn files(of: &Installation, component: Option<&dyn ComponentVersion>) -> Step<Arc<dyn Files>> {
    match (&of.spec.blueprint.inline, &of.spec.blueprint.reference, component) {
        (Some(inline), None, _) => {
            let files = FileSystem::parse(&inline.filesystem);
            Ok(Arc::new(files.map_err(|error| stall("InvalidBlueprint", error.to_string()))?))
        }
        (None, Some(reference), Some(component)) => {
            let resource = ResourceReference::named(&reference.resource_name);
            component.blueprint(&resource).await.map_err(|fault| component::halt(&fault))
        }
        (None, Some(reference), None) => Err(stall(
            "NoComponentDescriptor",
            format!(
                "spec.blueprint.ref names the resource {:?}, but the installation has no component version to find it in; set spec.componentDescriptor",
                reference.resource_name
            ),
        )),
        (None, None, _) | (Some(_), Some(_), _) => {
            Err(stall("InvalidBlueprint", "spec.blueprint needs exactly one of ref and inline".to_owned()))
        }
    }
}

fn stall(reason: &str, message: String) -> Halt {
    Halt::Stall(Failure::new("ReadBlueprint", reason, message).with_code(Code::ConfigurationProblem))
}

/// The annotation of a blueprint that chooses the schema of descriptors.
const SCHEMA: &str = "ocmSchemaVersion";

/// What templates see of the Installation itself (`landscaper.md` §4.3, §4.4).
fn definitions(of: &Installation, blueprint: &Blueprint, opened: Option<&Opened>) -> Step<Definitions> {
    let json = |value: serde_json::Result<Value>| value.unwrap_or_default();
    let schema = match blueprint.annotations.get(SCHEMA) {
        Some(name) => Some(Schema::named(name).ok_or_else(|| {
            let message = format!(
                "the annotation {SCHEMA} of the blueprint is {name:?}; known are {} and {}",
                Schema::V2.name(),
                Schema::V3Alpha1.name()
            );
            stall("InvalidBlueprint", message)
        })?),
        None => opened.map(|opened| opened.version.schema()),
    };
    let descriptors = opened.zip(schema).map(|(opened, schema)| {
        let all = opened.version.descriptors().iter().map(Arc::as_ref);
        (opened.version.descriptor().render(schema), component_list(all, schema))
    });
    let (descriptor, components) = descriptors.unwrap_or((Value::Null, Value::Null));
    Ok(Definitions {
        blueprint: json(serde_json::to_value(&of.spec.blueprint)),
        component_descriptor: opened.map(|opened| json(serde_json::to_value(&opened.source))),
        descriptor,
        components,
    })
}
