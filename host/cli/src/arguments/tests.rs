use clap::Parser as _;

use super::*;
use crate::command::inspect::TreeForm;

fn words(line: &str) -> impl Iterator<Item = &str> {
    std::iter::once("orangery").chain(line.split_whitespace())
}

fn parsed(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(words(line))
}

/// The exit code that a bad line ends with.
fn exit(line: &str) -> i32 {
    i32::from(bad_usage(words(line).map(OsString::from), &parsed(line).unwrap_err()).code())
}

#[test]
fn the_command_line_contradicts_nothing() {
    Cli::description().debug_assert();
}

/// The long help of every command, as one text: what users read is reviewed as prose.
#[test]
fn the_help_of_every_command() {
    let mut command = Cli::description().term_width(100).color(clap::ColorChoice::Never);
    command.build();
    let mut text = String::new();
    push_help(&mut command, &mut text);
    insta::assert_snapshot!(text);
}

fn push_help(command: &mut clap::Command, text: &mut String) {
    let help = command.render_long_help().to_string();
    let name = command.get_bin_name().unwrap_or(command.get_name());
    text.push_str(&format!("$ {name} --help\n{help}\n"));
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in names {
        push_help(command.find_subcommand_mut(&name).unwrap(), text);
    }
}

#[test]
fn help_and_version_end_well_and_bad_usage_ends_with_2() {
    assert_eq!(["--help", "--version", "up --help"].map(exit), [0, 0, 0]);
    let bad = [
        "",
        "dance",
        "up --port 70000",
        "up --data x --ephemeral",
        "up --timeout 5m",
        "up --once --timeout soon",
        "inspect -A -n x",
        "reconcile",
        "reconcile x --timeout 5m",
    ];
    assert_eq!(bad.map(exit), [2; 9]);
}

#[test]
fn c_62_bad_usage_of_drift_ends_with_1_for_2_means_drift() {
    assert_eq!(["drift --help", "drift", "--no-color drift x --dance", "drift x -n Team_A"].map(exit), [0, 1, 1, 1]);
}

#[test]
fn c_307_bad_usage_of_a_plan_with_a_detailed_exit_code_ends_with_1_for_2_means_changes() {
    assert_eq!(["plan", "plan --detailed-exitcode", "plan x --detailed-exitcode --dance"].map(exit), [2, 1, 1]);
}

#[test]
fn what_cannot_be_a_namespace_is_refused_where_it_is_given() {
    let lines = ["up -n Team_A", "run -n a -n Team_A", "render x -n Team_A", "inspect -n Team_A", "plan x -n Team_A"];
    let why = "\"Team_A\" cannot be a namespace: at most 63 lower case letters, digits and `-`, the first and the last a \
               letter or a digit";
    for line in lines {
        let message = parsed(line).unwrap_err().to_string();
        assert!(message.contains("invalid value 'Team_A' for '--namespace"), "{line}: {message}");
        assert!(message.contains(why), "{line}: {message}");
    }
}

#[test]
fn the_version_names_the_engine_too() {
    let version = parsed("--version").unwrap_err().to_string();
    assert_eq!(
        version,
        format!("orangery {} (wasmtime {})\n", env!("CARGO_PKG_VERSION"), orangery_plugin::WASMTIME_VERSION)
    );
}

#[test]
fn up_has_defaults_for_everything() {
    let Command::Up(up) = parsed("up").unwrap().command else { panic!("not up") };
    assert_eq!(
        (up.paths.len(), up.namespace.as_str(), up.port, up.once, up.ephemeral, up.data, up.plugins),
        (0, "default", 6444, false, false, None, None)
    );
    assert_eq!(up.timeout.to_string(), "10m");
}

#[test]
fn c_404_the_line_says_when_there_are_colours_also_of_its_own_mistakes() {
    let says = |line: &str| {
        let choice = colours_of_usage(words(line).map(OsString::from));
        (parsed(line).unwrap().colouring(), choice)
    };
    assert_eq!(says("inspect"), (Colouring::Auto, ColorChoice::Auto));
    assert_eq!(says("inspect --color always"), (Colouring::Always, ColorChoice::Always));
    assert_eq!(says("--color=never inspect"), (Colouring::Never, ColorChoice::Never));
    assert_eq!(says("inspect --color=always --no-color"), (Colouring::Never, ColorChoice::Never));
    assert_eq!(exit("inspect --color sometimes"), 2);
}

#[test]
fn options_of_kubectl_mean_the_same_here() {
    let line = "inspect hello -n demo --context c --kubeconfig k -o wide --failed --no-color";
    let cli = parsed(line).unwrap();
    assert_eq!(cli.colouring(), Colouring::Never);
    let Command::Tool(Tool::Inspect(inspect)) = cli.command else { panic!("not inspect") };
    assert_eq!((inspect.name.as_deref(), inspect.scope.namespace.as_deref()), (Some("hello"), Some("demo")));
    assert_eq!((inspect.output, inspect.failed), (Some(TreeForm::Wide), true));
    assert_eq!(inspect.connection.context.as_deref(), Some("c"));
    let Command::Run(run) = parsed("run -n a -n b").unwrap().command else { panic!("not run") };
    assert_eq!(run.namespaces, ["a", "b"]);
}
