//! A job stopped in each step in which it can wait: what a restart, an interrupt and a timeout make of it there.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use orangery_api::{deploy_item::DeployItem, job::Job};
use serde_json::{Value, json};

use super::items::{Items, gate, gated_on, key, proposal};

const HOLD: &str = "example.org/hold";

/// A step in which a job waits.
struct Stop {
    /// The name of the item and of the object that it waits for.
    name: &'static str,
    /// What its job proposes, by checkpoint.
    proposals: Vec<Value>,
    /// What the job before has proposed.
    before: Option<Value>,
    /// Where the job stands, as the status says it.
    step: Value,
    /// What it waits for.
    waits: String,
    /// What lets it go on.
    release: Release,
    /// The object is there before the job, with a finalizer, and is being deleted where that is said.
    there: Option<IsDeleted>,
}

#[derive(Clone, Copy)]
struct IsDeleted(bool);

#[derive(Clone, Copy)]
enum Release {
    /// The finalizer of the object goes.
    Finalizer,
    /// Its data becomes this.
    Data(&'static str, &'static str),
    /// An hour passes.
    Time,
    /// The component answers.
    Answer,
}

fn stage(step: &str) -> Value {
    json!({"stage": {"stage": 0, "step": step}})
}

fn gone(name: &str) -> String {
    format!("ConfigMap default/{name} to be gone")
}

fn unready(name: &str) -> String {
    format!("ConfigMap default/{name} (.data.k == \"ready\" does not hold) to become ready")
}

fn removing() -> Stop {
    let mut plan = proposal("removing", json!({}));
    plan["stages"][0]["removals"] = json!([{"key": key("removing")}]);
    Stop {
        name: "removing",
        proposals: vec![plan],
        before: None,
        step: stage("removing"),
        waits: gone("removing"),
        release: Release::Finalizer,
        there: Some(IsDeleted(false)),
    }
}

fn writing() -> Stop {
    Stop {
        name: "writing",
        proposals: vec![proposal("writing", json!({}))],
        before: None,
        step: stage("writing"),
        waits: gone("writing"),
        release: Release::Finalizer,
        there: Some(IsDeleted(true)),
    }
}

fn waiting() -> Stop {
    Stop {
        name: "waiting",
        proposals: vec![gated_on("waiting", "ready")],
        before: None,
        step: stage("waiting"),
        waits: unready("waiting"),
        release: Release::Data("k", "ready"),
        there: None,
    }
}

fn pruning() -> Stop {
    Stop {
        name: "pruning",
        proposals: vec![proposal("pruning-next", json!({}))],
        before: Some(proposal("pruning", json!({}))),
        step: json!("pruning"),
        waits: gone("pruning"),
        release: Release::Finalizer,
        there: None,
    }
}

fn exporting() -> Stop {
    let source = json!({"path": {"key": key("exporting"), "path": ".data.later"}});
    let exports = json!({"next": {"finish": {"exports": [{"key": "e", "source": source}]}}});
    Stop {
        name: "exporting",
        proposals: vec![proposal("exporting", exports)],
        before: None,
        step: json!("exporting"),
        waits: "ConfigMap default/exporting (export e:".to_owned(),
        release: Release::Data("later", "now"),
        there: None,
    }
}

fn afterwards() -> Stop {
    let last = json!({"name": "last", "gate": gate("afterwards", "ready")});
    Stop {
        name: "afterwards",
        proposals: vec![proposal("afterwards", json!({"next": {"finish": {"afterwards": [last]}}}))],
        before: None,
        step: json!({"afterwards": {"stage": 0, "step": "waiting"}}),
        waits: unready("afterwards"),
        release: Release::Data("k", "ready"),
        there: None,
    }
}

fn tidying() -> Stop {
    let mut plan = proposal("tidying", json!({}));
    plan["stages"][0]["writes"][0]["owned"] = json!("ephemeral");
    plan["stages"][0]["writes"][0]["object"]["metadata"]["finalizers"] = json!([HOLD]);
    Stop {
        name: "tidying",
        proposals: vec![plan],
        before: None,
        step: json!("tidying"),
        waits: gone("tidying"),
        release: Release::Finalizer,
        there: None,
    }
}

fn calling() -> Stop {
    let again = json!({"next": {"againIn": {"after": 3_600_000, "checkpoint": [1]}}});
    Stop {
        name: "calling",
        proposals: vec![proposal("calling", again), proposal("calling", json!({}))],
        before: None,
        step: json!({"calling": {}}),
        waits: "waiting for the next attempt".to_owned(),
        release: Release::Time,
        there: None,
    }
}

