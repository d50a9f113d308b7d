//! Files that use each other in a circle can only be read together: there are none but small ones of controllers.

#[cfg(test)]
mod tests {
    use crate::{
        graph::{ModulePath, circles, crates},
        repository::{none, root},
    };

    const CONTROLLERS: &str = "host/controllers";
    /// The most files of a circle in controllers.
    const MOST_IN_CONTROLLERS: usize = 3;
    /// The kinds that controllers has a reconciler for, each a module with its parts.
    const KINDS: [&str; 5] = ["installation", "execution", "deploy_item", "target", "context"];
    /// What every reconciler is given.
    const CONTEXT: &str = "controller_context";

    fn kind(module: &ModulePath) -> Option<&str> {
        module.first().map(String::as_str).filter(|first| KINDS.contains(first))
    }

    fn named(folder: &str, module: &ModulePath) -> String {
        format!("{folder}/src/{}.rs", if module.is_empty() { "lib".to_owned() } else { module.join("/") })
    }

    #[test]
    fn files_use_each_other_in_no_circle() {
        let mut violations = Vec::new();
        for (folder, one) in crates("host/") {
            let most = if folder == CONTROLLERS { MOST_IN_CONTROLLERS } else { 1 };
            for circle in circles(&one.arrows()).into_iter().filter(|circle| circle.len() > most) {
                let files: Vec<String> = circle.iter().map(|module| named(&folder, module)).collect();
                violations.push(files.join(", "));
            }
        }
        none("move below what these files need of each other", violations);
    }

    #[test]
    fn no_kind_uses_another_kind() {
        let crates = crates(CONTROLLERS);
        let arrows = crates.values().flat_map(|one| one.arrows());
        let crossing = arrows.filter(|(from, to)| kind(from).zip(kind(to)).is_some_and(|(from, to)| from != to));
        let crossing =
            crossing.map(|(from, to)| format!("{} -> {}", named(CONTROLLERS, &from), named(CONTROLLERS, &to)));
        none("move below the kinds what several of them need", crossing.collect());
    }

    #[test]
    fn the_context_uses_no_kind() {
        let crates = crates(CONTROLLERS);
        let arrows = crates.values().flat_map(|one| one.arrows());
        let of_context = |module: &ModulePath| module.first().is_some_and(|first| first == CONTEXT);
        let to_kinds = arrows.filter(|(from, to)| of_context(from) && kind(to).is_some());
        let to_kinds =
            to_kinds.map(|(from, to)| format!("{} -> {}", named(CONTROLLERS, &from), named(CONTROLLERS, &to)));
        none("a kind gives what it registers; the context asks for nothing", to_kinds.collect());
        assert!(root().join(format!("{CONTROLLERS}/src/{CONTEXT}.rs")).is_file(), "the context has a file of its own");
    }
}
