//! Exit codes.

use std::process::ExitCode;

/// How a command ended, as scripts see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// 0: done, and nothing failed.
    Ok,
    /// 1: something failed; the sentence is on stderr.
    Failed,
    /// 2: the command line, or what it names, cannot be used.
    Usage,
    /// 2: something is not as it was written. Of `orangery drift` alone, which answers 1 for [`Exit::Usage`].
    Drifted,
    /// 2: something is to be done. Of `orangery plan --detailed-exitcode` alone, which answers 1 for [`Exit::Usage`].
    Changes,
    /// 3: what was waited for did not happen in time; it may still go on.
    TimedOut,
}

/// The exit codes as `--help` shows them.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done, and nothing failed
  1  something failed; the reason is on stderr
  2  the command line, or a file it names, cannot be used
  3  what was waited for did not happen within --timeout";

impl Exit {
    /// The number that the process ends with.
    pub fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Usage | Exit::Drifted | Exit::Changes => 2,
            Exit::TimedOut => 3,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_codes_are_the_codes() {
        let documented: Vec<u8> =
            EXIT_CODES.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()?.parse().ok()).collect();
        assert_eq!(documented, [Exit::Ok, Exit::Failed, Exit::Usage, Exit::TimedOut].map(Exit::code));
    }
}
