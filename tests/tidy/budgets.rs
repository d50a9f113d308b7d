//! Sizes: a file is read in one sitting, a function on one screen.

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::{
        modules::{self, Reached},
        repository::{display, files_ending, none, root, text},
    };

    /// Crates that decide and reach nothing.
    const PURE: [&str; 5] =
        ["orangery-core", "orangery-ocm", "orangery-proposal", "orangery-policy", "orangery-blueprint"];
    const FILE_MEDIAN: usize = 120;
    const FILE_USUAL: usize = 300;
    const FILE_MOST: usize = 400;
    /// Tables of cases are long; who reads one case skips the others.
    const SUITE_MOST: usize = 800;
    const FUNCTION_USUAL: usize = 40;
    const FUNCTION_MOST: usize = 60;
    /// The most `unwrap_or_default` in a thousand lines of the controllers: it hides what is missing.
    const DEFAULTS_MOST: usize = 3;
    /// The fewest scripts of Executions, Installations and gate expressions together.
    const SCENARIOS_LEAST: usize = 30;
    /// The most lines of what drives a kind: its pipeline is read on one screen.
    const DRIVER_MOST: usize = 150;

    /// The value that nine in ten do not exceed.
    fn nine_in_ten(mut sizes: Vec<usize>) -> usize {
        sizes.sort_unstable();
        sizes.get(sizes.len() * 9 / 10).copied().unwrap_or_default()
    }

    fn median(mut sizes: Vec<usize>) -> usize {
        sizes.sort_unstable();
        sizes.get(sizes.len() / 2).copied().unwrap_or_default()
    }

    #[test]
    fn no_file_has_more_than_four_hundred_lines_of_code() {
        let reached = modules::reached();
        let long = reached.values().filter_map(|file| {
            let (code, tests) = (file.source.code(), file.source.tests());
            let (lines, most) = if file.for_tests { (code + tests, SUITE_MOST) } else { (code, FILE_MOST) };
            (lines > most).then(|| format!("{}: {lines}, allowed are {most}", display(&file.source.path)))
        });
        none("files with too many lines of code: split by idea", long.collect());
    }

    #[test]
    fn most_files_are_short() {
        let reached = modules::reached();
        let product = reached.values().filter(|file| !file.for_tests);
        let sizes: Vec<_> = product.map(|file| file.source.code()).collect();
        let (usual, middle) = (nine_in_ten(sizes.clone()), median(sizes));
        assert!(usual <= FILE_USUAL, "nine files in ten have at most {usual} lines of code; allowed are {FILE_USUAL}");
        assert!(middle <= FILE_MEDIAN, "the median file has {middle} lines of code; allowed are {FILE_MEDIAN}");
    }

    #[test]
    fn no_function_has_more_than_sixty_lines() {
        let reached = modules::reached();
        let product = reached.values().filter(|file| !file.for_tests);
        let long = product.flat_map(|file| {
            let long = file.source.functions.iter().filter(|function| function.length > FUNCTION_MOST);
            long.map(|f| format!("{}:{} {}: {}", display(&file.source.path), f.line, f.name, f.length))
        });
        none(&format!("functions of more than {FUNCTION_MOST} lines"), long.collect());
    }

    #[test]
    fn most_functions_fit_half_a_screen() {
        let reached = modules::reached();
        let product = reached.values().filter(|file| !file.for_tests);
        let sizes = product.flat_map(|file| file.source.functions.iter().map(|function| function.length));
        let usual = nine_in_ten(sizes.collect());
        assert!(usual <= FUNCTION_USUAL, "nine functions in ten have at most {usual} lines; allowed {FUNCTION_USUAL}");
    }

    /// The scenarios are tests of the core that are written as texts.
    fn lines_of_scenarios() -> usize {
        let texts =
            files_ending(&[".txt", ".out"]).into_iter().filter(|file| display(file).starts_with("tests/scenarios/"));
        texts.map(|file| text(&file).lines().filter(|line| !line.is_empty()).count()).sum()
    }

    #[test]
    fn the_planners_are_driven_by_thirty_scripts() {
        let scripts = files_ending(&[".txt"]).into_iter().map(|file| display(&file));
        let mut kinds = BTreeMap::<String, usize>::new();
        for script in scripts.filter(|script| script.starts_with("tests/scenarios/")) {
            *kinds.entry(script.rsplit('/').nth(1).unwrap_or_default().to_owned()).or_default() += 1;
        }
        println!("scenarios: {kinds:?}");
        assert!(kinds.values().sum::<usize>() >= SCENARIOS_LEAST && kinds.len() >= 3, "{kinds:?}");
    }

    /// Lines of code, and lines of tests beside it and in it.
    fn lines<'a>(files: impl Iterator<Item = &'a Reached>) -> (usize, usize) {
        files.fold((0, 0), |(code, tests), file| {
            let (plain, inline) = (file.source.code(), file.source.tests());
            if file.for_tests { (code, tests + plain + inline) } else { (code + plain, tests + inline) }
        })
    }

    #[test]
    fn the_pure_crates_have_at_least_as_many_lines_of_tests_as_of_code() {
        let (code, tests) = lines(modules::reached().values().filter(|file| PURE.contains(&file.package.as_str())));
        let tests = tests + lines_of_scenarios();
        assert!(tests >= code, "they have {code} lines of code and {tests} lines of tests, scenarios counted");
    }

    #[test]
    fn the_controllers_rarely_take_a_default_for_what_is_missing() {
        let reached = modules::reached().values();
        let product: Vec<&Reached> =
            reached.filter(|file| !file.for_tests && file.package == "orangery-controllers").collect();
        let places: Vec<String> = product
            .iter()
            .flat_map(|file| {
                let text = text(&file.source.path);
                let lines: Vec<String> = text.lines().map(str::to_owned).collect();
                lines.into_iter().enumerate().filter_map(|(index, line)| {
                    let is_one = line.contains("unwrap_or_default") && !file.source.is_test(index + 1);
                    is_one.then(|| format!("{}:{}", display(&file.source.path), index + 1))
                })
            })
            .collect();
        let code: usize = product.iter().map(|file| file.source.code()).sum();
        println!("controllers: {} times unwrap_or_default in {code} lines", places.len());
        assert!(places.len() * 1000 <= DEFAULTS_MOST * code, "of {code} lines too many: {places:#?}");
    }

    #[test]
    fn what_drives_a_kind_is_read_on_one_screen() {
        let drivers = ["installation", "execution", "deploy_item"];
        let drivers = drivers.map(|kind| root().join(format!("host/controllers/src/{kind}.rs")));
        let long = drivers.iter().filter_map(|path| {
            let lines = modules::reached().get(path).map(|file| file.source.code()).unwrap_or(usize::MAX);
            (lines > DRIVER_MOST).then(|| format!("{}: {lines}, allowed are {DRIVER_MOST}", display(path)))
        });
        none("a driver is a pipeline: trigger, gather, decide, apply, status", long.collect());
    }

    /// Controllers are tested with the real gather and apply, beside what is decided in the pure crates.
    #[test]
    fn the_controllers_have_four_lines_of_tests_for_five_of_code() {
        let (code, tests) = lines(modules::reached().values().filter(|file| file.package == "orangery-controllers"));
        println!("controllers: {code} lines of code, {tests} lines of tests");
        assert!(5 * tests >= 4 * code, "they have {code} lines of code and {tests} lines of tests");
    }
}
