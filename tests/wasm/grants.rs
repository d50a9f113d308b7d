//! What a guest may not reach, and what the sandbox shows it of the world.

use std::sync::Arc;

use orangery_core::{
    error::Fault,
    port::Surroundings,
    template::{ExecutionKind, RenderRequest},
};
use orangery_plugin::{Error, Plugin};
use orangery_tests::empty::Empty;
use serde_json::json;

use crate::stage::{bytes, deployer, ended, plan, registered, sandbox};

#[tokio::test]
async fn a_kind_that_is_not_granted_is_denied() {
    let answer = plan(&deployer("reads_secrets", json!({}))).await.unwrap();
    assert_eq!(
        answer.unwrap_err(),
        Fault::denied(
            "v1 Secret in namespace default is not granted to this component; add it to `reads` in the grants of its registration"
        )
    );
}

#[tokio::test]
async fn time_chance_and_environment_are_those_of_the_request() {
    let answers = deployer("answers", json!({}));
    let first = plan(&answers).await.unwrap().unwrap();
    let status = first.status.clone().unwrap();
    assert_eq!(status["time"], json!(1_795_227_049));
    assert_eq!(status["variables"], json!(0));
    assert_eq!(plan(&answers).await.unwrap().unwrap(), first);
}

#[tokio::test]
async fn an_interface_without_a_backend_says_so() {
    let claim = json!({"deployer": null, "template": {"types": ["Gamble"]}});
    let gambles = Plugin::new(registered("gambles", bytes("gambles"), claim, json!({})), sandbox());
    let request = RenderRequest {
        execution: ExecutionKind::Deploy,
        name: "default".into(),
        file: None,
        template: String::new(),
        inputs: json!({}),
        state: None,
    };
    let error = ended(gambles.render(&request, &Surroundings::of_files(Arc::new(Empty))).await);
    assert!(matches!(*error, Error::Unavailable { .. }), "{error:?}");
    assert_eq!(error.to_string(), "the component uses orangery:template/chance, which this host does not serve yet");
}
