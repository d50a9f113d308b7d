//! The values of a namespace with those of one call beside them (C-340).

use std::sync::Arc;

use orangery_core::{masking::Masker, name::Namespace};

use super::SecretValues;

impl SecretValues {
    /// What finds the values of a namespace, and these as well.
    pub(crate) fn masker_with(&self, namespace: &Namespace, more: &[String]) -> Masker {
        let more = more.iter().map(String::as_str);
        let Some(maskers) = self.maskers(namespace) else { return Masker::of(more) };
        if maskers.withholds {
            return Masker::of_too_many();
        }
        Masker::of(maskers.values.iter().map(Arc::as_ref).chain(more))
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::masking::MOST_MASKED_BYTES;

    use super::*;
    use crate::secret_values::{SecretSource, tests::known};

    #[test]
    fn c_340_the_values_of_a_call_are_looked_for_beside_those_of_its_namespace() {
        let (values, namespace) = known();
        let other = Namespace::from_static("other");
        let mask = |of: &Namespace| {
            let masker = values.masker_with(of, &["made-up-here".to_owned()]);
            masker.mask("hunter2-hunter2 made-up-here").into_owned()
        };
        assert_eq!([mask(&namespace), mask(&other)], ["[masked] [masked]", "hunter2-hunter2 [masked]"]);
        assert_eq!(values.masker(&namespace).mask("made-up-here"), "made-up-here");
        let most = "x".repeat(MOST_MASKED_BYTES);
        assert!(values.masker_with(&namespace, &[most]).withholds());
        values.learn(&namespace, SecretSource::Secret("t".into()), ["y".repeat(MOST_MASKED_BYTES)]);
        assert!(values.masker_with(&namespace, &[]).withholds());
    }
}
