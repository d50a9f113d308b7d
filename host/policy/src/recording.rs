//! What is recorded of the calls of components for a namespace.

use crate::effective::EffectivePolicy;

impl EffectivePolicy {
    /// Of how many calls one is recorded: of several policies the least; `None` where no policy asks for it. A policy that cannot be
    /// used asks for nothing.
    pub fn recorded_one_in(&self) -> Option<u32> {
        let asked = self.policies().filter_map(|policy| {
            let lines = policy.lines().ok()?;
            lines.recordings.one_in.or(lines.profile.spec().recordings.one_in).filter(|one_in| *one_in > 0)
        });
        asked.min()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use crate::{Policy, PolicySet, Profile};

    fn recorded(specs: &[Value]) -> Option<u32> {
        let policies = specs.iter().enumerate().map(|(number, fields)| {
            let mut spec = json!({"namespaces": {"names": ["a"]}});
            if let (Some(spec), Some(fields)) = (spec.as_object_mut(), fields.as_object()) {
                spec.extend(fields.clone());
            }
            Policy::read(format!("p{number}"), &spec)
        });
        PolicySet::new(Profile::Compatible, policies).of(&"a".into(), &BTreeMap::new()).recorded_one_in()
    }

    #[test]
    fn c_347_of_several_policies_the_one_that_asks_for_most_recordings_counts_and_no_profile_asks_for_any() {
        let one_in = |number: u32| json!({"recordings": {"oneIn": number}});
        assert_eq!(recorded(&[]), None);
        assert_eq!(recorded(&[json!({}), json!({"profile": "compatible"})]), None);
        assert_eq!(recorded(&[one_in(0)]), None);
        assert_eq!(recorded(&[one_in(100), one_in(10), one_in(0)]), Some(10));
        let broken = json!({"recordings": {"oneIn": 1}, "approval": "Perhaps"});
        assert_eq!(recorded(&[one_in(7), broken]), Some(7), "what cannot be used asks for nothing");
    }
}
