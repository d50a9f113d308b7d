//! Random schedules (`docs/rules.md`, Tests): users at their busiest, while [`FaultInjection`] disturbs the API, with
//! an operator that dies now and then. No invariant may break on the way, and when the faults end everything has to
//! come to its end by itself. The seed fixes who does what, in which order, and which faults come; how requests fall
//! into one another is the machine's.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::{
    binary::Binary,
    crash_points,
    dice::Dice,
    effects::{Effect, Effects},
    fail,
    fault_injection::FaultInjection,
    history::{History, Seen, Version, present},
    invariants,
    objects::{NAMESPACE, Objects},
    soak::{self, FEWEST_ROUNDS, Held},
    tree::{
        API, any, asks, blueprint, deploys, executions, imports_cluster, installation, mocks, on_cluster,
        subinstallation, wait_until_idle,
    },
    world::{Ground, World},
    write_log::LoggedWrite,
};

/// The roots: the second one imports what the first one exports.
const ROOTS: [&str; 2] = ["first", "second"];

/// How many deeds a schedule has.
const DEEDS: usize = 14;

/// How long everything may take to come to its end after the faults end.
const PATIENCE: Duration = Duration::from_secs(100);

/// What stands in a Secret, and may stand in nothing that is told.
const SECRET: &str = "tell-nobody-4711";

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    /// A root is applied, with a number that says what is in it.
    Apply(&'static str, usize),
    Reconcile(&'static str),
    Interrupt(&'static str),
    Delete(&'static str),
    /// A child of this kind is deleted by hand.
    DeleteChild(&'static str, usize),
    /// The finalizer of an item is taken away by hand.
    Release(usize),
    /// The operator dies, and another one begins.
    Kill,
    /// Nothing, until so many writes have been asked for.
    Watch(usize),
}

/// The deeds of a seed.
fn deeds(dice: &mut Dice) -> Vec<Deed> {
    let mut deeds = vec![Deed::Apply("first", 0), Deed::Apply("second", 0)];
    while deeds.len() < DEEDS {
        let root = dice.pick(&ROOTS);
        let number = dice.below(1000);
        deeds.push(match dice.below(16) {
            0..=3 => Deed::Apply(root, number),
            4 | 5 => Deed::Reconcile(root),
            6 => Deed::Interrupt(root),
            7 => Deed::Delete(root),
            8 => Deed::DeleteChild(dice.pick(&["Installation", "Execution", "DeployItem"]), number),
            9 => Deed::Release(number),
            10 => Deed::Kill,
            _ => Deed::Watch(1 + number % 30),
        });
    }
    deeds
}

/// A root; the number says how many items it has, how they end and what they say. Of its items one has a check and reports drift, and
/// one a gate expression; the second root has its jobs by itself as well, when what it imports changes.
fn root(name: &str, number: usize) -> Value {
    let content = (number % 3).to_string();
    let end = if number % 7 == 6 { "Failed" } else { "Succeeded" };
    let called = |item: &str| format!("{name}-{item}");
    let (a, b, c) = (called("a"), called("b"), called("c"));
    let mut items = vec![watched(&a, &content), mocks(&b, &[&a], end, &content)];
    if number.is_multiple_of(2) {
        let of_a = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": NAMESPACE, "name": a});
        let when = json!({"expression": "objects.made != null", "objects": {"made": of_a}});
        items.push(with(deploys(&c, &[&b], "{{ imports.password }}"), "", "when", when));
    }
    let leaf = blueprint(json!({
        "imports": imports_cluster(),
        "deployExecutions": executions(&[deploys(&called("leaf"), &[], &content)]),
    }));
    let subs = if number % 5 == 4 { vec![] } else { vec![on_cluster(subinstallation(&called("sub"), &leaf))] };
    let is_first = name == "first";
    let text = json!({"type": "string"});
    let mut imports = vec![
        imports_cluster().pointer("/0").cloned().unwrap_or_default(),
        json!({"name": "password", "type": "data", "schema": text}),
    ];
    let mut bound = vec![json!({"name": "password", "secretRef": {"name": "password", "key": "value"}})];
    if !is_first {
        imports.push(json!({"name": "out", "type": "data", "schema": text}));
        bound.push(json!({"name": "out", "dataRef": "out"}));
    }
    let export = format!("{{\"exports\": {{\"out\": {{{{ values.deployitems[\"{b}\"].content | tojson }}}}}}}}");
    let exports = if is_first { vec![json!({"name": "out", "type": "data", "schema": text})] } else { vec![] };
    let mut root = on_cluster(installation(
        name,
        &blueprint(json!({
            "imports": imports,
            "exports": exports,
            "deployExecutions": executions(&items),
            "subinstallations": subs,
            "exportExecutions": if is_first { json!([{"name": "e", "type": "Jinja", "template": export}]) } else { json!([]) },
        })),
    ));
    root = with(root, "/spec/imports", "data", json!(bound));
    if is_first {
        with(root, "/spec", "exports", json!({"data": [{"name": "out", "dataRef": "out"}]}))
    } else {
        with(root, "/spec", "reconcilePolicy", json!("OnChange"))
    }
}

/// An item with a check of its ConfigMap, whose drift is told.
fn watched(name: &str, content: &str) -> Value {
    let selector = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "namespace": NAMESPACE});
    let requirement = json!({"jsonPath": ".data.content", "operator": "==", "values": [{"value": content}]});
    let check = json!({"name": "says-so", "resourceSelector": selector, "requirements": [requirement]});
    let item = with(deploys(name, &[], content), "/config", "readinessChecks", json!({"custom": [check]}));
    with(item, "", "drift", json!({"policy": "Report"}))
}

/// An object with one more field in the map at this pointer.
fn with(mut object: Value, pointer: &str, field: &str, value: Value) -> Value {
    if let Some(fields) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
        fields.insert(field.to_owned(), value);
    }
    object
}

/// How many schedules are drawn beside those that are always played: one where everything has to be tested.
pub fn drawn_beside() -> usize {
    usize::from(crash_points::is_everything_tested())
}

/// Plays the schedule of a seed, which every failure names.
pub async fn play(seed: u64, ground: &Ground, binary: Binary) {
    let mut dice = Dice::of(seed);
    let deeds = deeds(&mut dice);
    let faults = Arc::new(FaultInjection::of(dice));
    let mut world = begin(ground, binary, &faults).await;
    round(&mut world, &faults, seed, deeds).await;
    world.end().await;
}

/// A world whose operator works, with what the roots import.
async fn begin(ground: &Ground, binary: Binary, faults: &Arc<FaultInjection>) -> World {
    let mut world = World::on(ground, binary, Arc::clone(faults) as Arc<dyn crate::proxy::Fates>).await;
    let password = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}, "stringData": {"value": SECRET}});
    world.objects.apply(&password).await;
    world.start();
    world.ready().await;
    world
}

