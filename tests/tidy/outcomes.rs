//! What a job came to is judged and written in one place.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use syn::{Expr, ExprAssign, ExprField, ExprMethodCall, ExprReference, ExprStruct, Item, Member, visit::Visit};

    use crate::{
        modules,
        repository::{display, text},
        source::is_for_tests,
    };

    /// What a status says of a job: these fields are set together, where the outcome of a call is judged.
    const OF_THE_OUTCOME: [&str; 3] = ["conditions", "last_error", "observed_generation"];

    /// The one file of that, and others that set a field for something else than an outcome.
    const SETS: [(&str, &str, &str); 12] = [
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
        ("host/controllers/src/installation/phases/workflow.rs", "conditions", "those of gate expressions"),
        ("host/controllers/src/namespace_policy/follow.rs", "conditions", "a policy has no jobs"),
        ("host/controllers/src/namespace_policy/follow.rs", "observed_generation", "a policy has no jobs"),
        ("host/controllers/src/plugins/status.rs", "conditions", "a Plugin has no jobs"),
        ("host/controllers/src/plugins/status.rs", "observed_generation", "a Plugin has no jobs"),
        ("host/controllers/src/target_sync/status.rs", "observed_generation", "a TargetSync has no jobs"),
    ];

    /// Methods that change what they are called on.
    const CHANGING: [&str; 17] = [
        "append",
        "as_mut",
        "clear",
        "dedup",
        "drain",
        "extend",
        "get_or_insert",
        "get_or_insert_with",
        "insert",
        "iter_mut",
        "pop",
        "push",
        "remove",
        "replace",
        "retain",
        "take",
        "truncate",
    ];

    fn field(of: &Expr) -> Option<String> {
        match of {
            Expr::Unary(of) => field(&of.expr),
            Expr::Paren(of) => field(&of.expr),
            Expr::Index(of) => field(&of.expr),
            Expr::Field(ExprField { member: Member::Named(name), .. }) => Some(name.to_string()),
            _ => None,
        }
    }

    /// The fields that are set or changed in a source, outside of tests: assigned, lent to be changed, changed by a method, or given
    /// to a new status.
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
                self.0.extend(field(&assign.left));
                syn::visit::visit_expr_assign(self, assign);
            }

            fn visit_expr_reference(&mut self, lent: &'ast ExprReference) {
                self.0.extend(lent.mutability.as_ref().and_then(|_| field(&lent.expr)));
                syn::visit::visit_expr_reference(self, lent);
            }

            fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
                let changes = CHANGING.iter().any(|method| call.method == method);
                self.0.extend(changes.then(|| field(&call.receiver)).flatten());
                syn::visit::visit_expr_method_call(self, call);
            }

            fn visit_expr_struct(&mut self, made: &'ast ExprStruct) {
                let name = made.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
                if name.ends_with("Status") {
                    let named = made.fields.iter().filter_map(|field| match &field.member {
                        Member::Named(name) => Some(name.to_string()),
                        Member::Unnamed(_) => None,
                    });
                    self.0.extend(named);
                }
                syn::visit::visit_expr_struct(self, made);
            }
        }

        let mut assigned = Assigned(Vec::new());
        assigned.visit_file(&syn::parse_file(source).expect("a source can be parsed"));
        assigned.0
    }

    #[test]
    fn what_is_set_is_found_however_it_is_set_and_not_in_tests() {
        let source = "fn a() { s.conditions = x; *t.shared.last_error = None; let b = c.other; s.conditions[0] = x; } \
                      #[cfg(test)] mod tests { fn d() { s.observed_generation = 1; } }";
        assert_eq!(assigned(source), ["conditions", "last_error", "conditions"]);
        let source = "fn a() { s.conditions.push(x); s.conditions.iter().count(); mem::replace(&mut t.last_error, None); \
                      read(&t.last_error); } fn b() { ExecutionStatus { observed_generation: 1, ..before } }";
        assert_eq!(assigned(source), ["conditions", "last_error", "observed_generation"]);
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
