//! Compares what the Helm deployer renders with what `helm template` of the stock command line prints, byte for byte: the
//! objects, the hooks and their order. Prints a table with a line for each chart and set of values.

mod component;
mod stock;

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::Parser;
use orangery_proposal::{Item, Proposal};
use serde_json::Value;

use self::{
    component::Component,
    stock::{Kinds, Stock, Told},
};

/// Compares charts rendered by the component with `helm template` of the stock command line.
#[derive(Parser)]
struct Arguments {
    /// A folder with a folder for each chart
    charts: PathBuf,
    /// Values: NAME.yaml is another set for the chart NAME, NAME.default.yaml goes below both
    #[arg(long)]
    values: Option<PathBuf>,
    /// The stock helm
    #[arg(long, default_value = "helm")]
    helm: PathBuf,
    /// The deployer as a native program (go build ./native in plugins/helm): tells how much slower the sandbox is
    #[arg(long)]
    native: Option<PathBuf>,
    /// Where compiled components are kept [default: beside this program]
    #[arg(long)]
    cache: Option<PathBuf>,
    /// How often each is rendered, to tell how long it takes
    #[arg(long, default_value_t = 5)]
    times: usize,
    /// Only charts whose name contains this
    #[arg(long, default_value = "")]
    only: String,
}

/// What came of one chart with one set of values.
struct Compared {
    objects: usize,
    hooks: usize,
    /// How the two differ; `None` where they are equal.
    difference: Option<String>,
    /// Lines that the stock command line itself renders otherwise each time.
    random: usize,
    /// What it takes to render: the item without a release.
    render: Took,
    /// What it takes to plan a release, which is packed for its Secrets, too.
    release: Took,
}

/// How long a plan takes, all in: from the archive to the proposal that the host reads.
struct Took {
    /// In a fresh instance each: the median.
    sandbox: Duration,
    /// Natively: the median.
    native: Option<Duration>,
}

impl Took {
    fn ratio(&self) -> Option<f64> {
        self.native.map(|native| self.sandbox.as_secs_f64() / native.as_secs_f64())
    }

