//! Executions of type `Wasm`: where their component is, and what is refused.

use std::sync::Arc;

use super::*;
use crate::{
    plugins::Plugins,
    rendering::{RenderFailure, RenderRequest, Rendered},
    template_engine::{TemplateContext, TemplateEngine},
};
use orangery_core::{
    digest,
    error::{Code, Fault as Told},
    port::BoxFuture,
};
use orangery_ocm::{Artifact, ComponentReference, ComponentReferenceError};
use orangery_proposal::deployer::{Deployer, PluginIdentity};

const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn reference(registry: &str, repository: &str, tag: Option<&str>) -> ComponentReference {
    ComponentReference {
        registry: registry.to_owned(),
        repository: repository.to_owned(),
        tag: tag.map(str::to_owned),
        digest: format!("sha256:{HEX}"),
    }
}

#[test]
fn a_reference_has_registry_repository_and_digest() {
    let cases = [
        ("oci://ghcr.io/acme/render", reference("ghcr.io", "acme/render", None)),
        ("oci://ghcr.io/acme/render:1.2.3", reference("ghcr.io", "acme/render", Some("1.2.3"))),
        ("oci://localhost:5000/a.b_c-d/e", reference("localhost:5000", "a.b_c-d/e", None)),
        ("oci://[::1]:5000/a", reference("[::1]:5000", "a", None)),
        ("oci://127.0.0.1/a:_x", reference("127.0.0.1", "a", Some("_x"))),
    ];
    for (text, expected) in cases {
        let whole = format!("{text}@sha256:{HEX}");
        assert_eq!(whole.parse(), Ok(expected.clone()), "{whole}");
        assert_eq!(expected.to_string(), whole);
        assert_eq!(format!(" {whole}\n").parse(), Ok(expected));
    }
}

#[test]
fn a_text_that_names_no_component_is_refused_with_the_form_it_needs() {
    let form =
        |text: String| assert_eq!(text.parse::<ComponentReference>(), Err(ComponentReferenceError::Form(text.clone())));
    for place in [
        "https://ghcr.io/a",
        "ghcr.io/a",
        "oci:///a",
        "oci://ghcr.io",
        "oci://ghcr.io/",
        "oci://ghcr.io/A",
        "oci://ghcr.io/a//b",
        "oci://ghcr.io/../b",
        "oci://ghcr.io/a..b",
        "oci://ghcr.io/a/",
        "oci://ghcr.io/a:",
        "oci://ghcr.io/a:.x",
        "oci://ghcr.io:port/a",
        "oci://user:secret@ghcr.io/a",
        "oci://gh cr.io/a",
        "oci://[::1/a",
        "oci://ghcr.io/a:x:y",
        "oci://-a/b",
    ] {
        if place.contains("secret") {
            let text = format!("{place}@sha256:{HEX}");
            assert_eq!(text.parse::<ComponentReference>(), Err(ComponentReferenceError::Digest(text.clone())));
        } else {
            form(format!("{place}@sha256:{HEX}"));
        }
    }
    let long_tag = format!("oci://ghcr.io/a:{}@sha256:{HEX}", "x".repeat(129));
    form(long_tag);
    let none = "oci://ghcr.io/a:latest";
    assert_eq!(none.parse::<ComponentReference>(), Err(ComponentReferenceError::NoDigest(none.to_owned())));
    for digest in ["sha256:", "sha256:0", "md5:0", &format!("sha256:{}", HEX.to_uppercase()), &format!("sha512:{HEX}")]
    {
        let text = format!("oci://ghcr.io/a@{digest}");
        assert_eq!(text.parse::<ComponentReference>(), Err(ComponentReferenceError::Digest(text.clone())));
    }
    let long = "x".repeat(1000);
    assert_eq!(long.parse::<ComponentReference>(), Err(ComponentReferenceError::Form("x".repeat(300))));
}

fn execution(file: Option<&str>, template: String) -> TemplateExecution {
    TemplateExecution { name: "own".to_owned(), engine: "Wasm".to_owned(), file: file.map(str::to_owned), template }
}

