//! Names are types: what is called a namespace, a job or an object's name in a signature is no bare string.
//!
//! A signature is a parameter, a field, or the answer of a function that is called so. A `name` counts as that of an
//! object where a `namespace` stands beside it.

use std::path::Path;

use syn::{
    Attribute, Fields, FnArg, GenericArgument, Pat, PathArguments, ReturnType, Signature, Type, TypeParamBound,
    visit::Visit,
};

use crate::{repository, source::is_for_tests};

/// What a string may stand for that has a type of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Meaning {
    /// `JobId`
    Job,
    /// `Namespace`
    Namespace,
    /// `ObjectName`
    Object,
    /// `Kind`
    Kind,
    /// `ApiVersion`
    ApiVersion,
}

impl Meaning {
    /// What something of this name stands for; `beside_namespace` where a namespace is given with it.
    fn of(name: &str, beside_namespace: bool) -> Option<Self> {
        match name {
            "job" | "job_id" | "job_id_finished" | "interrupted_job" => Some(Meaning::Job),
            "object_name" => Some(Meaning::Object),
            "name" if beside_namespace => Some(Meaning::Object),
            "kind" => Some(Meaning::Kind),
            "api_version" => Some(Meaning::ApiVersion),
            _ if is_namespace(name) => Some(Meaning::Namespace),
            _ => None,
        }
    }
}

fn is_namespace(name: &str) -> bool {
    name == "namespace" || name == "namespaces" || name.ends_with("_namespace")
}

/// A bare string in a signature.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BareString {
    pub(crate) meaning: Meaning,
    /// `name:line`
    pub(crate) place: String,
}

/// The bare strings of a file that have a type of their own, tests left out.
pub(crate) fn bare_strings(path: &Path) -> Vec<BareString> {
    let text = repository::text(path);
    let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", repository::display(path)));
    let mut signatures = Signatures::default();
    signatures.visit_file(&file);
    signatures.found
}

#[derive(Default)]
struct Signatures {
    found: Vec<BareString>,
}

/// A name in a signature, with its type.
type Part<'a> = (&'a syn::Ident, &'a Type);

impl Signatures {
    /// Notes the bare strings among what stands in one signature.
    fn note(&mut self, parts: &[Part<'_>]) {
        let beside_namespace = parts.iter().any(|(ident, _)| is_namespace(&ident.to_string()));
        for (ident, of) in parts {
            let name = ident.to_string();
            let meaning = Meaning::of(&name, beside_namespace).filter(|_| is_bare(of));
            let place = format!("{name}:{}", ident.span().start().line);
            self.found.extend(meaning.map(|meaning| BareString { meaning, place }));
        }
    }
}

impl<'ast> Visit<'ast> for Signatures {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !attributes(item).iter().any(is_for_tests) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_signature(&mut self, signature: &'ast Signature) {
        let mut parts = Vec::new();
        for input in &signature.inputs {
            if let FnArg::Typed(input) = input {
                named(&input.pat, &input.ty, &mut parts);
            }
        }
        if let ReturnType::Type(_, answer) = &signature.output {
            parts.push((&signature.ident, answer));
        }
        self.note(&parts);
    }

    fn visit_fields(&mut self, fields: &'ast Fields) {
        if let Fields::Named(fields) = fields {
            let parts = fields.named.iter().filter_map(|field| Some((field.ident.as_ref()?, &field.ty)));
            self.note(&parts.collect::<Vec<_>>());
        }
    }
}

fn attributes(item: &syn::Item) -> &[Attribute] {
    match item {
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        _ => &[],
    }
}

/// The names that a pattern gives, each with its type.
fn named<'a>(pattern: &'a Pat, of: &'a Type, parts: &mut Vec<Part<'a>>) {
    match (pattern, of) {
        (Pat::Ident(pattern), _) => parts.push((&pattern.ident, of)),
        (Pat::Tuple(patterns), Type::Tuple(types)) => {
            patterns.elems.iter().zip(&types.elems).for_each(|(pattern, of)| named(pattern, of, parts));
        }
        _ => {}
    }
}

/// Whether a type is a string, or holds strings and nothing else: `&str`, `Option<String>`, `impl Into<String>`.
fn is_bare(of: &Type) -> bool {
    match of {
        Type::Reference(of) => is_bare(&of.elem),
        Type::Slice(of) => is_bare(&of.elem),
        Type::Array(of) => is_bare(&of.elem),
        Type::Path(of) => of.path.segments.last().is_some_and(is_bare_segment),
        Type::ImplTrait(of) => of.bounds.iter().any(|bound| match bound {
            TypeParamBound::Trait(bound) => bound.path.segments.last().is_some_and(is_bare_segment),
            _ => false,
        }),
        _ => false,
    }
}

