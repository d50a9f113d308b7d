//! Standard terms: what a Kubernetes or Rust engineer would have to ask about has a name that he knows.

#[cfg(test)]
mod tests {
    use crate::{
        modules,
        repository::{display, files_ending, none, text},
    };

    /// Names that nothing may have, each with the term that is used instead.
    const NAMES: &[(&str, &str)] = &[
        ("Look", "Reconciliation"),
        ("Book", "StatusWriter"),
        ("Ledger", "ProgressStore"),
        ("Page", "ItemState"),
        ("Shelf", "ProposalCache"),
        ("Kept", "StoredProposal"),
        ("Places", "ConcurrencyLimiter"),
        ("Room", "ConcurrencyLimiter"),
        ("foretell", "dry_run"),
        ("Foretold", "dry_run"),
        ("preview", "dry_run"),
        ("At", "ExecutionStep"),
        ("Setback", "ApplyError"),
        ("Silence", "Unanswered"),
        ("Lookout", "ObjectWatcher"),
        ("Sight", "Observed"),
        ("Blind", "Forbidden"),
        ("outdated", "changed_answers"),
        ("again", "refresh"),
        ("look_again", "refresh"),
        ("is_bereft", "is_orphaned"),
        ("hold", "add_finalizer"),
        ("Term", "LeaseDeadline"),
        ("Net", "StaleWatchTimer"),
        ("by_silence", "StaleWatchTimer"),
        ("Tombs", "DeletedUids"),
        ("tombs", "DeletedUids"),
        ("absorb", "upsert"),
        ("folding", "compact"),
        ("Chance", "Rng"),
        ("JobChance", "JobRandomness"),
        ("mint", "issue_credential"),
        ("Surroundings", "TemplateContext, ExpressionScope"),
        ("Nothing", "Unavailable"),
        ("Point", "GateKind"),
        ("Inquiry", "Evaluator"),
        ("Asked", "Evaluation"),
        ("own", "bundled"),
        ("told", "message"),
        ("shown", "display"),
        ("said", "report"),
        ("judge", "classify"),
        ("Wish", "SimulationSpec"),
        ("Happening", "EventType"),
        ("theirs", "external_deployer"),
        ("storm", "fault_injection"),
        ("sweep", "crash_points"),
        ("lies", "malformed_components"),
        ("truth", "error_reporting"),
        ("alike", "render_parity"),
        ("away", "unreachable_target"),
        ("shelf", "ProposalCache"),
        ("ledger", "ProgressStore"),
        ("lookout", "ObjectWatcher"),
        ("places", "concurrency"),
        ("room", "concurrency"),
        ("term", "LeaseDeadline"),
        ("net", "StaleWatchTimer"),
        ("look", "reconciliation"),
        ("book", "StatusWriter"),
        ("Site", "JobObjects"),
        ("Spot", "ObjectHandle"),
        ("spot", "handle"),
        ("Tried", "DryRunRequest"),
        ("Trial", "DryRunObject"),
        ("Trials", "DryRunObjects"),
        ("trial", "dry_run"),
        ("trials", "dry_run_objects"),
        ("Stand", "DeletionState"),
        ("Entrance", "Start"),
        ("Doubt", "SealError, AbsenceCause"),
        ("doubt", "other_cause"),
        ("Settled", "GateDecision"),
        ("settle", "decide, notify, complete, wait_until_idle"),
        ("set_apart", "move_to_former"),
        ("Aim", "DesiredAction"),
        ("aim", "desired"),
        ("Hold", "WatchHandle"),
        ("Holds", "WatchHandles"),
        ("Tally", "QueueCounts"),
        ("tally", "counts"),
        ("Pace", "ControllerOptions"),
        ("Got", "ReceivedFile"),
        ("PlainName", "DataSourceName"),
        ("Home", "StateSecret"),
        ("Wanted", "TokenKey"),
        ("Seat", "FlightGuard"),
        ("Elsewhere", "StoredVersionBlobs"),
        ("Whose", "GatedItems"),
        ("Family", "OwnershipIndex"),
        ("Peer", "RelatedObject"),
        ("ConditionScope", "ExpressionScope"),
    ];

    /// Words that no comment has, in lower case. Words of everyday English are not among them.
    const WORDS: &[&str] = &[
        "foretell",
        "foretells",
        "foretold",
        "bereft",
        "setback",
        "setbacks",
        "lookout",
        "tombs",
        "ledger",
        "shelf",
        "strangers",
        "deployers elsewhere",
        "told with",
        "is to go",
        "are to go",
        "in the middle of five",
    ];

