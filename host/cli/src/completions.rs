//! Completions of shells and of kubectl, with names that the cluster has (C-403).
//!
//! A shell asks the program itself, by [`VARIABLE`] and the words so far behind `--`. Commands and options are answered from the
//! description of the command line; names of objects, namespaces and contexts are those that the cluster and the kubeconfig
//! have, where they answer within [`LONGEST_ANSWER`]. Whatever fails, nothing is written but what completes.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, Write},
    path::Path,
    sync::mpsc,
    thread,
    time::Duration,
};

use clap_complete::{
    CompletionCandidate,
    engine::{ArgValueCompleter, ValueCompleter, complete},
    env::{Bash, CompleteEnv, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh},
};

use self::live::{ConnectionWords, names};
use crate::invocation::Invocation;

mod live;

/// By what the program is asked for completions: the shell.
pub(crate) const VARIABLE: &str = "ORANGERY_COMPLETE";

/// Says to the program that it has begun without the terminal.
#[cfg(unix)]
const WITHOUT_TERMINAL: &str = "ORANGERY_COMPLETE_WITHOUT_TERMINAL";

/// How long a cluster may take to tell names: somebody waits at a prompt.
const LONGEST_ANSWER: Duration = Duration::from_secs(1);

/// All that can ask.
pub(crate) const SHELLS: Shells<'static> = Shells(&[&Bash, &Elvish, &Fish, &Powershell, &Zsh, &Kubectl]);

/// What names an argument has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiveNames {
    /// Namespaces of the cluster.
    Namespaces,
    /// Contexts of the kubeconfig.
    Contexts,
    /// Installations of the namespace.
    Installations,
    /// `installation/NAME`, `execution/NAME` and `deployitem/NAME`, or installations by their name alone.
    Objects,
    /// Jobs that installations of the namespace have begun last.
    Jobs,
    /// Plans, and installations.
    Plans,
}

/// Answers a shell that asks for completions of the command line that is described; whether one did. Nothing is written to stderr, as
/// that stands in the middle of a prompt.
pub(crate) fn answered(described: impl Fn() -> clap::Command) -> bool {
    let is_asked = env::var_os(VARIABLE).is_some_and(|shell| !shell.is_empty());
    if !is_asked || env::args_os().nth(1).is_none_or(|word| word != "--") {
        return false;
    }
    without_terminal();
    let factory = || with_live_names(described());
    let answer = CompleteEnv::with_factory(factory).var(VARIABLE).shells(SHELLS);
    let _no_words_for_a_prompt = answer.try_complete(env::args_os(), env::current_dir().ok().as_deref());
    true
}

/// Begins the program anew, in the same process, without the terminal: programs that a kubeconfig names for credentials read and write
/// that of a prompt otherwise. Where that cannot be, completions are answered all the same.
#[cfg(unix)]
fn without_terminal() {
    use std::{
        os::unix::process::CommandExt as _,
        process::{Command, Stdio},
    };

    if env::var_os(WITHOUT_TERMINAL).is_some() {
        return;
    }
    let mut args = env::args_os();
    let (Some(name), Ok(program)) = (args.next(), env::current_exe()) else { return };
    let mut program = Command::new(program);
    program.arg0(name).args(args).env(WITHOUT_TERMINAL, "true").stdin(Stdio::null()).stderr(Stdio::null());
    let _stays_as_it_is = program.exec();
}

#[cfg(not(unix))]
const fn without_terminal() {}

/// The command line, with names from the cluster.
fn with_live_names(command: clap::Command) -> clap::Command {
    let of = command.get_name().to_owned();
    let command = command.mut_args(|argument| match live_names(&of, argument.get_id().as_str()) {
        Some(names) => argument.add(ArgValueCompleter::new(names)),
        None => argument,
    });
    command.mut_subcommands(with_live_names)
}

/// What an argument of a command names.
fn live_names(command: &str, argument: &str) -> Option<LiveNames> {
    match (command, argument) {
        (_, "context") => Some(LiveNames::Contexts),
        (_, "namespace" | "namespaces") => Some(LiveNames::Namespaces),
        (
            "inspect" | "reconcile" | "interrupt" | "suspend" | "resume" | "plan" | "rollback" | "history" | "drift",
            "name",
        ) => Some(LiveNames::Installations),
        ("approve" | "reject", "name") => Some(LiveNames::Plans),
        ("why" | "force-delete", "subject") | ("logs", "name") => Some(LiveNames::Objects),
        ("show" | "rollback" | "logs", "id") | ("diff", "id" | "other") => Some(LiveNames::Jobs),
        _ => None,
    }
}

impl ValueCompleter for LiveNames {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let Some(current) = current.to_str() else { return Vec::new() };
        let words: Vec<String> = env::args_os().filter_map(|word| word.into_string().ok()).collect();
        let (answer, found) = mpsc::channel();
        let asked = *self;
        // A program that the kubeconfig names for credentials holds up the thread that waits for it, and the process ends without it.
        thread::spawn(move || answer.send(names(asked, &ConnectionWords::of(&words))));
        let found = found.recv_timeout(LONGEST_ANSWER).unwrap_or_default();
        found.into_iter().filter(|name| name.starts_with(current)).map(CompletionCandidate::new).collect()
    }
}

