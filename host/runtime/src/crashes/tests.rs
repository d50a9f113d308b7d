use std::sync::atomic::{AtomicBool, Ordering};

use http::{Method, Request};
use kube::client::Body;
use orangery_reconcile::Key;
use tokio::sync::Notify;
use tower::BoxError;

use super::*;
use crate::{
    definitions::Definitions,
    fixture::{Still, server},
};

fn crash(pod: &str, message: &str) -> CriticalProblem {
    CriticalProblem {
        pod_name: pod.to_owned(),
        creation_time: Some(Time(Still::TIME)),
        description: format!("the reconcile of deploy-item ns/x panicked: {message}"),
    }
}

fn panicked(message: &str) -> Panicked {
    Panicked { controller: "deploy-item", key: Key::new("ns", "x"), message: message.to_owned() }
}

async fn kept(client: &Client) -> Vec<CriticalProblem> {
    let api: Api<CriticalProblems> = Api::default_namespaced(client.clone());
    api.get(CRITICAL_PROBLEMS).await.unwrap().spec.critical_problem
}

/// A process that panics so, and has it written down.
async fn crashes(client: &Client, pod: &str, messages: &[&str]) {
    let (crashes, written) = Crashes::new(client.clone(), pod, Arc::new(Still));
    messages.iter().for_each(|message| crashes.tell(&panicked(message)));
    drop(crashes);
    written.await;
}

#[tokio::test]
async fn panics_of_several_processes_stand_in_one_object_the_newest_last() {
    let (server, client) = server().await;
    Definitions::Install.ensure(&client).await.unwrap();
    crashes(&client, "one", &["a", "b"]).await;
    crashes(&client, "two", &["a"]).await;
    assert_eq!(kept(&client).await, [crash("one", "a"), crash("one", "b"), crash("two", "a")]);
    server.stop().await;
}

#[tokio::test]
async fn a_write_that_meets_another_one_keeps_its_entries() {
    let (server, client) = server().await;
    Definitions::Install.ensure(&client).await.unwrap();
    crashes(&client, "one", &["a"]).await;
    let (theirs, first) = (client.clone(), Arc::new(AtomicBool::new(true)));
    // Before the first replacement arrives, somebody else makes his.
    let between = tower::service_fn(move |request: Request<Body>| {
        let (theirs, first) = (theirs.clone(), Arc::clone(&first));
        async move {
            if request.method() == Method::PUT && first.swap(false, Ordering::SeqCst) {
                Box::pin(crashes(&theirs, "two", &["b"])).await;
            }
            theirs.send(request).await
        }
    });
    crashes(&Client::new(between, "default"), "one", &["c"]).await;
    assert_eq!(kept(&client).await, [crash("one", "a"), crash("two", "b"), crash("one", "c")]);
    server.stop().await;
}

#[tokio::test]
async fn what_could_not_be_written_goes_with_the_next() {
    let (server, client) = server().await;
    Definitions::Install.ensure(&client).await.unwrap();
    let (theirs, refused) = (client.clone(), Arc::new(Notify::new()));
    let (first, message) = (Arc::new(AtomicBool::new(true)), Arc::clone(&refused));
    let refusing = tower::service_fn(move |request: Request<Body>| {
        let (theirs, first, message) = (theirs.clone(), Arc::clone(&first), Arc::clone(&message));
        async move {
            if first.swap(false, Ordering::SeqCst) {
                message.notify_one();
                return Err(BoxError::from("there is no way"));
            }
            theirs.send(request).await.map_err(BoxError::from)
        }
    });
    let (crashes, written) = Crashes::new(Client::new(refusing, "default"), "one", Arc::new(Still));
    let written = tokio::spawn(written);
    crashes.tell(&panicked("a"));
    refused.notified().await;
    crashes.tell(&panicked("b"));
    drop(crashes);
    written.await.unwrap();
    assert_eq!(kept(&client).await, [crash("one", "a"), crash("one", "b")]);
    server.stop().await;
}

#[tokio::test]
async fn a_long_message_is_cut() {
    let (server, client) = server().await;
    Definitions::Install.ensure(&client).await.unwrap();
    crashes(&client, "one", &[&"é".repeat(LONGEST)]).await;
    let whole = crash("one", &"é".repeat(LONGEST)).description;
    let description = kept(&client).await.remove(0).description;
    assert!(description.len() <= LONGEST && description.len() > LONGEST - 2 && whole.starts_with(&description));
    server.stop().await;
}
