//! References: circles, overwrites, children, and what is too much.

use std::sync::Arc;

use orangery_ocm::{
    Child, ComponentRequest, ComponentSource, ComponentVersion, ComponentVersions, INLINE_LABEL, Overwrite,
    VersionReference,
};
use serde_json::{Value, json};

use crate::kit::*;

fn write(host: &Host, path: &str, documents: &[Value]) {
    let mut archive = Transport::default();
    for document in documents {
        archive.version(document, false);
    }
    archive.write_folder(&host.components().join(path));
}

fn names(opened: &dyn orangery_ocm::ComponentVersion) -> Vec<String> {
    opened.descriptors().iter().map(|descriptor| descriptor.to_string()).collect()
}

#[tokio::test]
async fn references_that_go_round_are_followed_once() {
    let host = Host::new();
    let none = json!([]);
    write(
        &host,
        "a",
        &[
            descriptor("a", "1", &[("b", "b", "1"), ("c", "c", "1")], none.clone()),
            descriptor("b", "1", &[("c", "c", "1"), ("a", "a", "1")], none.clone()),
            descriptor("c", "1", &[("c", "c", "1")], none),
        ],
    );
    let opened = host.open(transport("a"), "a", "1").await.unwrap();
    assert_eq!(names(&*opened), ["a:1", "b:1", "c:1"]);
}

#[tokio::test]
async fn a_chain_that_is_too_long_is_told() {
    let host = Host::new();
    let name = |index: usize| format!("c{index}");
    let chain: Vec<_> =
        (0..70).map(|index| descriptor(&name(index), "1", &[("next", &name(index + 1), "1")], json!([]))).collect();
    write(&host, "a", &chain);
    assert_eq!(
        host.refused(transport("a"), "c0", "1").await,
        "the component c0:1 refers to component versions by more than 64 references in a row"
    );
}

#[tokio::test]
async fn a_missing_reference_names_what_refers_to_it_and_where_it_was_looked_for() {
    let host = Host::new();
    write(&host, "a", &[descriptor("a", "1", &[("db", "b", "7")], json!([]))]);
    assert_eq!(
        host.refused(transport("a"), "a", "1").await,
        "component reference db of a:1: there is no component b:7 in the transport archive a; check its name and version"
    );
    assert_eq!(
        host.refused(transport("a"), "a", "2").await,
        "there is no component a:2 in the transport archive a; check its name and version"
    );
}

fn overwrites(rules: Value) -> Vec<Overwrite> {
    serde_json::from_value(rules).unwrap()
}

#[tokio::test]
async fn overwrites_count_for_the_component_and_for_what_it_refers_to() {
    let host = Host::new();
    let none = json!([]);
    write(&host, "a", &[descriptor("a", "1", &[], none.clone())]);
    write(
        &host,
        "b",
        &[
            descriptor("a", "2", &[("db", "db", "1")], none.clone()),
            descriptor("db", "9", &[("deep", "deep", "1")], none.clone()),
            descriptor("deep", "2", &[], none),
        ],
    );
    let mut request = request(transport("a"), "a", "1");
    request.overwrites = overwrites(json!([
        { "source": { "componentName": "a", "repositoryContext": transport("a") },
          "substitution": { "version": "2", "repositoryContext": transport("b") } },
        { "source": { "componentName": "db" }, "substitution": { "version": "9" } },
        { "source": { "componentName": "deep" }, "substitution": { "version": "2" } },
    ]));
    let opened = host.repositories.open(&request).await.unwrap();
    assert_eq!(names(&*opened), ["a:2", "db:9", "deep:2"]);
    let expected = VersionReference {
        repository_context: Some(transport("b").into()),
        name: "a".to_owned(),
        version: "2".to_owned(),
    };
    assert_eq!(opened.replaced(), Some(&expected));
    // A template that asks for the reference gets what stands for it.
    let select = [("name".to_owned(), "db".to_owned())];
    let db = opened.templates().component(None, &select).await.unwrap();
    assert_eq!(db["component"]["version"], "9");
}

/// Whether two sub-installations have one descriptor, which is written out in their parent, and no copy of it.
fn is_shared(opened: &dyn ComponentVersion, reference: &str) -> bool {
    let [first, second] = [(); 2].map(|()| opened.child(reference).unwrap().component);
    matches!((first, second), (ComponentSource::Inline(first), ComponentSource::Inline(second)) if Arc::ptr_eq(&first, &second))
}

#[tokio::test]
async fn c_288_a_sub_installation_gets_a_reference_or_the_descriptor_of_its_parent() {
    let host = Host::new();
    let blueprint = json!([resource("bp", BLUEPRINT_TYPE, Value::Null)]);
    let documents = [
        descriptor("a", "1", &[("b", "b", "2")], blueprint.clone()),
        descriptor("b", "2", &[("c", "c", "3")], blueprint.clone()),
        descriptor("c", "3", &[], blueprint),
    ];
    write(&host, "a", &documents);
    let opened = host.open(transport("a"), "a", "1").await.unwrap();
    let by_name = |context: Value, name: &str, version: &str| {
        ComponentSource::Reference(VersionReference {
            repository_context: Some(context.into()),
            name: name.to_owned(),
            version: version.to_owned(),
        })
    };
    let child = |component| Child { component, resource: "bp".to_owned() };
    assert_eq!(opened.child("cd://resources/bp").unwrap(), child(by_name(transport("a"), "a", "1")));
    assert_eq!(
        opened.child("cd://componentReferences/b/componentReferences/c/resources/bp").unwrap(),
        child(by_name(transport("a"), "c", "3"))
    );
    // Written in the installation: its own descriptor again, or the one that the reference carries.
    let mut inline = documents[0].clone();
    inline["component"]["repositoryContexts"] = json!([transport("a")]);
    let plain = ComponentSource::Inline(inline.clone().into());
    let opened = host.repositories.open(&ComponentRequest::of(plain.clone())).await.unwrap();
    assert_eq!(opened.child("cd://resources/bp").unwrap(), child(plain));
    assert!(is_shared(&*opened, "cd://resources/bp"));
    assert_eq!(
        opened.child("cd://componentReferences/b/resources/bp").unwrap(),
        child(by_name(transport("a"), "b", "2"))
    );
    inline["component"]["componentReferences"][0]["labels"] = json!([{ "name": INLINE_LABEL, "value": documents[1] }]);
    let opened = host.repositories.open(&ComponentRequest::of(ComponentSource::Inline(inline.into()))).await.unwrap();
    assert_eq!(
        opened.child("cd://componentReferences/b/resources/bp").unwrap(),
        child(ComponentSource::Inline(documents[1].clone().into()))
    );
    assert!(is_shared(&*opened, "cd://componentReferences/b/resources/bp"));
    let message = |reference: &str| opened.child(reference).unwrap_err().to_string();
    assert_eq!(message("cd://resources/x"), "the component a:1 has no resource with name=x; it has name=bp");
    assert_eq!(
        message("cd://componentReferences/x/resources/bp"),
        "the component a:1 has no component reference with name=x; it has name=b"
    );
}
