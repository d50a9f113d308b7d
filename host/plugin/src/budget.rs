//! What one call may spend, and the names of the limits.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The limits of one call, as `limits` of a registration gives them; what is left out has its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Budget {
    /// Time on the processor, in ticks of 10 ms. Waiting for a cluster is not counted.
    pub cpu_milliseconds: u64,
    /// Time from the start of the call to its end, waiting included.
    pub wall_milliseconds: u64,
    /// All linear memories together, in MiB; at most 512.
    #[serde(rename = "memoryMiB")]
    pub memory_mib: u64,
    /// All tables together; at most 1,000,000.
    pub table_elements: u64,
    /// Resources that the component holds at once.
    pub handles: u64,
    /// Calls of the interfaces of `wit/`.
    pub host_calls: u64,
    /// What goes in and out of host calls, all together.
    pub host_call_bytes: u64,
    /// The answer.
    pub output_bytes: u64,
    /// Lines logged or written to the standard streams.
    pub log_lines: u64,
    /// Bytes of these lines.
    pub log_bytes: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            cpu_milliseconds: 2_000,
            wall_milliseconds: 30_000,
            memory_mib: 64,
            table_elements: 200_000,
            handles: 1_000,
            host_calls: 1_000,
            host_call_bytes: 32 << 20,
            output_bytes: 8 << 20,
            log_lines: 1_000,
            log_bytes: 256 << 10,
        }
    }
}

/// The greatest linear memory of the pool.
pub(crate) const MAX_MEMORY_MIB: u64 = 512;
/// The greatest sum of table elements.
pub(crate) const MAX_TABLE_ELEMENTS: u64 = 1_000_000;

impl Budget {
    /// What a limit allows, in its unit.
    pub fn allowed(&self, limit: BudgetLimit) -> u64 {
        match limit {
            BudgetLimit::Cpu => self.cpu_milliseconds,
            BudgetLimit::Wall => self.wall_milliseconds,
            BudgetLimit::Memory => self.memory_mib,
            BudgetLimit::TableElements => self.table_elements,
            BudgetLimit::Handles => self.handles,
            BudgetLimit::HostCalls => self.host_calls,
            BudgetLimit::HostCallBytes => self.host_call_bytes,
            BudgetLimit::Output => self.output_bytes,
            BudgetLimit::LogLines => self.log_lines,
            BudgetLimit::LogBytes => self.log_bytes,
        }
    }

    /// The first limit that no host can keep, with the greatest value it may have; `None` where all can be kept.
    pub(crate) fn beyond(&self) -> Option<(BudgetLimit, u64)> {
        [(BudgetLimit::Memory, MAX_MEMORY_MIB), (BudgetLimit::TableElements, MAX_TABLE_ELEMENTS)]
            .into_iter()
            .find(|(limit, most)| self.allowed(*limit) > *most)
    }
}

/// One limit of a [`Budget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum BudgetLimit {
    /// `cpuMilliseconds`
    Cpu,
    /// `wallMilliseconds`
    Wall,
    /// `memoryMiB`
    Memory,
    /// `tableElements`
    TableElements,
    /// `handles`
    Handles,
    /// `hostCalls`
    HostCalls,
    /// `hostCallBytes`
    HostCallBytes,
    /// `outputBytes`
    Output,
    /// `logLines`
    LogLines,
    /// `logBytes`
    LogBytes,
}

impl BudgetLimit {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Cpu,
        Self::Wall,
        Self::Memory,
        Self::TableElements,
        Self::Handles,
        Self::HostCalls,
        Self::HostCallBytes,
        Self::Output,
        Self::LogLines,
        Self::LogBytes,
    ];

    /// The field of `limits` in a registration.
    pub fn field(self) -> &'static str {
        match self {
            BudgetLimit::Cpu => "cpuMilliseconds",
            BudgetLimit::Wall => "wallMilliseconds",
            BudgetLimit::Memory => "memoryMiB",
            BudgetLimit::TableElements => "tableElements",
            BudgetLimit::Handles => "handles",
            BudgetLimit::HostCalls => "hostCalls",
            BudgetLimit::HostCallBytes => "hostCallBytes",
            BudgetLimit::Output => "outputBytes",
            BudgetLimit::LogLines => "logLines",
            BudgetLimit::LogBytes => "logBytes",
        }
    }

    /// What is counted, behind a number.
    pub fn unit(self) -> &'static str {
        match self {
            BudgetLimit::Cpu => "ms of processor time",
            BudgetLimit::Wall => "ms",
            BudgetLimit::Memory => "MiB of memory",
            BudgetLimit::TableElements => "table elements",
            BudgetLimit::Handles => "handles",
            BudgetLimit::HostCalls => "host calls",
            BudgetLimit::HostCallBytes => "bytes of host calls",
            BudgetLimit::Output => "bytes of output",
            BudgetLimit::LogLines => "lines of log",
            BudgetLimit::LogBytes => "bytes of log",
        }
    }
}

impl fmt::Display for BudgetLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.field())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_reads_the_fields_that_its_limits_name() {
        let all = [
            BudgetLimit::Cpu,
            BudgetLimit::Wall,
            BudgetLimit::Memory,
            BudgetLimit::TableElements,
            BudgetLimit::Handles,
            BudgetLimit::HostCalls,
            BudgetLimit::HostCallBytes,
            BudgetLimit::Output,
            BudgetLimit::LogLines,
            BudgetLimit::LogBytes,
        ];
        for (number, limit) in all.into_iter().enumerate() {
            let json = serde_json::json!({ limit.field(): number });
            let budget: Budget = serde_json::from_value(json).unwrap();
            assert_eq!(budget.allowed(limit), number as u64, "{limit}");
        }
        assert!(serde_json::from_value::<Budget>(serde_json::json!({"cpu": 1})).is_err());
    }

    #[test]
    fn a_limit_beyond_the_pool_is_named() {
        assert_eq!(Budget::default().beyond(), None);
        assert_eq!(Budget { memory_mib: 513, ..Budget::default() }.beyond(), Some((BudgetLimit::Memory, 512)));
        let tables = Budget { table_elements: 1_000_001, ..Budget::default() };
        assert_eq!(tables.beyond(), Some((BudgetLimit::TableElements, 1_000_000)));
    }
}
