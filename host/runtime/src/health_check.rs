//! The LsHealthCheck of an operator (C-377): whether Deployments that belong to it run as they should, written once a minute, as the
//! users of Landscaper read it. A time that does not go on says that no operator is active.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream::select_all};
use k8s_openapi::{api::apps::v1::Deployment, apimachinery::pkg::apis::meta::v1::Time};
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event, watcher},
    },
};
use orangery_api::health::{HealthHistory, HealthWord, LsHealthCheck};
use orangery_core::{name::ObjectName, port::Clock};
use tokio::time::{MissedTickBehavior, interval};

/// How often the object is written, as in the original.
pub(crate) const EVERY: Duration = Duration::from_secs(60);

/// What is looked at, in the namespace of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheckConfig {
    /// The name of the LsHealthCheck.
    pub name: ObjectName,
    /// The names of the Deployments.
    pub deployments: Vec<ObjectName>,
}

/// Looks at Deployments, by watches, and writes what that comes to. Runs until it is dropped; what cannot be written is logged, and
/// written the next time.
pub(crate) async fn keep_health_check(
    client: Client,
    clock: Arc<dyn Clock>,
    config: HealthCheckConfig,
    every: Duration,
) {
    let api: Api<Deployment> = Api::default_namespaced(client.clone());
    let watched = |name: &ObjectName| {
        let (name, of) = (name.clone(), watcher::Config::default().fields(&format!("metadata.name={name}")));
        watcher(api.clone(), of).default_backoff().map(move |event| (name.clone(), event)).boxed()
    };
    let mut events = select_all(config.deployments.iter().map(watched));
    let mut known: BTreeMap<ObjectName, KnownDeployment> =
        config.deployments.iter().map(|name| (name.clone(), KnownDeployment::default())).collect();
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut history = HealthHistory::default();
    loop {
        tokio::select! {
            Some((name, event)) = events.next() => {
                if let Some(known) = known.get_mut(&name) {
                    known.hear(event);
                }
            }
            _ = ticks.tick() => {
                let namespace = client.default_namespace();
                let found = known.iter().try_for_each(|(name, known)| known.check(&format!("{namespace}/{name}")));
                let written = write(&client, &config.name, &history.add(found), &Time(clock.now())).await;
                if let Err(error) = written {
                    tracing::warn!(%error, name = %config.name, "the LsHealthCheck cannot be written");
                }
            }
        }
    }
}

/// A Deployment as it is known.
#[derive(Default)]
struct KnownDeployment {
    /// Of a list that is coming in.
    listed: Option<Deployment>,
    known: Option<Deployment>,
    /// Whether the last word about it was an error.
    is_lost: bool,
}

impl KnownDeployment {
    fn hear(&mut self, event: watcher::Result<Event<Deployment>>) {
        self.is_lost = event.is_err();
        match event {
            Ok(Event::Init) => self.listed = None,
            Ok(Event::InitApply(deployment)) => self.listed = Some(deployment),
            Ok(Event::InitDone) => self.known = self.listed.take(),
            Ok(Event::Apply(deployment)) => self.known = Some(deployment),
            Ok(Event::Delete(_)) => self.known = None,
            Err(error) => tracing::debug!(%error, "the watch of a Deployment broke off and is taken up again"),
        }
    }

    /// Whether all its pods run in their newest form, as the original asks; else why not, in its words.
    fn check(&self, name: &str) -> Result<(), String> {
        let Some(Deployment { metadata, spec, status }) = self.known.as_ref().filter(|_| !self.is_lost) else {
            return Err(format!("deployment {name} could not be be fetched"));
        };
        let wanted = spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let counted = |count: Option<i32>| count.unwrap_or(0) == wanted;
        let is_up = status.as_ref().is_some_and(|status| {
            status.observed_generation == metadata.generation
                && counted(status.updated_replicas)
                && counted(status.available_replicas)
        });
        if is_up {
            return Ok(());
        }
        Err(format!("not all pods are running or at the latest state for deployment {name} "))
    }
}

/// Writes the object; it is made where it is not there, also when somebody has deleted it.
async fn write(client: &Client, name: &ObjectName, word: &HealthWord, now: &Time) -> kube::Result<()> {
    let api: Api<LsHealthCheck> = Api::default_namespaced(client.clone());
    match api.patch(name, &PatchParams::default(), &Patch::Merge(word.patch(now))).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {
            let metadata = ObjectMeta { name: Some(name.to_string()), ..ObjectMeta::default() };
            let made = LsHealthCheck { metadata, spec: word.content(now) };
            api.create(&PostParams::default(), &made).await.map(drop)
        }
        written => written.map(drop),
    }
}

#[cfg(test)]
mod tests;
