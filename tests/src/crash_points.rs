//! Crash points (`docs/rules.md`, Tests): a scenario is played without disturbance and its writes are counted; then it
//! is played once for each of them, and right after that write the operator is cut off and killed. Another one goes on.
//! What is there in the end, and what the deployers did, has to be the same.
//!
//! The state of the server after write n is its state before write n + 1, and an operator that is killed keeps nothing else:
//! so one run for each write, and one before the first, are all that there is. Every third of them is played, on a real server
//! a few, and all where everything has to be tested (`CI`, `POINTS=all`). Which one is the first is drawn; a failure says it as
//! `POINTS=FIRST/STEP`, which plays the same ones again. With two operators the first one is frozen instead, and goes on when
//! another one has its Lease (C-34).

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
    approver::Approver,
    binary::Binary,
    dice::{Dice, drawn},
    effects::{self, Effects},
    end_state::end_state,
    fail,
    former_cluster::{self, FormerCluster},
    history::History,
    invariants,
    objects::Objects,
    proxy::{Fate, Fates, ProxyRequest},
    tree::{API, any, wait_until_idle},
    world::{Ground, MOCK, World},
};

/// What is played. The Installations are called `tree`.
pub struct Scenario {
    /// What an administrator has made.
    pub given: Vec<Value>,
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
    /// Has the Target [`MOVING`](former_cluster::MOVING) lead to the world's own cluster instead of a former one, and applies this.
    Move(Value),
}

impl Scenario {
    /// Whether somebody has to approve what is written, all the time.
    fn needs_approvals(&self) -> bool {
        let deed = match &self.deed {
            Deed::Apply(object) | Deed::Move(object) => Some(object),
            Deed::Delete => None,
        };
        let mut applied = self.before.iter().chain(deed).peekable();
        let is_required =
            |object: &Value| object.pointer("/spec/approval").is_some_and(|approval| approval == "Required");
        applied.peek().is_some() && applied.all(is_required)
    }

    /// Waits until a started operator has what is there before.
    pub(crate) async fn begin(&self, world: &World) {
        for object in &self.given {
            world.objects.apply(object).await;
        }
        if let Some(before) = &self.before {
            world.objects.apply(before).await;
            ended(&world.objects, &Deed::Apply(before.clone())).await;
        }
        world.ready().await;
    }
}

impl Deed {
    pub(crate) async fn carry_out(&self, objects: &Objects) {
        match self {
            Deed::Apply(object) => drop(objects.apply(object).await),
            Deed::Delete => objects.delete(&any("Installation", "tree")).await,
            Deed::Move(object) => {
                let targets = objects.list(&any("Target", "")).await;
                let own = targets
                    .iter()
                    .find(|target| target.pointer("/metadata/name").is_some_and(|name| name == "cluster"));
                let kubeconfig = own.and_then(|target| target.pointer("/spec/config/kubeconfig")?.as_str());
                let kubeconfig = kubeconfig.expect("the world has a Target of its own cluster");
                objects.apply(&former_cluster::target(kubeconfig)).await;
                objects.apply(object).await;
            }
        }
    }

    /// Whether there has to be a former cluster.
    pub(crate) fn is_move(&self) -> bool {
        matches!(self, Deed::Move(_))
    }
}

/// What became of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) objects: Vec<String>,
    pub(crate) effects: BTreeMap<String, Vec<Option<String>>>,
}

/// Counts writes, and cuts the operator off after one of them.
pub struct Cut {
    /// Writes that the server was let see.
    writes: AtomicUsize,
    /// The last one that it sees.
    last: AtomicUsize,
    /// Whether that one has been seen.
    reached: watch::Sender<bool>,
}

/// So many writes as no scenario has.
pub const NEVER: usize = usize::MAX;

impl Cut {
    /// Nothing is cut off yet.
    pub fn new() -> Arc<Cut> {
        let (writes, last) = (AtomicUsize::new(0), AtomicUsize::new(NEVER));
        Arc::new(Cut { writes, last, reached: watch::Sender::new(false) })
    }

    /// From now on writes are counted anew, and none after this one passes.
    pub fn arm(&self, last: usize) {
        self.writes.store(0, Ordering::SeqCst);
        self.last.store(last, Ordering::SeqCst);
        self.reached.send_replace(false);
    }

