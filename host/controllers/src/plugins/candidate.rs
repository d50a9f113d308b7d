//! The candidate of a Plugin: fetched, compiled and put beside the version in use (C-344).

use orangery_api::plugin::{CandidateStatus, PluginContent, PluginStatus};
use orangery_blueprint::plugins::PluginInstallation;
use orangery_core::step::{Halt, Step};

use super::{
    candidate_memory::CandidateMemory,
    one::{PluginCall, PluginCallCause, version_of},
    source::{FetchTerms, fetch, halted, stalled},
};

impl PluginCall<'_> {
    /// Has the candidate called beside the version in use, where there is one. That it cannot be changes nothing else.
    pub(super) async fn try_candidate(&mut self, cause: PluginCallCause) {
        let is_deleted = self.plugin.metadata.deletion_timestamp.is_some();
        let Some(spec) = self.plugin.spec.of_candidate().filter(|_| !is_deleted) else {
            self.host.candidates.remove(&self.name);
            self.memory.candidate = CandidateMemory::default();
            return;
        };
        let Some(beside) = self.digest().filter(|_| !spec.suspend) else { return };
        let tried = (self.generation(), beside.clone());
        let known = &self.memory.candidate;
        if known.tried.as_ref() == Some(&tried) && cause != PluginCallCause::Source {
            return;
        }
        let loaded = self.load_candidate(&spec, &beside).await;
        let why = loaded.as_ref().err().map(|halt| match halt {
            Halt::Wait(_) => "it waits".to_owned(),
            Halt::Retry(failure) | Halt::Stall(failure) => failure.message.clone(),
        });
        if loaded.is_err() && known_is_other(&self.memory.candidate, &beside) {
            self.host.candidates.remove(&self.name);
        }
        let is_called = loaded.is_ok() || !known_is_other(&self.memory.candidate, &beside);
        self.memory.candidate = CandidateMemory { tried: Some(tried), beside: is_called.then_some(beside), why };
    }

    /// Whether the candidate cannot be used as it is, so that it is looked at again.
    pub(super) fn candidate_fails(&self) -> bool {
        self.memory.candidate.why.is_some()
    }

    async fn load_candidate(&self, spec: &PluginContent, beside: &str) -> Step<()> {
        spec.check().map_err(|why| stalled("InvalidSpec", why.replace("spec.source", "spec.candidate.source")))?;
        let status = PluginStatus::default();
        let terms = FetchTerms { name: &self.name, spec, status: &status, recorded: false, in_use: None };
        let fetched = fetch(self.host, terms).await?;
        let content = fetched.bytes.unwrap_or_default();
        let registration = spec.registration(&version_of(spec, fetched.tag, &content));
        let (plugin, is_pinned) = (self.name.clone(), spec.is_pinned());
        let installation = PluginInstallation { plugin, registration, content, is_pinned };
        let component = self.installer.beside(installation).await.map_err(|fault| halted("NotUsable", &fault))?;
        let digest = &component.identity().digest;
        let known = self.host.candidates.figures(&self.name, beside);
        if known.is_none_or(|(known, _)| known != *digest) {
            tracing::info!(plugin = self.name, digest, "a candidate is called beside the version in use from now on");
        }
        let one_in = spec.candidate.as_ref().map_or(1, |candidate| candidate.one_in);
        self.host.candidates.put(&self.name, component, beside.to_owned(), one_in);
        Ok(())
    }

    /// What is told of the candidate.
    pub(super) fn candidate_status(&self) -> Option<CandidateStatus> {
        self.plugin.spec.of_candidate()?;
        let CandidateMemory { beside, why, .. } = &self.memory.candidate;
        let message = why.clone().unwrap_or_default();
        let figures = beside.as_ref().and_then(|beside| self.host.candidates.figures(&self.name, beside));
        let Some((digest, figures)) = figures else {
            return Some(CandidateStatus { message, ..CandidateStatus::default() });
        };
        Some(CandidateStatus {
            digest,
            message,
            same: figures.same,
            different: figures.different,
            not_compared: figures.not_compared,
        })
    }
}

/// Whether what is called, if anything is, is called beside another component.
fn known_is_other(known: &CandidateMemory, beside: &str) -> bool {
    known.beside.as_deref() != Some(beside)
}
