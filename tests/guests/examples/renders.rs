//! A template engine that does what its template says: two words, what to ask the host and what to make of the answer.

mod bindings {
    wit_bindgen::generate!({
        world: "templater",
        path: "../../wit/template/0.1.0",
    });
}

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    time::{SystemTime, UNIX_EPOCH},
};

use bindings::{
    exports::orangery::template::template::{Failure, Guest as Engine, InputStep, Output, Rendered, Request},
    orangery::template::{big_integers, components, files, kubeconfigs, randomness},
};

struct Guest;

fn ask(what: &str, of: &Request) -> Result<String, String> {
    let identity = vec![("name".to_owned(), "shop".to_owned())];
    match what {
        "nothing" => Ok(String::new()),
        "chance" => Ok(format!("{:?}", randomness::bytes("password", 8))),
        "much-chance" => Ok(randomness::bytes("password", u32::MAX).len().to_string()),
        "time" => Ok(randomness::now()),
        "clock" => Ok(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()).to_string()),
        "hashes" => Ok(RandomState::new().hash_one(0).to_string()),
        "file" => files::read("greeting.txt").map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        "component" => components::component(None, &identity),
        "component-of" => components::component(Some(&of.inputs), &identity),
        "component-of-nonsense" => components::component(Some("{"), &[]),
        "resources" => components::resources(None, &identity).map(|found| found.join("+")),
        "key" => components::resource_key("reference"),
        "content" => {
            components::resource_content("reference").map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        }
        "credential" => kubeconfigs::issue_credential("serviceAccount", r#"{"target":"garden"}"#),
        "credential-for-nonsense" => kubeconfigs::issue_credential("serviceAccount", "[]"),
        "power" => big_integers::modular_power(&[3], &[200], &[0, 255]).map(|power| format!("{power:?}")),
        "great-power" => big_integers::modular_power(&[3], &[200], &[255; 513]).map(|power| format!("{power:?}")),
        "powers" => loop {
            let _power = big_integers::modular_power(&[255; 512], &[255; 512], &[255; 512]);
        },
        other => Err(format!("{other} is not known")),
    }
}

fn field(name: &str) -> InputStep {
    InputStep::Field(name.to_owned())
}

fn reading(reads: Vec<Vec<InputStep>>) -> Failure {
    Failure { message: "no".to_owned(), file: None, line: Some(7), column: None, snippet: None, reads }
}

fn recurse(depth: u64) -> u64 {
    if std::hint::black_box(depth) == u64::MAX { 0 } else { recurse(depth + 1) + std::hint::black_box(1) }
}

impl Engine for Guest {
    fn render(of: Request) -> Result<Rendered, Failure> {
        let (what, then) = of.template.split_once(' ').unwrap_or((&of.name, "answer"));
        let reported = ask(what, &of);
        let text = reported.clone().unwrap_or_else(|sentence| sentence);
        let output = Output::Text(text.clone());
        let reads = Vec::new();
        let failure =
            |message: String, snippet| Failure { message, file: None, line: Some(7), column: None, snippet, reads };
        match then {
            "answer" => match reported {
                Ok(_) => Ok(Rendered { output, state: None, warnings: vec![] }),
                Err(sentence) => Err(failure(sentence, None)),
            },
            "swallow" => Ok(Rendered { output: Output::Text("default".into()), state: None, warnings: vec![] }),
            "fail" => Err(failure(format!("\x1b[2Jcannot use {text}"), Some(format!("  1 | {text}")))),
            "warn" => Ok(Rendered { output, state: None, warnings: vec![format!("odd: {text}")] }),
            "panic" => panic!("cannot go on with {text}"),
            "read-paths" => Err(reading(vec![Vec::new(); 100_000])),
            "read-steps" => Err(reading(vec![vec![InputStep::Entries; 100_000]])),
            "read-megabytes" => Err(reading(vec![vec![field("imports"), field(&"x".repeat(4 << 20))]])),
            "read-signs" => Err(reading(vec![vec![field("imports"), field("\x1b[2J\0\u{202e}")], Vec::new()])),
            "read-nowhere" => Err(reading(vec![
                vec![field("imports"), field("none"), InputStep::Items, field("none")],
                vec![InputStep::Entries, InputStep::Items],
            ])),
            "shout" => Err(failure("x".repeat(100_000), Some("y\n".repeat(100_000)))),
            "loop" => loop {
                std::hint::spin_loop();
            },
            "recurse" => Err(failure(recurse(0).to_string(), None)),
            "allocate" => {
                let mut hoard = Vec::new();
                loop {
                    hoard.push(std::hint::black_box(vec![1_u8; 1 << 20]));
                }
            }
            "answer-much" => Ok(Rendered { output: Output::Text("x".repeat(20 << 20)), state: None, warnings: vec![] }),
            other => Err(failure(format!("{other} is not known"), None)),
        }
    }
}

bindings::export!(Guest with_types_in bindings);
