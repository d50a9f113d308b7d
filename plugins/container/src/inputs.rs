//! What the container `init` writes for the program: one JSON document, cut into Secrets.

use data_encoding::BASE64;
use orangery_sdk::{Artifact, Fault, Host, Problem};
use serde::Serialize;
use serde_json::{Value, json};

use crate::configuration::{Blueprint, ProviderConfiguration};

/// The most bytes of all that `init` writes, but for target and state.
const MOST_INPUT_BYTES: usize = 8 << 20;

/// Bytes of one Secret, which may have 1 MiB.
pub(crate) const PART_BYTES: usize = 1_000_000;

/// Bytes that are read of content in one call.
const READ_BYTES: u32 = 1 << 20;

/// The document; `orangery container init` reads it.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Inputs {
    /// The text of the file with the imports.
    #[serde(skip_serializing_if = "Option::is_none")]
    imports: Option<String>,
    /// The text of the file with the component descriptors.
    #[serde(skip_serializing_if = "Option::is_none")]
    component_descriptors: Option<String>,
    /// Files of the content, in base64, by path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<(String, String)>,
    /// An archive of the content, in base64: tar, packed with gzip or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    archive: Option<String>,
}

/// What `init` writes for an item, in parts. There is always one.
pub(crate) fn parts(config: &ProviderConfiguration, host: &impl Host) -> Result<Vec<Vec<u8>>, Fault> {
    let mut inputs = Inputs { imports: config.imports.as_ref().map(Value::to_string), ..Inputs::default() };
    if let Some(source) = &config.descriptor
        && has_repository(source)
    {
        let bytes = content(&host.component_descriptors(source)?)?;
        inputs.component_descriptors = Some(String::from_utf8_lossy(&bytes).into_owned());
    }
    match (&config.blueprint, &config.descriptor) {
        (Some(Blueprint::Files(files)), _) => {
            let encoded = files.iter().map(|(path, text)| (path.clone(), BASE64.encode(text.as_bytes())));
            inputs.files = encoded.collect();
        }
        (Some(Blueprint::Resource(name)), Some(source)) => {
            let bytes = content(&host.component_resource(&resource_key(source, name)?)?)?;
            inputs.archive = Some(BASE64.encode(&bytes));
        }
        // A resource without a component version is refused before.
        (Some(Blueprint::Resource(_)) | None, _) => {}
    }
    let bytes = json!(inputs).to_string().into_bytes();
    if bytes.len() > MOST_INPUT_BYTES {
        return Err(too_large(bytes.len()));
    }
    Ok(bytes.chunks(PART_BYTES).map(<[u8]>::to_vec).collect())
}

fn too_large(bytes: usize) -> Fault {
    let message = format!(
        "imports, component descriptors and blueprint have {bytes} bytes together as they are handed to the container, and at most \
         {MOST_INPUT_BYTES} are; leave out what the program does not need"
    );
    Problem { code: "ERR_LIMIT_EXCEEDED".to_owned(), message, at: None }.into()
}

/// Whether a component version says where it is: else there is no file for it.
fn has_repository(source: &Value) -> bool {
    if source.pointer("/ref").is_some() {
        return source.pointer("/ref/repositoryContext").is_some_and(|context| !context.is_null());
    }
    let contexts = ["/inline/component/repositoryContexts", "/inline/repositoryContexts"].iter();
    contexts.filter_map(|place| source.pointer(place)?.as_array()).any(|contexts| !contexts.is_empty())
}

/// The key of a resource, as the host reads it: JSON is YAML.
fn resource_key(source: &Value, resource: &str) -> Result<String, Problem> {
    let text = |places: [&str; 3]| places.iter().find_map(|place| source.pointer(place)?.as_str()).unwrap_or_default();
    let name = text(["/ref/componentName", "/inline/component/name", "/inline/metadata/name"]);
    let version = text(["/ref/version", "/inline/component/version", "/inline/metadata/version"]);
    if name.is_empty() || version.is_empty() {
        return Err(Problem::configuration("/componentDescriptor", "the component descriptor has no name and version"));
    }
    let key = json!({"component": {"name": name, "version": version}, "resource": {"name": resource}});
    Ok(BASE64.encode(key.to_string().as_bytes()))
}

fn content(artifact: &impl Artifact) -> Result<Vec<u8>, Fault> {
    let size = usize::try_from(artifact.size()).unwrap_or(usize::MAX);
    if size > MOST_INPUT_BYTES {
        return Err(too_large(size));
    }
    let mut bytes = Vec::with_capacity(size);
    loop {
        let part = artifact.read(bytes.len() as u64, READ_BYTES)?;
        if part.is_empty() {
            return Ok(bytes);
        }
        bytes.extend(part);
    }
}

#[cfg(test)]
mod tests {
    use orangery_sdk::recorded::Recorded;

    use super::*;

    fn config(imports: Value) -> ProviderConfiguration {
        let config = json!({"apiVersion": "container.deployer.landscaper.gardener.cloud/v1alpha1",
            "kind": "ProviderConfiguration", "importValues": imports});
        ProviderConfiguration::read(&config).unwrap()
    }

    #[test]
    fn limits_container_inputs_all_that_is_handed_over_has_a_size() {
        let of = |length: usize| {
            let text = "a".repeat(length);
            parts(&config(json!(text)), &Recorded::default())
                .map(|parts| parts.iter().map(Vec::len).collect::<Vec<_>>())
        };
        // The document around the text, with its quotation marks twice.
        let around = r#"{"imports":"\"\""}"#.len();
        let parts = of(MOST_INPUT_BYTES - around).unwrap();
        assert_eq!((parts.len(), parts.iter().sum::<usize>()), (9, MOST_INPUT_BYTES));
        assert!(parts.iter().all(|part| *part <= PART_BYTES));
        let Err(Fault::Invalid(problem)) = of(MOST_INPUT_BYTES - around + 1) else { panic!("it is too large") };
        assert_eq!(problem.code, "ERR_LIMIT_EXCEEDED");
    }

    #[test]
    fn con_04_a_component_version_without_a_repository_has_no_file() {
        assert!(!has_repository(&json!({"ref": {"componentName": "a", "version": "1"}})));
        assert!(has_repository(&json!({"ref": {"repositoryContext": {"type": "ociRegistry"}}})));
        assert!(!has_repository(&json!({"inline": {"component": {"repositoryContexts": []}}})));
        assert!(has_repository(&json!({"inline": {"component": {"repositoryContexts": [{"type": "ociRegistry"}]}}})));
    }
}
