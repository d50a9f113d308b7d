//! What a machine lacks is decided in one place: tests that need it are ignored with its words, and none passes untested.

#[cfg(test)]
mod tests {
    use orangery_tests::machine::NEEDS;
    use syn::{Attribute, ExprAsync, ExprClosure, ExprReturn, ImplItemFn, ItemFn, visit::Visit};

    use crate::{
        modules,
        repository::{display, files_ending, none, text},
        source::is_for_tests,
    };

    /// Tests that only go on in a process of their own, in which another test has started them.
    const STARTED_BY_ANOTHER: [&str; 2] = ["probe", "the_process_that_is_killed"];

    /// The attributes that say what a test needs.
    fn ignored_for() -> Vec<String> {
        let attribute = |need: &orangery_tests::machine::Need| {
            format!("cfg_attr(without_{},ignore=\"{}\")", need.name, need.reason).replace(' ', "")
        };
        NEEDS.iter().map(attribute).collect()
    }

    #[test]
    fn a_test_is_ignored_for_what_a_machine_lacks_alone() {
        let allowed = ignored_for();
        let mut violations = Vec::new();
        for (path, file) in modules::reached() {
            for attribute in &file.source.attributes {
                let told = attribute.text.split_whitespace().collect::<String>();
                let ignores = told.starts_with("ignore") || told.starts_with("cfg_attr(") && told.contains(",ignore");
                if ignores && !allowed.contains(&told) {
                    violations.push(format!("{}:{} #[{}]", display(path), attribute.line, attribute.text));
                }
            }
        }
        none("an ignored test is dead code: say what it needs, in the words of tests/src/machine.rs", violations);
    }

    #[test]
    fn no_test_looks_for_what_a_machine_lacks() {
        let words = ["\"CI\"", "process::exit(", "SKIPPED"];
        // How many cuts a scenario has depends on CI; a bench and a process of its own may end as they like.
        let allowed = ["tests/without/main.rs", "tests/tidy/left_out.rs", "tests/src/crash_points.rs"];
        let mut violations = Vec::new();
        for (path, file) in modules::reached() {
            let display = display(path);
            let is_suite = file.for_tests || display.starts_with("tests/");
            if !is_suite
                || allowed.contains(&display.as_str())
                || ["tests/guests/", "tests/component_worker/"].iter().any(|folder| display.starts_with(folder))
            {
                continue;
            }
            for (index, line) in text(path).lines().enumerate() {
                let word = words.iter().find(|word| line.contains(**word));
                violations.extend(word.map(|word| format!("{display}:{}: {word}", index + 1)));
            }
        }
        none("ask tests/src/machine.rs, in the build script", violations);
    }

    /// Walks the tests of a file, without the functions in them.
    #[derive(Default)]
    struct Returns {
        test: Option<String>,
        found: Vec<(String, usize)>,
    }

    impl Returns {
        fn within(&mut self, test: Option<String>, visit: impl FnOnce(&mut Self)) {
            let outer = std::mem::replace(&mut self.test, test);
            visit(self);
            self.test = outer;
        }

        fn function(&mut self, attributes: &[Attribute], name: &syn::Ident, visit: impl FnOnce(&mut Self)) {
            let is_test =
                attributes.iter().any(|attribute| is_for_tests(attribute) && !attribute.path().is_ident("cfg"));
            self.within(is_test.then(|| name.to_string()), visit);
        }
    }

    impl<'ast> Visit<'ast> for Returns {
        fn visit_item_fn(&mut self, item: &'ast ItemFn) {
            self.function(&item.attrs, &item.sig.ident, |returns| syn::visit::visit_item_fn(returns, item));
        }

        fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
            self.function(&item.attrs, &item.sig.ident, |returns| syn::visit::visit_impl_item_fn(returns, item));
        }

        fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
            self.within(None, |returns| syn::visit::visit_expr_closure(returns, closure));
        }

        fn visit_expr_async(&mut self, block: &'ast ExprAsync) {
            self.within(None, |returns| syn::visit::visit_expr_async(returns, block));
        }

        fn visit_expr_return(&mut self, end: &'ast ExprReturn) {
            // What is answered instead was tested before.
            let test = self.test.clone().filter(|_| end.expr.is_none());
            self.found.extend(test.map(|test| (test, end.return_token.span.start().line)));
            syn::visit::visit_expr_return(self, end);
        }
    }

    fn returns(text: &str) -> Vec<(String, usize)> {
        let mut returns = Returns::default();
        returns.visit_file(&syn::parse_file(text).expect("a file of Rust"));
        returns.found
    }

    #[test]
    fn the_returns_of_tests_are_found_and_not_those_of_functions_in_them() {
        let text = "fn a() { return; }\n#[test]\nfn b() { let c = || { return; };\n return; }\n#[tokio::test]\nasync fn d() \
                    { fn e() { return; }\n async { return; }.await; if f() { return }\n }";
        assert_eq!(returns(text), [("b".to_owned(), 4), ("d".to_owned(), 7)]);
    }

    #[test]
    fn no_test_ends_before_it_has_tested() {
        let mut violations = Vec::new();
        for path in files_ending(&[".rs"]) {
            let text = text(&path);
            if !text.contains("test]") || !text.contains("return") {
                continue;
            }
            for (test, line) in returns(&text) {
                if !STARTED_BY_ANOTHER.contains(&test.as_str()) {
                    violations.push(format!("{}:{line} {test}", display(&path)));
                }
            }
        }
        none("a test that returns has not tested: say what it needs, as tests/src/machine.rs does", violations);
    }
}
