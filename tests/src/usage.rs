//! What a process has used, as Linux accounts for it.

use std::fs;

/// Ticks a second in `/proc`, the same on every Linux.
const TICKS: f64 = 100.0;

/// Processor seconds of a process so far, user and system.
pub fn cpu_seconds(process: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may contain blanks.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS)
}

/// The most memory that a process has had resident so far, in MiB.
pub fn peak_resident_mebibytes(process: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes / 1024.0)
}

/// Forgets the peak of a process: from now on it is that of what comes. Without the right to do so it stays.
pub fn forget_peak(process: u32) {
    let _ = fs::write(format!("/proc/{process}/clear_refs"), "5");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_something() {
        let process = std::process::id();
        assert!(cpu_seconds(process).is_some_and(|seconds| seconds >= 0.0));
        assert!(peak_resident_mebibytes(process).is_some_and(|mebibytes| mebibytes > 1.0));
    }
}
