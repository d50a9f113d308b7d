//! A page of metrics as it grows, by the library that knows the formats.

use std::{fmt, time::Duration};

use orangery_figures::DurationCounts;
use prometheus_client::{
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet},
    metrics::MetricType,
};

use super::family::MetricFamily;

/// A page of metrics, one family after the other.
pub(super) struct MetricsPage<'a>(pub(super) DescriptorEncoder<'a>);

/// What a sample has.
#[derive(Clone, Copy)]
pub(super) enum SampleValue {
    /// How many there are, or were.
    Number(u64),
    /// A time in seconds.
    Seconds(f64),
    /// How long something took.
    Durations(DurationCounts),
}

impl From<u64> for SampleValue {
    fn from(number: u64) -> Self {
        SampleValue::Number(number)
    }
}

impl From<usize> for SampleValue {
    fn from(number: usize) -> Self {
        SampleValue::Number(number as u64)
    }
}

impl From<Duration> for SampleValue {
    fn from(duration: Duration) -> Self {
        SampleValue::Seconds(duration.as_secs_f64())
    }
}

impl From<DurationCounts> for SampleValue {
    fn from(counts: DurationCounts) -> Self {
        SampleValue::Durations(counts)
    }
}

impl MetricsPage<'_> {
    /// A family and its samples: the values of its labels, in their order, and what was counted.
    pub(super) fn family<'s, const LABELS: usize>(
        &mut self,
        of: &MetricFamily,
        samples: impl IntoIterator<Item = ([&'s str; LABELS], SampleValue)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(of.name, of.help, of.unit.as_ref(), of.sort)?;
        for (values, value) in samples {
            let labels: Vec<(&str, &str)> = of.labels.iter().copied().zip(values).collect();
            if labels.is_empty() {
                write(&mut encoder, of.sort, value)?;
            } else {
                write(&mut encoder.encode_family(&labels)?, of.sort, value)?;
            }
        }
        Ok(())
    }

    /// A family of one sample.
    pub(super) fn one(&mut self, of: &MetricFamily, value: impl Into<SampleValue>) -> fmt::Result {
        self.family(of, [([], value.into())])
    }
}

fn write(encoder: &mut MetricEncoder<'_>, sort: MetricType, value: SampleValue) -> fmt::Result {
    match (value, sort) {
        (SampleValue::Number(number), MetricType::Counter) => {
            encoder.encode_counter::<NoLabelSet, u64, f64>(&number, None)
        }
        (SampleValue::Number(number), _) => encoder.encode_gauge(&number),
        (SampleValue::Seconds(seconds), MetricType::Counter) => {
            encoder.encode_counter::<NoLabelSet, f64, f64>(&seconds, None)
        }
        (SampleValue::Seconds(seconds), _) => encoder.encode_gauge(&seconds),
        (SampleValue::Durations(counts), _) => {
            let sum = counts.sum.as_secs_f64();
            encoder.encode_histogram::<NoLabelSet>(sum, counts.count(), &counts.buckets(), None)
        }
    }
}
