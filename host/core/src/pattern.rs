//! Patterns of names: `*` stands for any letters, also for none; everything else for itself.

/// Whether a whole name matches a pattern. Takes at most as many steps as the lengths of both multiplied.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part).and_then(|at| rest.get(at + part.len()..)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_letters_and_the_whole_name_has_to_match() {
        let table = [
            ("team-a", "team-a", true),
            ("team-a", "team-ab", false),
            ("team-a", "xteam-a", false),
            ("team-*", "team-", true),
            ("team-*", "team-a", true),
            ("team-*", "steam-a", false),
            ("*", "", true),
            ("*.example.org", "charts.example.org", true),
            ("*.example.org", "example.org", false),
            ("*.example.org", "charts.example.org.evil", false),
            ("ghcr.io/acme/*", "ghcr.io/acme/app", true),
            ("ghcr.io/acme/*", "ghcr.io/acme-evil/app", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("**", "anything", true),
        ];
        for (pattern, name, expected) in table {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = "*a".repeat(250);
        assert!(!matches(&pattern, &"b".repeat(10_000)));
        assert!(matches(&pattern, &"a".repeat(10_000)));
    }
}