    /// Writes since then.
    pub fn counted(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    /// Waits until the last one has been seen.
    pub async fn is_reached(&self) {
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

/// How an operator is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// It is killed, and another one is started.
    Killed,
    /// It stands still until another one has its Lease, and then goes on as if nothing had been.
    Frozen,
}

/// How long the Lease lasts of an operator that stands still, in seconds.
const LEASE: &str = "--lease-duration=3";

/// How many crash points are looked at on a real server, which takes some seconds to start, unless all are wanted.
const FEW: usize = 4;

/// Plays the scenario undisturbed, then once for each of its writes that is looked at; `binary` gives each run one of its own.
/// Answers how many crash points were played.
pub async fn at_crash_points(scenario: &Scenario, ground: &Ground, binary: impl AsyncFn() -> Binary) -> usize {
    play_points(scenario, ground, Loss::Killed, binary).await
}

/// The same with two operators: at some points, drawn by chance, the first one freezes, and wakes up beside the second one. With
/// `OLDER` the first one is that of an older binary; with `BACK` as well, the second one, also where the first one is killed.
pub async fn at_points_of_freezing(scenario: &Scenario, ground: &Ground, binary: impl AsyncFn() -> Binary) -> usize {
    play_points(scenario, ground, Loss::Frozen, binary).await
}

/// The points of a scenario of so many writes that are looked at where each run takes seconds: a few, all where `POINTS` says so.
pub fn few_points(writes: usize) -> Vec<usize> {
    let step = writes.div_ceil(FEW).max(1);
    let asked = env::var("POINTS").unwrap_or_default();
    let given = points_of(&asked).unwrap_or_else(|why| fail(&why));
    let (first, step) = given.unwrap_or_else(|| (Dice::of(drawn()).below(step), step));
    eprintln!("crash points of {writes}: POINTS={first}/{step} plays the same again, POINTS=all all of them");
    (first..=writes).step_by(step).collect()
}

async fn play_points(scenario: &Scenario, ground: &Ground, loss: Loss, binary: impl AsyncFn() -> Binary) -> usize {
    let (undisturbed, writes) = play(scenario, ground, binary().await, None).await;
    let step = match ground {
        _ if loss == Loss::Frozen => writes.div_ceil(FEW).max(1),
        // What is written is that of the same scenarios without approvals.
        Ground::Embedded if is_everything_tested() && !scenario.needs_approvals() => 1,
        Ground::Embedded => 3,
        Ground::Kube(_) => writes.div_ceil(FEW).max(1),
    };
    let asked = env::var("POINTS").unwrap_or_default();
    let given = points_of(&asked).unwrap_or_else(|why| fail(&why));
    // Every point comes in its turn, from run to run.
    let (first, step) = given.unwrap_or_else(|| (Dice::of(drawn()).below(step), step));
    eprintln!("crash points of {writes}: POINTS={first}/{step} plays the same again, POINTS=all all of them");
    let points: Vec<usize> = (first..=writes).step_by(step).collect();
    for point in &points {
        let (outcome, _) = play(scenario, ground, binary().await, Some((*point, loss))).await;
        compare(&undisturbed, &outcome, &format!("{loss:?} after write {point} of {writes}"));
    }
    points.len()
}

/// Whether the operator of `OLDER` goes on with what the one under test has begun, instead of the other way round.
fn goes_back() -> bool {
    env::var_os("BACK").is_some()
}

/// Whether everything has to be tested.
pub(crate) fn is_everything_tested() -> bool {
    env::var_os("CI").is_some()
}

/// The first point and the step that somebody has asked for.
///
/// # Errors
/// It is nothing of what may be asked for.
fn points_of(asked: &str) -> Result<Option<(usize, usize)>, String> {
    match asked {
        "" => return Ok(None),
        "all" => return Ok(Some((0, 1))),
        _ => {}
    }
    let numbers = asked.split_once('/').and_then(|(first, step)| Some((first.parse().ok()?, step.parse().ok()?)));
    numbers
        .filter(|(_, step)| *step > 0)
        .map(Some)
        .ok_or_else(|| format!("POINTS is {asked:?}; write all, or FIRST/STEP as a failure says it, such as 7/12"))
}

#[track_caller]
fn compare(expected: &Outcome, found: &Outcome, when: &str) {
    compare_objects(&expected.objects, &found.objects, when);
    if expected.effects != found.effects {
        fail(&format!("{when}, deployers did {:#?}\ninstead of {:#?}", found.effects, expected.effects));
    }
}

/// The objects that are there in the end are the same.
#[track_caller]
pub(crate) fn compare_objects(expected: &[String], found: &[String], when: &str) {
    let missing = expected.iter().filter(|object| !found.contains(object));
    let surplus = found.iter().filter(|object| !expected.contains(object));
    let lines: Vec<String> =
        missing.map(|object| format!("- {object}")).chain(surplus.map(|object| format!("+ {object}"))).collect();
    if !lines.is_empty() {
        fail(&format!("{when}, other objects are there in the end:\n{}", lines.join("\n")));
    }
}

/// Starts the operator that is lost.
fn start_first(world: &mut World, loss: Option<Loss>) {
    match loss {
        Some(Loss::Frozen) if goes_back() => world.start_with(&[MOCK, LEASE]),
        Some(Loss::Frozen) => world.start_older(&[MOCK, LEASE]),
        Some(Loss::Killed) | None => world.start_with(&[MOCK]),
    }
}

/// Starts the one that goes on. It waits for as long as the other one's Lease lasts; its own lasts longer.
fn start_next(world: &mut World) {
    if goes_back() {
        world.start_older(&[MOCK]);
    } else {
        world.start_with(&[MOCK]);
    }
}

/// Plays the scenario; `point` is the write after which its operator is lost, and how. Answers how many writes it had.
pub(crate) async fn play(
    scenario: &Scenario,
    ground: &Ground,
    binary: Binary,
    point: Option<(usize, Loss)>,
) -> (Outcome, usize) {
    let cut = Cut::new();
    let former = if scenario.deed.is_move() { Some(FormerCluster::start().await) } else { None };
    let mut world = World::on(ground, binary, Arc::clone(&cut) as Arc<dyn Fates>).await;
    let loss = point.map(|(_, loss)| loss);
    start_first(&mut world, loss);
    let approver = scenario.needs_approvals().then(|| Approver::begin(world.objects.client()));
    scenario.begin(&world).await;
    let history = History::begin(world.objects.client()).await;
    let effects = Effects::begin(world.objects.client()).await;
    cut.arm(point.map_or(NEVER, |(point, _)| point));
    scenario.deed.carry_out(&world.objects).await;
    if let Some(loss) = loss {
        // Writes that go on at the same time may be fewer this time.
        tokio::select! {
            () = cut.is_reached() => {}
            () = ended(&world.objects, &scenario.deed) => {}
        }
        match loss {
            Loss::Killed => world.kill().await,
            Loss::Frozen => world.freeze(),
        }
        cut.arm(NEVER);
        start_next(&mut world);
        if loss == Loss::Frozen {
            world.thaw().await;
        }
    }
    ended(&world.objects, &scenario.deed).await;
    let writes = cut.counted();
    wait_until_idle(&world.objects).await;
    let history = history.until_now().await;
    let broken = invariants::broken(history.versions());
    assert!(broken.is_empty(), "{}\n{:#?}", broken.join("\n"), history.message_of());
    let effects = effects::by_name(&effects.until_now(&world.objects).await);
    let unapproved = approver.map(|approver| approver.unapproved(&effects)).unwrap_or_default();
    assert!(unapproved.is_empty(), "{}\n{:#?}", unapproved.join("\n"), history.message_of());
    let outcome = Outcome { objects: end_state(&world.objects).await, effects };
    world.end().await;
    if let Some(former) = former {
        former.has_lost(&outcome.effects.keys().map(String::as_str).collect::<Vec<_>>()).await;
        drop(former.stop().await);
    }
    (outcome, writes)
}

/// Waits until what the user did has been done.
pub async fn ended(objects: &Objects, deed: &Deed) {
    match deed {
        Deed::Delete => objects.expect_absent(&any("Installation", "tree")).await,
        Deed::Apply(_) | Deed::Move(_) => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_points_of_a_failure_can_be_given_back() {
        assert_eq!(points_of(""), Ok(None));
        assert_eq!(points_of("all"), Ok(Some((0, 1))));
        assert_eq!(points_of("7/12"), Ok(Some((7, 12))));
        for wrong in ["7", "7/0", "a/1", "7/12/3"] {
            assert!(points_of(wrong).is_err_and(|why| why.contains("FIRST/STEP")), "{wrong}");
        }
    }
}
