//! Component versions.

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::*;

fn version_2() -> Value {
    json!({
        "meta": { "schemaVersion": "v2" },
        "component": {
            "name": "example.com/shop",
            "version": "1.2.0",
            "labels": [{ "name": "team", "value": { "of": ["a"] }, "signing": true, "version": "v1" }],
            "provider": "{\"name\":\"us\",\"labels\":[{\"name\":\"x\",\"value\":1}]}",
            "creationTime": "2026-01-02T03:04:05Z",
            "repositoryContexts": [
                { "type": "ociRegistry", "baseUrl": "old.example.com" },
                { "type": "OCIRegistry", "baseUrl": "new.example.com", "subPath": "/shop/" },
            ],
            "sources": [{ "name": "code", "version": "1", "type": "git", "access": { "type": "git", "repoUrl": "x" } }],
            "componentReferences": [{
                "name": "db", "version": "3.0", "componentName": "example.com/db", "extraIdentity": { "zone": "eu" },
                "digest": { "hashAlgorithm": "SHA-256", "normalisationAlgorithm": "jsonNormalisation/v1", "value": "ab" },
            }],
            "resources": [
                {
                    "name": "web", "version": "1.2.0", "type": "ociImage", "relation": "external",
                    "extraIdentity": { "arch": "arm64" }, "srcRefs": [{ "identitySelector": { "name": "code" } }],
                    "access": { "type": "ociArtifact", "imageReference": "r.example.com/web:1.2.0" },
                },
                { "name": "web", "version": "1.2.0", "type": "ociImage", "extraIdentity": { "arch": "amd64" } },
                { "name": "bp", "version": "1.10", "type": "blueprint", "relation": "local", "access": { "type": "localBlob" } },
                { "name": "bp", "version": "1.20", "type": "blueprint", "relation": "local", "access": { "type": "localBlob" } },
            ],
        },
        "signatures": [{
            "name": "ours",
            "digest": { "hashAlgorithm": "SHA-256", "normalisationAlgorithm": "jsonNormalisation/v1", "value": "cd" },
            "signature": { "algorithm": "RSASSA-PKCS1-V1_5", "value": "ef", "mediaType": "m", "issuer": "CN=us" },
        }],
        "nestedDigests": [],
    })
}

fn shop() -> Descriptor {
    Descriptor::parse(&version_2()).unwrap()
}

