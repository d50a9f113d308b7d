//! Blueprints, parsed once for each job of an Installation (INS-83).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use orangery_api::installation::Installation;
use orangery_blueprint::{BUNDLED_ENGINE, FILE, template_engine::Kubeconfigs};
use orangery_core::{memory, name::JobId, step::Step};
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

/// The most memory, in bytes, that the blueprints of running jobs take that are kept. Those that were not asked for longest leave,
/// and are opened again when their Installation is called (C-131).
const MOST_BLUEPRINT_BYTES: u64 = 32 << 20;

/// The blueprints of the running jobs.
#[derive(Default)]
pub(in crate::installation) struct Blueprints {
    /// Protects them; held for one look-up.
    cached: Mutex<CachedBlueprints>,
}

#[derive(Default)]
struct CachedBlueprints {
    /// Counts the look-ups, for the order of use.
    tick: u64,
    /// What all take that are in memory, in bytes.
    bytes: u64,
    /// By uid of the Installation.
    by_uid: BTreeMap<String, CachedBlueprint>,
}

/// A blueprint of one job, as the spec had it at a generation.
struct CachedBlueprint {
    job: JobId,
    generation: i64,
    /// What counted when it was opened: by its keys it was verified.
    policy: Arc<EffectivePolicy>,
    /// `None` where it had to leave.
    loaded: Option<Arc<LoadedBlueprint>>,
    /// Whose signature held.
    origin: Option<SignedOrigin>,
    /// What was issued in this job stays the same, also where the blueprint is opened again.
    kubeconfigs: Arc<TargetKubeconfigs>,
    bytes: u64,
    used: u64,
}

impl CachedBlueprints {
    /// Keeps a blueprint, and nothing older of its Installation; those beyond the limit leave.
    fn put(&mut self, uid: &str, blueprint: CachedBlueprint) {
        self.remove(uid);
        self.tick += 1;
        self.bytes += blueprint.bytes;
        self.by_uid.insert(uid.to_owned(), CachedBlueprint { used: self.tick, ..blueprint });
        while self.bytes > MOST_BLUEPRINT_BYTES {
            let in_memory = self.by_uid.values_mut().filter(|one| one.loaded.is_some());
            let Some(oldest) = in_memory.min_by_key(|one| one.used) else { break };
            oldest.loaded = None;
            self.bytes -= std::mem::take(&mut oldest.bytes);
        }
    }

    fn remove(&mut self, uid: &str) {
        self.bytes -= self.by_uid.remove(uid).map_or(0, |removed| removed.bytes);
    }
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
        let (kept, kubeconfigs) = self.kept(uid, (generation, job, &policy)).unzip();
        if let Some(loaded) = kept.flatten() {
            check_templates(host, of, &loaded)?;
            return Ok(loaded);
        }
        let kubeconfigs = kubeconfigs.unwrap_or_else(|| Arc::new(TargetKubeconfigs::new(host, Key::of(of))));
        let OpenedBlueprint { loaded, origin, bytes } = open(host, of, job, &kubeconfigs).await?;
        let loaded = Arc::new(loaded);
        check_templates(host, of, &loaded)?;
        let (job, kept) = (job.clone(), Some(Arc::clone(&loaded)));
        let kept = CachedBlueprint { job, generation, policy, loaded: kept, origin, kubeconfigs, bytes, used: 0 };
        self.lock().put(uid, kept);
        Ok(loaded)
    }

    /// The blueprint of a job, where it is in memory, and what was issued for it.
    fn kept(
        &self,
        uid: &str,
        of: (i64, &JobId, &Arc<EffectivePolicy>),
    ) -> Option<(Option<Arc<LoadedBlueprint>>, Arc<TargetKubeconfigs>)> {
        let mut cached = self.lock();
        cached.tick += 1;
        let tick = cached.tick;
        let kept = cached.by_uid.get_mut(uid).filter(|kept| (kept.generation, &kept.job, &kept.policy) == of)?;
        kept.used = tick;
        Some((kept.loaded.clone(), Arc::clone(&kept.kubeconfigs)))
    }

    /// Whose signature covers the blueprint that was loaded last for an Installation.
    pub(in crate::installation) fn origin(&self, of: &Installation) -> Option<SignedOrigin> {
        self.lock().by_uid.get(uid_of(of))?.origin.clone()
    }

    /// Whether a policy has refused a credential that a template of an Installation wanted in its job.
    pub(in crate::installation) fn has_refused_credentials(&self, of: &Installation) -> bool {
        self.lock().by_uid.get(uid_of(of)).is_some_and(|kept| kept.kubeconfigs.is_refused())
    }

    /// The job of an Installation has ended.
    pub(in crate::installation) fn forget(&self, of: &Installation) {
        self.lock().remove(uid_of(of));
    }

    fn lock(&self) -> MutexGuard<'_, CachedBlueprints> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the policy of the namespace allows the templates, before any of them is rendered.
