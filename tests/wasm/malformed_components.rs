//! Bytes that are not what they are registered as.

use std::fs;

use orangery_plugin::{CallIsolation, Error, Sandbox, SandboxConfig, WorkerCommand, inspect};
use serde_json::json;

use super::fixtures::{bytes, deployer, deployer_of, ended, leb, plan, sandbox, sandbox_with, section, with_module};

async fn end_of(bytes: Vec<u8>) -> std::sync::Arc<Error> {
    ended(plan(&deployer_of(sandbox(), "liar", bytes, json!({}))).await)
}

#[tokio::test]
async fn an_import_that_is_not_offered_is_named() {
    let error = end_of(bytes("opens_a_door")).await;
    assert!(matches!(*error, Error::Import { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the component imports acme:door/backdoor@1.0.0, which is not offered to components; build it against the contracts that `orangery wit` prints"
    );
}

#[tokio::test]
async fn another_version_of_the_contract_is_named() {
    let error = end_of(bytes("of_another_version")).await;
    assert!(matches!(*error, Error::Version { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the component uses orangery:deployer/deploy@0.2.0, but this host serves version 0.1; build it against the contracts that `orangery wit` prints"
    );
}

#[tokio::test]
async fn another_level_of_the_contract_is_named() {
    let level = section(0, &[&[17][..], b"orangery:contract", b"2"].concat());
    let error = end_of([bytes("answers"), level].concat()).await;
    assert!(matches!(*error, Error::Level { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the component was built for contract level 2, but this host serves level 1; build it again with the SDK of this host"
    );
}

#[tokio::test]
async fn other_types_than_those_of_the_contract_are_named() {
    let error = end_of(bytes("of_another_type")).await;
    assert!(matches!(*error, Error::Link { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the component does not fit the contract: `plan` of orangery:deployer/deploy: expected `record` found `string`; build it against the contracts that `orangery wit` prints"
    );
}

#[tokio::test]
async fn bytes_that_are_no_component_are_told_what_they_are() {
    let error = end_of(b"#!/bin/sh\n".to_vec()).await;
    assert_eq!(
        error.to_string(),
        "the file is not a WebAssembly component: it does not begin as one; build it for the target wasm32-wasip2"
    );
    let error = end_of(b"\0asm\x01\0\0\0".to_vec()).await;
    assert_eq!(
        error.to_string(),
        "the file is not a WebAssembly component: it is a core module; build it for the target wasm32-wasip2"
    );
    let whole = bytes("answers");
    let error = end_of(whole[..whole.len() / 2].to_vec()).await;
    assert!(matches!(*error, Error::NotAComponent { .. }), "{error:?}");
}

#[tokio::test]
async fn a_bomb_of_functions_is_not_compiled() {
    const FUNCTIONS: u64 = 100_000;
    let bodies: Vec<u8> = (0..FUNCTIONS).flat_map(|_| [2, 0, 0x0b]).collect();
    let sections = [
        section(1, &[1, 0x60, 0, 0]),
        section(3, &[leb(FUNCTIONS), vec![0; FUNCTIONS as usize]].concat()),
        section(10, &[leb(FUNCTIONS), bodies].concat()),
    ];
    let bomb = with_module(bytes("answers"), &sections);
    let error = end_of(bomb).await;
    let Error::TooLarge { what: "functions", found, allowed: FUNCTIONS } = *error else { panic!("{error:?}") };
    assert_eq!(
        error.to_string(),
        format!("the component has {found} functions, and at most 100000 are compiled; make it smaller")
    );
}

#[tokio::test]
async fn a_component_that_is_invalid_deep_inside_fails_in_the_compiler() {
    // A function that leaves a number on a stack that ought to be empty.
    let sections = [section(1, &[1, 0x60, 0, 0]), section(3, &[1, 0]), section(10, &[1, 4, 0, 0x41, 0, 0x0b])];
    let error = end_of(with_module(bytes("answers"), &sections)).await;
    let Error::Compile { why } = &*error else { panic!("{error:?}") };
    assert!(why.contains("type mismatch: values remaining on stack"), "{why}");
}

#[tokio::test]
async fn a_forged_or_damaged_cache_is_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let file = sandbox_with(cache.clone()).fill_cache("answers", &bytes("answers")).await.unwrap();
    let good = fs::read(&file).unwrap();
    let evil = sandbox_with(folder.path().join("other")).fill_cache("traps", &bytes("traps")).await.unwrap();
    for forged in [fs::read(&evil).unwrap(), good[..good.len() / 2].to_vec(), vec![]] {
        fs::write(&file, forged).unwrap();
        let answers = deployer_of(sandbox_with(cache.clone()), "answers", bytes("answers"), json!({}));
        plan(&answers).await.unwrap().unwrap();
        assert_eq!(fs::read(&file).unwrap(), good);
    }
}

#[tokio::test]
async fn a_filled_cache_needs_no_compiler() {
    let folder = tempfile::tempdir().unwrap();
    sandbox_with(folder.path().join("cache")).fill_cache("answers", &bytes("answers")).await.unwrap();
    let worker = WorkerCommand { program: "/nowhere".into(), args: vec![] };
    let config = SandboxConfig::new(worker, Some(folder.path().join("cache")));
    let sandbox = Sandbox::start(SandboxConfig { isolation: CallIsolation::Nothing, ..config }).unwrap();
    plan(&deployer_of(sandbox.clone(), "answers", bytes("answers"), json!({}))).await.unwrap().unwrap();
    let error = ended(plan(&deployer_of(sandbox, "traps", bytes("traps"), json!({}))).await);
    assert!(matches!(*error, Error::Compiler { .. }), "{error:?}");
}

#[tokio::test]
async fn c_246_what_is_compiled_in_process_is_what_a_compiler_makes() {
    let folder = tempfile::tempdir().unwrap();
    let (own, here) = (folder.path().join("own"), folder.path().join("here"));
    let made = sandbox_with(own).fill_cache("answers", &bytes("answers")).await.unwrap();
    // Without a compiler to start.
    let worker = WorkerCommand { program: "/nowhere".into(), args: vec![] };
    let config = SandboxConfig::new(worker, Some(here));
    let sandbox = Sandbox::start(SandboxConfig { isolation: CallIsolation::Nothing, ..config }).unwrap();
    let file = sandbox.fill_cache_in_process(&bytes("answers")).await.unwrap();
    assert_eq!((fs::read(&file).unwrap(), file.file_name()), (fs::read(&made).unwrap(), made.file_name()));
    let malformed = sandbox.fill_cache_in_process(b"\0asm").await.unwrap_err();
    assert!(matches!(malformed, Error::NotAComponent { .. }), "{malformed:?}");
}

#[test]
fn an_inspection_tells_what_a_component_needs() {
    let inspection = inspect(&bytes("opens_a_door")).unwrap();
    assert!(inspection.imports.contains(&"acme:door/backdoor@1.0.0".to_owned()), "{:?}", inspection.imports);
    assert_eq!(
        inspection.exports,
        ["orangery:deployer/deploy@0.1.0", "orangery:deployer/uninstall@0.1.0", "orangery:deployer/validate@0.1.0"]
    );
    assert_eq!(inspection.level, None);
}

#[tokio::test]
async fn what_is_registered_as_a_deployer_has_to_be_one() {
    let error = ended(plan(&deployer("renders", json!({}))).await);
    assert_eq!(
        error.to_string(),
        "the component does not export orangery:deployer/deploy; build it against the world of `orangery wit` that has it"
    );
}

#[tokio::test]
async fn a_cache_that_cannot_be_used_costs_compiling_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let sandbox = sandbox_with(file.clone());
    plan(&deployer_of(sandbox.clone(), "answers", bytes("answers"), json!({}))).await.unwrap().unwrap();
    let error = sandbox.fill_cache("answers", &bytes("answers")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the cache of compiled components {} cannot be used: File exists (os error 17); name another folder",
            file.display()
        )
    );
}
