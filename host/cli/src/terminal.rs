//! Where a command writes: stdout for what was asked for, stderr for what went wrong.
//!
//! Colours and redrawing are for people: they are left out where the output goes to a file or a pipe, with `--no-color`,
//! with `NO_COLOR` (no-color.org), and on terminals that say `TERM=dumb`.

use std::{
    env, fmt,
    io::{self, IsTerminal as _, Write},
    num::NonZeroUsize,
};

use anstyle::{AnsiColor, Style};

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Characters in a line.
    pub columns: NonZeroUsize,
    /// Lines.
    pub rows: NonZeroUsize,
}

/// What a piece of text means, as colours tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// As it is.
    Plain,
    /// Of less interest.
    Dim,
    /// Stands out.
    Strong,
    /// Went well.
    Good,
    /// At work.
    Busy,
    /// Went wrong.
    Bad,
}

/// Whether text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// No colours.
    Plain,
    /// ANSI colours.
    Colours,
}

impl Ink {
    /// The text, painted.
    pub fn paint(self, paint: Paint, text: &str) -> String {
        let style = match paint {
            Paint::Plain => return text.to_owned(),
            Paint::Dim => Style::new().dimmed(),
            Paint::Strong => Style::new().bold(),
            Paint::Good => AnsiColor::Green.on_default(),
            Paint::Busy => AnsiColor::Yellow.on_default(),
            Paint::Bad => AnsiColor::Red.on_default().bold(),
        };
        match self {
            Ink::Plain => text.to_owned(),
            Ink::Colours if text.is_empty() => String::new(),
            Ink::Colours => format!("{style}{text}{style:#}"),
        }
    }
}

/// How stdout and stderr are to be written.
#[derive(Clone, Copy, Debug)]
pub struct Appearance {
    /// Colours on stdout.
    pub out: Ink,
    /// Colours on stderr.
    pub err: Ink,
    /// The size of the terminal behind stdout, asked at each drawing; `None` where there is none to redraw.
    pub size: fn() -> Option<Size>,
}

impl Appearance {
    /// For a file or a pipe.
    pub const PLAIN: Self = Self { out: Ink::Plain, err: Ink::Plain, size: || None };

    fn of_process(no_color: bool) -> Self {
        let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let colourless = no_color || is_dumb || env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let ink = |is_terminal: bool| if is_terminal && !colourless { Ink::Colours } else { Ink::Plain };
        let is_terminal = io::stdout().is_terminal();
        Self {
            out: ink(is_terminal),
            err: ink(io::stderr().is_terminal()),
            size: if is_terminal && !is_dumb { size_of_stdout } else { || None },
        }
    }
}

fn size_of_stdout() -> Option<Size> {
    let (width, height) = terminal_size::terminal_size_of(io::stdout())?;
    Some(Size { columns: NonZeroUsize::new(usize::from(width.0))?, rows: NonZeroUsize::new(usize::from(height.0))? })
}

/// Writes a line to the process's stderr: what a command is busy with for seconds (see [`Terminal::error`]).
pub fn notice(line: &str) {
    let _nobody_reads = writeln!(io::stderr(), "{line}");
}

/// The one writer of a command.
pub struct Terminal {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    appearance: Appearance,
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").field("appearance", &self.appearance).finish_non_exhaustive()
    }
}

impl Terminal {
    /// The process's own stdout and stderr.
    pub fn of_process(no_color: bool) -> Self {
        Self::new(Box::new(io::stdout()), Box::new(io::stderr()), Appearance::of_process(no_color))
    }

    /// Two writers.
    pub fn new(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>, appearance: Appearance) -> Self {
        Self { out, err, appearance }
    }

    /// The colours of stdout.
    pub fn ink(&self) -> Ink {
        self.appearance.out
    }

    /// The size of the terminal, where there is one that can be redrawn.
    pub fn size(&self) -> Option<Size> {
        (self.appearance.size)()
    }

    /// Writes a line to stdout.
    pub fn line(&mut self, line: impl fmt::Display) -> io::Result<()> {
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }

    /// Writes text to stdout as it is.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Writes a line to stderr.
    pub fn note(&mut self, line: impl fmt::Display) -> io::Result<()> {
        writeln!(self.err, "{line}")?;
        self.err.flush()
    }

    /// Writes `error: …` to stderr. A stderr that is gone leaves nobody to tell, so that is no error.
    pub fn error(&mut self, message: impl fmt::Display) {
        let label = self.appearance.err.paint(Paint::Bad, "error:");
        let _nobody_reads = writeln!(self.err, "{label} {message}").and_then(|()| self.err.flush());
    }

    /// Writes `warning: …` to stderr; see [`Terminal::error`].
    pub fn warning(&mut self, message: impl fmt::Display) {
        let label = self.appearance.err.paint(Paint::Busy, "warning:");
        let _nobody_reads = writeln!(self.err, "{label} {message}").and_then(|()| self.err.flush());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A writer whose text can be looked at.
    #[derive(Clone, Default)]
    pub(crate) struct CapturedWriter(Arc<Mutex<Vec<u8>>>);

    impl CapturedWriter {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for CapturedWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A terminal, its stdout and its stderr.
    pub(crate) fn display(appearance: Appearance) -> (Terminal, CapturedWriter, CapturedWriter) {
        let (out, err) = (CapturedWriter::default(), CapturedWriter::default());
        (Terminal::new(Box::new(out.clone()), Box::new(err.clone()), appearance), out, err)
    }

    #[test]
    fn plain_ink_adds_nothing_and_colours_are_taken_back() {
        assert_eq!(Ink::Plain.paint(Paint::Bad, "x"), "x");
        assert_eq!(Ink::Colours.paint(Paint::Good, "x"), "\u{1b}[32mx\u{1b}[0m");
        assert_eq!(Ink::Colours.paint(Paint::Good, ""), "");
    }

    #[test]
    fn errors_go_to_stderr_only() {
        let (mut terminal, out, err) = display(Appearance::PLAIN);
        terminal.error("x does not exist; make it");
        terminal.line("hello").unwrap();
        assert_eq!((out.text().as_str(), err.text().as_str()), ("hello\n", "error: x does not exist; make it\n"));
    }
}
