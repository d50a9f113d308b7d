//! Mutants as switches in the sources.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::Range,
    path::{Path, PathBuf},
    process::Command,
};

use proc_macro2::LineColumn;
use syn::{
    Arm, Block, Expr, ExprBinary, ExprStruct, ExprUnary, FieldValue, Pat, PatGuard,
    spanned::Spanned,
    visit::{self, Visit},
};

use crate::draw::{self, Genre, Mutant, Place};

/// What a crate with a switch gets: the number that is on is read once, and those that are reached are noted where a file is
/// named for them, each once for a process.
const SWITCH: &str = r#"
pub(crate) fn mutant(number: usize) -> bool {
    use std::{collections::BTreeSet, env, fs::OpenOptions, io::Write, sync::{Mutex, OnceLock}};
    static ON: OnceLock<Option<usize>> = OnceLock::new();
    static REACHED: OnceLock<Option<(std::ffi::OsString, Mutex<BTreeSet<usize>>)>> = OnceLock::new();
    let reached = REACHED.get_or_init(|| env::var_os("ORANGERY_MUTANTS_REACHED").map(|file| (file, Mutex::default())));
    if let Some((file, known)) = reached
        && known.lock().is_ok_and(|mut known| known.insert(number))
        && let Ok(mut file) = OpenOptions::new().append(true).open(file)
    {
        drop(file.write_all(format!("{number}\n").as_bytes()));
    }
    *ON.get_or_init(|| env::var("ORANGERY_MUTANT").ok()?.parse().ok()) == Some(number)
}
"#;

/// Text that is put before and after a range of bytes, which stays: so switches stand in one another.
struct Edit {
    range: Range<usize>,
    before: String,
    after: String,
}

pub(crate) fn switch(plan: &Path) {
    let mut mutants = draw::read(plan);
    let mut files = BTreeMap::<PathBuf, Vec<&mut Mutant>>::new();
    for mutant in &mut mutants {
        // Also a file whose switches have all gone is written.
        let of_file = files.entry(mutant.file.clone()).or_default();
        if mutant.refused.is_none() {
            of_file.push(mutant);
        }
    }
    let mut written = BTreeMap::new();
    let mut crates = BTreeSet::new();
    for (file, mutants) in files {
        let text = committed(&file);
        let edits = edits(&text, mutants);
        if !edits.is_empty() {
            crates.insert(root(&file));
        }
        written.insert(file, edited(&text, edits));
    }
    for root in crates {
        let text = written.remove(&root).unwrap_or_else(|| committed(&root));
        written.insert(root, text + SWITCH);
    }
    for (file, text) in written {
        // Cargo compiles what is newer than its build.
        if draw::text(&file) != text {
            fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
    }
    draw::write(plan, &mutants);
}

/// The file as it is committed, since a plan is written again and again while it loses what does not compile.
pub(crate) fn committed(file: &Path) -> String {
    let shown = Command::new("git").arg("show").arg(format!("HEAD:{}", file.display())).output().expect("git");
    assert!(shown.status.success(), "{}: git does not show it", file.display());
    String::from_utf8(shown.stdout).expect("sources are text")
}

fn root(file: &Path) -> PathBuf {
    let folder: PathBuf = file.iter().take_while(|part| *part != "src").collect();
    folder.join("src/lib.rs")
}

fn edits(text: &str, mutants: Vec<&mut Mutant>) -> Vec<Edit> {
    let mut edits = Vec::new();
    for mutant in mutants {
        match edit(text, mutant) {
            Ok(edit) => edits.push(edit),
            Err(why) => mutant.refused = Some(why.to_owned()),
        }
    }
    edits
}

/// Of two that begin or end at one place the longer one is around the shorter one, and of two of one range the later one.
fn edited(text: &str, edits: Vec<Edit>) -> String {
    let mut pieces = Vec::new();
    for (order, Edit { range, before, after }) in edits.into_iter().enumerate() {
        let order = i64::try_from(order).expect("a few edits") + 1;
        let length = i64::try_from(range.len()).expect("a file fits into memory");
        // What ends at a place stands before what begins there.
        pieces.push(((range.start, 1, -length, -order), before));
        pieces.push(((range.end, if range.is_empty() { 1 } else { 0 }, length, order), after));
    }
    pieces.sort();
    let (mut edited, mut taken) = (String::new(), 0);
    for ((at, ..), piece) in pieces {
        edited += &text[taken..at];
        edited += &piece;
        taken = at;
    }
    edited + &text[taken..]
}

fn edit(text: &str, mutant: &Mutant) -> Result<Edit, &'static str> {
    let file = syn::parse_file(text).expect("sources are Rust");
    let mut search = Search { text: Text::new(text), mutant, found: None };
    search.visit_file(&file);
    let Edit { range, before, after } =
        search.found.unwrap_or(Err("no switch can take it: it is in a constant or a macro"))?;
    let (begin, end) = marks(mutant.number);
    Ok(Edit { range, before: begin + &before, after: after + &end })
}

