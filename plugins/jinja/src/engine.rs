//! The environment that a template runs in.

use std::{borrow::Cow, sync::Arc};

use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, value::Value};
use orangery_sdk::{Files, RenderFailure, RenderRequest};

use crate::{
    filters, format,
    place::{FUEL, failure},
};

/// How deep includes, macros and blocks may nest. The sandbox has a stack of 1 MiB.
const DEPTH: usize = 100;

/// Renders a template to text.
pub(crate) fn render(request: &RenderRequest, files: impl Files) -> Result<String, RenderFailure> {
    let name = request.file.as_deref().unwrap_or(&request.name);
    let environment = environment(files);
    let rendered =
        variables(request).and_then(|variables| environment.render_named_str(name, &request.template, variables));
    rendered.map_err(|error| failure(&error, request))
}

pub(crate) fn environment<'a>(files: impl Files) -> Environment<'a> {
    let files = Arc::new(files);
    let mut environment = Environment::new();
    environment.set_debug(true);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(DEPTH);
    environment.set_formatter(format::write);
    environment.set_path_join_callback(|name, _| Cow::Borrowed(from_root(name)));
    // It prints every variable, secrets included.
    environment.remove_global("debug");
    filters::add(&mut environment);
    environment
        .add_function("fail", |message: String| Err::<Value, _>(Error::new(ErrorKind::InvalidOperation, message)));
    let sources = Arc::clone(&files);
    environment.add_function("read_file", move |path: &str| read(sources.as_ref(), path));
    let folders = Arc::clone(&files);
    environment.add_function("list_files", move |path: &str| {
        folders.list(from_root(path)).map_err(|sentence| Error::new(ErrorKind::InvalidOperation, sentence))
    });
    environment.set_loader(move |name| read(files.as_ref(), name).map(Some));
    environment
}

/// Paths start at the blueprint's root, however they are written.
pub(crate) fn from_root(path: &str) -> &str {
    let mut path = path;
    while let Some(rest) = path.strip_prefix("./").or_else(|| path.strip_prefix('/')) {
        path = rest;
    }
    path
}

fn read(files: &impl Files, path: &str) -> Result<String, Error> {
    let bytes = files.read(from_root(path)).map_err(|sentence| Error::new(ErrorKind::TemplateNotFound, sentence))?;
    String::from_utf8(bytes)
        .map_err(|_| Error::new(ErrorKind::InvalidOperation, format!("the file {path} is no UTF-8 text")))
}

/// The inputs, and the state that the execution kept: empty in its first job, so that its fields can have defaults.
fn variables(request: &RenderRequest) -> Result<Value, Error> {
    let document = |text: &str| {
        serde_json::from_str::<Value>(text)
            .map_err(|error| Error::new(ErrorKind::CannotDeserialize, format!("the host sent no JSON: {error}")))
    };
    let inputs = document(&request.inputs)?;
    let state = document(request.state.as_deref().unwrap_or("{}"))?;
    let mut variables = vec![("state".to_owned(), state)];
    for key in inputs.try_iter()? {
        let value = inputs.get_item(&key)?;
        variables.push((key.to_string(), value));
    }
    Ok(Value::from_pairs(variables))
}
