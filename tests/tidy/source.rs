//! One Rust file, measured: which lines are code, which of them are tests, how long its functions are.

use std::{
    collections::BTreeSet,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::{Attribute, Block, Ident, ItemMod, visit::Visit};

use crate::repository;

pub(crate) struct Source {
    pub(crate) path: PathBuf,
    /// Lines with at least one token that is not a comment.
    lines: BTreeSet<usize>,
    /// Lines inside `#[cfg(test)]` items and `#[test]` functions.
    tests: Vec<RangeInclusive<usize>>,
    pub(crate) functions: Vec<Function>,
    pub(crate) names: Vec<Named>,
    /// The types among them, outside tests.
    pub(crate) types: Vec<Named>,
    /// Every attribute as text, also those inside macros.
    pub(crate) attributes: Vec<Text>,
    /// The modules declared with a semicolon.
    pub(crate) modules: Vec<Module>,
}

/// A function with a body, outside tests.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// Lines of code between the braces.
    pub(crate) length: usize,
}

/// Something that is given a name here.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) line: usize,
}

pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) line: usize,
}

pub(crate) struct Module {
    pub(crate) name: String,
    /// Where the file is, when the declaration says so.
    pub(crate) path: Option<String>,
    /// The inline modules around the declaration, outermost first.
    pub(crate) within: Vec<String>,
    pub(crate) for_tests: bool,
}

impl Source {
    pub(crate) fn read(path: &Path) -> Source {
        let text = repository::text(path);
        Source::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Source {
        let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{}: {error}", repository::display(path)));
        let mut scan = Scan::default();
        scan.tokens(tokens);
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", repository::display(path)));
        let mut shape = Shape::new(&scan.lines);
        shape.visit_file(&file);
        let Shape { tests, functions, names, types, modules, .. } = shape;
        Source {
            path: path.to_owned(),
            tests,
            functions,
            names,
            types,
            modules,
            attributes: scan.attributes,
            lines: scan.lines,
        }
    }

    /// Lines of code outside tests.
    pub(crate) fn code(&self) -> usize {
        self.lines.iter().filter(|line| !self.is_test(**line)).count()
    }

    /// Lines of code inside tests.
    pub(crate) fn tests(&self) -> usize {
        self.lines.iter().filter(|line| self.is_test(**line)).count()
    }

    /// Whether the line, counted from one, is inside a test.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&line))
    }
}

/// Walks the tokens: macros are opaque to the syntax tree, but not to this.
#[derive(Default)]
struct Scan {
    lines: BTreeSet<usize>,
    attributes: Vec<Text>,
}

impl Scan {
    fn tokens(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            if is_punct(&token, '#') {
                let bang = tokens.next_if(|next| is_punct(next, '!'));
                if let Some(TokenTree::Group(group)) = tokens.next_if(is_brackets) {
                    if is_doc_comment(token.span()) {
                        continue;
                    }
                    self.attributes.push(Text { text: group.stream().to_string(), line: token.span().start().line });
                    self.cover(token.span());
                    self.cover(group.span());
                    continue;
                }
                bang.iter().for_each(|bang| self.cover(bang.span()));
            }
            match token {
                TokenTree::Group(group) => {
                    self.cover(group.span_open());
                    self.tokens(group.stream());
                    self.cover(group.span_close());
                }
                other => self.cover(other.span()),
            }
        }
    }

    fn cover(&mut self, span: Span) {
        self.lines.extend(span.start().line..=span.end().line);
    }
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

fn is_brackets(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket)
}

/// A doc comment is an attribute whose `#` covers the whole comment.
fn is_doc_comment(hash: Span) -> bool {
    hash.source_text().is_some_and(|text| text.starts_with('/'))
}

/// Walks the syntax tree.
struct Shape<'a> {
    lines: &'a BTreeSet<usize>,
    tests: Vec<RangeInclusive<usize>>,
    functions: Vec<Function>,
    names: Vec<Named>,
    types: Vec<Named>,
    modules: Vec<Module>,
    within: Vec<String>,
    depth_of_tests: usize,
}

impl<'a> Shape<'a> {
    fn new(lines: &'a BTreeSet<usize>) -> Self {
        Shape {
            lines,
            tests: Vec::new(),
            functions: Vec::new(),
            names: Vec::new(),
            types: Vec::new(),
            modules: Vec::new(),
            within: Vec::new(),
            depth_of_tests: 0,
        }
    }

    fn name(&mut self, ident: &Ident) {
        self.names.push(Named { name: ident.to_string(), line: ident.span().start().line });
    }

    /// Notes a type.
    fn type_name(&mut self, ident: &Ident, attributes: &[Attribute]) {
        self.name(ident);
        if self.depth_of_tests == 0 && !attributes.iter().any(is_for_tests) {
            self.types.push(Named { name: ident.to_string(), line: ident.span().start().line });
        }
    }

