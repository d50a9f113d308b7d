//! What the author of a template engine writes, and what an engine may read while it renders.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bindings::template::{
    exports::orangery::template::{
        check,
        template::{Failure, Guest, InputPath, InputStep, Output, Rendered, Request},
    },
    orangery::template::{components, files, kubeconfigs, randomness},
};

/// How many paths a failure may have.
const MOST_READS: usize = 16;
/// How many bytes the fields of such a path may have, with one byte for each of its steps.
const MOST_READ: usize = 256;

/// A template engine: one function from a template and its inputs to the rendered output.
///
/// Exported with [`export_template!`](crate::export_template). Same request, same answers of the host, same output. It is
/// generic over its host, so that a component imports exactly the functions that it calls.
pub trait Engine {
    /// Renders one execution.
    ///
    /// # Errors
    ///
    /// A [`Failure`] with its place in the template.
    fn render(request: Request, host: impl TemplateHost) -> Result<Rendered, Failure>;

    /// Looks at one execution without rendering it, for `orangery blueprint check`: the request has neither inputs nor
    /// state. `None` where the engine cannot tell.
    fn check(_request: Request, _host: impl TemplateHost) -> Option<check::Findings> {
        None
    }
}

impl Request {
    /// The inputs: `imports`, `cd`, `components`, `blueprint`, `values`, … as far as the type has them.
    ///
    /// # Errors
    ///
    /// A [`Failure`] where they have another form. It shows no value.
    pub fn inputs<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let read = |error: serde_json::Error| {
            let what = if error.is_data() { "have another form than this component reads" } else { "are not JSON" };
            Failure::new(format!("the inputs {what} (column {}); check the blueprint's imports", error.column()))
        };
        serde_json::from_str(&self.inputs).map_err(read)
    }
}

impl Rendered {
    /// Text, which the host reads as YAML.
    pub fn text(text: impl Into<String>) -> Self {
        Rendered { output: Output::Text(text.into()), state: None, warnings: Vec::new() }
    }

    /// A finished document.
    pub fn document(document: &Value) -> Self {
        Rendered { output: Output::Document(document.to_string()), state: None, warnings: Vec::new() }
    }
}

impl Failure {
    /// A failure without a place in a template.
    pub fn new(message: impl Into<String>) -> Self {
        Failure { message: message.into(), file: None, line: None, column: None, snippet: None, reads: Vec::new() }
    }

    /// With what the failing line reads of the inputs: each path once, as many and as long ones as the contract takes.
    #[must_use]
    pub fn reading(mut self, paths: impl IntoIterator<Item = InputPath>) -> Self {
        for path in paths {
            let bytes: usize = path.iter().map(InputStep::bytes).sum();
            if self.reads.len() < MOST_READS && bytes <= MOST_READ && !self.reads.contains(&path) {
                self.reads.push(path);
            }
        }
        self
    }
}

impl InputStep {
    /// A field of an object.
    pub fn field(name: impl Into<String>) -> Self {
        InputStep::Field(name.into())
    }

    fn bytes(&self) -> usize {
        match self {
            InputStep::Field(name) => 1 + name.len(),
            InputStep::Items | InputStep::Entries => 1,
        }
    }
}

/// The blueprint's own files, by slash-separated path without a leading slash. It can be kept in an engine's closures.
pub trait Files: Send + Sync + 'static {
    /// A file's content.
    ///
    /// # Errors
    ///
    /// One sentence.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
    /// The names in a folder, sorted.
    ///
    /// # Errors
    ///
    /// One sentence.
    fn list(&self, path: &str) -> Result<Vec<String>, String>;
}

/// The component version that the blueprint belongs to. Descriptors are JSON, as the blueprint's schema version has them.
/// An error is one sentence, to be shown as it is; where it may pass by itself, the host renders again, whatever the engine
/// makes of it.
pub trait Components {
    /// The descriptor of the component that `from` references under this identity; without `from`, of the blueprint's own.
    ///
    /// # Errors
    ///
    /// One sentence.
    fn component(&self, from: Option<&Value>, select: &[(&str, &str)]) -> Result<Value, String>;
    /// The resources of a descriptor, or of the blueprint's own component, that match an identity, in their order.
    ///
    /// # Errors
    ///
    /// One sentence.
    fn resources(&self, from: Option<&Value>, select: &[(&str, &str)]) -> Result<Vec<Value>, String>;
    /// A key for a resource, which deployers can hand back, by its reference `cd://…`.
    ///
    /// # Errors
    ///
    /// One sentence.
    fn resource_key(&self, reference: &str) -> Result<String, String>;
    /// The content of a resource by its reference `cd://…`.
    ///
    /// # Errors
    ///
    /// One sentence.
    fn resource_content(&self, reference: &str) -> Result<Vec<u8>, String>;
}

