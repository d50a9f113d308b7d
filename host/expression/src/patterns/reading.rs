//! What reading a regular expression takes, told from its syntax tree.
//!
//! The library makes classes range by range, each time the whole class anew, and where case is ignored letter by letter: a few
//! thousand letters of a pattern would take seconds.

use regex_syntax::{
    ast::{
        Ast, ClassAscii, ClassBracketed, ClassSet, ClassSetItem, ErrorKind, Flag, Flags,
        parse::ParserBuilder as SyntaxParserBuilder,
    },
    hir::{Class, HirKind},
};

/// The longest regular expression, in bytes.
const LONGEST_PATTERN: usize = 4 << 10;

/// Levels of a regular expression, groups and classes in each other.
pub(super) const DEEPEST_PATTERN: u32 = 64;

/// The most steps in which the regular expressions of one text are read; each takes some five nanoseconds.
const MOST_READING_STEPS: u64 = 4_000_000;

/// Steps for each byte of a text that is parsed.
pub(super) const STEPS_OF_A_BYTE: u64 = 8;

/// Steps in which a class is found by its name.
const NAMED_CLASS: u64 = 1_000;

/// Steps for a letter that is looked for among those of other case, and letters behind the last of these that take one.
const FOLDED_LETTER: u64 = 4;
const UNFOLDED_LETTERS: u64 = 4;

/// No letter between these has another case, nor any behind the last: the library does not look at ranges within. CJK and
/// Hangul lie there.
const UNFOLDED: [(u32, u32); 5] =
    [(0x2D2E, 0xA63F), (0xABC0, 0xFAFF), (0x1_18E0, 0x1_6E3F), (0x1_6E80, 0x1_E8FF), (0x1_E944, 0x10_FFFF)];

/// Counts the steps in which regular expressions are read, before they are.
#[derive(Default)]
pub struct ReadingBudget {
    steps: u64,
}

impl ReadingBudget {
    /// Counts one and answers its steps; an error, as a part of a sentence, where it is too long or too deep, or takes too much
    /// with those before it. What is no regular expression counts by its length.
    pub fn read(&mut self, pattern: &str) -> Result<u64, String> {
        self.read_up_to(pattern, MOST_READING_STEPS)
    }

    /// The same of what was made of one, however long that is.
    pub(super) fn read_translated(&mut self, translated: &str) -> Result<u64, String> {
        self.pay(steps(translated, MOST_READING_STEPS.saturating_sub(self.steps))?)
    }

    /// Counts steps that are taken beside.
    pub(super) fn pay(&mut self, steps: u64) -> Result<u64, String> {
        self.pay_up_to(steps, MOST_READING_STEPS)
    }

    pub(super) fn read_up_to(&mut self, pattern: &str, most: u64) -> Result<u64, String> {
        check_length(pattern)?;
        self.pay_up_to(steps(pattern, most.saturating_sub(self.steps))?, most)
    }

    fn pay_up_to(&mut self, steps: u64, most: u64) -> Result<u64, String> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps <= most {
            return Ok(steps);
        }
        Err(format!(
            "reading its regular expressions takes more than the {most} steps that are allowed; name fewer classes such as \\p{{L}} \
             and [^…], above all where (?i) ignores case"
        ))
    }
}

/// Why a regular expression is too long, if it is.
pub(super) fn check_length(pattern: &str) -> Result<(), String> {
    if pattern.len() <= LONGEST_PATTERN {
        return Ok(());
    }
    let length = pattern.len();
    Err(format!("a regular expression has {length} bytes, {LONGEST_PATTERN} are allowed; write a shorter one"))
}

/// The steps in which a pattern is read; more than `most` where it takes more.
fn steps(pattern: &str, most: u64) -> Result<u64, String> {
    let parsing = number(pattern.len()).saturating_mul(STEPS_OF_A_BYTE);
    let tree = match SyntaxParserBuilder::new().nest_limit(DEEPEST_PATTERN).build().parse(pattern) {
        Ok(tree) => tree,
        Err(error) if matches!(error.kind(), ErrorKind::NestLimitExceeded(_)) => {
            return Err(format!(
                "parts of a regular expression stand more than the {DEEPEST_PATTERN} levels deep in each other that are allowed"
            ));
        }
        Err(_) => return Ok(parsing),
    };
    let mut reading = ReadingCost { pattern, ignores_case: ignores_case(&tree), steps: parsing, most };
    reading.part(&tree);
    Ok(reading.steps)
}

