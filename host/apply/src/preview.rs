//! What a proposal would do, without doing it.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, TryStreamExt, stream};
use orangery_core::step::Step;
use orangery_proposal::{
    Action, Next, ObjectWrite, Ownership, Proposal, Stage, Write,
    inventory::{Inventory, Located},
    item::{stages, writes},
    overlay::{apply_merge_patch, difference, overlay},
};
use serde_json::Value;

use crate::{
    Error, Job,
    error::{NOT_SERVED, Setback},
    run::{AT_ONCE, located},
    site::{Site, Spot},
    write::{Change, change, is_going, is_of_item, place},
};

/// One object of a proposal: what it is, and what it would be.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// Which object.
    pub located: Located,
    /// What would become of it.
    pub action: Action,
    /// As it is; `None` where it does not exist.
    pub before: Option<Value>,
    /// As it would be; `None` where it goes. Where the server has the last word (server-side apply), as it answers to a try.
    pub after: Option<Value>,
    /// The stage that comes to it first; empty for what left the plan.
    pub stage: String,
    /// Whether it goes with the job that made it, as hooks do.
    pub ephemeral: bool,
}

/// What a proposal would do to each object, in the order in which it comes to them; reads alone, and writes that the server
/// only tries (`dryRun`). `known` is the item's inventory: what left the plan is told as deleted. Gates are not waited for:
/// every stage is taken to succeed.
///
/// # Errors
/// Why a cluster cannot be read, already judged.
pub async fn preview(job: &Job<'_>, proposal: &Proposal, known: &Inventory) -> Step<Vec<Effect>> {
    let site = Site::new(job, Some(proposal));
    let (before, afterwards) = stages(proposal);
    let all = || before.iter().chain(afterwards);
    let removed = all().flat_map(|stage| &stage.removals);
    let removed: Vec<_> = removed.map(|one| Located { on: one.on.clone(), key: one.key.clone() }).collect();
    // The first write of each object: later ones find what it has left.
    let mut written: BTreeMap<Located, &ObjectWrite> = BTreeMap::new();
    for (located, write) in writes(proposal) {
        written.entry(located).or_insert(write);
    }
    let concerned = known.0.keys().chain(&removed).chain(written.keys());
    let concerned: BTreeSet<Located> = concerned.cloned().collect();
    let looks = concerned.into_iter().map(|located| look(&site, located));
    let live: Result<Vec<_>, Setback> = stream::iter(looks).buffered(AT_ONCE).try_collect().await;
    let live = live.map_err(|setback| setback.halt)?.into_iter().flatten().collect();
    let removed: BTreeSet<&Located> = removed.iter().collect();
    let first = written.iter().filter(|(located, _)| !removed.contains(located));
    let tries = first.map(|(_, write)| attempt(&site, write, &live));
    let tried: Result<Vec<_>, Setback> = stream::iter(tries).buffered(AT_ONCE).try_collect().await;
    let tried = tried.map_err(|setback| setback.halt)?.into_iter().flatten().collect();

    let mut forecast = Forecast { site: &site, live, tried, order: Vec::new(), effects: BTreeMap::new() };
    for stage in before {
        forecast.stage(stage).map_err(|setback| setback.halt)?;
    }
    if matches!(proposal.next, Next::Finish(_)) {
        let planned: BTreeSet<Located> = forecast.effects.keys().cloned().collect();
        for leaving in known.leaving(&planned) {
            forecast.remove(leaving, "");
        }
    }
    for stage in afterwards {
        forecast.stage(stage).map_err(|setback| setback.halt)?;
    }
    Ok(forecast.told())
}

/// An object that exists; of a kind that is not served yet there is none.
async fn look(site: &Site<'_>, located: Located) -> Result<Option<(Located, Value)>, Setback> {
    let spot = match site.spot(&located).await {
        Ok(spot) => spot,
        Err(setback) if setback.halt.failure().is_some_and(|failure| failure.reason == NOT_SERVED) => {
            return Ok(None);
        }
        Err(setback) => return Err(setback),
    };
    Ok(spot.get().await?.map(|live| (located, live)))
}

fn is_applied(write: &ObjectWrite) -> bool {
    matches!(write.how, Write::Apply | Write::ApplyAs(_))
}

