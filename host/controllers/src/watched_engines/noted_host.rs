//! What an engine is told in one call, as it is told (C-355).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use orangery_blueprint::{
    recorded::{HostAnswer, HostQuestion, RecordedRendering, selected},
    rendering::RenderRequest,
    template_engine::{JobRandomness, Kubeconfigs, TemplateContext},
};
use orangery_core::{error::Fault, memory, port::BoxFuture};
use orangery_ocm::{Components, Files, Identity};
use orangery_turns::HeldBytes;
use serde::Serialize;
use serde_json::{Value, json};

use crate::controller_context::ControllerContext;

/// The most bytes of memory of what one rendering is asked and reads, up to which it is recorded or compared.
const MOST_RENDERING_BYTES: u64 = 16 << 20;

const TOO_LARGE: &str = "it is asked and reads more than 16 MiB";
const NO_ROOM: &str = "calls that are recorded at once read more than 64 MiB";
const NOT_ANSWERED: &str = "what it asked for could not be had at the moment";
const NO_TEXT: &str = "it read what is no text";

/// What a template reaches, noted.
pub(super) struct NotedHost {
    inner: TemplateContext,
    /// Protects what was told. Held for one addition.
    told: Mutex<ToldAnswers>,
}

struct ToldAnswers {
    recorded: Vec<HostAnswer>,
    files: Vec<(String, String)>,
    bytes: u64,
    held: Option<HeldBytes>,
    incomplete: Option<&'static str>,
}

/// A call with all that the engine was told; its memory counts as held as long as it is there.
pub(super) struct NotedRendering {
    pub(super) recorded: RecordedRendering,
    pub(super) held: HeldBytes,
}

impl NotedRendering {
    /// The same for a candidate. It is gone soon, and counts whether there is room or not.
    pub(super) fn copy(&self, host: &ControllerContext) -> Self {
        let mut held = host.noted.none_of(&None);
        held.put(memory_of(&self.recorded.request));
        Self { recorded: self.recorded.clone(), held }
    }
}

fn memory_of(request: &RenderRequest) -> u64 {
    let state = request.state.as_ref().map_or(0, memory::of);
    memory::of(&request.inputs).saturating_add(state).saturating_add(request.template.len() as u64)
}

impl NotedHost {
    /// Notes what a template of this request is told.
    pub(super) fn over(context: &TemplateContext, request: &RenderRequest, held: HeldBytes) -> Arc<Self> {
        let told =
            ToldAnswers { recorded: Vec::new(), files: Vec::new(), bytes: 0, held: Some(held), incomplete: None };
        let noted = Arc::new(Self { inner: context.clone(), told: Mutex::new(told) });
        noted.locked().count(memory_of(request));
        noted
    }

    /// The same template with what is noted in the place of what it reaches.
    pub(super) fn context(self: &Arc<Self>, of: &TemplateContext) -> TemplateContext {
        TemplateContext { files: self.clone(), components: self.clone(), kubeconfigs: self.clone(), ..of.clone() }
    }

    /// All of it; else why that is not all.
    pub(super) fn recorded(
        &self,
        request: &RenderRequest,
        rng: &JobRandomness,
    ) -> Result<NotedRendering, &'static str> {
        let mut told = self.locked();
        if let Some(why) = told.incomplete {
            return Err(why);
        }
        let mut host = std::mem::take(&mut told.recorded);
        host.push(HostAnswer { ask: HostQuestion::Now, answer: json!(rng.now.to_string()), error: None });
        let files = std::mem::take(&mut told.files).into_iter().collect();
        let recorded = RecordedRendering { request: request.clone(), files, host };
        // It is taken once.
        told.held.take().map(|held| NotedRendering { recorded, held }).ok_or(NO_ROOM)
    }

    fn locked(&self) -> MutexGuard<'_, ToldAnswers> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what was answered, the first time that it is asked.
    fn note<T: Serialize>(&self, ask: HostQuestion, answer: &Result<T, Fault>) {
        match answer {
            Err(Fault::Later(_)) => self.locked().leave(NOT_ANSWERED),
            Err(fault) => self.locked().add(ask, Err(fault.problem().message.clone())),
            Ok(answer) => self.locked().add(ask, Ok(serde_json::to_value(answer).unwrap_or_default())),
        }
    }
}