/// Whether it ignores case anywhere: then that counts for all of it.
fn ignores_case(part: &Ast) -> bool {
    let is_set = |flags: &Flags| flags.flag_state(Flag::CaseInsensitive) == Some(true);
    match part {
        Ast::Flags(set) => is_set(&set.flags),
        Ast::Group(group) => group.flags().is_some_and(is_set) || ignores_case(&group.ast),
        Ast::Repetition(repetition) => ignores_case(&repetition.ast),
        Ast::Alternation(parts) => parts.asts.iter().any(ignores_case),
        Ast::Concat(parts) => parts.asts.iter().any(ignores_case),
        Ast::Empty(_)
        | Ast::Literal(_)
        | Ast::Dot(_)
        | Ast::Assertion(_)
        | Ast::ClassUnicode(_)
        | Ast::ClassPerl(_)
        | Ast::ClassBracketed(_) => false,
    }
}

/// How large a class may be.
#[derive(Clone, Copy, Default)]
struct ClassSize {
    ranges: u64,
    /// Steps in which it is made anew with the other case of its letters.
    folding: u64,
}

impl ClassSize {
    const ALL: Self = Self { ranges: 1, folding: 0x1_E944 * FOLDED_LETTER + 0xF_16BC / UNFOLDED_LETTERS };

    fn plus(self, other: Self) -> Self {
        Self {
            ranges: self.ranges.saturating_add(other.ranges),
            folding: self.folding.saturating_add(other.folding).min(Self::ALL.folding),
        }
    }

    /// What is not in it: the ranges between its own.
    fn negated(self) -> Self {
        Self { ranges: self.ranges.saturating_add(1), folding: Self::ALL.folding }
    }
}

/// Steps for the letters of a range, both ends included.
fn case_steps(start: u32, end: u32) -> u64 {
    if UNFOLDED.iter().any(|(first, last)| *first <= start && end <= *last) {
        return 1;
    }
    let behind = UNFOLDED.last().map_or(u32::MAX, |(first, _)| *first);
    let folded = end.saturating_add(1).min(behind).saturating_sub(start);
    let rest = end.saturating_add(1).saturating_sub(start.max(behind));
    1 + u64::from(folded) * FOLDED_LETTER + u64::from(rest) / UNFOLDED_LETTERS
}

struct ReadingCost<'a> {
    pattern: &'a str,
    ignores_case: bool,
    steps: u64,
    most: u64,
}

