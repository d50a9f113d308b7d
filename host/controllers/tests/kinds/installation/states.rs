//! States of templates lie in Secrets that others may write: what this operator has not written is no state to go on with, unless a
//! policy says so (C-202).

use data_encoding::BASE64;
use orangery_policy::Profile;
use serde_json::{Value, json};

use crate::{
    objects::{ENGINE, input, installation},
    world::{Setup, World, message},
};

const SEAL: &str = "orangery.dev/state-seal";

/// A root `a` with a template that keeps what it was given.
fn keeping() -> Value {
    let template = json!({"deployItems": [], "$state": {"seen": input("/state/next"), "next": "again"}}).to_string();
    let blueprint = json!({"deployExecutions": [{"name": "counts", "type": ENGINE, "template": template}]});
    installation("a", &blueprint)
}

/// The Secret with the state.
async fn secret(world: &World) -> Value {
    let mut secrets = world.list("Secret").await;
    secrets.retain(|secret| secret["metadata"]["ownerReferences"][0]["name"] == "a");
    assert_eq!(secrets.len(), 1, "{secrets:#?}");
    secrets.remove(0)
}

fn seal(secret: &Value) -> Value {
    secret["metadata"]["annotations"][SEAL].clone()
}

fn state(secret: &Value) -> Value {
    let bytes = BASE64.decode(secret["data"]["config"].as_str().unwrap().as_bytes()).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// A state as it stands in its Secret.
fn stored(state: &Value) -> Value {
    json!(BASE64.encode(state.to_string().as_bytes()))
}

/// A user writes a state, as it stands in a Secret, with a seal or without.
async fn plant(world: &World, stored: &Value, seal: &Value) {
    let name = secret(world).await["metadata"]["name"].clone();
    let patch = json!({"metadata": {"annotations": {(SEAL): seal}}, "data": {"config": stored}});
    world.patch("Secret", name.as_str().unwrap(), &patch).await;
}

/// The next job of the root, which ends so.
async fn job(world: &World, phase: &str, before: &Value) -> Value {
    world.request("a").await;
    world.ended_after("Installation", "a", phase, before).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_202_under_the_restricted_profile_a_state_that_others_have_written_is_refused() {
    let world = World::with(Setup { profile: Profile::Restricted, ..Setup::default() }).await;
    world.apply(&keeping()).await;
    let mut ended = world.ended("Installation", "a", "Succeeded").await;
    let first = secret(&world).await;
    ended = job(&world, "Succeeded", &ended).await;
    let second = secret(&world).await;
    assert_eq!(
        (state(&first), state(&second)["seen"].clone()),
        (json!({"next": "again", "seen": null}), json!("again"))
    );
    let (evil, content) = (stored(&json!({"next": "evil"})), |secret: &Value| secret["data"]["config"].clone());
    for (planted, with) in [
        (evil.clone(), seal(&second)),
        (evil, Value::Null),
        (content(&second), Value::Null),
        (content(&first), seal(&first)),
    ] {
        plant(&world, &planted, &with).await;
        ended = job(&world, "Failed", &ended).await;
        let name = second["metadata"]["name"].as_str().unwrap();
        let expected = format!(
            "the state of templates in the Secret {name}, which is not as this operator has written it last (where it is deleted, they \
             begin anew), is refused by the default policy, line spec.blueprints.unsealedStates; leave it out, or have an \
             administrator set unsealedStates: true in a NamespacePolicy for the namespace"
        );
        assert_eq!(message(&ended), expected, "{planted}");
        let left = secret(&world).await;
        assert_eq!((content(&left), seal(&left)), (planted, with), "it is left alone");
    }
    plant(&world, &content(&second), &seal(&second)).await;
    job(&world, "Succeeded", &ended).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c_202_under_the_compatible_profile_a_state_without_a_seal_is_taken_over_and_sealed() {
    let world = World::new().await;
    world.apply(&keeping()).await;
    let mut ended = world.ended("Installation", "a", "Succeeded").await;
    let before = secret(&world).await;
    // As the template leaves it: nothing but the seal is written.
    let theirs = json!({"next": "again", "seen": "again"});
    for with in [Value::Null, seal(&before)] {
        plant(&world, &stored(&theirs), &with).await;
        ended = job(&world, "Succeeded", &ended).await;
        let after = secret(&world).await;
        assert_eq!(state(&after), theirs);
        assert!(seal(&after).is_string() && seal(&after) != with, "{after:#}");
    }
    let note = |name: &Value| {
        format!(
            "Warning StateNotTrusted: the state of templates in Secret {} is not as this operator has written it; it is gone on with, as \
             the policy of the namespace has it (blueprints.unsealedStates)",
            name.as_str().unwrap()
        )
    };
    world.has_events("Installation", "a", &[&note(&before["metadata"]["name"])]).await;
}
