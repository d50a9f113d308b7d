//! Sizes: a file is read in one sitting, a function on one screen.

#[cfg(test)]
mod tests {
    use crate::{
        modules::{self, Reached},
        repository::{display, files_ending, none, text},
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

    /// Controllers are tested with the real gather and apply, beside what is decided in the pure crates.
    #[test]
    fn the_controllers_have_four_lines_of_tests_for_five_of_code() {
        let (code, tests) = lines(modules::reached().values().filter(|file| file.package == "orangery-controllers"));
        println!("controllers: {code} lines of code, {tests} lines of tests");
        assert!(5 * tests >= 4 * code, "they have {code} lines of code and {tests} lines of tests");
    }
}