impl ReadingCost<'_> {
    fn pay(&mut self, steps: u64) {
        self.steps = self.steps.saturating_add(steps);
    }

    /// Counts a part and answers the largest class that it may be by itself: alternatives that are classes become one.
    fn part(&mut self, part: &Ast) -> ClassSize {
        self.pay(1);
        if self.steps > self.most {
            return ClassSize::default();
        }
        let one = ClassSize { ranges: 1, folding: 1 };
        match part {
            Ast::Empty(_) | Ast::Flags(_) | Ast::Assertion(_) | Ast::Dot(_) => one,
            Ast::Literal(_) => {
                self.fold(ClassSize { ranges: 1, folding: case_steps(0, 0) });
                one
            }
            Ast::ClassUnicode(class) => self.named(class.span.start.offset, class.span.end.offset),
            Ast::ClassPerl(class) => self.named(class.span.start.offset, class.span.end.offset),
            Ast::ClassBracketed(class) => self.bracketed(class),
            Ast::Repetition(repetition) => self.part(&repetition.ast),
            Ast::Group(group) => self.part(&group.ast),
            Ast::Alternation(parts) => self.union(parts.asts.iter(), Self::part),
            Ast::Concat(parts) => parts.asts.iter().map(|part| self.part(part)).fold(one, |largest, size| ClassSize {
                ranges: largest.ranges.max(size.ranges),
                folding: largest.folding.max(size.folding),
            }),
        }
    }

    /// One after the other is added to a class, which is looked at as a whole each time.
    fn union<'p, T: 'p>(
        &mut self,
        parts: impl Iterator<Item = &'p T>,
        size_of: impl Fn(&mut Self, &T) -> ClassSize,
    ) -> ClassSize {
        let mut all = ClassSize::default();
        for part in parts {
            all = all.plus(size_of(self, part));
            self.pay(all.ranges);
        }
        all
    }

    fn bracketed(&mut self, class: &ClassBracketed) -> ClassSize {
        let size = self.set(&class.kind);
        self.fold(size);
        self.pay(size.ranges);
        if class.negated { size.negated() } else { size }
    }

    fn set(&mut self, set: &ClassSet) -> ClassSize {
        match set {
            ClassSet::Item(item) => self.item(item),
            ClassSet::BinaryOp(both) => {
                let (left, right) = (self.set(&both.lhs), self.set(&both.rhs));
                self.fold(left);
                self.fold(right);
                let size = left.plus(right);
                self.pay(size.ranges.saturating_mul(4));
                size
            }
        }
    }

    fn item(&mut self, item: &ClassSetItem) -> ClassSize {
        self.pay(1);
        if self.steps > self.most {
            return ClassSize::default();
        }
        match item {
            ClassSetItem::Empty(_) => ClassSize::default(),
            ClassSetItem::Literal(literal) => {
                ClassSize { ranges: 1, folding: case_steps(u32::from(literal.c), u32::from(literal.c)) }
            }
            ClassSetItem::Range(range) => {
                ClassSize { ranges: 1, folding: case_steps(u32::from(range.start.c), u32::from(range.end.c)) }
            }
            ClassSetItem::Ascii(ClassAscii { negated, .. }) => {
                let size = ClassSize { ranges: 8, folding: case_steps(0, 0x7F) };
                self.fold(size);
                if *negated { size.negated() } else { size }
            }
            ClassSetItem::Unicode(class) => self.named(class.span.start.offset, class.span.end.offset),
            ClassSetItem::Perl(class) => self.named(class.span.start.offset, class.span.end.offset),
            ClassSetItem::Bracketed(class) => self.bracketed(class),
            ClassSetItem::Union(union) => self.union(union.items.iter(), Self::item),
        }
    }

    /// A class with a name, such as `\pL` or `\w`. That of what is not in one, such as `\PL`, is made of it with its other case.
    fn named(&mut self, start: usize, end: usize) -> ClassSize {
        self.pay(NAMED_CLASS);
        let name = self.pattern.get(start..end).unwrap_or_default();
        let size = class_size(name);
        self.pay(size.ranges.saturating_mul(2));
        self.fold(size);
        let is_opposite = [r"\P", r"\W", r"\D", r"\S"].iter().any(|start| name.starts_with(start));
        match (self.ignores_case, name.contains(['^', '!']), is_opposite) {
            (true, true, _) => self.fold(size.negated()),
            // Names are the same in small letters.
            (true, false, true) => self.fold(class_size(&name.to_ascii_lowercase())),
            _ => {}
        }
        size
    }

    fn fold(&mut self, size: ClassSize) {
        if self.ignores_case {
            self.pay(size.folding.saturating_add(size.ranges.saturating_mul(4)));
        }
    }
}