fn is_bare_segment(segment: &syn::PathSegment) -> bool {
    if segment.ident == "str" || segment.ident == "String" {
        return true;
    }
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return false };
    let mut types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(of) => Some(of),
        GenericArgument::AssocType(of) => Some(&of.ty),
        _ => None,
    });
    types.next().is_some_and(is_bare)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        modules,
        repository::{display, none},
    };

    /// How many bare strings a crate has, and why they are none of the types. It has exactly so many: one less is written
    /// down here, so that it does not come back.
    const ALLOWED: &[(&str, Meaning, usize, &str)] = &[
        ("orangery-embedded", Meaning::Namespace, 25, "a server of its own: parts of URLs, generic over kinds"),
        ("orangery-proposal", Meaning::Namespace, 1, "patterns of a grant, `*` among them"),
        ("orangery-embedded", Meaning::Object, 6, "a server of its own: parts of URLs, generic over kinds"),
        ("orangery-plugin", Meaning::Object, 1, "the name of what is tested, such as a release, which is no object"),
        ("orangery-cluster", Meaning::Kind, 1, "kube's `Resource` answers a text"),
        ("orangery-reconcile", Meaning::Kind, 1, "kube's `Resource` answers a text"),
        ("orangery-embedded", Meaning::Kind, 19, "a server of its own: parts of URLs, generic over kinds"),
        ("orangery-embedded", Meaning::ApiVersion, 8, "a server of its own: parts of URLs, generic over kinds"),
    ];

    fn found(text: &str) -> Vec<String> {
        let mut signatures = Signatures::default();
        signatures.visit_file(&syn::parse_file(text).unwrap());
        signatures.found.into_iter().map(|one| format!("{:?} {}", one.meaning, one.place)).collect()
    }

    #[test]
    fn a_bare_string_is_found_in_parameters_answers_and_fields() {
        assert_eq!(found("fn f(job: &str, other: &str) {}"), ["Job job:1"]);
        assert_eq!(found("fn f(job: &JobId, namespace: Option<&Namespace>) {}"), [""; 0]);
        assert_eq!(found("trait T { fn job_id(&self) -> Option<String>; }"), ["Job job_id:1"]);
        assert_eq!(
            found("struct S {\n namespace: Option<String>,\n job: Vec<&'static str> }"),
            ["Namespace namespace:2", "Job job:3"]
        );
        assert_eq!(found("enum E { V { source_namespace: Arc<str> } }"), ["Namespace source_namespace:1"]);
        assert_eq!(
            found("fn f((kind, api_version): (&str, u8), namespaces: &[String]) {}"),
            ["Kind kind:1", "Namespace namespaces:1"]
        );
        assert_eq!(
            found("impl S { fn f(namespace: impl Into<String>, kind: NodeKind) {} }"),
            ["Namespace namespace:1"]
        );
    }

    #[test]
    fn a_name_is_that_of_an_object_beside_a_namespace_alone() {
        assert_eq!(found("fn f(name: &str) {}"), [""; 0]);
        assert_eq!(found("fn f(namespace: &Namespace, name: &str) {}"), ["Object name:1"]);
        assert_eq!(
            found("struct S { name: String, namespace: Option<Namespace>, object_name: String }"),
            ["Object name:1", "Object object_name:1"]
        );
    }

    #[test]
    fn tests_may_have_bare_strings() {
        assert_eq!(
            found("#[cfg(test)] mod tests { fn f(job: &str) {} } #[test] fn g() { fn h(job: &str) {} }"),
            [""; 0]
        );
    }

    #[test]
    fn what_has_a_type_is_no_bare_string() {
        let mut places: BTreeMap<(String, Meaning), Vec<String>> = BTreeMap::new();
        for (path, file) in modules::reached().iter().filter(|(_, file)| !file.for_tests) {
            if !display(path).starts_with("host/") {
                continue;
            }
            for one in bare_strings(path) {
                let place = format!("{} {}", display(path), one.place);
                places.entry((file.package.clone(), one.meaning)).or_default().push(place);
            }
        }
        let allowed: BTreeMap<(String, Meaning), usize> =
            ALLOWED.iter().map(|(package, meaning, most, _)| (((*package).to_owned(), *meaning), *most)).collect();
        let mut wrong = Vec::new();
        for (of, places) in &places {
            let most = allowed.get(of).copied().unwrap_or_default();
            if places.len() != most {
                wrong.push(format!("{of:?}: {}, and not {most}:\n    {}", places.len(), places.join("\n    ")));
            }
        }
        let absent = allowed.iter().filter(|(of, most)| **most > 0 && !places.contains_key(*of));
        wrong.extend(absent.map(|(of, most)| format!("{of:?}: none, and not {most}")));
        none("take the type of orangery_core::name, or write the figure down with its reason", wrong);
    }
}
