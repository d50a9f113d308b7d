//! Which files of a crate use which others: from `use` declarations and from paths that begin with `crate` or `super`.
//!
//! A name counts for the file that defines it, whichever module re-exports it. What a module uses of the modules below it
//! is no arrow: they are its parts. Tests are left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use syn::{Attribute, Item, UseTree, Visibility, visit::Visit};

use crate::{modules, repository, source::is_for_tests};

/// A module by its path below the crate; the root is empty.
pub(crate) type ModulePath = Vec<String>;

/// The modules of one crate, each in a file of its own.
#[derive(Default)]
pub(crate) struct Crate {
    modules: BTreeMap<ModulePath, Imports>,
}

/// What a file defines and names.
#[derive(Default)]
struct Imports {
    defined: BTreeSet<String>,
    uses: Vec<Use>,
    /// Paths in code.
    paths: Vec<ModulePath>,
}

/// One leaf of a `use` declaration.
struct Use {
    path: ModulePath,
    /// The name that it gives here; `None` for a glob.
    name: Option<String>,
    is_public: bool,
}

/// One file uses another: both modules.
pub(crate) type Arrow = (ModulePath, ModulePath);

/// The crates below a folder of the repository such as `host/`, by their own folder: `host/core`.
pub(crate) fn crates(below: &str) -> BTreeMap<String, Crate> {
    let mut crates: BTreeMap<String, Crate> = BTreeMap::new();
    for (path, file) in modules::reached() {
        let display = repository::display(path);
        let Some((folder, module)) = display.strip_suffix(".rs").and_then(|name| name.split_once("/src/")) else {
            continue;
        };
        if display.starts_with(below) && !file.for_tests {
            crates.entry(folder.to_owned()).or_default().add(module, &repository::text(path), path);
        }
    }
    crates
}

impl Crate {
    /// Adds the module of a file, named as in `installation/render`.
    fn add(&mut self, name: &str, text: &str, path: &Path) {
        let module = if name == "lib" { Vec::new() } else { name.split('/').map(str::to_owned).collect() };
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", repository::display(path)));
        let mut imports = Imports::default();
        imports.visit_file(&file);
        self.modules.insert(module, imports);
    }

    /// All arrows between files.
    pub(crate) fn arrows(&self) -> BTreeSet<Arrow> {
        let mut arrows = BTreeSet::new();
        for (module, imports) in &self.modules {
            let uses =
                imports.uses.iter().filter(|one| !(one.is_public && one.path.first().is_some_and(|at| at == "self")));
            for path in uses.map(|one| &one.path).chain(&imports.paths) {
                let target = self.absolute(module, path).and_then(|path| self.defining(&path, &mut BTreeSet::new()));
                if let Some(target) = target.filter(|target| !target.starts_with(module)) {
                    arrows.insert((module.clone(), target));
                }
            }
        }
        arrows
    }

    /// A path from the root of the crate; `None` where it leads out of the crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([module, rest].concat()),
            "super" => {
                let above = path.iter().take_while(|part| *part == "super").count();
                let base = module.get(..module.len().checked_sub(above)?)?;
                Some([base, path.get(above..)?].concat())
            }
            _ => {
                let below = [module, path].concat();
                self.modules.contains_key(below.get(..=module.len())?).then_some(below)
            }
        }
    }

    /// The module whose file defines what a path names.
    fn defining(&self, path: &[String], seen: &mut BTreeSet<ModulePath>) -> Option<ModulePath> {
        if !seen.insert(path.to_vec()) {
            return None;
        }
        let (module, rest) = (0..=path.len()).rev().find_map(|length| {
            let (module, rest) = path.split_at(length);
            self.modules.contains_key(module).then_some((module, rest))
        })?;
        let imports = self.modules.get(module)?;
        let Some(name) = rest.first().filter(|name| !imports.defined.contains(*name)) else {
            return Some(module.to_vec());
        };
        let Some(imported) = imports.uses.iter().find(|one| one.name.as_ref() == Some(name)) else {
            return Some(module.to_vec());
        };
        let target = self.absolute(module, &imported.path)?;
        self.defining(&[target.as_slice(), rest.get(1..)?].concat(), seen)
    }
}

