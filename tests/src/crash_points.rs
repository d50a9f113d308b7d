//! Crash points (`docs/rules.md`, Tests): a scenario is played without disturbance and its writes are counted; then it
//! is played once for each of them, and right after that write the operator is cut off and killed. Another one goes on.
//! What is there in the end, and what the deployers did, has to be the same.
//!
//! The state of the server after write n is its state before write n + 1, and an operator that is killed keeps nothing else:
//! so one run for each write, and one before the first, are all that there is. Every third of them is played, and all where
//! everything has to be tested (`CI`).

use std::{
    collections::BTreeMap,
    env,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::Value;
use tokio::sync::watch;

use crate::{
    binary::Binary,
    effects::{self, Effects},
    end_state::end_state,
    fail,
    history::History,
    invariants,
    objects::Objects,
    proxy::{Fate, Fates, ProxyRequest},
    tree::{API, any, wait_until_idle},
    world::{Ground, World},
};

/// What is played. The Installations are called `tree`.
pub struct Scenario {
    /// What is there before, with its job ended.
    pub before: Option<Value>,
    /// What a user does.
    pub deed: Deed,
}

/// What a user does.
pub enum Deed {
    /// Applies this.
    Apply(Value),
    /// Deletes the tree.
    Delete,
}

/// What became of a run.
#[derive(Debug, PartialEq)]
struct Outcome {
    objects: Vec<String>,
    effects: BTreeMap<String, Vec<Option<String>>>,
}

/// Counts writes, and cuts the operator off after one of them.
struct Cut {
    /// Writes that the server was let see.
    writes: AtomicUsize,
    /// The last one that it sees.
    last: AtomicUsize,
    /// Whether that one has been seen.
    reached: watch::Sender<bool>,
}

/// So many writes as no scenario has.
const NEVER: usize = usize::MAX;

impl Cut {
    fn new() -> Arc<Cut> {
        let (writes, last) = (AtomicUsize::new(0), AtomicUsize::new(NEVER));
        Arc::new(Cut { writes, last, reached: watch::Sender::new(false) })
    }

    /// From now on writes are counted anew, and none after this one passes.
    fn arm(&self, last: usize) {
        self.writes.store(0, Ordering::SeqCst);
        self.last.store(last, Ordering::SeqCst);
        self.reached.send_replace(false);
    }

    fn counted(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    async fn is_reached(&self) {
        let mut reached = self.reached.subscribe();
        reached.wait_for(|reached| *reached).await.expect("who counts is there");
    }
}

impl Fates for Cut {
    fn request(&self, asked: &ProxyRequest) -> Fate {
        if !asked.is_write() {
            return Fate::Pass;
        }
        let number = self.writes.fetch_add(1, Ordering::SeqCst) + 1;
        match (number, self.last.load(Ordering::SeqCst)) {
            (_, 0) => {
                self.reached.send_replace(true);
                Fate::Hold
            }
            (number, last) if number == last => Fate::HoldAnswer,
            (number, last) if number > last => Fate::Hold,
            (_, _) => Fate::Pass,
        }
    }

    fn answered(&self, _: &ProxyRequest) {
        self.reached.send_replace(true);
    }
}

/// How many crash points are looked at on a real server, which takes some seconds to start, unless all are wanted.
const FEW: usize = 4;

/// Plays the scenario undisturbed, then once for each of its writes that is looked at; `binary` gives each run one of its own.
/// Answers how many crash points were played.
pub async fn at_crash_points(scenario: &Scenario, ground: &Ground, binary: impl AsyncFn() -> Binary) -> usize {
    let (undisturbed, writes) = play(scenario, ground, binary().await, None).await;
    let step = match ground {
        _ if env::var_os("POINTS").is_some_and(|points| points == "all") => 1,
        Ground::Embedded if env::var_os("CI").is_some() => 1,
        Ground::Embedded => 3,
        Ground::Kube(_) => writes.div_ceil(FEW).max(1),
    };
    let points: Vec<usize> = (0..=writes).step_by(step).collect();
    for point in &points {
        let (outcome, _) = play(scenario, ground, binary().await, Some(*point)).await;
        compare(&undisturbed, &outcome, &format!("cut off after write {point} of {writes}"));
    }
    points.len()
}

#[track_caller]
fn compare(expected: &Outcome, found: &Outcome, when: &str) {
    if expected.effects != found.effects {
        fail(&format!("{when}, deployers did {:#?}\ninstead of {:#?}", found.effects, expected.effects));
    }
    let missing = expected.objects.iter().filter(|object| !found.objects.contains(object));
    let surplus = found.objects.iter().filter(|object| !expected.objects.contains(object));
    let lines: Vec<String> =
        missing.map(|object| format!("- {object}")).chain(surplus.map(|object| format!("+ {object}"))).collect();
    if !lines.is_empty() {
        fail(&format!("{when}, other objects are there in the end:\n{}", lines.join("\n")));
    }
}

async fn play(scenario: &Scenario, ground: &Ground, binary: Binary, point: Option<usize>) -> (Outcome, usize) {
    let cut = Cut::new();
    let mut world = World::on(ground, binary, Arc::clone(&cut) as Arc<dyn Fates>).await;
    world.start();
    if let Some(before) = &scenario.before {
        world.objects.apply(before).await;
        ended(&world.objects, &Deed::Apply(before.clone())).await;
    }
    world.ready().await;
    let history = History::begin(world.objects.client()).await;
    let effects = Effects::begin(world.objects.client()).await;
    cut.arm(point.unwrap_or(NEVER));
    match &scenario.deed {
        Deed::Apply(object) => drop(world.objects.apply(object).await),
        Deed::Delete => world.objects.delete(&any("Installation", "tree")).await,
    }
    if point.is_some() {
        // Writes that go on at the same time may be fewer this time.
        tokio::select! {
            () = cut.is_reached() => {}
            () = ended(&world.objects, &scenario.deed) => {}
        }
        world.kill().await;
        cut.arm(NEVER);
        world.start();
    }
    ended(&world.objects, &scenario.deed).await;
    let writes = cut.counted();
    wait_until_idle(&world.objects).await;
    let history = history.until_now().await;
    let broken = invariants::broken(history.versions());
    assert!(broken.is_empty(), "{}\n{:#?}", broken.join("\n"), history.message_of());
    let effects = effects::by_name(&effects.until_now(&world.objects).await);
    let outcome = Outcome { objects: end_state(&world.objects).await, effects };
    world.end().await;
    (outcome, writes)
}

/// Waits until what the user did has been done.
async fn ended(objects: &Objects, deed: &Deed) {
    match deed {
        Deed::Delete => objects.expect_absent(&any("Installation", "tree")).await,
        Deed::Apply(_) => {
            let is = |object: &Value| {
                let status = |field: &str| object.pointer(&format!("/status/{field}"));
                let generation = object.pointer("/metadata/generation");
                object.pointer("/metadata/name").is_some_and(|name| name == "tree")
                    && status("jobID").is_some()
                    && status("jobID") == status("jobIDFinished")
                    && status("observedGeneration") == generation
            };
            let kind = serde_json::json!({"apiVersion": API, "kind": "Installation"});
            objects.expect_that(&kind, "did not end its job", is).await;
        }
    }
}
