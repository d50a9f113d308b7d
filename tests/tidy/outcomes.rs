//! What a job came to is judged and written in one place.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use syn::{Expr, ExprAssign, ExprField, Item, Member, visit::Visit};

    use crate::{
        modules,
        repository::{display, text},
        source::is_for_tests,
    };

    /// What a status says of a job: these fields are set together, where the outcome of a call is judged.
    const OF_THE_OUTCOME: [&str; 3] = ["conditions", "last_error", "observed_generation"];

    /// The one file of that, and others that set a field for something else than an outcome.
    const SETS: [(&str, &str, &str); 6] = [
        ("host/controllers/src/job.rs", "", "the last step"),
        ("host/controllers/src/deploy_item/drift.rs", "conditions", "drift is no outcome of a job"),
        ("host/controllers/src/deploy_item/status.rs", "conditions", "with its job the drift of an item is unknown"),
        ("host/controllers/src/deploy_item/status.rs", "last_error", "an item that is picked up has none yet"),
        (
            "host/controllers/src/installation/phases/init.rs",
            "conditions",
            "overwrites of the Context are told beside it",
        ),
        (
            "host/controllers/src/installation/status.rs",
            "conditions",
            "a Context tells of an Installation between jobs",
        ),
    ];

    /// The fields that are assigned in a source, outside of tests.
    fn assigned(source: &str) -> Vec<String> {
        /// Collects them.
        struct Assigned(Vec<String>);

        impl<'ast> Visit<'ast> for Assigned {
            fn visit_item(&mut self, item: &'ast Item) {
                let attributes = match item {
                    Item::Mod(module) => &module.attrs[..],
                    Item::Fn(function) => &function.attrs[..],
                    _ => &[],
                };
                if !attributes.iter().any(is_for_tests) {
                    syn::visit::visit_item(self, item);
                }
            }

            fn visit_expr_assign(&mut self, assign: &'ast ExprAssign) {
                let left = match &*assign.left {
                    Expr::Unary(of) => &of.expr,
                    _ => &assign.left,
                };
                if let Expr::Field(ExprField { member: Member::Named(name), .. }) = &**left {
                    self.0.push(name.to_string());
                }
                syn::visit::visit_expr_assign(self, assign);
            }
        }

        let mut assigned = Assigned(Vec::new());
        assigned.visit_file(&syn::parse_file(source).expect("a source can be parsed"));
        assigned.0
    }

    #[test]
    fn an_assignment_is_found_with_and_without_a_star_and_not_in_tests() {
        let source = "fn a() { s.conditions = x; *t.shared.last_error = None; let b = c.other; } \
                      #[cfg(test)] mod tests { fn d() { s.observed_generation = 1; } }";
        assert_eq!(assigned(source), ["conditions", "last_error"]);
    }

    #[test]
    fn flx_02_the_outcome_of_a_call_is_written_into_a_status_in_one_place() {
        let mut sets = BTreeSet::new();
        for (path, file) in modules::reached() {
            let display = display(path);
            if file.for_tests || !display.starts_with("host/controllers/src/") {
                continue;
            }
            for field in assigned(&text(path)).into_iter().filter(|field| OF_THE_OUTCOME.contains(&field.as_str())) {
                sets.insert((display.clone(), if display.ends_with("src/job.rs") { String::new() } else { field }));
            }
        }
        let expected: BTreeSet<(String, String)> =
            SETS.iter().map(|(file, field, _)| ((*file).to_owned(), (*field).to_owned())).collect();
        assert_eq!(sets, expected, "what a job came to is set by core::walk and host/controllers/src/job.rs alone");
    }
}