fn check_templates(host: &ControllerContext, of: &Installation, loaded: &LoadedBlueprint) -> Step<()> {
    let namespace = Key::of(of).namespace;
    let policy = host.policies.of(&namespace)?;
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
                let Some(engine) = host.plugins.template_engine(engine, Some(&namespace)) else { continue };
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

/// A blueprint that was opened.
struct OpenedBlueprint {
    loaded: LoadedBlueprint,
    /// Whose signature held.
    origin: Option<SignedOrigin>,
    /// What it takes, in bytes.
    bytes: u64,
}

async fn open(
    host: &Arc<ControllerContext>,
    of: &Installation,
    job: &JobId,
    kubeconfigs: &Arc<TargetKubeconfigs>,
) -> Step<OpenedBlueprint> {
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
        kubeconfigs: Arc::clone(kubeconfigs) as Arc<dyn Kubeconfigs>,
        rng: host.key.of_job(of, job),
    };
    let spec = serde_json::to_value(&of.spec.blueprint).unwrap_or_default();
    let text = files.read(FILE).map_or(0, |text| text.len() as u64);
    // Files that are written out, their form for templates, and what is read from them.
    let bytes = memory::of(&spec).saturating_mul(2).saturating_add(text);
    let loaded = LoadedBlueprint::new(files, spec, opened, reach).map_err(|error| load_halt(&error))?;
    let bytes = bytes.saturating_add(loaded.blueprint.memory());
    Ok(OpenedBlueprint { loaded, origin, bytes })
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
        assert_eq!(blueprints.lock().by_uid.len(), 1, "what is older is not kept");
        blueprints.forget(&installation(2));
        let cached = blueprints.lock();
        assert_eq!((cached.by_uid.len(), cached.bytes), (0, 0), "the job has ended");
    }

    #[tokio::test]
    async fn c_131_limits_blueprints_of_running_jobs_share_a_memory_and_those_beyond_are_opened_again() {
        let (host, blueprints) = (host(), Blueprints::default());
        let long = |uid: usize| {
            let mut installation = installation(1);
            installation.metadata.uid = Some(uid.to_string());
            let files = &mut installation.spec.blueprint.inline.as_mut().unwrap().filesystem;
            files["long"] = json!("x".repeat(1 << 20));
            installation
        };
        let load = async |uid: usize| blueprints.load(&host, &long(uid), &"one".into()).await.unwrap();
        let mut loaded = Vec::new();
        for uid in 0..15 {
            loaded.push(load(uid).await);
        }
        assert!(Arc::ptr_eq(&load(0).await, &loaded[0]), "15 of 2 MiB have room");
        for uid in 15..40 {
            load(uid).await;
        }
        assert!(blueprints.lock().bytes <= MOST_BLUEPRINT_BYTES);
        let kubeconfigs = |uid: &str| Arc::clone(&blueprints.lock().by_uid[uid].kubeconfigs);
        let before = kubeconfigs("0");
        assert!(!Arc::ptr_eq(&load(0).await, &loaded[0]), "it was opened again");
        assert!(Arc::ptr_eq(&kubeconfigs("0"), &before), "and what was issued for it stays");
        (0..40).for_each(|uid| blueprints.forget(&long(uid)));
        assert_eq!(blueprints.lock().bytes, 0);
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
