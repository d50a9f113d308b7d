//! Where a command writes: stdout for what was asked for, stderr for what went wrong.
//!
//! Colours and redrawing are for people: they are left out where the output goes to a file or a pipe, with `--color never`,
//! with `NO_COLOR` (no-color.org), and on terminals that say `TERM=dumb`; `--color always` writes colours all the same (C-404).
//!
//! What is written has words of whoever may write objects. Nothing in them moves the cursor or turns the text around, and
//! none of their lines begins at the margin (C-74).

use std::{
    env, fmt,
    io::{self, IsTerminal as _, Write},
    num::NonZeroUsize,
};

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use orangery_core::error::{cleaned, moves_text};

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
    /// The text, painted; for [`Terminal::painted`].
    pub fn paint(self, paint: Paint, text: &str) -> String {
        let text = cleaned(text, usize::MAX);
        let style = match paint {
            Paint::Plain => return text,
            Paint::Dim => Style::new().dimmed(),
            Paint::Strong => Style::new().bold(),
            Paint::Good => AnsiColor::Green.on_default(),
            Paint::Busy => AnsiColor::Yellow.on_default(),
            Paint::Bad => AnsiColor::Red.on_default().bold(),
        };
        match self {
            Ink::Plain => text,
            Ink::Colours if text.is_empty() => String::new(),
            Ink::Colours => format!("{style}{text}{style:#}"),
        }
    }
}

/// When text is coloured, as `--color` says it (C-404).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Colouring {
    /// On terminals, unless NO_COLOR or TERM=dumb is in the environment
    #[default]
    Auto,
    /// Also into files and pipes
    Always,
    /// Not at all
    Never,
}

