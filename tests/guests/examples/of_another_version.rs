//! Was built against a version of the contract that this host does not serve.

mod bindings {
    wit_bindgen::generate!({
        inline: "
            package orangery:deployer@0.2.0;
            interface deploy {
                plan: func() -> string;
            }
            world deployer {
                export deploy;
            }
        ",
    });
}

struct Guest;

impl bindings::exports::orangery::deployer::deploy::Guest for Guest {
    fn plan() -> String {
        String::new()
    }
}

bindings::export!(Guest with_types_in bindings);
