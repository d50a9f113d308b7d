//! What a component keeps in the status of its item shows no value of a Secret there, and comes back to it whole (C-85).

use orangery_controllers::SecretSource;
use serde_json::{Value, json};

use super::items::{Items, proposal};

const VALUE: &str = "hunter2-hunter2+hunter2";

/// A component that keeps the value, fails with it, and asks for one more call.
async fn keeping() -> Items {
    let world = Items::new().await;
    world.host.as_ref().unwrap().secrets.learn(&"default".into(), SecretSource::Secret("s".into()), [VALUE.to_owned()]);
    let keeps = json!({"status": {"token": VALUE, "count": 1}});
    let first = proposal("a", json!({"status": keeps["status"], "next": {"continueWith": [1]}}));
    world.create("item", &[first, proposal("a", keeps)], json!({})).await;
    world
}

fn kept(status: &Value) -> Vec<Option<&Value>> {
    ["/providerStatus/token", "/providerStatus/count"].map(|at| status.pointer(at)).to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_85_a_component_gets_back_what_it_keeps_and_nobody_else_sees_it() {
    let mut world = keeping().await;
    let status = world.job("item", "one").await;
    assert_eq!(kept(&status), [Some(&json!("[masked]")), Some(&json!(1))]);
    assert!(!status.to_string().contains("hunter2"), "{status:#}");
    // Controllers that have just begun do not know what is secret, and go on with it all the same.
    world.restart();
    let status = world.job("item", "two").await;
    assert_eq!(kept(&status), [Some(&json!("[masked]")), Some(&json!(1))]);
    let seen: Vec<Option<Value>> = world
        .plugin
        .calls
        .lock()
        .unwrap()
        .iter()
        .map(|item| item.status.as_ref().map(|status| status["token"].clone()))
        .collect();
    assert_eq!(seen, [None, Some(json!(VALUE)), Some(json!(VALUE)), Some(json!(VALUE))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_209_conditions_that_a_component_tells_are_those_of_its_item_and_show_no_value() {
    let world = keeping().await;
    let told = |type_: &str, status: &str, message: &str| json!({"type": type_, "status": status, "reason": "R", "message": message});
    let first = json!([told("InitContainer", "Progressing", "m"), told("Other", "True", "m")]);
    let first = json!({"status": {"count": 1, "conditions": first}, "next": {"continueWith": [1]}});
    let fails = json!({"fail": {"code": "ERR_MINE", "message": "no"}});
    let second = json!({"status": {"count": 2, "conditions": [told("InitContainer", "False", VALUE)]}, "next": fails});
    world.create("other", &[proposal("b", first), proposal("b", second)], json!({})).await;
    let of_component = |status: &Value| -> Vec<Vec<String>> {
        let all = status["conditions"].as_array().unwrap().iter();
        let line = |told: &Value| {
            ["type", "status", "reason", "message"].map(|field| told[field].as_str().unwrap().to_owned())
        };
        let of_host = ["Ready", "Stalled", "Progressing", "Reconciling"];
        all.map(|told| line(told).to_vec()).filter(|line| !of_host.contains(&line[0].as_str())).collect()
    };
    let status = world.job("other", "one").await;
    assert_eq!(of_component(&status), [["InitContainer", "False", "R", "[masked]"]], "{status:#}");
    let last = proposal("b", json!({"status": {"count": 3}}));
    world.patch("other", json!({"spec": {"config": {"proposals": [last]}}})).await;
    let status = world.job("other", "two").await;
    assert_eq!((of_component(&status), &status["providerStatus"]["count"]), (Vec::new(), &json!(3)), "{status:#}");
}
