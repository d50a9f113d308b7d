//! Every message about an import, as a user reads it, and the word that tools read.

use super::*;
use crate::schema::SchemaError;
use orangery_core::name::Kind;

#[test]
fn every_fault_is_one_sentence_with_the_fix() {
    let text = str::to_owned;
    let missing = |name: &str, key: &str| ImportFault::NotFound {
        kind: Kind::from_static("Target"),
        name: text(name),
        key: text(key),
    };
    let cases = [
        (
            ImportFault::NoSource,
            "InvalidImport",
            "set exactly one of dataRef, secretRef, configMapRef, or of target, targets, targetListRef, targetMap, targetMapRef",
        ),
        (
            missing("t", "t"),
            "ImportNotFound",
            "Target t does not exist; create it, or let another installation export it",
        ),
        (
            missing("hash", "t"),
            "ImportNotFound",
            "Target hash, which stands for the key \"t\", does not exist; let the parent import \"t\" or a sibling export it",
        ),
        (
            ImportFault::NoKey {
                kind: Kind::from_static("ConfigMap"),
                name: text("m"),
                key: text("k"),
                known: text("a, b"),
            },
            "ImportNotFound",
            "ConfigMap m has no key \"k\"; its keys are: a, b",
        ),
        (
            ImportFault::OwnerGone { kind: Kind::from_static("Target"), name: text("t"), owner: text("up") },
            "ImportNotFound",
            "Target t was exported by installation up, which does not exist any more; delete the Target or install up again",
        ),
        (
            ImportFault::NoParent,
            "ImportNotFound",
            "targetListRef and targetMapRef name an import of the parent, and a root installation has none; use targets or targetMap",
        ),
        (
            ImportFault::Unsatisfied { expected: "data" },
            "ImportNotSatisfied",
            "the blueprint asks for data, and the installation gives nothing; add it to spec.imports, or make it optional by required: false",
        ),
        (
            ImportFault::WrongSort { expected: "data", found: "a target" },
            "SchemaValidationFailed",
            "the blueprint asks for data, and the installation gives a target",
        ),
        (
            ImportFault::TargetType { place: String::new(), expected: text("a/b"), found: text("c/d") },
            "SchemaValidationFailed",
            "the target is of type c/d, and the blueprint asks for a/b",
        ),
        (
            ImportFault::Undecryptable(UndecryptableData { name: text("d"), source_label: None }),
            "DataNotDecrypted",
            "DataObject d is encrypted, and this operator cannot decrypt it: it was copied, renamed or edited, or written under \
             another key of the operator; run the Installation that wrote it again, which writes it anew",
        ),
        (
            ImportFault::Schema(SchemaError::Value { faults: vec![text("at /: x"), text("at /y: z")] }),
            "SchemaValidationFailed",
            "the value does not follow the schema: at /: x; at /y: z",
        ),
        (
            ImportFault::TooLarge { most: 64 },
            "ImportsTooLarge",
            "with it, the imports have so many values that they take more than the 64 bytes of memory that those of one \
             installation may take; import less, or split it into several installations",
        ),
    ];
    for (fault, reason, message) in cases {
        assert_eq!((fault.reason(), fault.to_string().as_str()), (reason, message));
        let error = ImportError { import: text("i"), installation: text("ns/x"), fault: Box::new(fault) };
        assert_eq!(error.to_string(), format!("import \"i\" of installation ns/x: {message}"));
    }
}

/// Imports may come from Secrets: a value that does not fit must not be shown.
#[test]
fn no_message_shows_a_value() {
    const CANARY: &str = "canary-4711";
    let schemas = [
        json!({"type": "number"}),
        json!({"enum": ["x"]}),
        json!({"const": 1}),
        json!({"pattern": "^x$"}),
        json!({"maxLength": 1}),
        json!({"minLength": 99}),
        json!({"format": "date-time"}),
        json!({"anyOf": [{"type": "number"}, {"type": "null"}]}),
        json!({"not": {"type": "string"}}),
        json!({"oneOf": [{"type": "string"}, {"minLength": 1}]}),
        json!(false),
    ];
    for schema in schemas {
        let kind = ImportKind::Data { schema: schema.clone() };
        let fault = bind_all(&[definition("a", kind)], json!({"a": CANARY}), json!({})).unwrap_err();
        let message = fault.to_string();
        assert!(
            !message.contains(CANARY) && message.starts_with("the value does not follow the schema: at /: "),
            "{schema}: {message}"
        );
    }
}
