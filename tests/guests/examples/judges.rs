//! A gate expression that does what its configuration says: answers, lies, or misbehaves.

mod bindings {
    wit_bindgen::generate!({
        world: "gate-engine",
        path: "../../wit/gate/0.1.0",
    });
}

use bindings::exports::orangery::gate::gate::{Answer, GateQuestion, Guest as GateEngine, Verdict};

struct Guest;

impl GateEngine for Guest {
    fn evaluate(of: GateQuestion) -> Answer {
        let says = |verdict| Answer {
            verdict,
            reason: "AsConfigured".to_owned(),
            message: format!("{:?} of {} sees {}", of.gate, of.item, of.inputs),
            details: Some(r#"{"level":3}"#.to_owned()),
        };
        match of.config.trim_matches('"') {
            "met" => says(Verdict::Met),
            "not-met" => says(Verdict::NotMet),
            "unknown" => says(Verdict::Unknown),
            "live" if of.inputs.contains(r#""level":"high""#) => says(Verdict::Met),
            "live" => says(Verdict::NotMet),
            "no-word" => Answer { reason: "no word".to_owned(), ..says(Verdict::Met) },
            "no-json" => Answer { details: Some("{".to_owned()), ..says(Verdict::Met) },
            "much" => Answer { details: Some(format!("{:?}", "x".repeat(5000))), ..says(Verdict::Met) },
            "long" => Answer { message: "x\n".repeat(5000), ..says(Verdict::Met) },
            "loop" => loop {
                std::hint::black_box(0);
            },
            "allocate" => {
                let mut all = Vec::new();
                loop {
                    all.push(vec![1_u8; 1 << 20]);
                    std::hint::black_box(&all);
                }
            }
            other => panic!("nobody knows {other}"),
        }
    }
}

bindings::export!(Guest with_types_in bindings);