/// One schedule from its first deed to two roots that have succeeded.
async fn round(world: &mut World, faults: &FaultInjection, seed: u64, deeds: Vec<Deed>) {
    eprintln!("seed {seed}: {deeds:?}");
    let history = History::begin(world.objects.client()).await;
    let effects = Effects::begin(world.objects.client()).await;
    faults.begin();
    for deed in deeds {
        carry_out(world, faults, deed).await;
    }
    faults.end();
    come_to_rest(world, &history, seed).await;
    leave_nothing(world, &history, seed).await;
    begin_again(world, &history, seed).await;
    let seen = history.until_now().await;
    check(seed, &seen, &effects.until_now(&world.objects).await, &faults.logged());
    keep_silent(seed, world, &seen).await;
}

/// In so many schedules of a soak the operator dies as in others: what a restart leaves is counted too. Then it stays, for what it
/// holds itself.
const WITH_RESTARTS: usize = 2;

/// Plays schedules for so long, three at least, one after the other, and prints what the operator holds before the first and after
/// each, when all objects are gone.
///
/// # Panics
/// Something is wrong with a schedule, or the operator holds more at the end than before ([`soak::check`]).
pub async fn soak(first: u64, length: Duration, ground: &Ground, binary: Binary) {
    let faults = Arc::new(FaultInjection::of(Dice::of(first)));
    let mut world = begin(ground, binary, &faults).await;
    // What is opened at the start is open by then.
    wait_until_idle(&world.objects).await;
    let before = world.held_at_rest(None).await;
    eprintln!("{:>5} s, {:>4} schedules: {before}", 0, 0);
    let mut held: Vec<Held> = Vec::new();
    let begun = Instant::now();
    for seed in first.. {
        if held.len() >= FEWEST_ROUNDS && begun.elapsed() >= length {
            break;
        }
        let mut deeds = deeds(&mut Dice::of(seed));
        let dies = held.len() < WITH_RESTARTS;
        deeds.retain(|deed| *deed != Deed::Kill);
        if dies {
            deeds.insert(deeds.len() / 2, Deed::Kill);
        }
        round(&mut world, &faults, seed, deeds).await;
        let history = History::begin(world.objects.client()).await;
        leave_nothing(&mut world, &history, seed).await;
        drop(history);
        let now = world.held_at_rest(Some(&before)).await;
        eprintln!("{:>5} s, {:>4} schedules: {now}", begun.elapsed().as_secs(), held.len() + 1);
        held.push(now);
    }
    match soak::memory(&held) {
        Some((warm, last)) => eprintln!("memory: {last:.0} MiB at the end, {warm:.0} MiB when it was warm"),
        None => eprintln!("memory was not compared: too few schedules were played"),
    }
    soak::check(&before, &held).unwrap_or_else(|why| fail(&why));
    world.end().await;
}

