//! Calls of the controllers take their turn with what computes.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use orangery_core::name::Namespace;
use serde_json::json;
use tokio::time::timeout;

use crate::{
    deploy_item::items::{Items, proposal},
    objects::{installation, object, with},
};

/// How long a test waits for anything.
const DEADLINE: Duration = Duration::from_secs(60);

/// Computes in as many namespaces as there are places, each on a thread of its own, until the sender is dropped.
fn take_all_places(host: &Arc<orangery_controllers::ControllerContext>) -> mpsc::Sender<()> {
    let places = 2 * thread::available_parallelism().unwrap().get();
    let (end, ended) = mpsc::channel::<()>();
    let ended = Arc::new(std::sync::Mutex::new(ended));
    let (begins, begun) = mpsc::channel();
    for number in 0..places {
        let (host, ended, begins) = (Arc::clone(host), Arc::clone(&ended), begins.clone());
        thread::spawn(move || {
            let tenant = Some(Namespace::from(format!("other-{number}")));
            let work = async {
                begins.send(()).unwrap();
                let _dropped = ended.lock().unwrap().recv();
            };
            futures::executor::block_on(host.computations.run(&tenant, work));
        });
    }
    (0..places).for_each(|_| begun.recv_timeout(DEADLINE).unwrap());
    end
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_45_what_others_wrote_is_evaluated_in_turns_by_installations_executions_and_deploy_items() {
    let world = Items::new().await;
    world.create("item", &[proposal("a", json!({}))], json!({})).await;
    let objects = world.objects();
    objects.apply(&object("Execution", "tree", &json!({"context": "default"}))).await;
    objects.expect("Execution", "tree", |_| true).await;
    let places = take_all_places(world.host.as_ref().unwrap());
    objects.apply(&installation("root", &json!({}))).await;
    objects.patch_status("Execution", "tree", &json!({"jobID": "one"})).await;
    world.trigger("item", "one").await;
    let all_wait = async {
        while objects.running() != [1; 3] {
            objects.list("Installation").await;
        }
    };
    timeout(DEADLINE, all_wait).await.expect("all three kinds are worked on");
    // Whatever had no turn to wait for would have ended by now.
    for _ in 0..50 {
        objects.list("Installation").await;
    }
    assert_eq!(objects.running(), [1; 3]);
    drop(places);
    for (kind, name) in [("Installation", "root"), ("Execution", "tree"), ("DeployItem", "item")] {
        objects.ended(kind, name, "Succeeded").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_99_large_imports_are_in_memory_in_turns_and_small_ones_do_not_wait() {
    let world = Items::new().await;
    let (objects, host) = (world.objects(), Arc::clone(world.host.as_ref().unwrap()));
    // 42 KB that take over 5 MiB.
    let large = format!("[{}0]", "{\"\":0},".repeat(6_000));
    for (name, text) in [("large", large.as_str()), ("small", "[1]")] {
        objects
            .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": text}}))
            .await;
    }
    let mut turns = Vec::new();
    for other in ["x", "y"] {
        turns.push(host.large_imports.acquire(&Some(Namespace::from(other.to_owned()))).await);
    }
    for name in ["large", "small"] {
        let imports = json!({"data": [{"name": "a", "configMapRef": {"name": name, "key": "k"}}]});
        objects.apply(&with(installation(name, &json!({})), &json!({"imports": imports}))).await;
    }
    objects.ended("Installation", "small", "Succeeded").await;
    // Whatever had no turn to wait for would have ended by now.
    for _ in 0..50 {
        objects.list("Installation").await;
    }
    objects
        .expect("Installation", "large", |large| large["status"]["jobIDFinished"].as_str().unwrap_or("").is_empty())
        .await;
    drop(turns);
    objects.ended("Installation", "large", "Succeeded").await;
}