impl Colouring {
    /// The colours of an output.
    fn ink(self, is_terminal: bool, is_colourless: bool) -> Ink {
        match self {
            Colouring::Always => Ink::Colours,
            Colouring::Auto if is_terminal && !is_colourless => Ink::Colours,
            Colouring::Auto | Colouring::Never => Ink::Plain,
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

    fn of_process(colouring: Colouring) -> Self {
        let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_colourless = is_dumb || env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_terminal = io::stdout().is_terminal();
        Self {
            out: colouring.ink(is_terminal, is_colourless),
            err: colouring.ink(io::stderr().is_terminal(), is_colourless),
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
    let _nobody_reads = writeln!(io::stderr(), "{}", indented(&unmoved(line)));
}

/// Text in which nothing but ends of lines and tabulators moves anything.
fn unmoved(text: &str) -> String {
    let shown = |c: char| if moves_text(c) && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(shown).collect()
}

/// The same text, whose further lines do not begin where those of others do.
fn indented(text: &str) -> String {
    let mut lines = text.split('\n');
    let mut written = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        written.push('\n');
        if !line.is_empty() && !line.starts_with(' ') {
            written.push_str("  ");
        }
        written.push_str(line);
    }
    written
}

/// A line whose colours are kept, as [`Ink::paint`] writes them.
fn unmoved_but_painted(line: &str) -> String {
    let mut written = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        written.push_str(&unmoved(before));
        let style = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').len();
        match after.split_at_checked(style) {
            Some((style, end)) if end.starts_with('m') => {
                written.push_str(&format!("\u{1b}[{style}"));
                rest = end;
            }
            _ => {
                written.push_str(&unmoved("\u{1b}["));
                rest = after;
            }
        }
    }
    written + &unmoved(rest)
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
    pub fn of_process(colouring: Colouring) -> Self {
        Self::new(Box::new(io::stdout()), Box::new(io::stderr()), Appearance::of_process(colouring))
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
        writeln!(self.out, "{}", indented(&unmoved(&line.to_string())))?;
        self.out.flush()
    }

    /// Writes a line to stdout that [`Ink::paint`] has painted; what of it was not painted has to be cleaned.
    pub fn painted(&mut self, line: &str) -> io::Result<()> {
        let line = match self.appearance.out {
            Ink::Plain => unmoved(line),
            Ink::Colours => unmoved_but_painted(line),
        };
        writeln!(self.out, "{}", indented(&line))?;
        self.out.flush()
    }

    /// Writes painted lines to stdout in the place of the `drawn` lines above.
    pub fn redraw(&mut self, drawn: usize, lines: &[String]) -> io::Result<()> {
        if drawn > 0 {
            // Up to the first line, then clear to the end of the screen.
            write!(self.out, "\u{1b}[{drawn}A\u{1b}[J")?;
        }
        lines.iter().try_for_each(|line| self.painted(line))?;
        self.out.flush()
    }

    /// Writes text of several lines to stdout.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(unmoved(text).as_bytes())?;
        self.out.flush()
    }

    /// Writes a line to stderr.
    pub fn note(&mut self, line: impl fmt::Display) -> io::Result<()> {
        writeln!(self.err, "{}", indented(&unmoved(&line.to_string())))?;
        self.err.flush()
    }

    /// Writes `error: …` to stderr. A stderr that is gone leaves nobody to tell, so that is no error.
    pub fn error(&mut self, message: impl fmt::Display) {
        let label = self.appearance.err.paint(Paint::Bad, "error:");
        let message = indented(&unmoved(&message.to_string()));
        let _nobody_reads = writeln!(self.err, "{label} {message}").and_then(|()| self.err.flush());
    }

    /// Writes `warning: …` to stderr; see [`Terminal::error`].
    pub fn warning(&mut self, message: impl fmt::Display) {
        let label = self.appearance.err.paint(Paint::Busy, "warning:");
        let message = indented(&unmoved(&message.to_string()));
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
    fn c_404_colours_are_for_terminals_unless_the_command_line_says_otherwise() {
        let inks = |colouring: Colouring| {
            [(true, false), (true, true), (false, false)]
                .map(|(terminal, colourless)| colouring.ink(terminal, colourless))
        };
        assert_eq!(inks(Colouring::Auto), [Ink::Colours, Ink::Plain, Ink::Plain]);
        assert_eq!(inks(Colouring::Always), [Ink::Colours; 3]);
        assert_eq!(inks(Colouring::Never), [Ink::Plain; 3]);
    }

    #[test]
    fn errors_go_to_stderr_only() {
        let (mut terminal, out, err) = display(Appearance::PLAIN);
        terminal.error("x does not exist; make it");
        terminal.line("hello").unwrap();
        assert_eq!((out.text().as_str(), err.text().as_str()), ("hello\n", "error: x does not exist; make it\n"));
    }

    /// What a tenant may write into an object: escapes, a bell, an end of line, text that is turned around.
    pub(crate) const HOSTILE: &str = "c\u{1b}]0;pwned\u{7}\u{1b}[31mRED\u{1b}[0m\u{9b}2J\nforged\u{202e}\r";

    /// What is left of it where it may have several lines.
    const SHOWN: &str = "c\u{fffd}]0;pwned\u{fffd}\u{fffd}[31mRED\u{fffd}[0m\u{fffd}2J\n  forged\u{fffd}\u{fffd}";

    #[test]
    fn c_74_words_of_others_move_nothing_wherever_they_are_written() {
        let colours = Appearance { out: Ink::Colours, err: Ink::Colours, size: || None };
        for appearance in [Appearance::PLAIN, colours] {
            let (mut terminal, out, err) = display(appearance);
            terminal.line(HOSTILE).unwrap();
            terminal.text(&format!("{HOSTILE}\n")).unwrap();
            terminal.note(HOSTILE).unwrap();
            terminal.error(HOSTILE);
            terminal.warning(HOSTILE);
            assert_eq!(out.text(), format!("{SHOWN}\n{}\n", SHOWN.replace("\n  ", "\n")));
            let label = |paint, label| appearance.err.paint(paint, label);
            let (error, warning) = (label(Paint::Bad, "error:"), label(Paint::Busy, "warning:"));
            assert_eq!(err.text(), format!("{SHOWN}\n{error} {SHOWN}\n{warning} {SHOWN}\n"));
        }
    }

    #[test]
    fn c_74_what_is_painted_keeps_its_own_colours_alone() {
        let colours = Appearance { out: Ink::Colours, err: Ink::Plain, size: || None };
        let one_line = SHOWN.replace("\n  ", " ");
        for (appearance, painted) in
            [(colours, format!("\u{1b}[32m{one_line}\u{1b}[0m\n")), (Appearance::PLAIN, format!("{one_line}\n"))]
        {
            let (mut terminal, out, _) = display(appearance);
            terminal.painted(&appearance.out.paint(Paint::Good, HOSTILE)).unwrap();
            terminal.painted(&appearance.out.paint(Paint::Plain, HOSTILE)).unwrap();
            assert_eq!(out.text(), format!("{painted}{one_line}\n"));
        }
        let (mut terminal, out, _) = display(colours);
        terminal.redraw(2, &["a\u{1b}[2Jb\u{1b}[".to_owned(), "\u{1b}[1mc\u{1b}[0m".to_owned()]).unwrap();
        assert_eq!(out.text(), "\u{1b}[2A\u{1b}[Ja\u{fffd}[2Jb\u{fffd}[\n\u{1b}[1mc\u{1b}[0m\n");
        let (mut terminal, out, _) = display(Appearance::PLAIN);
        terminal.painted("\u{1b}[1mc").unwrap();
        assert_eq!(out.text(), "\u{fffd}[1mc\n");
    }
}
