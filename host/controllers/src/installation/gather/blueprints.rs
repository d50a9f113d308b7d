//! Blueprints, parsed once for each job of an Installation (INS-83).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use orangery_api::installation::Installation;
use orangery_blueprint::BUNDLED_ENGINE;
use orangery_core::{name::JobId, step::Step};
use orangery_policy::{EffectivePolicy, PolicyRequest, PolicySubject};
use orangery_reconcile::Key;
use orangery_render::{BlueprintSource, LoadedBlueprint, TemplateAccess};

use super::kubeconfigs::TargetKubeconfigs;
use crate::{
    artifacts::ContextArtifacts,
    component::{self, InstallationComponent, load_halt},
    controller_context::ControllerContext,
    namespace_policy::refused,
    object::{generation_of, uid_of},
    signed_origin::SignedOrigin,
};

/// The blueprints of the running jobs, by uid of the Installation.
#[derive(Default)]
pub(in crate::installation) struct Blueprints {
    /// Protects the map; held for one look-up.
    loaded: Mutex<BTreeMap<String, CachedBlueprint>>,
}

/// A blueprint of one job, as the spec had it at a generation.
struct CachedBlueprint {
    job: JobId,
    generation: i64,
    /// What counted when it was opened: by its keys it was verified.
    policy: Arc<EffectivePolicy>,
    loaded: Arc<LoadedBlueprint>,
    /// Whose signature held.
    origin: Option<SignedOrigin>,
}

impl Blueprints {
    /// The blueprint of an Installation in a job.
    pub(in crate::installation) async fn load(
        &self,
        host: &Arc<ControllerContext>,
        of: &Installation,
        job: &JobId,
    ) -> Step<Arc<LoadedBlueprint>> {
        let (uid, generation) = (uid_of(of), generation_of(of));
        let policy = host.policies.of(&Key::of(of).namespace)?;
        component::check_source(&policy, of)?;
        if let Some(kept) = self.lock().get(uid)
            && (kept.generation, &kept.job, &kept.policy) == (generation, job, &policy)
        {
            check_templates(host, of, &kept.loaded)?;
            return Ok(Arc::clone(&kept.loaded));
        }
        let (loaded, origin) = open(host, of, job).await?;
        let loaded = Arc::new(loaded);
        check_templates(host, of, &loaded)?;
        let kept = CachedBlueprint { job: job.clone(), generation, policy, loaded: Arc::clone(&loaded), origin };
        self.lock().insert(uid.to_owned(), kept);
        Ok(loaded)
    }

    /// Whose signature covers the blueprint that was loaded last for an Installation.
    pub(in crate::installation) fn origin(&self, of: &Installation) -> Option<SignedOrigin> {
        self.lock().get(uid_of(of))?.origin.clone()
    }

    /// The job of an Installation has ended.
    pub(in crate::installation) fn forget(&self, of: &Installation) {
        self.lock().remove(uid_of(of));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, CachedBlueprint>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the policy of the namespace allows the templates, before any of them is rendered.
fn check_templates(host: &ControllerContext, of: &Installation, loaded: &LoadedBlueprint) -> Step<()> {
    let policy = host.policies.of(&Key::of(of).namespace)?;
    let blueprint = &loaded.blueprint;
    let lists = [
        &blueprint.import_executions,
        &blueprint.deploy_executions,
        &blueprint.export_executions,
        &blueprint.subinstallation_executions,
    ];
    for execution in lists.into_iter().flatten() {
        let allowed =
            |request| policy.check(PolicySubject::Installation, request).map_err(|violation| refused(&violation));
        match execution.engine.as_str() {
            BUNDLED_ENGINE => {
                allowed(PolicyRequest::BlueprintComponent)?;
                let mib = host.plugins.bundled_memory_mib();
                allowed(PolicyRequest::PluginMemory { plugin: BUNDLED_ENGINE, mib })?;
            }
            engine => {
                allowed(PolicyRequest::Template(engine))?;
                let Some(engine) = host.plugins.template_engine(engine) else { continue };
                let identity = engine.identity();
                allowed(PolicyRequest::PluginMemory { plugin: &identity.name, mib: engine.memory_mib() })?;
                if !identity.is_pinned {
                    allowed(PolicyRequest::UnpinnedPlugin(&identity.name))?;
                }
            }
        }
    }
    Ok(())
}

async fn open(
    host: &Arc<ControllerContext>,
    of: &Installation,
    job: &JobId,
) -> Step<(LoadedBlueprint, Option<SignedOrigin>)> {
    let (opened, origin) = match component::open(host, of).await? {
        Some(InstallationComponent { opened, origin }) => (Some(opened), origin),
        None => (None, None),
    };
    let source = BlueprintSource {
        inline: of.spec.blueprint.inline.as_ref().map(|inline| &inline.filesystem),
        resource: of.spec.blueprint.reference.as_ref().map(|reference| reference.resource_name.as_str()),
    };
    let version = opened.as_ref().map(|opened| opened.version.as_ref());
    let files = orangery_render::files(source, version).await.map_err(|error| load_halt(&error))?;
    let context = Key { namespace: Key::of(of).namespace, name: of.spec.context.clone().into() };
    let reach = TemplateAccess {
        namespace: Key::of(of).namespace,
        artifacts: Arc::new(ContextArtifacts::new(host, context)),
        kubeconfigs: Arc::new(TargetKubeconfigs::new(host, Arc::new(of.clone()))),
        rng: host.key.of_job(of, job),
    };
    let spec = serde_json::to_value(&of.spec.blueprint).unwrap_or_default();
    let loaded = LoadedBlueprint::new(files, spec, opened, reach).map_err(|error| load_halt(&error))?;
    Ok((loaded, origin))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use orangery_policy::Policy;

    use super::*;
    use crate::controller_context::tests::host;

    fn installation(generation: i64) -> Installation {
        let files = json!({"blueprint.yaml": "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Blueprint\n"});
        serde_json::from_value(json!({
            "metadata": {"name": "x", "namespace": "n", "uid": "u", "generation": generation},
            "spec": {"blueprint": {"inline": {"filesystem": files}}},
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn ins_83_a_blueprint_is_read_once_for_a_job_and_a_generation() {
        let (host, blueprints) = (host(), Blueprints::default());
        let first = blueprints.load(&host, &installation(1), &"one".into()).await.unwrap();
        let same = async |generation: i64, job: &str| {
            Arc::ptr_eq(&blueprints.load(&host, &installation(generation), &job.into()).await.unwrap(), &first)
        };
        assert!(same(1, "one").await);
        assert!(!same(2, "one").await, "the spec changed");
        assert!(!same(2, "two").await, "another job");
        assert_eq!(blueprints.lock().len(), 1, "what is older is not kept");
        blueprints.forget(&installation(2));
        assert!(blueprints.lock().is_empty(), "the job has ended");
    }

    #[tokio::test]
    async fn c_47_a_blueprint_without_a_signature_is_refused_also_where_it_was_read_before() {
        let (host, blueprints) = (host(), Blueprints::default());
        blueprints.load(&host, &installation(1), &"one".into()).await.unwrap();
        let spec = json!({"namespaces": {"names": ["n"]}, "signatures": {"required": true}});
        host.policies.put_policy("p".to_owned(), Policy::read("p", &spec));
        let refused = blueprints.load(&host, &installation(1), &"one".into()).await.err().unwrap();
        let told = refused.failure().unwrap().message.clone();
        assert!(told.contains("is refused by NamespacePolicy p, line spec.signatures.required"), "{told}");
    }
}
