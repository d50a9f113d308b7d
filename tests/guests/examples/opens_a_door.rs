//! Imports what no host of this contract offers.

mod bindings {
    wit_bindgen::generate!({
        inline: "
            package test:opens;
            world opens {
                import acme:door/backdoor@1.0.0;
            }
            package acme:door@1.0.0 {
                interface backdoor {
                    open: func() -> bool;
                }
            }
        ",
        generate_all,
    });
}

use orangery_guests::{Fault, Item, Proposal, writing};

fn plan(_: Item) -> Result<Proposal, Fault> {
    Ok(writing(vec![bindings::acme::door::backdoor::open().to_string()]))
}

orangery_guests::guest!(plan);
