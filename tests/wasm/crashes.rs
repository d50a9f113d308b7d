//! Guests that crash, end themselves or answer nonsense.

use orangery_core::error::{Code, Fault};
use orangery_plugin::Error;
use orangery_proposal::deployer::{Deployer, Reads};
use serde_json::json;

use orangery_tests::empty::Empty;

use super::fixtures::{deployer, ended, item, plan};

async fn end_of(guest: &str) -> std::sync::Arc<Error> {
    ended(plan(&deployer(guest, json!({}))).await)
}

#[tokio::test]
async fn a_recursion_ends_with_the_stack() {
    let error = end_of("recurses").await;
    assert!(matches!(*error, Error::StackOverflow { .. }), "{error:?}");
    assert_eq!(error.to_string(), "the component crashed: its calls are nested deeper than the stack of 2 MiB");
}

#[tokio::test]
async fn a_panic_is_told_in_the_guests_own_words_escaped() {
    let error = end_of("panics").await;
    let Error::Trap { reason, wrote: Some(wrote), .. } = &*error else { panic!("{error:?}") };
    assert_eq!(reason, "wasm trap: wasm `unreachable` instruction executed");
    assert!(wrote.starts_with("thread '<unnamed>'") && wrote.ends_with("no plan for item\\u{1b}[2J"), "{wrote}");
    assert_eq!(error.to_string(), format!("the component crashed: {reason}; it wrote: {wrote}"));
}

#[tokio::test]
async fn a_trap_is_named() {
    let error = end_of("traps").await;
    assert!(matches!(*error, Error::Trap { wrote: None, .. }), "{error:?}");
    assert_eq!(error.to_string(), "the component crashed: wasm trap: wasm `unreachable` instruction executed");
}

#[tokio::test]
async fn an_exit_is_no_answer() {
    let error = end_of("exits").await;
    assert!(matches!(*error, Error::Exit { status: 1, .. }), "{error:?}");
    assert_eq!(error.to_string(), "the component ended itself with status 1 instead of answering");
}

#[tokio::test]
async fn nonsense_is_named_with_its_place() {
    let error = end_of("answers_nonsense").await;
    assert!(matches!(*error, Error::Nonsense { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the component's answer makes no sense: stages[0].writes[0].object is not JSON: expected value at line 1 column 1"
    );
}

#[tokio::test]
async fn an_item_gets_one_sentence_with_the_component_s_name() {
    let traps = deployer("traps", json!({}));
    let fault = Deployer::plan(&traps, &item(), Reads::of_clusters(std::sync::Arc::new(Empty))).await.unwrap_err();
    assert_eq!(
        fault,
        Fault::invalid(
            Code::InternalProblem,
            "traps 1.0.0: the component crashed: wasm trap: wasm `unreachable` instruction executed"
        )
    );
}
