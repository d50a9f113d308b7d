//! Exports `deploy` of the right version with other types.

mod bindings {
    wit_bindgen::generate!({
        inline: "
            package orangery:deployer@0.1.0;
            interface deploy {
                plan: func(of: string) -> string;
            }
            world deployer {
                export deploy;
            }
        ",
    });
}

struct Guest;

impl bindings::exports::orangery::deployer::deploy::Guest for Guest {
    fn plan(of: String) -> String {
        of
    }
}

bindings::export!(Guest with_types_in bindings);