    /// The term for a name that is not to be given.
    fn term_for(name: &str) -> Option<&'static str> {
        NAMES.iter().find(|(old, _)| *old == name).map(|(_, term)| *term)
    }

    /// The comment of a line; empty where it has none. Text in strings does not count.
    fn comment(line: &str) -> &str {
        let trimmed = line.trim_start();
        if trimmed.starts_with("//") {
            return trimmed;
        }
        line.split_once(" // ").filter(|(code, _)| code.matches('"').count() % 2 == 0).map_or("", |(_, rest)| rest)
    }

    /// The words of `WORDS` in a text, as words.
    fn old_words(text: &str) -> Vec<&'static str> {
        let separated: String =
            text.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
        let padded = format!(" {} ", separated.split_whitespace().collect::<Vec<_>>().join(" "));
        WORDS.iter().copied().filter(|word| padded.contains(&format!(" {word} "))).collect()
    }

    /// Whether a comment begins a sentence with a clause in place of a subject, as in "Who waits is woken".
    fn begins_with_a_clause(comment: &str) -> bool {
        let text = comment.trim_start_matches(['/', '!', ' ']);
        text.starts_with("Who ") && !text.ends_with('?') || text.contains(". Who ")
    }

    /// Whether a name has a clause in place of a subject, as in `who_waits_is_woken`.
    fn names_a_clause(name: &str) -> bool {
        name.split('_').any(|word| matches!(word, "who" | "whoever" | "whom"))
    }

    /// Whether a file is about gate expressions. A condition is an entry of `status.conditions`, and nothing else.
    fn is_of_gates(path: &str) -> bool {
        let is_ours = ["host/", "wit/", "plugins/sdk/"].iter().any(|folder| path.starts_with(folder));
        is_ours && path.split('/').any(|part| part.starts_with("gate"))
    }

    #[test]
    fn words_are_found_as_words() {
        assert_eq!(old_words("/// A shelf, and what is told  with it."), ["shelf", "told with"]);
        assert!(old_words("/// A bookshelf that foretellers use.").is_empty());
        assert_eq!(term_for("Shelf"), Some("ProposalCache"));
        assert_eq!(term_for("Bookshelf"), None);
    }

    #[test]
    fn comments_are_told_from_code() {
        assert_eq!(comment("    /// One."), "/// One.");
        assert_eq!(comment("let a = 1; // Why."), "Why.");
        assert_eq!(comment("let a = \"b // c\";"), "");
        assert!(begins_with_a_clause("/// Who waits is woken."));
        assert!(begins_with_a_clause("/// It ends. Who waits is woken."));
        assert!(!begins_with_a_clause("/// The operator, who waits."));
        assert!(names_a_clause("orc_23_who_waits_is_woken") && !names_a_clause("the_whole_tree"));
        assert!(is_of_gates("host/blueprint/src/gate/check.rs") && !is_of_gates("host/core/src/condition.rs"));
        assert!(is_of_gates("wit/gate/world.wit") && is_of_gates("plugins/sdk/src/gate.rs"));
    }

    #[test]
    fn no_name_is_of_the_old_vocabulary() {
        let mut violations = Vec::new();
        for (path, file) in modules::reached() {
            for named in &file.source.names {
                let term = term_for(&named.name);
                violations.extend(term.map(|term| format!("{}:{} {}: {term}", display(path), named.line, named.name)));
            }
        }
        none("use the standard term", violations);
    }

    #[test]
    fn no_name_has_a_clause_in_place_of_a_subject() {
        let mut violations = Vec::new();
        for (path, file) in modules::reached() {
            let names = file.source.names.iter().filter(|named| names_a_clause(&named.name));
            violations.extend(names.map(|named| format!("{}:{} {}", display(path), named.line, named.name)));
        }
        none("name the subject", violations);
    }

    #[test]
    fn a_gate_expression_is_called_no_condition() {
        let mut violations = Vec::new();
        for path in files_ending(&[".rs", ".wit"]).into_iter().filter(|path| is_of_gates(&display(path))) {
            for (number, line) in text(&path).lines().enumerate() {
                let words = comment(line).to_lowercase();
                let calls = words.split(|c: char| !c.is_alphanumeric()).any(|word| word.starts_with("condition"));
                if calls && !words.contains("status.conditions") {
                    violations.push(format!("{}:{}", display(&path), number + 1));
                }
            }
        }
        none("an expression that decides about an item is a gate expression", violations);
    }

    #[test]
    fn no_comment_has_a_word_of_the_old_vocabulary() {
        let mut violations = Vec::new();
        // The list itself has them.
        let files = files_ending(&[".rs", ".wit", ".go"]).into_iter();
        for path in files.filter(|path| !display(path).ends_with("tidy/vocabulary.rs")) {
            for (number, line) in text(&path).lines().enumerate() {
                let comment = comment(line);
                let words = old_words(comment).into_iter().chain(begins_with_a_clause(comment).then_some("Who …"));
                violations.extend(words.map(|word| format!("{}:{}: {word}", display(&path), number + 1)));
            }
        }
        none("write plain sentences in standard terms", violations);
    }
}
