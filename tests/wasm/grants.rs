//! What a deployer may not reach, and what the sandbox shows it of the world.

use orangery_core::error::Fault;
use serde_json::json;

use super::fixtures::{deployer, plan};

#[tokio::test]
async fn a_kind_that_is_not_granted_is_denied() {
    let answer = plan(&deployer("reads_secrets", json!({}))).await.unwrap();
    assert_eq!(
        answer.unwrap_err(),
        Fault::denied(
            "v1 Secret in namespace default is not granted to this component; have an administrator add it to `reads` in the grants of its registration, or of its Plugin"
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
async fn no_file_socket_name_or_variable_is_reached() {
    let proposal = plan(&deployer("reaches_out", json!({}))).await.unwrap().unwrap();
    assert_eq!(
        proposal.status,
        Some(json!({
            "arguments": ["component"],
            "variables": 0,
            "stdin": 0,
            "folder": "NotFound",
            "file": "NotFound",
            "written": "NotFound",
            "connected": "PermissionDenied",
            "listened": "PermissionDenied",
            "sent": "PermissionDenied",
            "resolved": false,
        }))
    );
}