/// That of a class by its name, as it is without regard to case; what is none is an error soon.
fn class_size(name: &str) -> ClassSize {
    let Ok(read) = regex_syntax::parse(name) else { return ClassSize::default() };
    let ranges = |ranges: &mut dyn Iterator<Item = (u32, u32)>| {
        ranges
            .map(|(start, end)| ClassSize { ranges: 1, folding: case_steps(start, end) })
            .fold(ClassSize::default(), ClassSize::plus)
    };
    match read.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            ranges(&mut class.iter().map(|range| (u32::from(range.start()), u32::from(range.end()))))
        }
        HirKind::Class(Class::Bytes(class)) => {
            ranges(&mut class.iter().map(|range| (u32::from(range.start()), u32::from(range.end()))))
        }
        _ => ClassSize { ranges: 1, folding: case_steps(0, 0) },
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

    use super::*;

    fn read(pattern: &str) -> Result<u64, String> {
        ReadingBudget::default().read(pattern)
    }

    const TOO_MUCH: &str = "reading its regular expressions takes more than the 4000000 steps that are allowed; name fewer classes \
                            such as \\p{L} and [^…], above all where (?i) ignores case";

    #[test]
    fn limits_expression_reading_regular_expressions_takes_so_many_steps() {
        let classes = |before: &str, class: &str, count: usize| read(&format!("{before}[{}&&1]", class.repeat(count)));
        for (before, class) in [
            ("(?i)", r"\pL"),
            ("(?i)", r"\w"),
            ("(?i)", r"\PL"),
            ("(?i)", r"\p{^L}"),
            ("(?i)", r"[[^a]]"),
            ("(?i)", r"[\x00-\x{10FFFF}]"),
            ("(?i)", r"[[:^alpha:]]"),
            ("(?i:a)", r"[[^a]]"),
            ("", r"\pL"),
            ("", r"\w"),
        ] {
            let count = (LONGEST_PATTERN - 20) / class.len();
            assert_eq!(classes(before, class, count), Err(TOO_MUCH.to_owned()), "{before} {class}");
            assert!(classes(before, class, 2).is_ok_and(|steps| steps > 1_000), "{before} {class}");
        }
        // A class of many ranges is looked at as a whole with each letter that is added.
        let letters: String = (0x4E00..0x4E00 + 2_600).step_by(2).filter_map(char::from_u32).collect();
        assert!(read(&format!("[{letters}]")).is_ok_and(|steps| steps > 800_000));
        assert_eq!(read(&format!("[{}{letters}]", r"\p{Ll}\p{Lo}\p{Mn}".repeat(3))), Err(TOO_MUCH.to_owned()));
        // The same as alternatives.
        assert_eq!(read(&format!("(?:{}a)", r"\p{Ll}|".repeat(500))), Err(TOO_MUCH.to_owned()));
    }

    #[test]
    fn where_letters_have_no_other_case_is_as_the_library_has_it() {
        for (first, last) in UNFOLDED {
            let range = ClassUnicodeRange::new(char::from_u32(first).unwrap(), char::from_u32(last).unwrap());
            let mut folded = ClassUnicode::new([range]);
            folded.case_fold_simple();
            assert_eq!(folded, ClassUnicode::new([range]));
        }
        assert_eq!(case_steps(0, 0x10_FFFF), ClassSize::ALL.folding + 1);
        assert_eq!([case_steps(97, 97), case_steps(0x4E00, 0x9FFF)], [5, 1]);
    }

    #[test]
    fn what_is_usual_is_read_in_few_steps() {
        for pattern in [
            r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
            r"(?i)^https?://[a-z0-9.-]+(:[0-9]+)?(/[^?#]*)?$",
            r"^(\d+)\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$",
            r"(?i)^[\w.+-]+@[\w-]+\.[\w.]+$",
            r"^[\p{L}\p{N}\p{P} ]+$",
        ] {
            let steps = read(pattern).unwrap();
            assert!(steps < MOST_READING_STEPS / 5, "{pattern}: {steps}");
        }
        assert_eq!(read("("), Ok(STEPS_OF_A_BYTE), "what is none counts by its length");
    }

    #[test]
    fn limits_expression_a_pattern_has_a_length_and_levels() {
        let of = |length: usize| read(&"a".repeat(length));
        assert!(of(LONGEST_PATTERN).is_ok());
        let long = "a regular expression has 4097 bytes, 4096 are allowed; write a shorter one";
        assert_eq!(of(LONGEST_PATTERN + 1), Err(long.to_owned()));
        let nested = |levels: usize| read(&format!("{}a{}", "(".repeat(levels), ")".repeat(levels)));
        assert!(nested(64).is_ok());
        let deep = "parts of a regular expression stand more than the 64 levels deep in each other that are allowed";
        assert_eq!(nested(65), Err(deep.to_owned()));
    }

    #[test]
    fn what_is_read_has_a_sum() {
        let mut budget = ReadingBudget::default();
        let found = (0..100_000).find_map(|_| budget.read(r"[\p{L}\p{N}]").err());
        assert_eq!(found, Some(TOO_MUCH.to_owned()));
        assert_eq!(budget.pay(1), Err(TOO_MUCH.to_owned()));
    }
}