fn select(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// What the model of the original keeps of [`version_2`].
fn kept() -> Value {
    let mut kept = version_2();
    kept.as_object_mut().unwrap().remove("nestedDigests");
    kept["signatures"][0]["signature"].as_object_mut().unwrap().remove("issuer");
    let component = &mut kept["component"];
    component["labels"] = json!([{ "name": "team", "value": { "of": ["a"] } }]);
    component["resources"][0].as_object_mut().unwrap().remove("srcRefs");
    component["resources"][1]["access"] = Value::Null;
    kept
}

#[test]
fn templates_see_schema_v2_as_the_model_of_the_original_keeps_it() {
    assert_eq!(shop().render(DescriptorSchema::V2), kept());
}

#[test]
fn templates_see_the_same_elements_in_schema_v3alpha1() {
    let two = kept();
    let expected = json!({
        "apiVersion": "ocm.software/v3alpha1",
        "kind": "ComponentVersion",
        "metadata": {
            "name": "example.com/shop",
            "version": "1.2.0",
            "labels": two["component"]["labels"],
            "provider": { "name": "us", "labels": [{ "name": "x", "value": 1 }] },
            "creationTime": "2026-01-02T03:04:05Z",
        },
        "repositoryContexts": two["component"]["repositoryContexts"],
        "spec": {
            "sources": two["component"]["sources"],
            "references": two["component"]["componentReferences"],
            "resources": two["component"]["resources"],
        },
        "signatures": two["signatures"],
    });
    let three = shop().render(DescriptorSchema::V3Alpha1);
    assert_eq!(three, expected);
    // And reading it gives the same again.
    assert_eq!(Descriptor::parse(&three).unwrap().render(DescriptorSchema::V2), two);
}

#[test]
fn an_empty_descriptor_has_its_lists_in_v2_and_none_in_v3alpha1() {
    let bare =
        json!({ "meta": { "schemaVersion": "v2" }, "component": { "name": "c", "version": "1", "provider": "p" } });
    let bare = Descriptor::parse(&bare).unwrap();
    assert_eq!(
        list([&bare], DescriptorSchema::V2),
        json!({ "meta": { "schemaVersion": "v2" }, "components": [{
            "meta": { "schemaVersion": "v2" },
            "component": {
                "name": "c", "version": "1", "provider": "p",
                "repositoryContexts": [], "sources": [], "componentReferences": [], "resources": [],
            },
        }] })
    );
    assert_eq!(
        list([&bare], DescriptorSchema::V3Alpha1),
        json!([{
            "apiVersion": "ocm.software/v3alpha1", "kind": "ComponentVersion",
            "metadata": { "name": "c", "version": "1", "provider": { "name": "p" } },
            "repositoryContexts": [], "spec": {},
        }])
    );
}

#[test]
fn fields_of_descriptors_match_whatever_their_case() {
    let document = json!({ "META": { "SchemaVersion": "v2" }, "Component": { "NAME": "c", "version": "1" } });
    assert_eq!(Descriptor::parse(&document).unwrap().name, "c");
}

#[test]
fn what_is_no_descriptor_is_told_in_one_sentence() {
    let message = |document: Value| Descriptor::parse(&document).unwrap_err().to_string();
    let cases = [
        message(json!({})),
        message(json!({ "meta": { "schemaVersion": "v1" } })),
        message(json!({ "meta": { "schemaVersion": "v2" }, "component": { "name": "c" } })),
        message(json!({ "meta": { "schemaVersion": "v2" }, "component": { "resources": 3 } })),
        message(json!({
            "apiVersion": "ocm.software/v3alpha1", "metadata": { "name": "c", "version": "1" },
            "spec": { "references": [{ "name": "r", "version": "1" }] },
        })),
        message(json!("text")),
    ];
    assert_eq!(
        cases,
        [
            "the component descriptor has the schema \"\"; known are meta.schemaVersion: v2 and apiVersion: ocm.software/v3alpha1",
            "the component descriptor has the schema \"v1\"; known are meta.schemaVersion: v2 and apiVersion: ocm.software/v3alpha1",
            "the component descriptor has no version (component \"c\"); set it",
            "the component descriptor has a wrong form: component.resources: expected a list, found a number",
            "the component descriptor has no name or componentName in reference 0 of c:1; set it",
            "the component descriptor has a wrong form: expected an object, found a text",
        ]
    );
}

#[test]
fn resources_are_chosen_by_identity_in_the_order_of_the_descriptor() {
    let shop = shop();
    let versions = |pairs: &[(&str, &str)]| -> Vec<String> {
        let found = resources(&shop, &select(pairs)).unwrap();
        found
            .iter()
            .map(|resource| format!("{} {:?}", resource.element.version, resource.element.extra_identity))
            .collect()
    };
    assert_eq!(versions(&[("name", "bp")]), ["1.10 {}", "1.20 {}"]);
    assert_eq!(versions(&[("arch", "amd64"), ("name", "web")]), ["1.2.0 {\"arch\": \"amd64\"}"]);
    assert_eq!(references(&shop, &select(&[("zone", "eu")])).unwrap()[0].component, "example.com/db");
}

#[test]
fn limits_select_an_error_lists_so_many_names_and_counts_the_others() {
    let of = |count: usize| {
        let mut document = version_2();
        let all: Vec<Value> =
            (0..count).map(|index| json!({"name": format!("r{index}"), "version": "1", "type": "x"})).collect();
        document["component"]["resources"] = json!(all);
        resources(&Descriptor::parse(&document).unwrap(), &select(&[("name", "none")])).unwrap_err().known
    };
    let twenty: Vec<String> = (0..20).map(|index| format!("name=r{index}")).collect();
    assert_eq!(of(20), twenty.join(", "));
    assert_eq!(of(23), format!("{} and 3 more", twenty.join(", ")));
}

#[test]
fn nothing_chosen_is_an_error_that_lists_what_there_is() {
    let shop = shop();
    assert_eq!(
        resources(&shop, &select(&[("arch", "s390x"), ("name", "web")])).unwrap_err().to_string(),
        "the component example.com/shop:1.2.0 has no resource with name=web,arch=s390x; \
         it has name=web,arch=arm64, name=web,arch=amd64, name=bp, name=bp"
    );
    assert_eq!(
        references(&shop, &select(&[("name", "cache")])).unwrap_err().to_string(),
        "the component example.com/shop:1.2.0 has no component reference with name=cache; it has name=db,zone=eu"
    );
}

#[test]
fn the_key_of_a_resource_is_its_global_identity_as_go_writes_it() {
    let shop = shop();
    let key = |index: usize| {
        let key = resource_key(&shop, &shop.resources[index]);
        String::from_utf8(BASE64.decode(key.as_bytes()).unwrap()).unwrap()
    };
    assert_eq!(
        key(0),
        "component:\n  name: example.com/shop\n  version: 1.2.0\nresource:\n  arch: arm64\n  name: web\n"
    );
    // A version that reads as a number stands in quotes, and tells resources of one name apart.
    assert_eq!(
        key(3),
        "component:\n  name: example.com/shop\n  version: 1.2.0\nresource:\n  name: bp\n  version: \"1.20\"\n"
    );
}

#[test]
fn references_to_resources_are_paths_or_yaml() {
    let path = ResourceReference::parse("cd://componentReferences/a/componentReferences/b/resources/r").unwrap();
    let yaml = "resource: {name: r}\nreferencePath: [{name: a}, {name: b}]";
    assert_eq!(ResourceReference::parse(yaml).unwrap(), path);
    assert_eq!(ResourceReference::parse("cd://resources/r").unwrap(), ResourceReference::named("r"));
}

#[test]
fn references_to_anything_else_are_refused() {
    let message = |text: &str| ResourceReference::parse(text).unwrap_err().to_string();
    let end = "write cd://resources/<name> or cd://componentReferences/<reference>/resources/<name>";
    let cases = [
        (
            "cd://componentReferences/a",
            format!("\"cd://componentReferences/a\" names a component, where a resource is wanted; {end}"),
        ),
        ("cd://resources/r/resources/s", format!("\"cd://resources/r/resources/s\" goes on after a resource; {end}")),
        ("cd://resources", format!("\"cd://resources\" has a keyword without a name; {end}")),
        ("cd://sources/r", format!("\"cd://sources/r\" has an unknown keyword \"sources\"; {end}")),
    ];
    for (text, expected) in cases {
        assert_eq!(message(text), format!("the resource reference {expected}"));
    }
    assert_eq!(message("resource: {arch: x}"), "the resource reference has no resource.name; set it");
    assert_eq!(message(&format!("cd://{}", "x".repeat(2083))), message(&"cd://componentReferences/a/".repeat(100)));
}

#[test]
fn repository_contexts_of_all_kinds_are_read() {
    let read = |context: Value| Repository::parse(&context);
    let contexts = &shop().repository_contexts;
    assert_eq!(
        read(contexts[1].clone()).unwrap(),
        Repository::Oci { base_url: "new.example.com/shop".to_owned(), mapping: NameMapping::UrlPath }
    );
    assert_eq!(
        read(json!({ "type": "OCIRegistry/v1", "baseUrl": "https://h/", "componentNameMapping": "sha256-digest" }))
            .unwrap(),
        Repository::Oci { base_url: "https://h".to_owned(), mapping: NameMapping::Sha256Digest }
    );
    assert_eq!(
        read(json!({ "type": "CommonTransportFormat", "filePath": "a.tgz" })).unwrap(),
        Repository::TransportArchive { path: "a.tgz".to_owned() }
    );
    assert_eq!(
        read(json!({ "type": "ComponentArchive/v1", "filePath": "d" })).unwrap(),
        Repository::ComponentArchive { path: "d".to_owned() }
    );
    assert_eq!(read(json!({ "type": "local", "filePath": "d" })).unwrap(), Repository::Local { path: "d".to_owned() });
    let message = |context: Value| read(context).unwrap_err().to_string();
    assert_eq!(
        message(json!({ "type": "OCIRegistry" })),
        "the repository context of type OCIRegistry has no baseUrl; set it"
    );
    assert_eq!(
        message(json!({ "type": "s3" })),
        "the repository context has the type \"s3\"; known are OCIRegistry, CommonTransportFormat, ComponentArchive and local"
    );
}

mod overwrites {
    use super::*;

    fn reference() -> VersionReference {
        VersionReference {
            repository_context: Some(json!({ "type": "a" }).into()),
            name: "c".to_owned(),
            version: "1".to_owned(),
        }
    }

    fn rules(rules: Value) -> Vec<Overwrite> {
        serde_json::from_value(rules).unwrap()
    }

    fn replaced(list: Value) -> Replaced {
        replace(&rules(list), &reference())
    }

    fn changed(change: impl FnOnce(&mut VersionReference)) -> Replaced {
        let mut reference = reference();
        change(&mut reference);
        Replaced { reference, matched: true }
    }

    #[test]
    fn a_rule_matches_by_all_that_it_says_of_the_source() {
        let to = json!({ "version": "2" });
        for source in [json!({}), json!({ "componentName": "c" }), json!({ "repositoryContext": { "type": "a" } })] {
            assert_eq!(
                replaced(json!([{ "source": source, "substitution": to }])),
                changed(|r| r.version = "2".into())
            );
        }
        for source in [json!({ "componentName": "c", "version": "2" }), json!({ "repositoryContext": { "type": "b" } })]
        {
            let unmatched = Replaced { reference: reference(), matched: false };
            assert_eq!(replaced(json!([{ "source": source, "substitution": to }])), unmatched);
        }
    }

    #[test]
    fn a_later_rule_gives_all_or_nothing() {
        let list = json!([
            { "source": {}, "substitution": { "version": "2" } },
            { "source": {}, "substitution": { "version": "3", "componentName": "d" } },
            { "source": {}, "substitution": { "repositoryContext": { "type": "b" } } },
        ]);
        let expected = changed(|r| {
            r.version = "2".into();
            r.repository_context = Some(json!({ "type": "b" }).into());
        });
        assert_eq!(replaced(list), expected);
    }

    #[test]
    fn rules_match_the_original_reference_not_what_earlier_ones_made_of_it() {
        let list = json!([
            { "source": { "version": "1" }, "substitution": { "version": "2" } },
            { "source": { "version": "2" }, "substitution": { "componentName": "d" } },
        ]);
        assert_eq!(replaced(list), changed(|r| r.version = "2".into()));
    }
}

mod normal_forms {
    use super::*;

    fn signed() -> Descriptor {
        let document = json!({
            "meta": { "schemaVersion": "v2" },
            "component": {
                "name": "c", "version": "1",
                "labels": [{ "name": "kept", "value": { "b": 1e21, "a": "<\u{2028}>" }, "signing": true }, { "name": "x", "value": 1 }],
                "provider": "{\"name\":\"us\",\"labels\":[{\"name\":\"l\",\"value\":0.5}]}",
                "repositoryContexts": [{ "type": "OCIRegistry", "baseUrl": "b" }],
                "sources": [{ "name": "s", "version": "1", "type": "git", "access": { "type": "git" } }],
                "componentReferences": [
                    { "name": "r", "version": "2", "componentName": "d", "labels": [{ "name": "y", "value": null }] },
                ],
                "resources": [
                    {
                        "name": "t", "version": "1", "type": "p", "relation": "local", "access": { "type": "localBlob" },
                        "srcRefs": [{}],
                        "digest": { "hashAlgorithm": "SHA-256", "normalisationAlgorithm": "g", "value": "00" },
                    },
                    {
                        "name": "t", "version": "2", "type": "p", "access": { "type": "none" },
                        "digest": { "hashAlgorithm": "SHA-256", "normalisationAlgorithm": "g", "value": "00" },
                    },
                ],
            },
            "signatures": [{ "name": "s" }],
        });
        Descriptor::parse(&document).unwrap()
    }

    #[test]
    fn version_1_is_lists_of_fields_of_the_schema_as_written() {
        let expected = concat!(
            r#"[{"component":[{"componentReferences":[[{"componentName":"d"},{"extraIdentity":null},{"name":"r"},"#,
            r#"{"version":"2"}]]},{"labels":[[{"name":"kept"},{"signing":true},{"value":[{"a":"\u003c\u2028\u003e"},"#,
            r#"{"b":1e+21}]}]]},{"name":"c"},{"provider":[{"name":"us"}]},{"resources":[[{"digest":[{"hashAlgorithm":"#,
            r#""SHA-256"},{"normalisationAlgorithm":"g"},{"value":"00"}]},{"extraIdentity":[{"version":"1"}]},"#,
            r#"{"name":"t"},{"relation":"local"},{"type":"p"},{"version":"1"}],[{"extraIdentity":null},{"name":"t"},"#,
            r#"{"type":"p"},{"version":"2"}]]},{"version":"1"}]},{"meta":[{"schemaVersion":"v2"}]}]"#,
        );
        assert_eq!(signed().normalised(Normalisation::V1), expected);
    }

    #[test]
    fn version_1_of_the_other_schema_has_sources_and_all_labels_of_the_provider() {
        let three =
            Descriptor { schema: DescriptorSchema::V3Alpha1, labels: Vec::new(), resources: Vec::new(), ..signed() };
        let expected = concat!(
            r#"[{"apiVersion":"ocm.software/v3alpha1"},{"kind":"ComponentVersion"},{"metadata":[{"name":"c"},"#,
            r#"{"provider":[{"labels":[[{"name":"l"},{"value":0.5}]]},{"name":"us"}]},{"version":"1"}]},{"spec":["#,
            r#"{"references":[[{"componentName":"d"},{"name":"r"},{"version":"2"}]]},"#,
            r#"{"sources":[[{"name":"s"},{"type":"git"},{"version":"1"}]]}]}]"#,
        );
        assert_eq!(three.normalised(Normalisation::V1), expected);
        let empty = Descriptor { sources: Vec::new(), references: Vec::new(), ..three };
        assert!(empty.normalised(Normalisation::V1).ends_with(r#"{"spec":[]}]"#));
    }

    #[test]
    fn versions_2_and_3_are_canonical_json_whatever_the_schema() {
        let form = |extra: &str| {
            [
                "{\"component\":{\"componentReferences\":[{\"componentName\":\"d\",\"labels\":[{\"name\":\"y\",\"value\":null}],",
                "\"name\":\"r\",\"version\":\"2\"}],\"labels\":[{\"name\":\"kept\",\"signing\":true,\"value\":{\"a\":\"<\u{2028}>\",",
                "\"b\":1e+21}}],\"name\":\"c\",\"provider\":{\"name\":\"us\"},\"resources\":[{\"digest\":{\"hashAlgorithm\":",
                "\"SHA-256\",\"normalisationAlgorithm\":\"g\",\"value\":\"00\"},",
                extra,
                "\"name\":\"t\",\"relation\":\"local\",\"type\":\"p\",\"version\":\"1\"},{\"name\":\"t\",\"type\":\"p\",\"version\":\"2\"}],",
                "\"sources\":[{\"name\":\"s\",\"type\":\"git\",\"version\":\"1\"}],\"version\":\"1\"}}",
            ]
            .concat()
        };
        for schema in [DescriptorSchema::V2, DescriptorSchema::V3Alpha1] {
            let descriptor = Descriptor { schema, ..signed() };
            assert_eq!(descriptor.normalised(Normalisation::V2), form("\"extraIdentity\":{\"version\":\"1\"},"));
            assert_eq!(descriptor.normalised(Normalisation::V3), form(""));
        }
    }

    #[test]
    fn numbers_are_written_as_go_and_ecmascript_write_them() {
        let written = |value: Value| {
            let label = Label { name: "n".to_owned(), value, signing: true, ..Label::default() };
            let text = Descriptor { labels: vec![label], ..signed() }.normalised(Normalisation::V3);
            let (_, rest) =
                text.split_once("\"value\":").map(|_| text.split_once("\"signing\":true,\"value\":").unwrap()).unwrap();
            rest.split('}').next().unwrap().to_owned()
        };
        let cases = [
            (json!(0), "0"),
            (json!(-0.0), "0"),
            (json!(10.0), "10"),
            (json!(-1.5), "-1.5"),
            (json!(1e20), "100000000000000000000"),
            (json!(1.5e22), "1.5e+22"),
            (json!(1e-6), "0.000001"),
            (json!(1e-7), "1e-7"),
            (json!(u64::MAX), "18446744073709552000"),
        ];
        for (number, expected) in cases {
            assert_eq!(written(number), expected);
        }
    }
}

mod covered;

#[test]
fn a_reference_is_followed_with_the_repository_of_the_context_and_as_overwrites_have_it() {
    let reference = |context: Option<&str>, version: &str| VersionReference {
        repository_context: context.map(|context| Value::from(context).into()),
        name: "example.org/a".to_owned(),
        version: version.to_owned(),
    };
    let request = |context: Option<&str>| ComponentRequest {
        repository_context: Some(Value::from("of the Context").into()),
        ..ComponentRequest::of(ComponentSource::Reference(reference(context, "1")))
    };
    let followed = |context: Option<&str>, replaced: Option<&VersionReference>| {
        let ComponentSource::Reference(followed) = request(context).followed(replaced) else {
            panic!("another source")
        };
        followed
    };
    assert_eq!(followed(None, None), reference(Some("of the Context"), "1"));
    assert_eq!(followed(Some("its own"), None), reference(Some("its own"), "1"));
    assert_eq!(followed(Some("its own"), Some(&reference(None, "2"))), reference(Some("of the Context"), "2"));
    let inline = ComponentSource::Inline(json!({"component": {}}).into());
    assert_eq!(ComponentRequest::of(inline.clone()).followed(None), inline);
}

#[test]
fn c_299_limits_components_a_provider_of_schema_v2_has_so_much_memory_or_is_a_name() {
    let of = |labels: usize| {
        let mut document = version_2();
        let labels = vec![json!({"name": "l", "value": [{"": 0}]}); labels];
        document["component"]["provider"] = json!(json!({"name": "us", "labels": labels}).to_string());
        Descriptor::parse(&document).unwrap().provider
    };
    assert_eq!((of(10).name.as_str(), of(10).labels.len()), ("us", 10));
    let name = of(1_000);
    assert!(name.name.starts_with("{\"labels\":[") && name.labels.is_empty());
}