/// kubectl, which asks the program `kubectl_complete-orangery` for completions of `kubectl orangery`.
struct Kubectl;

/// What kubectl is to do with what completes: no names of files beside it (`ShellCompDirectiveNoFileComp` of cobra).
const NO_FILES: &str = ":4";

impl EnvCompleter for Kubectl {
    fn name(&self) -> &'static str {
        "kubectl"
    }

    fn is(&self, name: &str) -> bool {
        name == self.name()
    }

    fn write_registration(
        &self,
        var: &str,
        _name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        writeln!(
            buf,
            "#!/bin/sh\n\
             # kubectl asks this for completions: it lies in PATH as kubectl_complete-orangery, beside kubectl-orangery.\n\
             {var}=kubectl exec {completer} -- {bin} \"$@\" 2>/dev/null"
        )
    }

    fn write_complete(
        &self,
        cmd: &mut clap::Command,
        mut args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        if args.len() < 2 {
            args.push(OsString::new());
        }
        let last = args.len() - 1;
        for candidate in complete(cmd, args, last, current_dir)? {
            let value = candidate.get_value().to_string_lossy();
            match candidate.get_help().map(|help| help.to_string()) {
                Some(help) => writeln!(buf, "{value}\t{}", help.lines().next().unwrap_or_default())?,
                None => writeln!(buf, "{value}")?,
            }
        }
        writeln!(buf, "{NO_FILES}")
    }
}

/// The script by which a shell, or kubectl, asks.
pub(crate) fn script(shell: &str, invocation: Invocation) -> io::Result<String> {
    let completer = SHELLS.completer(shell).ok_or_else(|| io::Error::other(format!("there is no shell {shell}")))?;
    let program = match shell {
        "kubectl" => Invocation::KubectlPlugin.program(),
        _ => invocation.program(),
    };
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, program, program, program, &mut script)?;
    let script = String::from_utf8_lossy(&script);
    // What a program for credentials writes is no word of a prompt.
    Ok(script.replace("-- \"${words[@]}\" \\\n", "-- \"${words[@]}\" 2>/dev/null \\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Cli;

    fn kubectl(words: &[&str]) -> Vec<String> {
        let mut command = with_live_names(Cli::described(Invocation::KubectlPlugin));
        let args = ["kubectl-orangery"].iter().chain(words).map(OsString::from).collect();
        let mut out = Vec::new();
        Kubectl.write_complete(&mut command, args, None, &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn c_402_kubectl_is_answered_in_lines_with_what_to_do_about_them_at_the_end() {
        let lines = kubectl(&["int"]);
        assert_eq!(lines, ["interrupt\tEnd the running job of an installation", ":4"]);
        assert_eq!(kubectl(&["policy", "ex"]).first().map(|line| line.split('\t').next()), Some(Some("explain")));
        assert_eq!(kubectl(&["dance", "x"]), [":4"]);
        assert!(kubectl(&[]).len() > 20);
    }

    #[test]
    fn c_403_each_command_that_names_an_object_completes_it() {
        let mut found = Vec::new();
        collect(&Cli::described(Invocation::Orangery), &mut found);
        for expected in [
            "inspect name Installations",
            "why subject Objects",
            "approve name Plans",
            "show id Jobs",
            "logs id Jobs",
            "rollback id Jobs",
            "diff id Jobs",
            "diff other Jobs",
            "force-delete subject Objects",
            "reconcile namespace Namespaces",
            "run namespaces Namespaces",
            "inspect context Contexts",
        ] {
            assert!(found.iter().any(|line| line == expected), "{expected}: {found:?}");
        }
    }

    fn collect(command: &clap::Command, found: &mut Vec<String>) {
        for argument in command.get_arguments() {
            let (name, id) = (command.get_name(), argument.get_id().as_str());
            found.extend(live_names(name, id).map(|names| format!("{name} {id} {names:?}")));
        }
        command.get_subcommands().for_each(|below| collect(below, found));
    }

    #[test]
    fn c_403_scripts_ask_the_program_that_is_in_the_path_and_say_nothing_themselves() {
        for shell in ["bash", "zsh", "fish", "elvish", "powershell", "kubectl"] {
            let text = script(shell, Invocation::Orangery).unwrap();
            assert!(text.contains(VARIABLE) && text.contains("orangery"), "{shell}: {text}");
        }
        let quiet = |shell: &str| script(shell, Invocation::Orangery).unwrap().contains("2>/dev/null");
        assert_eq!(["bash", "zsh", "kubectl"].map(quiet), [true; 3]);
        let kubectl = script("kubectl", Invocation::Orangery).unwrap();
        assert!(
            kubectl
                .ends_with("ORANGERY_COMPLETE=kubectl exec kubectl-orangery -- kubectl-orangery \"$@\" 2>/dev/null\n"),
            "{kubectl}"
        );
    }
}