/// The circles: the sets of modules of which each uses each other one, over however many arrows.
pub(crate) fn circles(arrows: &BTreeSet<Arrow>) -> BTreeSet<BTreeSet<ModulePath>> {
    let mut next: BTreeMap<&ModulePath, Vec<&ModulePath>> = BTreeMap::new();
    for (from, to) in arrows {
        next.entry(from).or_default().push(to);
    }
    let reached = |from: &ModulePath| {
        let (mut found, mut ahead) = (BTreeSet::new(), next.get(from).cloned().unwrap_or_default());
        while let Some(module) = ahead.pop() {
            if found.insert(module.clone()) {
                ahead.extend(next.get(module).into_iter().flatten());
            }
        }
        found
    };
    let all: BTreeMap<&ModulePath, BTreeSet<ModulePath>> = next.keys().map(|from| (*from, reached(from))).collect();
    let circle = |of: &ModulePath, reached: &BTreeSet<ModulePath>| {
        reached.iter().filter(|to| all.get(to).is_some_and(|back| back.contains(of))).cloned().collect()
    };
    let circles = all.iter().map(|(from, reached)| circle(from, reached));
    circles.filter(|circle: &BTreeSet<ModulePath>| circle.len() > 1).collect()
}

impl Imports {
    fn tree(&mut self, tree: &UseTree, before: &[String], is_public: bool) {
        match tree {
            UseTree::Path(path) => self.tree(&path.tree, &[before, &[path.ident.to_string()]].concat(), is_public),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(tree, before, is_public)),
            UseTree::Glob(_) => self.uses.push(Use { path: before.to_vec(), name: None, is_public }),
            UseTree::Name(name) if name.ident == "self" => {
                self.uses.push(Use { path: before.to_vec(), name: before.last().cloned(), is_public });
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                self.uses.push(Use {
                    path: [before, std::slice::from_ref(&name)].concat(),
                    name: Some(name),
                    is_public,
                });
            }
            UseTree::Rename(rename) => {
                let path = if rename.ident == "self" {
                    before.to_vec()
                } else {
                    [before, &[rename.ident.to_string()]].concat()
                };
                self.uses.push(Use { path, name: Some(rename.rename.to_string()), is_public });
            }
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes(item).iter().any(is_for_tests) {
            return;
        }
        let name = match item {
            Item::Struct(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Const(item) => Some(&item.ident),
            Item::Static(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Mod(item) if item.content.is_some() => Some(&item.ident),
            _ => None,
        };
        self.defined.extend(name.map(ToString::to_string));
        syn::visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&item.tree, &[], !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.first().is_some_and(|first| first.ident == "crate" || first.ident == "super") {
            self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        syn::visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let mut one = Crate::default();
        for (name, text) in files {
            one.add(name, text, Path::new(name));
        }
        one.arrows().into_iter().map(|(from, to)| format!("{} -> {}", from.join("/"), to.join("/"))).collect()
    }

    #[test]
    fn a_name_counts_for_the_file_that_defines_it() {
        let files = [
            ("lib", "pub mod a; pub mod b;"),
            ("a", "mod inner; pub use self::inner::{Inner, Other as Renamed}; pub struct A;"),
            ("a/inner", "pub struct Inner; pub struct Other; use super::A;"),
            ("b", "use crate::a::{self, Renamed}; fn f() -> crate::a::Inner { a::f() }"),
        ];
        assert_eq!(arrows(&files), ["a/inner -> a", "b -> a", "b -> a/inner"]);
    }

    #[test]
    fn parts_of_a_module_and_tests_are_no_arrows() {
        let files = [
            (
                "a",
                "mod inner; use self::inner::Inner; fn f() { inner::g() } #[cfg(test)] mod tests { use crate::b::B; }",
            ),
            ("a/inner", "pub struct Inner; pub fn g() { super::super::b::h() }"),
            ("b", "pub struct B; pub fn h() {} #[cfg(test)] use crate::a::f;"),
        ];
        assert_eq!(arrows(&files), ["a/inner -> b"]);
    }

    #[test]
    fn a_circle_is_found_over_several_arrows() {
        let arrow = |from: &str, to: &str| (vec![from.to_owned()], vec![to.to_owned()]);
        let line = BTreeSet::from([arrow("a", "b"), arrow("b", "c"), arrow("a", "c")]);
        assert_eq!(circles(&line), BTreeSet::new());
        let circle = BTreeSet::from([arrow("a", "b"), arrow("b", "c"), arrow("c", "a"), arrow("c", "d")]);
        let members = ["a", "b", "c"].map(|name| vec![name.to_owned()]);
        assert_eq!(circles(&circle), BTreeSet::from([BTreeSet::from(members)]));
    }
}
