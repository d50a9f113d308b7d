//! A template engine that asks for chance, which this host cannot keep for a job yet.

mod bindings {
    wit_bindgen::generate!({
        world: "templater",
        path: "../../wit/template",
    });
}

use bindings::{
    exports::orangery::template::template::{Failure, Guest as Engine, Output, Rendered, Request},
    orangery::template::chance,
};

struct Guest;

impl Engine for Guest {
    fn render(of: Request) -> Result<Rendered, Failure> {
        let output = Output::Text(format!("{:?}", chance::bytes(&of.name, 8)));
        Ok(Rendered { output, state: None, warnings: vec![] })
    }
}

bindings::export!(Guest with_types_in bindings);