impl ToldAnswers {
    /// Nothing more is noted.
    fn leave(&mut self, why: &'static str) {
        self.incomplete.get_or_insert(why);
        (self.recorded, self.files) = (Vec::new(), Vec::new());
    }

    /// Counts what is noted besides.
    fn count(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MOST_RENDERING_BYTES {
            self.leave(TOO_LARGE);
        } else if !self.held.as_mut().is_some_and(|held| held.set(self.bytes)) {
            self.leave(NO_ROOM);
        }
    }

    fn add(&mut self, ask: HostQuestion, answer: Result<Value, String>) {
        if self.incomplete.is_some() || self.recorded.iter().any(|known| known.ask == ask) {
            return;
        }
        let (answer, error) = match answer {
            Ok(answer) => (answer, None),
            Err(error) => (Value::Null, Some(error)),
        };
        let bytes = memory::of(&answer).saturating_add(memory::of(&json!(ask)));
        self.recorded.push(HostAnswer { ask, answer, error });
        self.count(bytes);
    }

    fn add_file(&mut self, path: &str, content: &[u8]) {
        if self.incomplete.is_some() || self.files.iter().any(|(known, _)| known == path) {
            return;
        }
        match std::str::from_utf8(content) {
            Ok(text) => {
                self.files.push((path.to_owned(), text.to_owned()));
                self.count(content.len() as u64);
            }
            Err(_) => self.leave(NO_TEXT),
        }
    }
}

impl Files for NotedHost {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let found = self.inner.files.read(path);
        match &found {
            Ok(content) => self.locked().add_file(path, content),
            Err(why) => self.locked().add(HostQuestion::File(path.to_owned()), Err(why.clone())),
        }
        found
    }

    fn digest(&self, path: &str) -> Result<(String, u64), String> {
        self.inner.files.digest(path)
    }

    fn check(&self, path: &str) -> Result<(), String> {
        self.inner.files.check(path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, String> {
        let found = self.inner.files.list(path);
        let answer = found.as_ref().map(|names| json!(names)).map_err(Clone::clone);
        self.locked().add(HostQuestion::Folder(path.to_owned()), answer);
        found
    }
}

impl Components for NotedHost {
    fn component<'a>(&'a self, from: Option<&'a Value>, select: &'a Identity) -> BoxFuture<'a, Result<Value, Fault>> {
        Box::pin(async move {
            let found = self.inner.components.component(from, select).await;
            self.note(HostQuestion::Component { from: from.cloned(), select: selected(select) }, &found);
            found
        })
    }

    fn resources<'a>(
        &'a self,
        from: Option<&'a Value>,
        select: &'a Identity,
    ) -> BoxFuture<'a, Result<Vec<Value>, Fault>> {
        Box::pin(async move {
            let found = self.inner.components.resources(from, select).await;
            self.note(HostQuestion::Resources { from: from.cloned(), select: selected(select) }, &found);
            found
        })
    }

    fn resource_key<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(async move {
            let found = self.inner.components.resource_key(reference).await;
            self.note(HostQuestion::ResourceKey(reference.to_owned()), &found);
            found
        })
    }

    fn resource_content<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        Box::pin(async move {
            let found = self.inner.components.resource_content(reference).await;
            let ask = HostQuestion::ResourceContent(reference.to_owned());
            match &found {
                Ok(content) => match std::str::from_utf8(content) {
                    Ok(text) => self.locked().add(ask, Ok(json!(text))),
                    Err(_) => self.locked().leave(NO_TEXT),
                },
                Err(fault) => self.note(ask, &Err::<Value, _>(fault.clone())),
            }
            found
        })
    }
}

impl Kubeconfigs for NotedHost {
    fn issue_credential<'a>(
        &'a self,
        credential_kind: &'a str,
        arguments: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Fault>> {
        Box::pin(async move {
            let found = self.inner.kubeconfigs.issue_credential(credential_kind, arguments).await;
            let (credential, arguments) = (credential_kind.to_owned(), arguments.clone());
            self.note(HostQuestion::IssueCredential { credential, arguments }, &found);
            found
        })
    }
}

#[cfg(test)]
mod tests;
