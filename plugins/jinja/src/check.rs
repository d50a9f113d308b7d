//! What can be said of a template without rendering it: its syntax, that of the files it includes, the filters and tests
//! that there are not, the inputs it reads.

use std::collections::BTreeSet;

use minijinja::{Environment, ErrorKind};
use orangery_sdk::{Files, Findings, InputReference, RenderFailure, RenderRequest};

use crate::{
    engine::{environment, from_root},
    place::failure,
    tags::{NamedFilter, Tag, tags},
};

/// Looks at a template and at all that it includes, imports and extends by a fixed name.
pub(crate) fn check(request: &RenderRequest, files: impl Files) -> Findings {
    let environment = environment(files);
    let mut look =
        TemplateCheck { environment: &environment, request, seen: BTreeSet::new(), found: Findings::default() };
    let name = request.file.as_deref().unwrap_or(&request.name);
    match environment.template_from_named_str(name, &request.template) {
        Ok(template) => {
            let variables = template.undeclared_variables(true);
            look.source(&request.template, request.file.as_deref(), variables.into_iter().collect());
        }
        Err(error) => look.found.failures.push(failure(&error, request)),
    }
    look.found
}

/// Jinja's own are too many to tell.
const FILTERS: &str = "; there are those of Jinja, and toyaml, fromjson, b64encode, b64decode, quote, squote, nindent";

/// The words of a rendering that comes upon it, and how to mend it.
fn unknown(asked: &NamedFilter<'_>, file: Option<&str>) -> RenderFailure {
    let (sort, known) = match asked.is_test {
        true => ("test", "; there are those of Jinja"),
        false => ("filter", FILTERS),
    };
    RenderFailure {
        message: format!("{sort} {} is unknown; correct its name{known}", asked.name),
        file: file.map(str::to_owned),
        line: Some(asked.line),
        column: Some(asked.column),
        snippet: None,
        reads: Vec::new(),
    }
}

struct TemplateCheck<'a> {
    environment: &'a Environment<'a>,
    request: &'a RenderRequest,
    /// Files that were looked at.
    seen: BTreeSet<String>,
    found: Findings,
}

impl TemplateCheck<'_> {
    /// A template that compiles. A file that is included sees variables of whoever includes it, so only the fields of
    /// inputs count there.
    fn source(&mut self, text: &str, file: Option<&str>, variables: BTreeSet<String>) {
        let tags = tags(text);
        let own = file == self.request.file.as_deref();
        for variable in variables.iter().filter(|variable| own || variable.contains('.')) {
            let first = variable.split('.').next().unwrap_or_default();
            if self.environment.globals().any(|(global, _)| global == first) {
                continue;
            }
            let path: Vec<String> = variable.split('.').map(str::to_owned).collect();
            let places: Vec<(u32, u32)> = tags.iter().flat_map(|tag| tag.occurrences(variable)).collect();
            let reference = |place: Option<(u32, u32)>| InputReference {
                path: path.clone(),
                file: file.map(str::to_owned),
                line: place.map(|(line, _)| line),
                column: place.map(|(_, column)| column),
            };
            if places.is_empty() {
                self.found.references.push(reference(None));
            }
            self.found.references.extend(places.into_iter().map(|place| reference(Some(place))));
        }
        for tag in &tags {
            for asked in tag.asked() {
                if !self.is_known(&asked) {
                    self.found.failures.push(unknown(&asked, file));
                }
            }
            for name in tag.templates() {
                self.included(from_root(&name), tag, file);
            }
        }
    }

    /// Whether there is a filter or test of that name. The engine keeps no list for others: it is asked to apply it to
    /// nothing, which any other error answers.
    fn is_known(&self, asked: &NamedFilter<'_>) -> bool {
        let mut state = self.environment.empty_state();
        let (error, unknown) = match asked.is_test {
            false => (state.apply_filter(asked.name, &[]).err(), ErrorKind::UnknownFilter),
            true => (state.perform_test(asked.name, &[]).err(), ErrorKind::UnknownTest),
        };
        error.is_none_or(|error| error.kind() != unknown)
    }

    fn included(&mut self, name: &str, tag: &Tag<'_>, by: Option<&str>) {
        if !self.seen.insert(name.to_owned()) {
            return;
        }
        match self.environment.get_template(name) {
            Ok(template) => {
                let variables = template.undeclared_variables(true);
                self.source(template.source(), Some(name), variables.into_iter().collect());
            }
            Err(error) if error.kind() == ErrorKind::TemplateNotFound => {
                if tag.may_be_missing() {
                    return;
                }
                self.found.failures.push(RenderFailure {
                    message: error.detail().unwrap_or("the file cannot be read").to_owned(),
                    file: by.map(str::to_owned),
                    line: Some(tag.line),
                    column: Some(tag.column),
                    snippet: None,
                    reads: Vec::new(),
                });
            }
            Err(error) => self.found.failures.push(failure(&error, self.request)),
        }
    }
}