fn recovering() -> Stop {
    let mut plan = proposal("recovering", json!({"recover": [1]}));
    plan["stages"][0]["writes"][0]["object"]["data"] = json!("no map");
    Stop {
        name: "recovering",
        proposals: vec![plan, json!({"closed": proposal("recovering", json!({}))})],
        before: None,
        step: json!({"recovering": {}}),
        waits: "plugin scripted: closed".to_owned(),
        release: Release::Answer,
        there: None,
    }
}

fn all() -> Vec<Stop> {
    vec![removing(), writing(), waiting(), pruning(), exporting(), afterwards(), tidying(), calling(), recovering()]
}

impl Stop {
    /// A job that waits in the step.
    async fn reach(&self, world: &Items) {
        if let Some(IsDeleted(is_deleted)) = self.there {
            let object = json!({"metadata": {"name": self.name, "finalizers": [HOLD]}});
            let api: Api<ConfigMap> = world.config_maps();
            api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
            if is_deleted {
                api.delete(self.name, &DeleteParams::default()).await.unwrap();
            }
        }
        let first = self.before.as_ref().map_or_else(|| self.proposals.clone(), |before| vec![before.clone()]);
        world.create(self.name, &first, json!({"timeout": "3h"})).await;
        if self.before.is_some() {
            world.job(self.name, "before").await;
            world.patch_config_map(self.name, json!({"metadata": {"finalizers": [HOLD]}})).await;
            world.patch(self.name, json!({"spec": {"config": {"proposals": self.proposals}}})).await;
        }
        world.trigger(self.name, "one").await;
        let stands = |item: &DeployItem| {
            let says = item.conditions().iter().any(|condition| condition.message.contains(&self.waits));
            says && Items::step(item).is_some_and(|at| same_step(&at, &self.step))
        };
        world.wait(self.name, |item| item.is_some_and(stands)).await;
    }

    async fn release(&self, world: &Items) {
        match self.release {
            Release::Finalizer => {
                world.patch_config_map(self.name, json!({"metadata": {"finalizers": null}})).await;
            }
            Release::Data(field, value) => world.patch_config_map(self.name, json!({"data": {field: value}})).await,
            Release::Time => {
                world.jump(3_600);
                world.touch(self.name, "the time has come").await;
            }
            Release::Answer => {
                world.plugin.open();
                world.touch(self.name, "the component answers").await;
            }
        }
    }
}