    /// Notes a function and says whether it is a test.
    fn function(&mut self, ident: &Ident, attributes: &[Attribute], block: &Block) -> bool {
        self.name(ident);
        let start = ident.span().start().line;
        let (open, close) = (block.brace_token.span.open().end().line, block.brace_token.span.close().start().line);
        let is_test = attributes.iter().any(is_for_tests);
        if is_test {
            let first = attributes.iter().map(|attribute| attribute.pound_token.span.start().line).min();
            self.tests.push(first.unwrap_or(start)..=close);
        } else if self.depth_of_tests == 0 {
            let length = self.lines.range(open + 1..close.max(open + 1)).count();
            self.functions.push(Function { name: ident.to_string(), line: start, length });
        }
        is_test
    }

    fn inside(&mut self, is_test: bool, visit: impl FnOnce(&mut Self)) {
        self.depth_of_tests += usize::from(is_test);
        visit(self);
        self.depth_of_tests -= usize::from(is_test);
    }
}

impl<'ast> Visit<'ast> for Shape<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.name(&item.ident);
        let is_test = item.attrs.iter().any(is_for_tests);
        let Some((braces, _)) = &item.content else {
            self.modules.push(Module {
                name: item.ident.to_string(),
                path: item.attrs.iter().find_map(path_attribute),
                within: self.within.clone(),
                for_tests: is_test || self.depth_of_tests > 0,
            });
            return;
        };
        if is_test {
            self.tests.push(item.mod_token.span.start().line..=braces.span.close().end().line);
        }
        // Modules within such a one lie beside the file.
        let is_beside = item.attrs.iter().find_map(path_attribute).as_deref() == Some(".");
        let within = self.within.len();
        self.within.extend((!is_beside).then(|| item.ident.to_string()));
        self.inside(is_test, |shape| syn::visit::visit_item_mod(shape, item));
        self.within.truncate(within);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let is_test = self.function(&item.sig.ident, &item.attrs, &item.block);
        self.inside(is_test, |shape| syn::visit::visit_item_fn(shape, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let is_test = self.function(&item.sig.ident, &item.attrs, &item.block);
        self.inside(is_test, |shape| syn::visit::visit_impl_item_fn(shape, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        match &item.default {
            Some(block) => {
                self.function(&item.sig.ident, &item.attrs, block);
            }
            None => self.name(&item.sig.ident),
        }
        syn::visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let is_test = item.attrs.iter().any(is_for_tests);
        if is_test {
            self.tests.push(item.impl_token.span.start().line..=item.brace_token.span.close().end().line);
        }
        self.inside(is_test, |shape| syn::visit::visit_item_impl(shape, item));
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.type_name(&item.ident, &item.attrs);
        syn::visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.type_name(&item.ident, &item.attrs);
        syn::visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.type_name(&item.ident, &item.attrs);
        syn::visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.type_name(&item.ident, &item.attrs);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.name(&item.ident);
        syn::visit::visit_item_const(self, item);
    }
}

/// `#[test]`, `#[tokio::test]` or `#[cfg(test)]`.
pub(crate) fn is_for_tests(attribute: &Attribute) -> bool {
    let path = attribute.path();
    if path.segments.last().is_some_and(|segment| segment.ident == "test") {
        return true;
    }
    path.is_ident("cfg") && attribute.parse_args::<Ident>().is_ok_and(|condition| condition == "test")
}

fn path_attribute(attribute: &Attribute) -> Option<String> {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(value) = &pair.value else { return None };
    match &value.lit {
        syn::Lit::Str(text) if pair.path.is_ident("path") => Some(text.value()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "//! A module.\n\n/// A function.\n/// In two lines.\nfn long() {\n    // Why.\n    let text = \"one\n        two\";\n\n    drop(text);\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn works() {}\n}\n";

    #[test]
    fn comments_and_blank_lines_are_no_code_and_tests_are_counted_apart() {
        let source = Source::parse(Path::new("sample.rs"), SAMPLE);
        let lengths: Vec<_> = source.functions.iter().map(|f| (f.name.as_str(), f.line, f.length)).collect();
        assert_eq!((source.code(), source.tests(), lengths), (6, 4, vec![("long", 5, 3)]));
    }

    #[test]
    fn types_are_noted_outside_tests() {
        let text = "struct A; enum B {} trait C { type Inner; } type D = A; #[cfg(test)] struct E;\n#[cfg(test)]\nmod tests { struct F; }";
        let source = Source::parse(Path::new("types.rs"), text);
        let types: Vec<_> = source.types.iter().map(|named| named.name.as_str()).collect();
        assert_eq!(types, ["A", "B", "C", "D"]);
    }

    #[test]
    fn modules_within_others_lie_in_their_folders_or_beside_the_file() {
        let text = "mod a { mod b; }\n#[path = \".\"]\nmod c { mod d; mod e { mod f; } }\nmod g;";
        let source = Source::parse(Path::new("modules.rs"), text);
        let modules: Vec<_> = source
            .modules
            .iter()
            .map(|module| [&module.within[..], std::slice::from_ref(&module.name)].concat().join("/"))
            .collect();
        assert_eq!(modules, ["a/b", "d", "e/f", "g"]);
    }
}
