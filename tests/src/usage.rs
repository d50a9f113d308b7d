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
    status(process, "VmHWM:").map(|kibibytes| kibibytes / 1024.0)
}

/// The memory that a process has resident now, in MiB.
pub fn resident_mebibytes(process: u32) -> Option<f64> {
    status(process, "VmRSS:").map(|kibibytes| kibibytes / 1024.0)
}

/// The threads of a process.
pub fn threads(process: u32) -> Option<usize> {
    Some(fs::read_dir(format!("/proc/{process}/task")).ok()?.count())
}

/// The open file descriptors of a process.
pub fn descriptors(process: u32) -> Option<usize> {
    Some(fs::read_dir(format!("/proc/{process}/fd")).ok()?.count())
}

/// The number in the line that begins so.
fn status(process: u32, field: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
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
        let resident = resident_mebibytes(process).expect("a process has memory");
        assert!(resident > 1.0);
        assert!(peak_resident_mebibytes(process).is_some_and(|peak| peak >= resident));
        assert!(threads(process).is_some_and(|threads| threads >= 1));
        assert!(descriptors(process).is_some_and(|descriptors| descriptors >= 3));
    }
}