/// Whether both are one step; of a call and of a failure only the kind is compared, as times and messages differ.
fn same_step(at: &Value, expected: &Value) -> bool {
    let kind = |step: &Value| step.as_object().and_then(|object| object.keys().next().cloned());
    let is_call = |step: &Value| matches!(kind(step).as_deref(), Some("calling" | "recovering"));
    if is_call(at) { kind(at) == kind(expected) } else { at == expected }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv_6_a_job_goes_on_after_a_restart_where_it_stood_in_every_step() {
    let mut world = Items::new().await;
    for stop in all() {
        stop.reach(&world).await;
    }
    let before = world.calls();
    world.restart();
    for stop in all() {
        stop.release(&world).await;
        let status = world.finished(stop.name, "one").await;
        assert_eq!(status["phase"], json!("Succeeded"), "{}: {status:#}", stop.name);
        assert_eq!(status["providerStatus"].pointer("/orangery/progress"), None, "{}", stop.name);
    }
    let again: Vec<String> =
        world.plugin.calls.lock().unwrap().iter().skip(before).map(|item| item.name.to_string()).collect();
    assert!(again.iter().all(|name| ["calling", "recovering"].contains(&name.as_str())), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_72_an_interrupted_job_is_not_gone_on_with_in_any_step() {
    let world = Items::new().await;
    for stop in all() {
        stop.reach(&world).await;
        world.interrupt(stop.name, "one").await;
        // What lives for the job ends with it, and when it is gone the status says so (C-277).
        let is_written = stop.name == "tidying";
        let version = |item: DeployItem| item.metadata.resource_version.filter(|_| !is_written);
        let before = version(world.items().get(stop.name).await.unwrap());
        let calls = world.calls();
        if !matches!(stop.release, Release::Time | Release::Answer) {
            stop.release(&world).await;
        }
        // Another item shows that the controller has seen it all.
        let probe = format!("{}-probe", stop.name);
        world.create(&probe, &[proposal(&probe, json!({}))], json!({})).await;
        world.job(&probe, "probe").await;
        let item = world.items().get(stop.name).await.unwrap();
        assert_eq!(item.phase(), "Failed", "{}", stop.name);
        assert_eq!(version(item), before, "{}", stop.name);
        // A component that is asked again and again may be asked while the interrupt comes in.
        if !matches!(stop.release, Release::Answer) {
            assert_eq!(world.calls(), calls + 1, "{}: only the probe is asked", stop.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_08_a_job_whose_time_is_up_fails_with_what_it_waited_for_in_every_step() {
    let world = Items::new().await;
    for stop in all() {
        stop.reach(&world).await;
    }
    world.jump(4 * 3_600);
    for stop in all() {
        // A call that was due after an hour is made, and then there is nothing more to do.
        if matches!(stop.release, Release::Time) {
            continue;
        }
        world.touch(stop.name, "the time is up").await;
        let status = world.finished(stop.name, "one").await;
        let error = &status["lastError"];
        assert_eq!(
            (&status["phase"], &error["reason"]),
            (&json!("Failed"), &json!("ProgressingTimeout")),
            "{status:#}"
        );
        assert!(error["codes"].as_array().unwrap().contains(&json!("ERR_TIMEOUT")), "{status:#}");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with("the item did not finish within its timeout of 180m; "), "{message}");
        let object = format!("ConfigMap default/{}", stop.name);
        assert!(message.contains(&object) || message.contains(&stop.waits), "{message}");
        assert_eq!(status["providerStatus"].pointer("/orangery/progress"), None, "{}", stop.name);
        let inventory = status["providerStatus"]["managedResources"].as_array();
        assert!(inventory.is_some_and(|list| !list.is_empty()), "{}: the inventory stays: {status:#}", stop.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_08_limits_state_a_component_that_goes_on_for_ever_ends_its_job_also_without_a_timeout() {
    let world = Items::new().await;
    let endless = json!({"stages": [], "next": {"continueWith": [0]}});
    let message = "plugin scripted was called 256 times in a row and goes on without waiting for anything, so it would go on \
        for ever; correct it, or use another version";
    world.create("item", std::slice::from_ref(&endless), json!({"timeout": "none"})).await;
    let status = world.job("item", "one").await;
    assert_eq!((&status["phase"], &status["lastError"]["message"]), (&json!("Failed"), &json!(message)));
    let uninstalls = json!({"timeout": "none", "config": {"uninstalls": [endless]}});
    world.create("other", &[proposal("a", json!({}))], uninstalls).await;
    world.job("other", "one").await;
    world.delete("other").await;
    let status = world.job("other", "two").await;
    assert_eq!((&status["phase"], &status["lastError"]["message"]), (&json!("DeleteFailed"), &json!(message)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ins_57_the_job_of_an_item_that_is_being_deleted_does_not_wait_for_a_namespace_that_is_being_terminated() {
    let world = Items::new().await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let named = |fields: Value| serde_json::from_value(fields).unwrap();
    namespaces.create(&PostParams::default(), &named(json!({"metadata": {"name": "doomed"}}))).await.unwrap();
    let held: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "held", "finalizers": [HOLD]}})).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "doomed");
    maps.create(&PostParams::default(), &held).await.unwrap();
    namespaces.delete("doomed", &DeleteParams::default()).await.unwrap();
    let mut writes = proposal("a", json!({}));
    writes["stages"][0]["writes"][0]["object"]["metadata"]["namespace"] = json!("doomed");
    world.create("item", &[writes], json!({})).await;
    world.trigger("item", "one").await;
    world.waiting("item", "because it is being terminated").await;
    world.delete("item").await;
    let status = world.finished("item", "one").await;
    let message = status["lastError"]["message"].as_str().unwrap();
    assert_eq!(status["phase"], "Failed", "{status:#}");
    assert!(message.ends_with("; the item is being deleted, too, so its job ends, and it is uninstalled"), "{message}");
    world.trigger("item", "two").await;
    world.gone("item").await;
}

/// Nothing wakes it: the item's own time has to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_39_a_component_that_never_answers_ends_with_the_time_of_its_item() {
    let world = Items::new().await;
    world.create("item", &[json!({"endless": true})], json!({"timeout": "1s"})).await;
    let status = world.job("item", "one").await;
    assert_eq!(
        (&status["phase"], &status["lastError"]["codes"]),
        (&json!("Failed"), &json!(["ERR_TIMEOUT"])),
        "{status:#}"
    );
    let message = status["lastError"]["message"].as_str().unwrap();
    assert!(message.contains("the work was cut off, because it went on when the time for it was up"), "{message}");
}