/// Credentials for the clusters behind targets; each kind needs a grant.
pub trait Kubeconfigs {
    /// Issues a credential. The answer is a secret: the host blots it out of messages and logs, not out of the output.
    ///
    /// # Errors
    ///
    /// One sentence, such as the grant that is missing.
    fn issue_credential(&self, kind: &str, arguments: &Value) -> Result<Value, String>;
}

/// Time and randomness: the same whenever the same job renders the same execution again, unknown to anybody else.
pub trait Rng {
    /// When the job began, RFC 3339.
    fn now(&self) -> String;
    /// Random bytes: the same for the same key and length.
    fn bytes(&self, key: &str, length: u32) -> Vec<u8>;
}

/// All that a template engine can ask.
pub trait TemplateHost: Files + Components + Kubeconfigs + Rng {}

impl<T: Files + Components + Kubeconfigs + Rng> TemplateHost for T {}

/// The host behind the component's imports.
struct Imports;

fn pairs(identity: &[(&str, &str)]) -> Vec<(String, String)> {
    identity.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn document(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("the host answered what is not JSON: {error}"))
}

impl Components for Imports {
    fn component(&self, from: Option<&Value>, select: &[(&str, &str)]) -> Result<Value, String> {
        let from = from.map(Value::to_string);
        components::component(from.as_deref(), &pairs(select)).and_then(|text| document(&text))
    }

    fn resources(&self, from: Option<&Value>, select: &[(&str, &str)]) -> Result<Vec<Value>, String> {
        let from = from.map(Value::to_string);
        let found = components::resources(from.as_deref(), &pairs(select))?;
        found.iter().map(|text| document(text)).collect()
    }

    fn resource_key(&self, reference: &str) -> Result<String, String> {
        components::resource_key(reference)
    }

    fn resource_content(&self, reference: &str) -> Result<Vec<u8>, String> {
        components::resource_content(reference)
    }
}

impl Kubeconfigs for Imports {
    fn issue_credential(&self, kind: &str, arguments: &Value) -> Result<Value, String> {
        kubeconfigs::issue_credential(kind, &arguments.to_string()).and_then(|text| document(&text))
    }
}

impl Rng for Imports {
    fn now(&self) -> String {
        randomness::now()
    }

    fn bytes(&self, key: &str, length: u32) -> Vec<u8> {
        randomness::bytes(key, length)
    }
}

impl Files for Imports {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        files::read(path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, String> {
        files::list(path)
    }
}

impl<T: Engine> Guest for T {
    fn render(of: Request) -> Result<Rendered, Failure> {
        <T as Engine>::render(of, Imports)
    }
}

impl<T: Engine> check::Guest for T {
    fn check(of: Request) -> Option<check::Findings> {
        <T as Engine>::check(of, Imports)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Execution;

    fn request(inputs: &str) -> Request {
        Request {
            execution: Execution::Deploy,
            name: "default".into(),
            file: None,
            template: String::new(),
            inputs: inputs.into(),
            state: None,
        }
    }

    #[test]
    fn inputs_of_another_form_are_told_without_their_values() {
        let inputs: Value = request(r#"{"imports":{"a":1}}"#).inputs().unwrap();
        assert_eq!(inputs, json!({"imports": {"a": 1}}));
        let failure = request(r#"{"password":"secret"}"#).inputs::<std::collections::BTreeMap<String, u64>>();
        let message =
            "the inputs have another form than this component reads (column 20); check the blueprint's imports";
        assert_eq!(failure, Err(Failure::new(message)));
        let message = "the inputs are not JSON (column 1); check the blueprint's imports";
        assert_eq!(request("{").inputs::<Value>(), Err(Failure::new(message)));
    }

    #[test]
    fn a_failure_reads_each_path_once_and_no_more_than_the_contract_takes() {
        let path = |name: &str| vec![InputStep::field("imports"), InputStep::field(name), InputStep::Items];
        let of = |paths: Vec<InputPath>| Failure::new("no").reading(paths).reads;
        let longest = "x".repeat(256 - 3 - "imports".len());
        let longer = path(&format!("{longest}x"));
        assert_eq!(of(vec![path("a"), longer, path(&longest), path("a")]), [path("a"), path(&longest)]);
        let many: Vec<InputPath> = (0..100).map(|number: i32| path(&number.to_string())).collect();
        assert_eq!(of(many.clone()), many[..16]);
    }

    #[test]
    fn a_rendering_is_text_or_a_document() {
        let whole = |output| Rendered { output, state: None, warnings: vec![] };
        assert_eq!(Rendered::text("a: 1"), whole(Output::Text("a: 1".into())));
        assert_eq!(Rendered::document(&json!({"a": 1})), whole(Output::Document(r#"{"a":1}"#.into())));
    }
}
