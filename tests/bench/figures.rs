//! The table, printed line by line as figures come in.

use std::{
    io::{Write as _, stdout},
    time::Duration,
};

/// The table.
pub(crate) struct Figures(());

impl Figures {
    /// Prints the head.
    pub(crate) fn begin() -> Figures {
        let mut figures = Figures(());
        figures.print("| what | figure |");
        figures.print("|---|---|");
        figures
    }

    /// Prints one line.
    pub(crate) fn add(&mut self, what: &str, figure: &str) {
        self.print(&format!("| {what} | {figure} |"));
    }

    fn print(&mut self, line: &str) {
        let mut out = stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).expect("the table can be written");
    }
}

/// Durations of the same thing, measured several times.
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    /// Of at least one measurement.
    pub(crate) fn new(mut samples: Vec<Duration>) -> Samples {
        assert!(!samples.is_empty(), "nothing was measured");
        samples.sort_unstable();
        Samples(samples)
    }

    /// These and others.
    pub(crate) fn and(self, others: Samples) -> Samples {
        Samples::new([self.0, others.0].concat())
    }

    /// The value that this share of the samples does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
        let place = (share * (self.0.len() - 1) as f64).round() as usize;
        self.0.get(place).copied().unwrap_or_default()
    }

    /// `median 1.2 ms, p99 3.4 ms (n = 30)`.
    pub(crate) fn text(&self) -> String {
        let (median, most) = (display(self.quantile(0.5)), display(self.quantile(0.99)));
        format!("median {median}, p99 {most} (n = {})", self.0.len())
    }
}

/// A duration with three digits.
pub(crate) fn display(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 0.001 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{:.1} µs", seconds * 1e6)
    }
}