#[test]
fn an_execution_names_its_component_by_file_or_reference() {
    let place = reference("ghcr.io", "acme/render", None);
    let with = |execution: TemplateExecution| Blueprint { deploy_executions: vec![execution], ..Blueprint::default() };
    let read = |source: &str| parse(&format!("deployExecutions: [{{name: own, type: Wasm, {source}}}]"));
    assert_eq!(read("file: deploy.tpl"), Ok(with(execution(Some("deploy.tpl"), String::new()))));
    let by_reference = with(execution(None, place.to_string()));
    assert_eq!(read(&format!("template: '{place}'")), Ok(by_reference.clone()));
    assert_eq!(read(&format!("template: {{component: '{place}'}}")), Ok(by_reference.clone()));
    let [execution] = by_reference.deploy_executions.as_slice() else { panic!("one execution") };
    assert_eq!(execution.own_component(), Ok(OwnComponent::Artifact(place)));
}

#[test]
fn an_execution_without_a_component_is_refused_where_it_stands() {
    let refused = |template: &str, error: ComponentReferenceError| {
        let blueprint = format!("exportExecutions: [{{name: own, type: Wasm, template: {template}}}]");
        refuses(&blueprint, "exportExecutions[0].template", BlueprintFault::Component(error));
    };
    refused("'oci://ghcr.io/a'", ComponentReferenceError::NoDigest("oci://ghcr.io/a".to_owned()));
    refused("{component: [1]}", ComponentReferenceError::Form("[1]".to_owned()));
    refused("{a: b}", ComponentReferenceError::Form(r#"{"a":"b"}"#.to_owned()));
    refuses("deployExecutions: [{name: own, type: Wasm}]", "deployExecutions[0]", BlueprintFault::FileOrTemplate);
    assert_eq!(
        parse("deployExecutions: [{name: own, type: Wasm, template: x}]").unwrap_err().to_string(),
        "the blueprint file blueprint.yaml is invalid: deployExecutions[0].template \"x\" names no component; write `oci://registry/repository@sha256:…`, or name a file of the blueprint with `file`"
    );
}

/// Engines that are called what they were made of.
struct Named(PluginIdentity);

impl TemplateEngine for Named {
    fn identity(&self) -> &PluginIdentity {
        &self.0
    }

    fn render<'a>(
        &'a self,
        _: &'a RenderRequest,
        _: &'a TemplateContext,
    ) -> BoxFuture<'a, Result<Rendered, RenderFailure>> {
        unreachable!("nothing is rendered here")
    }
}

struct Maker;

impl Plugins for Maker {
    fn deployer(&self, _: &str, _: &orangery_core::name::Namespace) -> Option<Arc<dyn Deployer>> {
        None
    }

    fn template_engine(&self, _: &str, _: Option<&orangery_core::name::Namespace>) -> Option<Arc<dyn TemplateEngine>> {
        None
    }

    fn bundled_engine(&self, name: &str, component: Arc<dyn Artifact>) -> Arc<dyn TemplateEngine> {
        let digest = component.digest().to_owned();
        Arc::new(Named(PluginIdentity { name: name.to_owned(), version: String::new(), digest, is_pinned: true }))
    }

    fn template_types(&self) -> Vec<String> {
        Vec::new()
    }
}

async fn made(execution: &TemplateExecution) -> Result<(String, String), Told> {
    let context = TemplateContext::of_files(Arc::new(files(json!({"render.wasm": "bytes"}))));
    let engine = execution.bundled_engine(&Maker, &context).await?;
    Ok((engine.identity().name.clone(), engine.identity().digest.clone()))
}

#[test]
fn the_engine_is_made_of_what_the_execution_names() {
    let own = |file| execution(Some(file), String::new());
    let ready = |execution: TemplateExecution| futures_of(made(&execution));
    assert_eq!(ready(own("render.wasm")), Ok(("render.wasm".to_owned(), digest::sha256(b"bytes"))));
    let invalid = |message: &str| Err(Told::invalid(Code::ConfigurationProblem, message));
    assert_eq!(ready(own("other.wasm")), invalid("the blueprint has no file other.wasm; it has render.wasm"));
    let place = reference("ghcr.io", "acme/render", None);
    assert_eq!(
        ready(execution(None, place.to_string())),
        invalid(&format!(
            "{place} cannot be read: there is no registry here; put the component into the blueprint and name it with `file`"
        ))
    );
}

/// What a future answers that never waits.
fn futures_of<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(answer) => answer,
        std::task::Poll::Pending => panic!("nothing is waited for"),
    }
}
