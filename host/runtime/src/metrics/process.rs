//! What the process takes of the machine, as `/proc` says it; nothing where there is none.

use std::{fs, time::Duration};

/// Ticks of a second in `/proc`, of whatever kernel.
const TICKS: u64 = 100;

/// What the process takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessFigures {
    pub(super) memory: u64,
    pub(super) cpu: Duration,
    pub(super) files: u64,
    /// Since 1970.
    pub(super) started: Duration,
}

impl ProcessFigures {
    pub(super) fn of_this_process() -> Self {
        let text = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let files = fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
        Self::read(&text("/proc/self/stat"), &text("/proc/self/status"), &text("/proc/stat"), files)
    }

    /// Of the texts that the kernel writes (proc(5)); the name of the program, in parentheses, may have anything in it.
    fn read(own: &str, status: &str, machine: &str, files: u64) -> Self {
        let fields: Vec<&str> = own.rsplit_once(") ").map(|(_, rest)| rest.split(' ').collect()).unwrap_or_default();
        let field =
            |number: usize| fields.get(number - 3).and_then(|field| field.parse::<u64>().ok()).unwrap_or_default();
        let ticks = |ticks: u64| Duration::from_millis(ticks.saturating_mul(1000 / TICKS));
        let booted = machine.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        Self {
            memory: resident.unwrap_or_default() << 10,
            cpu: ticks(field(14).saturating_add(field(15))),
            files,
            started: Duration::from_secs(booted.unwrap_or_default()) + ticks(field(22)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_read_however_the_program_is_called() {
        let own =
            "7 (a) R 1) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 1000 900000 25 18446744073709551615 1 1";
        let expected = ProcessFigures {
            memory: 25 << 10,
            cpu: Duration::from_secs(3),
            files: 3,
            started: Duration::from_secs(1_000_010),
        };
        assert_eq!(
            ProcessFigures::read(own, "Name:\ta\nVmRSS:\t      25 kB\n", "cpu 1 2\nbtime 1000000\n", 3),
            expected
        );
        assert_eq!(ProcessFigures::read("", "", "", 0), ProcessFigures::default());
    }

    #[test]
    fn this_process_takes_something() {
        let figures = ProcessFigures::of_this_process();
        assert!(
            figures.memory > 1 << 20 && figures.files > 2 && figures.started.as_secs() > 1_000_000_000,
            "{figures:?}"
        );
    }
}
