//! One call for one Plugin: gather, decide, apply, and one write of the status.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use orangery_api::{
    annotation::GUARD,
    marks::Marks as _,
    plugin::{Plugin, PluginContent, PluginStatus},
};
use orangery_blueprint::plugins::{ClaimTerms, ClaimedType, PluginInstallation, PluginInstaller};
use orangery_core::{
    condition::PluginReport,
    digest,
    error::{Code, Failure, Fault},
    plan::plugin::{ClaimRank, PluginFacts, PluginStep, step},
    step::{Halt, Step},
};
use serde_json::{Value, json};

use super::{
    candidate_memory::CandidateMemory,
    source::{FetchTerms, FetchedContent, fetch, halted, stalled},
    status::{LoadedVersion, status, write},
};
use crate::{controller_context::ControllerContext, object::message_of};

/// After how long what only another content of a registry mends is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(5 * 60);

/// As much of a digest as people compare.
const SHORT_DIGEST: usize = "sha256:".len() + 12;

/// What this process knows of a Plugin from the calls before.
#[derive(Clone, Debug, Default)]
pub(super) struct PluginMemory {
    /// The version in use.
    pub(super) loaded: Option<LoadedVersion>,
    /// The generation that was loaded or tried last.
    pub(super) tried: Option<i64>,
    /// Whether its source may have something else, or the last load has failed.
    pub(super) pending: bool,
    /// Why the last load has failed, where it has.
    pub(super) failed: Option<Halt>,
    pub(super) candidate: CandidateMemory,
}

/// Why a call is made; of several the last one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PluginCallCause {
    /// Its items, or those who claim its types, are others.
    Items,
    /// Its source may have something else.
    Source,
    /// It has changed, or is new.
    Change,
}

/// What a call ends with.
pub(super) struct CallOutcome {
    pub(super) memory: PluginMemory,
    pub(super) look: NextLook,
    /// Whether it serves other types than before, or with another component.
    pub(super) changed: bool,
}

/// When a Plugin is looked at again, a change apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextLook {
    /// When it was said to be the last time.
    AsBefore,
    /// Not before it changes.
    OnChange,
    /// Soon, later with each failure in a row.
    Backoff,
    /// After this long, when its source is asked again.
    After(Duration),
}

/// One call for a Plugin. What it answers is for the next one.
pub(super) async fn reconcile(
    host: &Arc<ControllerContext>,
    plugin: &Plugin,
    mut memory: PluginMemory,
    cause: PluginCallCause,
) -> CallOutcome {
    let Some(installer) = host.plugins.installer() else {
        return CallOutcome { memory, look: NextLook::OnChange, changed: false };
    };
    memory.pending |= cause == PluginCallCause::Source;
    let name = plugin.name_any();
    let call = PluginCall { host, installer, plugin, name, memory };
    call.carry_out(cause).await
}

/// Claims the types of a Plugin that is not loaded: whoever is of them waits for it.
pub(super) fn announce(host: &ControllerContext, plugin: &Plugin, why: Fault) {
    let (Some(installer), Some(name)) = (host.plugins.installer(), &plugin.metadata.name) else { return };
    let registration = plugin.spec.registration(plugin.spec.version.as_deref().unwrap_or("unknown"));
    // What cannot be registered claims nothing, and is told so by its first call.
    if installer.announce(name, &registration, why, terms(plugin)).is_ok() {
        let types = installer.claimed(name).into_iter().map(|(claimed, _)| claimed).collect();
        host.served_types.tell(&types);
    }
}

pub(super) struct PluginCall<'a> {
    pub(super) host: &'a Arc<ControllerContext>,
    pub(super) installer: &'a dyn PluginInstaller,
    pub(super) plugin: &'a Plugin,
    pub(super) name: String,
    pub(super) memory: PluginMemory,
}

