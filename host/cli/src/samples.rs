//! Figures in the text format of Prometheus, as the operator answers them (`docs/metrics.md`).

use std::collections::BTreeMap;

/// One figure.
#[derive(Clone, Debug, PartialEq)]
struct MetricSample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// What an operator answered at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Samples(Vec<MetricSample>);

impl Samples {
    /// Reads a text; lines that are no figures are passed over.
    pub(crate) fn of(text: &str) -> Self {
        Self(text.lines().filter_map(sample).collect())
    }

    /// The sum of all figures of a name with these labels; `None` where there is none.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let has = |sample: &&MetricSample| {
            sample.name == name
                && labels.iter().all(|(label, value)| sample.labels.get(*label).is_some_and(|of| of == value))
        };
        let mut found = self.0.iter().filter(has).map(|sample| sample.value).peekable();
        found.peek()?;
        Some(found.sum())
    }

    /// All figures: name, labels and value.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&str, &BTreeMap<String, String>, f64)> {
        self.0.iter().map(|sample| (sample.name.as_str(), &sample.labels, sample.value))
    }
}

/// `name{label="value",…} value`, perhaps with a time behind it.
fn sample(line: &str) -> Option<MetricSample> {
    let name_ends = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':')?;
    let (name, rest) = line.split_at_checked(name_ends)?;
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    let value = rest.split_whitespace().next()?.parse().ok()?;
    (!name.is_empty()).then(|| MetricSample { name: name.to_owned(), labels, value })
}

/// Labels up to the brace that ends them, and what follows it.
fn labels(mut rest: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (label, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut letters = after.char_indices();
        loop {
            match letters.next()? {
                (place, '"') => {
                    rest = after.get(place + 1..)?;
                    break;
                }
                (_, '\\') => match letters.next()?.1 {
                    'n' => value.push('\n'),
                    letter => value.push(letter),
                },
                (_, letter) => value.push(letter),
            }
        }
        labels.insert(label.trim().to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# HELP orangery_plugin_ended_calls Calls.
# TYPE orangery_plugin_ended_calls counter
orangery_plugin_ended_calls_total{plugin=\"helm\",result=\"answered\"} 7
orangery_plugin_ended_calls_total{plugin=\"helm\",result=\"crash\"} 2 1700000000
orangery_plugin_ended_calls_total{result=\"answered\", plugin=\"a\\\"b\\\\c\\nd}\"} 1e1
orangery_lease_held 1
broken{plugin=\"x\" 1
broken{plugin=\"x
broken seven
{x=\"y\"} 1
# EOF
";

    #[test]
    fn c_398_figures_are_read_by_name_and_labels_and_what_is_none_is_passed_over() {
        let samples = Samples::of(TEXT);
        let ended = "orangery_plugin_ended_calls_total";
        assert_eq!(samples.sum(ended, &[("plugin", "helm")]), Some(9.0));
        assert_eq!(samples.sum(ended, &[("plugin", "helm"), ("result", "crash")]), Some(2.0));
        assert_eq!(samples.sum(ended, &[]), Some(19.0));
        assert_eq!(samples.sum("orangery_lease_held", &[]), Some(1.0));
        assert_eq!(samples.sum("orangery_lease_held", &[("plugin", "helm")]), None);
        let of = samples.each().filter(|(name, ..)| *name == ended);
        let plugins: Vec<_> =
            of.filter_map(|(_, labels, value)| Some((labels.get("plugin")?.as_str(), value))).collect();
        assert_eq!(plugins, [("helm", 7.0), ("helm", 2.0), ("a\"b\\c\nd}", 10.0)]);
        assert_eq!((samples.sum("broken", &[]), samples.0.len()), (None, 4));
    }
}
