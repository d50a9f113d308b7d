//! How the release was built: a statement of in-toto with the predicate of SLSA, version 1.

use serde_json::{Value, json};

use crate::{Contents, image::Platform};

/// The statement about these files and artifacts, each by its name and its SHA-256 in hexadecimal digits.
pub(crate) fn statement(contents: &Contents, subjects: &[(String, String)]) -> Value {
    let subjects: Vec<Value> =
        subjects.iter().map(|(name, hex)| json!({"name": name, "digest": {"sha256": hex}})).collect();
    let platforms: Vec<&str> =
        contents.platforms.iter().map(|Platform { architecture, .. }| architecture.as_str()).collect();
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://orangery.dev/release/build/v1",
                "externalParameters": {"version": contents.version, "platforms": platforms},
                "internalParameters": {"SOURCE_DATE_EPOCH": contents.epoch},
                "resolvedDependencies": [{
                    "uri": format!("git+{}", contents.source), "digest": {"gitCommit": contents.commit},
                }],
            },
            "runDetails": {"builder": {"id": contents.builder}},
        },
    })
}