    fn cells(&self) -> String {
        let native = self.native.map_or_else(String::new, |native| format!("{:.1} ms", millis(native)));
        let ratio = self.ratio().map_or_else(String::new, |ratio| format!("{ratio:.1}"));
        format!("{:.1} ms | {native} | {ratio}", millis(self.sandbox))
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match compare(&Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether all are equal.
async fn compare(arguments: &Arguments) -> io::Result<bool> {
    let mut charts: Vec<PathBuf> =
        fs::read_dir(&arguments.charts)?.collect::<io::Result<Vec<_>>>()?.iter().map(fs::DirEntry::path).collect();
    charts.retain(|chart| chart.join("Chart.yaml").is_file() && name(chart).contains(&arguments.only));
    charts.sort();
    let folder = tempfile::tempdir()?;
    let stock = Stock::new(&arguments.helm, folder.path())?;
    let component = Component::load(arguments.cache.clone())?;
    let mut out = io::stdout();
    writeln!(
        out,
        "| chart | version | values | objects | hooks | result | render | native | ratio | release | native | ratio |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|---|---|---|")?;
    let (mut equal, mut all, mut renders, mut releases) = (0, 0, Vec::new(), Vec::new());
    for chart in &charts {
        let (packed, version) = match stock.package(chart) {
            Ok(packed) => packed,
            Err(error) => {
                writeln!(out, "| {} | | | | | cannot be packed: {error} | | | | | | |", name(chart))?;
                continue;
            }
        };
        for (set, files) in sets(arguments, &name(chart)) {
            let begin = format!("| {} | {version} | {set}", name(chart));
            match one(arguments, &stock, &component, &packed, &files).await {
                Ok(compared) => {
                    all += 1;
                    equal += usize::from(compared.difference.is_none());
                    writeln!(out, "{begin} | {} |", line(&compared))?;
                    renders.push(compared.render);
                    releases.push(compared.release);
                }
                Err(error) => {
                    let why = error.to_string().replace('\n', " ");
                    writeln!(out, "{begin} | | | not compared: {why} | | | | | | |")?;
                }
            }
        }
    }
    writeln!(out, "\n{equal} of {all} are equal")?;
    writeln!(out, "renders: {}", summary(&renders))?;
    writeln!(out, "releases: {}", summary(&releases))?;
    Ok(equal == all)
}

fn name(chart: &Path) -> String {
    chart.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The sets of values of a chart, each with its files.
fn sets(arguments: &Arguments, chart: &str) -> Vec<(&'static str, Vec<PathBuf>)> {
    let file = |ending: &str| {
        let file = arguments.values.as_ref().map(|folder| folder.join(format!("{chart}{ending}")));
        file.filter(|file| file.is_file())
    };
    let needed: Vec<PathBuf> = file(".default.yaml").into_iter().collect();
    let other = file(".yaml").map(|other| ("other", needed.iter().cloned().chain([other]).collect()));
    [("default", needed.clone())].into_iter().chain(other).collect()
}

fn line(of: &Compared) -> String {
    let result = match (&of.difference, of.random) {
        (Some(difference), _) => difference.replace('|', "\\|"),
        (None, 0) => "equal".to_owned(),
        (None, random) => format!("equal but for {random} random lines"),
    };
    format!("{} | {} | {result} | {} | {}", of.objects, of.hooks, of.render.cells(), of.release.cells())
}

/// The slowest, and the ratio in the middle.
fn summary(all: &[Took]) -> String {
    let slowest = all.iter().map(|took| took.sandbox).max().unwrap_or_default();
    let mut ratios: Vec<f64> = all.iter().filter_map(Took::ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).map(|ratio| format!(", in the middle {ratio:.1} times native"));
    format!("the slowest took {:.0} ms{}", millis(slowest), median.unwrap_or_default())
}

async fn one(
    arguments: &Arguments,
    stock: &Stock,
    component: &Component,
    packed: &Path,
    files: &[PathBuf],
) -> io::Result<Compared> {
    // What a chart renders may depend on the kinds that there are, and the deployer wants to know all kinds of its objects.
    let mut kinds = Kinds::usual();
    let mut expected = stock.template(packed, files, &kinds)?;
    for _ in 0..4 {
        if !kinds.learn(&expected) {
            break;
        }
        expected = stock.template(packed, files, &kinds)?;
    }
    let values = stock.values(files)?;
    let cluster = stock.cluster(&kinds);
    let packed_chart = fs::read(packed)?;
    let (proposal, release) =
        timed(arguments, component, &component.item(&packed_chart, &values, true), &cluster).await?;
    let rendered = component::rendered(&proposal)?;
    let (_, render) = timed(arguments, component, &component.item(&packed_chart, &values, false), &cluster).await?;
    let twice = stock.template(packed, files, &kinds)?;
    let random = expected.lines().zip(twice.lines()).filter(|(one, other)| one != other).count();
    let difference = first_difference(&expected, &twice, &rendered.text());
    Ok(Compared { objects: rendered.objects, hooks: rendered.hooks, difference, random, render, release })
}

/// What comes of an item, and how long that takes.
async fn timed(
    arguments: &Arguments,
    component: &Component,
    item: &Item,
    cluster: &Told,
) -> io::Result<(Proposal, Took)> {
    let mut times = Vec::with_capacity(arguments.times);
    let proposal = loop {
        let begin = Instant::now();
        let proposal = component.plan(item, cluster).await?;
        times.push(begin.elapsed());
        if times.len() >= arguments.times {
            break proposal;
        }
    };
    times.sort_unstable();
    let sandbox = times.get(times.len() / 2).copied().unwrap_or_default();
    let native = arguments.native.as_ref().map(|program| component.native(program, item, cluster)).transpose()?;
    Ok((proposal, Took { sandbox, native }))
}

/// The first line that differs, but for those that are otherwise in each rendering; `None` where there is none.
fn first_difference(expected: &str, twice: &str, rendered: &str) -> Option<String> {
    if expected == rendered {
        return None;
    }
    let (mut stock, mut again, mut ours) = (expected.lines(), twice.lines(), rendered.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (stock.next(), again.next(), ours.next()) {
            (None, _, None) => return None,
            (Some(stock), again, Some(ours)) if stock == ours || again != Some(stock) => {}
            (stock, _, ours) => {
                let text = |line: Option<&str>| line.map_or("nothing".to_owned(), |line| format!("`{line}`"));
                return Some(format!("line {number}: {} and not {}", text(ours), text(stock)));
            }
        }
    }
}

/// A document of JSON, for what is written to programs.
fn json(of: &Value) -> Vec<u8> {
    of.to_string().into_bytes()
}
