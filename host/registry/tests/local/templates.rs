//! What templates may ask of a component version.

use data_encoding::BASE64;
use serde_json::json;

use crate::kit::*;

#[tokio::test]
async fn templates_reach_components_resources_keys_and_contents() {
    let host = Host::new();
    let mut archive = Transport::default();
    let text = archive.blob(b"some text");
    let bytes = archive.blob(&[0, 159, 1]);
    let resources = json!([
        resource("text", "plain", local_blob(&text, "text/plain")),
        resource("bytes", "plain", local_blob(&bytes, "application/octet-stream")),
    ]);
    archive.version(&descriptor("a", "1", &[("b", "b", "2")], json!([])), false);
    archive.version(&in_v3(&descriptor("b", "2", &[("c", "c", "3")], resources)), false);
    archive.version(&descriptor("c", "3", &[], json!([])), false);
    archive.write_folder(&host.components().join("a"));
    let templates = host.open(transport("a"), "a", "1").await.unwrap().templates();
    let named = |name: &str| [("name".to_owned(), name.to_owned())];

    let b = templates.component(None, &named("b")).await.unwrap();
    assert_eq!(b["meta"]["schemaVersion"], "v2", "as the original: v2 whatever the schema");
    // From a descriptor that a template holds, in either schema.
    let c = templates.component(Some(&b), &named("c")).await.unwrap();
    assert_eq!(c["component"]["name"], "c");
    assert_eq!(templates.component(Some(&in_v3(&b)), &named("c")).await.unwrap(), c);

    let found = templates.resources(Some(&b), &named("text")).await.unwrap();
    assert_eq!(found, [resource("text", "plain", local_blob(&text, "text/plain"))]);
    let message = templates.resources(None, &named("text")).await.unwrap_err().to_string();
    assert_eq!(message, "the component a:1 has no resource with name=text; it has none");

    let path = "cd://componentReferences/b/resources/";
    let key = templates.resource_key(&format!("{path}text")).await.unwrap();
    let key = String::from_utf8(BASE64.decode(key.as_bytes()).unwrap()).unwrap();
    assert_eq!(key, "component:\n  name: b\n  version: \"2\"\nresource:\n  name: text\n");
    assert_eq!(templates.resource_content(&format!("{path}text")).await.unwrap(), b"some text");
    let yaml = "{resource: {name: bytes}, referencePath: [{name: b}]}";
    assert_eq!(templates.resource_content(yaml).await.unwrap(), b"AJ8B", "base64 of bytes that are no text");
}
