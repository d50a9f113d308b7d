//! Objects that an expression makes, as those of mutating admission policies do: `Object{…}`, `Object.spec{…}` and `JSONPatch{…}`
//! are maps of their fields. What the fields may be is known to nobody here: a wrong one is found in what becomes of the object.

use cel::{
    IdedExpr,
    common::{
        ast::{EntryExpr, Expr, LiteralValue, MapEntryExpr, MapExpr},
        types::CelString,
    },
};

/// The tree with maps for the objects that are made in it.
///
/// # Errors
/// The name of another type.
pub(crate) fn opened(tree: &IdedExpr) -> Result<IdedExpr, String> {
    let mut tree = tree.clone();
    open(&mut tree)?;
    Ok(tree)
}

fn open(tree: &mut IdedExpr) -> Result<(), String> {
    match &mut tree.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Ok(()),
        Expr::Call(call) => {
            call.target.iter_mut().try_for_each(|target| open(target))?;
            call.args.iter_mut().try_for_each(open)
        }
        Expr::Comprehension(all) => {
            [&mut all.iter_range, &mut all.accu_init, &mut all.loop_cond, &mut all.loop_step, &mut all.result]
                .into_iter()
                .try_for_each(open)
        }
        Expr::List(list) => list.elements.iter_mut().try_for_each(open),
        Expr::Select(select) => open(&mut select.operand),
        Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| match &mut entry.expr {
            EntryExpr::MapEntry(entry) => open(&mut entry.key).and_then(|()| open(&mut entry.value)),
            EntryExpr::StructField(field) => open(&mut field.value),
        }),
        Expr::Struct(made) => {
            let name = made.type_name.trim_start_matches('.');
            if name != "Object" && !name.starts_with("Object.") && name != "JSONPatch" {
                return Err(format!("compilation failed: undeclared reference to '{name}'"));
            }
            let mut entries = std::mem::take(&mut made.entries);
            for entry in &mut entries {
                if let EntryExpr::StructField(field) = &mut entry.expr {
                    open(&mut field.value)?;
                    let key = Expr::Literal(LiteralValue::String(CelString::from(field.field.clone())));
                    entry.expr = EntryExpr::MapEntry(MapEntryExpr {
                        key: IdedExpr { id: entry.id, expr: key },
                        value: std::mem::take(&mut field.value),
                        optional: field.optional,
                    });
                }
            }
            tree.expr = Expr::Map(MapExpr { entries });
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{Expression, ExpressionScope};

    fn made(source: &str) -> Result<Value, String> {
        let mut scope = ExpressionScope::new();
        scope.name("object", &json!({"spec": {"replicas": 1, "names": ["a", "b"]}}));
        Expression::compile_object(source)?.json(&scope)
    }

    #[test]
    fn objects_that_are_made_are_maps_of_their_fields() {
        for (source, value) in [
            ("Object{}", json!({})),
            ("Object{spec: Object.spec{replicas: object.spec.replicas + 1}}", json!({"spec": {"replicas": 2}})),
            ("Object{metadata: Object.metadata{labels: {'a': 'b'}}}", json!({"metadata": {"labels": {"a": "b"}}})),
            (
                "has(object.status) ? Object{} : Object{spec: Object.spec{names: object.spec.names.map(n, n + 'x')}}",
                json!({"spec": {"names": ["ax", "bx"]}}),
            ),
            (
                "[JSONPatch{op: 'add', path: '/a', value: Object.spec{b: 1}}]",
                json!([{"op": "add", "path": "/a", "value": {"b": 1}}]),
            ),
            (
                "object.spec.names.map(n, JSONPatch{op: 'remove', path: '/' + n})",
                json!([{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/b"}]),
            ),
        ] {
            assert_eq!(made(source), Ok(value), "{source}");
        }
    }

    #[test]
    fn another_type_is_unknown() {
        for source in ["Other{a: 1}", "Objects{}", "[Object{a: Other{}}]", "Object{a: 1}.b(Other{})"] {
            let why = made(source).unwrap_err();
            assert!(why.contains("undeclared reference to 'Other") || why.contains("to 'Objects'"), "{source}: {why}");
        }
    }
}