/// What the server answers to a write that it only tries, where the object exists and the write is none of somebody else's;
/// `None` where nothing is to be written, or somebody in the server's way takes part in no tries.
async fn attempt(
    site: &Site<'_>,
    write: &ObjectWrite,
    live: &BTreeMap<Located, Value>,
) -> Result<Option<(Located, Value)>, Setback> {
    let located = located(write)?;
    let Some(before) = live.get(&located) else { return Ok(None) };
    if is_going(before) || is_foreign(before, write, site.job) {
        return Ok(None);
    }
    let desired = foreseen(site, write);
    let Spot { cluster, resource, key } = site.spot(&located).await?;
    let answer = match &write.how {
        Write::Apply => cluster.try_apply(None, &resource, &key, &desired).await,
        Write::ApplyAs(manager) => cluster.try_apply(Some(manager), &resource, &key, &desired).await,
        how => match change(before, &desired, how) {
            Change::Nothing => return Ok(None),
            Change::Put(body) => cluster.try_replace(&resource, &key, &body).await,
            Change::Patch(patch) => cluster.try_merge(&resource, &key, &patch).await,
        },
    };
    match answer {
        Ok(after) => Ok(Some((located, after))),
        Err(Error::Invalid { message, .. }) if message.contains("does not support dry run") => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The object as a write wants it, with a word in place of content that the host places and nobody is shown.
fn foreseen(site: &Site<'_>, write: &ObjectWrite) -> Value {
    let mut object = site.labelled(write);
    for injection in &write.inject {
        // Where there is no such place, the write itself will say so.
        place(&mut object, &injection.at, "(placed by the host)".to_owned());
    }
    object
}

/// What has become of the objects so far.
struct Forecast<'a> {
    site: &'a Site<'a>,
    live: BTreeMap<Located, Value>,
    tried: BTreeMap<Located, Value>,
    order: Vec<Located>,
    effects: BTreeMap<Located, Effect>,
}

impl Forecast<'_> {
    fn stage(&mut self, stage: &Stage) -> Result<(), Setback> {
        for removal in &stage.removals {
            self.remove(Located { on: removal.on.clone(), key: removal.key.clone() }, &stage.name);
        }
        for write in &stage.writes {
            self.write(write, &stage.name)?;
        }
        Ok(())
    }

    /// What is known of an object until now; as it is where nothing came to it yet.
    fn take(&mut self, located: &Located, stage: &str) -> Effect {
        self.effects.remove(located).unwrap_or_else(|| {
            self.order.push(located.clone());
            let before = self.live.get(located).cloned();
            Effect {
                located: located.clone(),
                action: Action::None,
                after: before.clone().filter(|object| !is_going(object)),
                before,
                stage: stage.to_owned(),
                ephemeral: false,
            }
        })
    }

    fn remove(&mut self, located: Located, stage: &str) {
        let mut effect = self.take(&located, stage);
        if effect.after.take().is_some() {
            effect.action = Action::Delete;
        }
        self.effects.insert(located, effect);
    }

    fn write(&mut self, write: &ObjectWrite, stage: &str) -> Result<(), Setback> {
        let located = located(write)?;
        let mut effect = self.take(&located, stage);
        let desired = foreseen(self.site, write);
        match effect.after.take() {
            None => {
                let mut created = desired;
                if let Some(extra) = &write.at_creation {
                    overlay(&mut created, extra);
                }
                effect.after = Some(created);
                effect.ephemeral = write.owned == Ownership::Ephemeral;
            }
            Some(live) if is_foreign(&live, write, self.site.job) => {
                effect.action = Action::Foreign;
                effect.after = Some(live);
            }
            Some(live) => {
                effect.after = Some(self.changed(&located, write, live, &desired));
                effect.ephemeral = write.owned == Ownership::Ephemeral;
            }
        }
        self.effects.insert(located, effect);
        Ok(())
    }

    /// What a write makes of an object that is there.
    fn changed(&mut self, located: &Located, write: &ObjectWrite, live: Value, desired: &Value) -> Value {
        if let Some(tried) = self.tried.remove(located) {
            return tried;
        }
        match change(&live, desired, &write.how) {
            Change::Nothing if is_applied(write) => {
                let mut after = live;
                overlay(&mut after, desired);
                after
            }
            Change::Nothing => live,
            Change::Put(body) => body,
            Change::Patch(patch) => {
                let mut after = live;
                apply_merge_patch(&mut after, &patch);
                after
            }
        }
    }

    fn told(mut self) -> Vec<Effect> {
        let order = std::mem::take(&mut self.order);
        order.iter().filter_map(|located| self.effects.remove(located)).map(Effect::judged).collect()
    }
}

/// Whether a write leaves an object to somebody else.
fn is_foreign(live: &Value, write: &ObjectWrite, job: &Job<'_>) -> bool {
    (write.how == Write::Create || write.owned == Ownership::Fallback) && !is_of_item(live, job)
}

impl Effect {
    /// With what has become of it in the end.
    fn judged(mut self) -> Self {
        self.action = match (self.action, &self.before, &self.after) {
            (Action::Foreign, _, _) => Action::Foreign,
            (_, None, Some(_)) => Action::Create,
            (_, None, None) => Action::None,
            (_, Some(_), None) => Action::Delete,
            (Action::Delete, Some(_), Some(_)) => Action::Replace,
            (_, Some(before), Some(after)) if difference(before, after).is_empty() => Action::None,
            (_, Some(_), Some(_)) => Action::Change,
        };
        self
    }
}