impl PluginCall<'_> {
    async fn carry_out(mut self, cause: PluginCallCause) -> CallOutcome {
        let before = (self.installer.claimed(&self.name), self.digest());
        self.installer.arrange(&self.name, terms(self.plugin));
        let next = step(self.facts());
        // What has failed is not tried again because items come and go.
        if cause == PluginCallCause::Items && next != PluginStep::LetGo {
            let (report, look) = (self.report(self.memory.failed.clone()), NextLook::AsBefore);
            return self.end_call(&report, look, &before).await;
        }
        let loads = matches!(next, PluginStep::LoadNow | PluginStep::LoadRecorded);
        let done = match next {
            PluginStep::Rest => {
                self.adopt();
                Ok(())
            }
            PluginStep::Guard => self.write_finalizers(true).await,
            PluginStep::LetGo => {
                self.installer.remove(&self.name);
                self.host.candidates.remove(&self.name);
                self.memory.loaded = None;
                self.write_finalizers(false).await
            }
            PluginStep::LoadNow => self.load(false).await,
            PluginStep::LoadRecorded => self.load(true).await,
        };
        if loads {
            self.memory.tried = Some(self.generation());
            self.memory.pending = done.is_err();
            self.memory.failed = done.as_ref().err().cloned();
        }
        if matches!(next, PluginStep::Guard | PluginStep::LetGo) {
            if done.is_err() {
                let report = self.report(done.err());
                return self.end_call(&report, NextLook::Backoff, &before).await;
            }
            // The watch calls again with what was written.
            let changed = self.tell_served(&before);
            return CallOutcome { memory: self.memory, look: NextLook::OnChange, changed };
        }
        self.try_candidate(cause).await;
        let look = self.next_look(done.as_ref().err());
        let report = self.report(done.err());
        self.end_call(&report, look, &before).await
    }

    /// The end of a call: whoever waits for a type is called, and its owner is told.
    async fn end_call(
        self,
        report: &PluginReport,
        look: NextLook,
        before: &(Vec<ClaimedType>, Option<String>),
    ) -> CallOutcome {
        let changed = self.tell_served(before);
        let told = self.status(report);
        let written = write(self.host, self.plugin, &told).await;
        let look = match &written {
            Ok(()) => look,
            Err(error) => {
                tracing::warn!(plugin = self.name, error = message_of(error), "the status of a Plugin is not written");
                NextLook::Backoff
            }
        };
        CallOutcome { memory: self.memory, look, changed }
    }

    /// The digest of the component in use.
    pub(super) fn digest(&self) -> Option<String> {
        self.memory.loaded.as_ref().map(|loaded| loaded.interfaces.digest.clone())
    }

    pub(super) fn generation(&self) -> i64 {
        self.plugin.metadata.generation.unwrap_or(0)
    }

    fn known_status(&self) -> PluginStatus {
        self.plugin.status.clone().unwrap_or_default()
    }

    fn facts(&self) -> PluginFacts {
        let (status, generation) = (self.known_status(), self.generation());
        let recorded = status.loaded_generation == Some(generation) && status.digest.is_some();
        let is_new = self.memory.tried.map_or(!recorded, |tried| tried != generation);
        PluginFacts {
            deleting: self.plugin.metadata.deletion_timestamp.is_some(),
            held: self.plugin.has_finalizer(GUARD),
            guards: self.host.guards,
            in_use: self.served_items() > 0,
            suspended: self.plugin.spec.suspend,
            loaded: self.memory.loaded.is_some(),
            asked: is_new || self.memory.pending,
            recorded,
        }
    }

    /// What stays in use for a spec that changes nothing stays so after a restart.
    fn adopt(&mut self) {
        let (generation, meta) = (self.generation(), &self.plugin.metadata);
        if let Some(loaded) = &mut self.memory.loaded
            && (self.plugin.spec.suspend || meta.deletion_timestamp.is_some())
        {
            loaded.generation = generation;
        }
    }

    /// How many deploy items it serves, and would leave without a deployer.
    fn served_items(&self) -> u32 {
        let items = &self.host.served_types.items;
        let count = |(claimed, _): &ClaimedType| {
            items.count(claimed, |namespace| self.installer.serves(&self.name, claimed, namespace))
        };
        self.installer.claimed(&self.name).iter().map(count).fold(0, u32::saturating_add)
    }

    /// Fetches it, compiles it, and puts it in the place of the version before, which stays where any of that fails.
    async fn load(&mut self, recorded: bool) -> Step<()> {
        self.plugin.spec.check().map_err(|why| stalled("InvalidSpec", why))?;
        if self.memory.loaded.is_none() {
            let registration = self.plugin.spec.registration(self.plugin.spec.version.as_deref().unwrap_or("unknown"));
            let why = not_loaded(&self.name);
            let announced = self.installer.announce(&self.name, &registration, why, terms(self.plugin));
            announced.map_err(|fault| halted("InvalidSpec", &fault))?;
        }
        let (known, generation) = (self.known_status(), self.generation());
        let in_use = self.memory.loaded.as_ref().filter(|loaded| loaded.generation == generation);
        let in_use = in_use.and_then(|loaded| loaded.artifact.as_ref()).map(|(_, artifact)| artifact.as_str());
        let fetch_terms = FetchTerms { name: &self.name, spec: &self.plugin.spec, status: &known, recorded, in_use };
        let FetchedContent { bytes, artifact, tag } = fetch(self.host, fetch_terms).await?;
        let Some(content) = bytes else { return Ok(()) };
        let version = version_of(&self.plugin.spec, tag, &content);
        let installation = PluginInstallation {
            plugin: self.name.clone(),
            registration: self.plugin.spec.registration(&version),
            content,
            is_pinned: self.plugin.spec.is_pinned(),
        };
        let installed = self.installer.install(installation, terms(self.plugin)).await;
        let interfaces = installed.map_err(|fault| halted("NotUsable", &fault))?;
        tracing::info!(plugin = self.name, version, digest = interfaces.digest, "a Plugin is in use from now on");
        self.memory.loaded = Some(LoadedVersion { version, generation, artifact, interfaces });
        Ok(())
    }

    async fn write_finalizers(&self, held: bool) -> Step<()> {
        let others = self.plugin.metadata.finalizers.iter().flatten().filter(|name| *name != GUARD).cloned();
        let finalizers: Vec<String> = others.chain(held.then(|| GUARD.to_owned())).collect();
        let label = held.then_some("true");
        let metadata = json!({
            "resourceVersion": self.plugin.metadata.resource_version,
            "finalizers": finalizers,
            "labels": {(GUARD): label},
        });
        let patch: Patch<Value> = Patch::Merge(json!({"metadata": metadata}));
        let api: Api<Plugin> = Api::all(self.host.client.clone());
        match api.patch(&self.name, &PatchParams::default(), &patch).await {
            // It has changed meanwhile, or is gone: its watch calls again.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(error) => {
                let message = format!("the finalizer of the Plugin cannot be written: {}", message_of(&error));
                Err(Halt::Retry(Failure::new("GuardPlugin", "WriteFailed", message)))
            }
            Ok(_) => Ok(()),
        }
    }

    /// Those that wait for a deployer of a type are called where another one serves it. Whether that is so.
    fn tell_served(&self, before: &(Vec<ClaimedType>, Option<String>)) -> bool {
        let after = (self.installer.claimed(&self.name), self.digest());
        let changed = after != *before;
        if changed {
            let types: BTreeSet<String> = before.0.iter().chain(&after.0).map(|(claimed, _)| claimed.clone()).collect();
            self.host.served_types.tell(&types);
        }
        changed
    }

    fn next_look(&self, failed: Option<&Halt>) -> NextLook {
        let interval = self.plugin.spec.source.oci.as_ref().and_then(|oci| oci.interval().ok().flatten());
        match failed {
            Some(Halt::Retry(_) | Halt::Wait(_)) => NextLook::Backoff,
            Some(Halt::Stall(_)) => NextLook::After(LOOK_AGAIN),
            None => match interval.filter(|_| !self.plugin.spec.suspend) {
                Some(interval) => NextLook::After(interval),
                None if self.candidate_fails() => NextLook::After(LOOK_AGAIN),
                None => NextLook::OnChange,
            },
        }
    }

    fn report(&self, failed: Option<Halt>) -> PluginReport {
        let stays = self.memory.loaded.as_ref().map(|loaded| format!("; version {} stays in use", loaded.version));
        let with_what_stays = |mut failure: Failure| {
            failure.message.extend(stays.clone());
            failure
        };
        match failed {
            Some(Halt::Stall(failure)) => return PluginReport::Stalled(with_what_stays(failure)),
            Some(Halt::Retry(failure)) => return PluginReport::Retrying(with_what_stays(failure)),
            Some(Halt::Wait(_)) => return PluginReport::Progressing("it waits".to_owned()),
            None => {}
        }
        if self.plugin.metadata.deletion_timestamp.is_some() {
            let items = self.served_items();
            return PluginReport::Progressing(format!(
                "it is deleted as soon as no deploy item is of its types that nobody else serves; there are {items}"
            ));
        }
        let suspended = self.plugin.spec.suspend;
        match &self.memory.loaded {
            None => PluginReport::Suspended("it is suspended, and no version of it is in use".to_owned()),
            Some(LoadedVersion { version, .. }) if suspended => {
                PluginReport::Suspended(format!("it is suspended; version {version} stays in use"))
            }
            Some(LoadedVersion { version, .. }) => PluginReport::Ready(self.in_use(version)),
        }
    }

    fn in_use(&self, version: &str) -> String {
        let taken = self.installer.claimed(&self.name).into_iter().filter_map(|(claimed, by)| Some((claimed, by?)));
        let taken: Vec<String> = taken.map(|(claimed, by)| format!("{claimed} is served by {by}")).collect();
        match taken.as_slice() {
            [] => format!("version {version} is in use"),
            taken => {
                format!("version {version} is in use, but {}, which comes first; see spec.priority", taken.join(", "))
            }
        }
    }

    fn status(&self, report: &PluginReport) -> PluginStatus {
        let claimed = (self.installer.claimed(&self.name), self.served_items());
        let of = (report, self.generation());
        let told = status(&self.known_status(), of, self.memory.loaded.as_ref(), claimed, &self.host.now());
        PluginStatus { candidate: self.candidate_status(), ..told }
    }
}

/// The version of a component, for people.
pub(super) fn version_of(spec: &PluginContent, tag: Option<String>, content: &[u8]) -> String {
    spec.version.clone().or(tag).unwrap_or_else(|| {
        // A digest is ASCII, so that every length is a boundary.
        digest::sha256(content).chars().take(SHORT_DIGEST).collect()
    })
}

/// What a call of a component is told that is not there yet.
pub(super) fn not_loaded(name: &str) -> Fault {
    let message = format!("the Plugin {name} is not loaded yet; kubectl describe plugin {name} says why");
    Fault::later(Code::Unfinished, message)
}

/// For whom a Plugin is, and how it stands among others.
fn terms(plugin: &Plugin) -> ClaimTerms {
    let (meta, spec) = (&plugin.metadata, &plugin.spec);
    let created = meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |created| created.0);
    let name = plugin.name_any();
    let patterns = spec.namespaces.iter().map(|pattern| pattern.as_str().to_owned()).collect();
    let rank = ClaimRank::of_installed(meta.deletion_timestamp.is_some(), spec.priority, created, &name);
    ClaimTerms { patterns, rank }
}
