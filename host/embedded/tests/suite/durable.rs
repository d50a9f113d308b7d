//! The data folder: what is acknowledged is kept, whatever ends the process; and what is no data folder is refused.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams},
};
use orangery_embedded::{DataFolderError, StartError, Storage, start};
use serde_json::json;

use crate::scaffold::*;

/// Set for the process that is killed: the folder it writes.
const VICTIM: &str = "ORANGERY_TEST_VICTIM";

#[tokio::test]
async fn a_restart_keeps_objects_definitions_identity_and_revisions() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = serve_folder(folder.path()).await;
    let token = server.token().to_owned();
    create(&definitions(&client), definition()).await.unwrap();
    namespace(&client, "ns").await;
    let made = create(&things(&client, "ns"), thing("t", json!({"size": 1}))).await.unwrap();
    create(&things(&client, "ns"), thing("gone", json!({"size": 1}))).await.unwrap();
    things(&client, "ns").delete("gone", &DeleteParams::default()).await.unwrap();
    let version = things(&client, "ns").list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    server.stop().await;
    let (server, client) = serve_folder(folder.path()).await;
    assert_eq!(server.token(), token);
    let listed = things(&client, "ns").list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items, [made]);
    assert!(listed.metadata.resource_version.unwrap().parse::<u64>().unwrap() >= version.parse().unwrap());
    server.stop().await;
}

#[tokio::test]
async fn a_kill_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["durable::the_process_that_is_killed", "--exact", "--nocapture"])
        .env(VICTIM, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = BTreeSet::new();
    for line in BufReader::new(victim.stdout.take().unwrap()).lines() {
        if let Some(name) = line.unwrap().strip_prefix("acknowledged ") {
            acknowledged.insert(name.to_owned());
        }
        if acknowledged.len() == 200 {
            // In the midst of writes: SIGKILL.
            victim.kill().unwrap();
            break;
        }
    }
    victim.wait().unwrap();
    assert_eq!(acknowledged.len(), 200);
    let (server, client) = serve_folder(folder.path()).await;
    let kept = config_maps(&client, "default").list(&ListParams::default()).await.unwrap();
    let kept: BTreeSet<String> = kept.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(acknowledged.difference(&kept).collect::<Vec<_>>(), Vec::<&String>::new());
    create(&config_maps(&client, "default"), config_map("after", json!({}))).await.unwrap();
    server.stop().await;
}

/// Not a test of its own: writes until it is killed, when it is asked to.
#[tokio::test]
async fn the_process_that_is_killed() {
    let Some(folder) = std::env::var_os(VICTIM) else { return };
    let (_server, client) = serve_folder(folder.as_ref()).await;
    let maps = config_maps(&client, "default");
    let writers = (0..4).map(|writer| {
        let maps = maps.clone();
        async move {
            for n in 0.. {
                let name = format!("map-{writer}-{n}");
                create(&maps, config_map(&name, json!({"a": "x".repeat(500)}))).await.unwrap();
                println!("\nacknowledged {name}");
            }
        }
    });
    futures::future::join_all(writers).await;
}

#[tokio::test]
async fn a_folder_in_use_of_another_format_or_of_others_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = serve_folder(folder.path()).await;
    let refused = |result: Result<_, StartError>| match result {
        Err(StartError::Folder(error)) => error,
        other => panic!("a refusal was expected: {:?}", other.map(|_: orangery_embedded::Server| ())),
    };
    let storage = || Storage::Folder(folder.path().to_owned());
    let locked = refused(start(options(storage())).await);
    assert!(matches!(&locked, DataFolderError::Locked { .. }), "{locked}");
    let sentence = format!(
        "the data folder {} is in use by another process; stop that one or name another folder",
        folder.path().display()
    );
    assert_eq!(locked.to_string(), sentence);
    server.stop().await;
    std::fs::write(folder.path().join("FORMAT"), "orangery data 99\n").unwrap();
    let other = refused(start(options(storage())).await);
    assert!(matches!(&other, DataFolderError::OtherFormat { found, .. } if found == "orangery data 99"), "{other}");
    let foreign = tempfile::tempdir().unwrap();
    std::fs::write(foreign.path().join("letter.txt"), "dear").unwrap();
    let not_ours = refused(start(options(Storage::Folder(foreign.path().to_owned()))).await);
    assert!(matches!(not_ours, DataFolderError::NotOurs { .. }));
    assert_eq!(std::fs::read_dir(foreign.path()).unwrap().count(), 1, "a foreign folder is left alone");
}

#[tokio::test]
async fn a_port_in_use_is_refused() {
    let (server, _) = serve().await;
    let mut taken = options(Storage::Memory);
    taken.address = server.address();
    let refused = start(taken).await.map(|_| ());
    assert!(matches!(refused, Err(StartError::AddressInUse { address }) if address == server.address()));
    server.stop().await;
}

#[cfg(unix)]
#[tokio::test]
async fn the_identity_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = serve_folder(folder.path()).await;
    let mode = std::fs::metadata(folder.path().join("identity.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    server.stop().await;
}
