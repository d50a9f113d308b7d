//! Keeps every handle that it can get.

mod bindings {
    wit_bindgen::generate!({
        inline: "
            package test:hoards;
            world hoards {
                import wasi:clocks/monotonic-clock@0.2.0;
            }
            package wasi:io@0.2.0 {
                interface poll {
                    resource pollable {
                        ready: func() -> bool;
                        block: func();
                    }
                    poll: func(in: list<borrow<pollable>>) -> list<u32>;
                }
            }
            package wasi:clocks@0.2.0 {
                interface monotonic-clock {
                    use wasi:io/poll@0.2.0.{pollable};
                    type instant = u64;
                    type duration = u64;
                    now: func() -> instant;
                    resolution: func() -> duration;
                    subscribe-instant: func(when: instant) -> pollable;
                    subscribe-duration: func(when: duration) -> pollable;
                }
            }
        ",
        generate_all,
    });
}

use bindings::wasi::clocks::monotonic_clock::subscribe_duration;
use orangery_guests::{Fault, Item, Proposal};

fn plan(_: Item) -> Result<Proposal, Fault> {
    let mut hoard = Vec::new();
    loop {
        hoard.push(subscribe_duration(0));
    }
}

orangery_guests::guest!(plan);