/// Comments around a switch, by which an error of the compiler is told to be of it.
pub(crate) fn marks(number: usize) -> (String, String) {
    (format!("/*<{number}*/"), format!("/*{number}>*/"))
}

struct Text<'a> {
    text: &'a str,
    lines: Vec<usize>,
}

impl<'a> Text<'a> {
    fn new(text: &'a str) -> Text<'a> {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Text { text, lines: std::iter::once(0).chain(ends).collect() }
    }

    fn offset(&self, place: LineColumn) -> usize {
        let line = &self.text[self.lines[place.line - 1]..];
        self.lines[place.line - 1] + line.chars().take(place.column).map(char::len_utf8).sum::<usize>()
    }

    fn range(&self, spanned: &impl Spanned) -> Range<usize> {
        let span = spanned.span();
        self.offset(span.start())..self.offset(span.end())
    }
}

struct Search<'a> {
    text: Text<'a>,
    mutant: &'a Mutant,
    found: Option<Result<Edit, &'static str>>,
}

impl Search<'_> {
    fn is(&self, genre: Genre, spanned: &impl Spanned) -> bool {
        let start = spanned.span().start();
        self.mutant.genre == genre && self.mutant.start == Place { line: start.line, column: start.column + 1 }
    }

    fn of(&self, spanned: &impl Spanned) -> &str {
        &self.text.text[self.text.range(spanned)]
    }

    fn condition(&self) -> String {
        format!("crate::mutant({})", self.mutant.number)
    }

    fn replace(&mut self, spanned: &impl Spanned, new: &str) {
        let before = format!("(if {} {{ {new} }} else {{ ", self.condition());
        self.around(self.text.range(spanned), before, " })");
    }

    fn around(&mut self, range: Range<usize>, before: String, after: &str) {
        self.found = Some(Ok(Edit { range, before, after: after.to_owned() }));
    }

    fn insert(&mut self, at: usize, text: String) {
        self.around(at..at, text, "");
    }

    fn guard(&mut self, guard: &Expr) {
        let (condition, range) = (self.condition(), self.text.range(guard));
        match (self.mutant.replacement.as_str(), has_let(guard)) {
            ("true", true) => self.found = Some(Err("no switch can take it: a guard that binds")),
            ("true", false) => self.around(range, format!("({condition} || ("), "))"),
            (_, true) => self.around(range, format!("!{condition} && "), ""),
            (_, false) => self.around(range, format!("(!{condition} && ("), "))"),
        }
    }
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_block(&mut self, block: &'ast Block) {
        if block.stmts.first().is_some_and(|first| self.is(Genre::FnValue, first)) && self.found.is_none() {
            let text = format!("if {} {{ return {}; }}\n", self.condition(), self.mutant.replacement);
            let at = self.text.offset(block.brace_token.span.open().end());
            self.insert(at, text);
        }
        visit::visit_block(self, block);
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        if self.is(Genre::BinaryOperator, &binary.op) {
            if has_let(&binary.left) || has_let(&binary.right) {
                self.found = Some(Err("does not compile: a chain that binds has no other operator"));
                return;
            }
            let range = self.text.range(binary);
            let op = self.text.range(&binary.op);
            let (left, right) = (&self.text.text[range.start..op.start], &self.text.text[op.end..range.end]);
            let new = format!("{left}{}{right}", self.mutant.replacement);
            self.replace(binary, &new);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast ExprUnary) {
        if self.is(Genre::UnaryOperator, &unary.op) {
            let new = self.of(&*unary.expr).to_owned();
            self.replace(unary, &new);
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        if self.is(Genre::MatchArm, arm) {
            match &arm.pat {
                Pat::Guard(PatGuard { guard, .. }) => self.guard(guard),
                pat => {
                    let text = format!(" if !{}", self.condition());
                    let at = self.text.range(pat).end;
                    self.insert(at, text);
                }
            }
        }
        if let Pat::Guard(PatGuard { guard, .. }) = &arm.pat
            && self.is(Genre::MatchArmGuard, &**guard)
        {
            self.guard(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, whole: &'ast ExprStruct) {
        let deleted: Option<&FieldValue> = whole.fields.iter().find(|field| self.is(Genre::StructField, *field));
        if let (Some(field), Some(rest)) = (deleted, &whole.rest) {
            let base = match self.of(&**rest) {
                "Default::default()" => format!("<{}>::default()", self.of(&whole.path)),
                base => base.to_owned(),
            };
            let member = self.of(&field.member);
            let short = if field.colon_token.is_none() { format!("{member}: ") } else { String::new() };
            let before = format!("{short}if {} {{ {base}.{member}.clone() }} else {{ ", self.condition());
            self.around(self.text.range(&field.expr), before, " }");
        }
        visit::visit_expr_struct(self, whole);
    }
}

/// Whether the expression is a chain with a `let`, which stands in no other place than its condition.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}