async fn carry_out(world: &mut World, faults: &FaultInjection, deed: Deed) {
    let objects = &world.objects;
    let annotate = async |root: &str, operation: &str| {
        let annotations = json!({"landscaper.gardener.cloud/operation": operation});
        let metadata = json!({"name": root, "annotations": annotations});
        objects.merge_where_there(&json!({"apiVersion": API, "kind": "Installation", "metadata": metadata})).await;
    };
    match deed {
        Deed::Apply(name, number) => drop(objects.apply(&root(name, number)).await),
        Deed::Reconcile(root) => annotate(root, "reconcile").await,
        Deed::Interrupt(root) => annotate(root, "interrupt").await,
        Deed::Delete(root) => objects.delete(&any("Installation", root)).await,
        Deed::DeleteChild(kind, number) => {
            if let Some(child) = child(objects, kind, number).await {
                objects.delete(&any(kind, &child)).await;
            }
        }
        Deed::Release(number) => {
            if let Some(item) = child(objects, "DeployItem", number).await {
                let metadata = json!({"name": item, "finalizers": null});
                objects
                    .merge_where_there(&json!({"apiVersion": API, "kind": "DeployItem", "metadata": metadata}))
                    .await;
            }
        }
        Deed::Kill => {
            world.kill().await;
            world.start();
        }
        Deed::Watch(count) => {
            let mut writes = faults.writes();
            let goal = *writes.borrow() + count;
            // Where nothing is done any more, nothing is waited for.
            drop(timeout(Duration::from_millis(700), writes.wait_for(|writes| *writes >= goal)).await);
        }
    }
}

/// The name of one of the objects of a kind that have an owner.
async fn child(objects: &Objects, kind: &str, number: usize) -> Option<String> {
    let all = objects.list(&json!({"apiVersion": API, "kind": kind})).await;
    let children: Vec<&Value> =
        all.iter().filter(|object| object.pointer("/metadata/ownerReferences").is_some()).collect();
    let chosen = children.get(number.checked_rem(children.len())?)?;
    chosen.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned)
}

/// Waits until nobody works any more, except on a deletion that waits for another root.
async fn come_to_rest(world: &mut World, history: &History, seed: u64) {
    let settled = |all: &[&Version]| {
        let waits = |root: &Version| root.name == "first" && root.is_deleting() && all.len() > 1;
        all.iter().all(|version| !is_at_work(version) || waits(version))
    };
    wait((&mut *world, history), seed, "do not come to rest", settled).await;
}

