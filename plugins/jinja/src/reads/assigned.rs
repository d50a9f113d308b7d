//! The names that a template assigns.

use std::collections::BTreeSet;

use minijinja::machinery::ast::{Expr, Stmt};

/// The names that `set` assigns in more than one place.
pub(super) fn assigned_twice<'a>(template: &Stmt<'a>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    assigned(template).into_iter().filter(|name| !seen.insert(*name)).collect()
}

fn assigned<'a>(statement: &Stmt<'a>) -> Vec<&'a str> {
    let mut found = match statement {
        Stmt::Set(of) => names(&of.target),
        Stmt::SetBlock(of) => names(&of.target),
        _ => Vec::new(),
    };
    for body in bodies(statement) {
        found.extend(body.iter().flat_map(assigned));
    }
    found
}

/// The names of a target such as `a` or `a, b`.
pub(super) fn names<'a>(target: &Expr<'a>) -> Vec<&'a str> {
    match target {
        Expr::Var(variable) => vec![variable.id],
        Expr::List(list) => list.items.iter().flat_map(names).collect(),
        _ => Vec::new(),
    }
}

/// The statements within a statement.
fn bodies<'s, 'a>(of: &'s Stmt<'a>) -> Vec<&'s [Stmt<'a>]> {
    match of {
        Stmt::Template(of) => vec![&of.children],
        Stmt::ForLoop(of) => vec![&of.body, &of.else_body],
        Stmt::IfCond(of) => vec![&of.true_body, &of.false_body],
        Stmt::WithBlock(of) => vec![&of.body],
        Stmt::SetBlock(of) => vec![&of.body],
        Stmt::AutoEscape(of) => vec![&of.body],
        Stmt::FilterBlock(of) => vec![&of.body],
        Stmt::Block(of) => vec![&of.body],
        Stmt::Macro(of) => vec![&of.body],
        Stmt::CallBlock(of) => vec![&of.macro_decl.body],
        Stmt::EmitExpr(_)
        | Stmt::EmitRaw(_)
        | Stmt::Set(_)
        | Stmt::Import(_)
        | Stmt::FromImport(_)
        | Stmt::Extends(_)
        | Stmt::Include(_)
        | Stmt::Continue(_)
        | Stmt::Break(_)
        | Stmt::Do(_) => Vec::new(),
    }
}
