//! Panics of reconciles, kept where users see them: the object `critical-problems` in the operator's own namespace
//! (`docs/wire.md` §7.6).
//!
//! The controllers only tell; one task writes, once for all that came meanwhile. A write that fails is logged, and what it
//! should have told goes with the next one: who panics is called again, so a next one comes.

use std::{future::Future, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, Client, api::PostParams, core::ObjectMeta};
use orangery_api::health::{CRITICAL_PROBLEMS, CriticalProblem, CriticalProblems, CriticalProblemsSpec};
use orangery_core::port::Clock;
use orangery_reconcile::Panicked;
use tokio::sync::mpsc;

/// Panics that wait to be written; those beyond are only logged.
const WAITING: usize = 64;

/// How often a write is tried that meets those of others.
const TRIES: usize = 5;

/// The longest description, in bytes: a panic may quote what it met.
const LONGEST: usize = 1024;

/// Takes panics to be written down.
pub(crate) struct Crashes {
    waiting: mpsc::Sender<CriticalProblem>,
    pod: Arc<str>,
    clock: Arc<dyn Clock>,
}

impl Crashes {
    /// Crashes of the process `pod`, and the task that writes them into the namespace of the client. The task ends when
    /// everything is written and nobody can tell of panics any more.
    pub(crate) fn new(client: Client, pod: &str, clock: Arc<dyn Clock>) -> (Self, impl Future<Output = ()> + use<>) {
        let (sender, waiting) = mpsc::channel(WAITING);
        (Self { waiting: sender, pod: pod.into(), clock }, keep(client, waiting))
    }

    /// Has a panic written down; never waits.
    pub(crate) fn tell(&self, panicked: &Panicked) {
        let Panicked { controller, key, message } = panicked;
        let description = format!("the reconcile of {controller} {key} panicked: {message}");
        let cut = description.floor_char_boundary(LONGEST);
        let now = self.clock.now();
        let problem = CriticalProblem {
            pod_name: self.pod.to_string(),
            // With the precision that objects keep.
            creation_time: Some(Time(jiff::Timestamp::from_second(now.as_second()).unwrap_or(now))),
            description: description.get(..cut).unwrap_or_default().to_owned(),
        };
        if self.waiting.try_send(problem).is_err() {
            tracing::debug!("more panics than can be written down: one of {controller} {key} stands in the log alone");
        }
    }
}

async fn keep(client: Client, mut waiting: mpsc::Receiver<CriticalProblem>) {
    let namespace = client.default_namespace().to_owned();
    let api = Api::namespaced(client, &namespace);
    let mut unwritten = CriticalProblemsSpec::default();
    while let Some(problem) = waiting.recv().await {
        unwritten.add(problem);
        while let Ok(problem) = waiting.try_recv() {
            unwritten.add(problem);
        }
        match write(&api, &unwritten).await {
            Ok(()) => unwritten = CriticalProblemsSpec::default(),
            Err(error) => tracing::warn!(
                "CriticalProblems {namespace}/{CRITICAL_PROBLEMS}, which lists the panics of the operator, cannot be \
                 written: {error}; let the operator get, create and update CriticalProblems in its namespace"
            ),
        }
    }
}

/// Adds these to the object, which is made where it is missing.
async fn write(api: &Api<CriticalProblems>, problems: &CriticalProblemsSpec) -> kube::Result<()> {
    let mut left = TRIES;
    loop {
        left -= 1;
        let written = match api.get_opt(CRITICAL_PROBLEMS).await? {
            Some(mut object) => {
                problems.critical_problem.iter().cloned().for_each(|problem| object.spec.add(problem));
                api.replace(CRITICAL_PROBLEMS, &PostParams::default(), &object).await
            }
            None => api.create(&PostParams::default(), &object(problems.clone())).await,
        };
        match written {
            // Somebody was faster: his entries stay.
            Err(kube::Error::Api(status)) if status.code == 409 && left > 0 => {}
            other => return other.map(drop),
        }
    }
}

fn object(spec: CriticalProblemsSpec) -> CriticalProblems {
    let metadata = ObjectMeta { name: Some(CRITICAL_PROBLEMS.to_owned()), ..ObjectMeta::default() };
    CriticalProblems { metadata, spec, status: None }
}

#[cfg(test)]
mod tests;