fn is_at_work(version: &Version) -> bool {
    let metadata = |field: &str| version.object.pointer(&format!("/metadata/{field}"));
    let asked = metadata("annotations/landscaper.gardener.cloud~1operation").is_some();
    version.is_running() || (asked && metadata("ownerReferences").is_none())
}

/// Deletes everything, and waits until it is gone. A deletion that was interrupted is asked for again.
async fn leave_nothing(world: &mut World, history: &History, seed: u64) {
    let objects = &world.objects;
    for root in ROOTS {
        objects.delete(&any("Installation", root)).await;
        let metadata = json!({"name": root, "annotations": asks()});
        objects.merge_where_there(&json!({"apiVersion": API, "kind": "Installation", "metadata": metadata})).await;
    }
    wait((&mut *world, history), seed, "are not gone", |all: &[&Version]| all.is_empty()).await;
}

/// Both roots from the beginning: what was before leaves no trace.
async fn begin_again(world: &mut World, history: &History, seed: u64) {
    for name in ROOTS {
        world.objects.apply(&root(name, 0)).await;
    }
    let is_done = |all: &[&Version]| {
        let succeeded = all.iter().filter(|version| version.kind == "Installation" && version.phase() == "Succeeded");
        succeeded.count() == 4 && all.iter().all(|version| !is_at_work(version))
    };
    wait((&mut *world, history), seed, "do not succeed", is_done).await;
    for name in ["first-a", "first-c", "first-leaf", "second-a", "second-c", "second-leaf"] {
        let content = if name.ends_with('c') { SECRET } else { "0" };
        let metadata = json!({"name": name});
        world
            .objects
            .expect(
                &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"content": content}}),
            )
            .await;
    }
}

/// Waits until what is there is as asked.
async fn wait((world, history): (&mut World, &History), seed: u64, what: &str, holds: impl Fn(&[&Version]) -> bool) {
    if let Err(seen) = history.wait_within(PATIENCE, |seen| holds(&present(seen))).await {
        let message_of: Vec<String> = present(&seen).into_iter().map(message_of).collect();
        let (objects, last_words) = (message_of.join("\n"), world.last_words());
        fail(&format!("seed {seed}: objects {what}:\n{objects}\n{last_words}"));
    }
}

fn message_of(version: &Version) -> String {
    let (job, finished) = version.jobs();
    let ready = version.object.pointer("/status/conditions/0").cloned().unwrap_or_default();
    let of = |field: &str| ready.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let annotations = version.object.pointer("/metadata/annotations").cloned().unwrap_or_default();
    let (kind, name, deleting) = (version.kind, &version.name, version.is_deleting());
    format!(
        "{kind} {name} {:?}, job {job:?}, finished {finished:?}, deleting {deleting}, {} {}, {annotations}",
        version.phase(),
        of("reason"),
        of("message")
    )
}

#[track_caller]
fn check(seed: u64, seen: &Seen, effects: &[Effect], writes: &[LoggedWrite]) {
    let mut broken = invariants::broken(seen.versions());
    broken.extend(invariants::effects_at_rest(seen.versions(), effects, writes));
    if !broken.is_empty() {
        fail(&format!("seed {seed}:\n{}\nin\n{:#?}", broken.join("\n"), seen.message_of()));
    }
}

/// What is told to people has nothing of what stands in a Secret.
async fn keep_silent(seed: u64, world: &World, seen: &Seen) {
    let events = world.objects.list(&json!({"apiVersion": "events.k8s.io/v1", "kind": "Event"})).await;
    let statuses = seen.versions().iter().filter_map(|version| version.object.get("status"));
    let mut message_of = events.iter().chain(statuses).map(Value::to_string).chain([world.log()]);
    if let Some(text) = message_of.find(|text| text.contains(SECRET)) {
        fail(&format!("seed {seed}: a secret is told: {text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_deeds() {
        assert_eq!(deeds(&mut Dice::of(7)), deeds(&mut Dice::of(7)));
        assert_ne!(deeds(&mut Dice::of(7)), deeds(&mut Dice::of(8)));
    }
}
