//! A deployer that does one thing wrong: what the name of its item says, as the cases of conformance are called.
//!
//! It writes a ConfigMap with the text of its configuration, reads that one first, and removes a hook before it is deleted.

use std::{
    collections::hash_map::RandomState,
    env,
    hash::BuildHasher as _,
    sync::atomic::{AtomicU64, Ordering},
    time::{Instant, SystemTime},
};

use orangery_guests::{
    ClusterRef, Fault, Item, ObjectKey, Problem, Proposal, cluster, deploy, orangery::deployer::types::Selection,
    uninstall, validate, writing,
};

struct Guest;

fn invalid(at: &str, message: &str) -> Fault {
    Fault::Invalid(Problem {
        code: "ERR_CONFIGURATION_PROBLEM".into(),
        message: message.into(),
        at: Some(at.to_owned()).filter(|at| !at.is_empty()),
    })
}

/// The text after a key of a JSON document: enough for the documents that the kit makes.
fn text<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let rest = json.split_once(&format!("\"{key}\":\""))?.1;
    rest.split('"').next()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: Some("default".into()),
        name: name.into(),
    }
}

/// What is read of the cluster, as it is read wrong.
fn read(of: &Item) -> Result<bool, Fault> {
    let mistake = of.name.as_str();
    let live = match cluster::get(&ClusterRef::Target, &key("it")) {
        Err(Fault::Later(problem)) if mistake == "cluster-later" => return Err(Fault::Invalid(problem)),
        Err(Fault::Denied(problem)) if mistake == "cluster-denied" => return Err(Fault::Later(problem)),
        answer => answer?,
    };
    let all = cluster::list(
        &ClusterRef::Target,
        &Selection {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("default".into()),
            names: vec![],
            labels: None,
            fields: None,
        },
    )?;
    let Some(live) = live else { return Ok(false) };
    match mistake {
        "other-kinds" => assert_eq!(text(&live, "kind").unwrap_or("ConfigMap"), "ConfigMap"),
        "missing-fields" => assert!(live.contains("metadata")),
        "huge-lists" => assert!(all.len() < 1000),
        _ => {}
    }
    Ok(true)
}

fn plan(of: &Item) -> Result<Proposal, Fault> {
    let mistake = of.name.as_str();
    let config = of.config.as_str();
    if mistake == "no-configuration" && config == "42" {
        return Ok(nothing());
    }
    if !config.starts_with('{') {
        return Err(invalid("", "the configuration is no object"));
    }
    let Some(text) = text(config, "text") else {
        return Err(invalid(if mistake == "wrong-types" { "" } else { "/text" }, "text is no text"));
    };
    if mistake == "huge-configuration" {
        assert!(config.len() < 100_000);
    }
    if mistake == "foreign-checkpoint" {
        assert!(of.checkpoint.as_deref().is_none_or(|checkpoint| checkpoint == [1]));
    }
    if mistake == "foreign-status" && of.status.as_ref().is_some_and(|status| !status.contains("ours")) {
        return Err(invalid("", "the status has another version"));
    }
    if mistake == "recovery" && of.failed.is_some() {
        return Ok(nothing());
    }
    let is_there = read(of)?;
    let name = match mistake {
        "another-time" => format!("it-{}", of.seed),
        "idempotent" if is_there => "another".to_owned(),
        _ => "it".to_owned(),
    };
    let kind = if mistake == "within-grants" { "Secret" } else { "ConfigMap" };
    let more = match mistake {
        "unknown-field" => config.len().to_string(),
        // It tries to; there is nothing that would change from call to call.
        "same-answer" => whatever_changes(),
        _ => "0".to_owned(),
    };
    let object = format!(
        r#"{{"apiVersion":"v1","kind":"{kind}","metadata":{{"name":"{name}","namespace":"default"}},"data":{{"text":"{text}","more":"{more}"}}}}"#
    );
    Ok(Proposal { status: Some(r#"{"ours":true}"#.into()), recover: Some(vec![1]), ..writing(vec![object]) })
}

/// All that a program may learn beside what it is asked, as digits.
fn whatever_changes() -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let (begun, here) = (Instant::now(), 0u8);
    let unknown = [
        format!("{begun:?} {:?} {:?}", Instant::now(), SystemTime::now()),
        format!("{} {}", RandomState::new().hash_one(0), RandomState::new().hash_one(0)),
        format!("{:p} {}", &here, CALLS.fetch_add(1, Ordering::Relaxed)),
        format!("{:?} {:?} {:?}", env::vars().collect::<Vec<_>>(), env::args().collect::<Vec<_>>(), env::current_dir()),
    ];
    unknown.iter().flat_map(|text| text.bytes()).map(|byte| byte.to_string()).collect()
}

/// A proposal that does nothing.
fn nothing() -> Proposal {
    Proposal { stages: vec![], ..writing(vec![]) }
}

impl deploy::Guest for Guest {
    fn plan(of: Item) -> Result<Proposal, Fault> {
        plan(&of)
    }
}

impl uninstall::Guest for Guest {
    fn plan(of: Item) -> Result<Proposal, Fault> {
        let live = cluster::get(&ClusterRef::Target, &key("it"))?;
        match (of.name.as_str(), live) {
            ("nothing-there", None) if of.status.is_none() => Err(invalid("", "there is nothing to delete")),
            // What the first stage writes is there, and what the host would have written after it is not.
            ("uninstall-after-failure", Some(_)) => panic!("a half of it is there"),
            _ => Ok(nothing()),
        }
    }
}

impl validate::Guest for Guest {
    fn schema() -> String {
        "{}".into()
    }

    fn check(config: String) -> Vec<Problem> {
        let problem = |message: &str| {
            let (code, message) = ("ERR_CONFIGURATION_PROBLEM".to_owned(), message.to_owned());
            vec![Problem { code, message, at: None }]
        };
        // It is not told its item.
        match text(&config, "text") {
            None => problem("the configuration has no text"),
            Some("validation") => problem("the configuration is planned all the same"),
            Some(_) => vec![],
        }
    }
}

orangery_guests::export!(Guest with_types_in orangery_guests);
