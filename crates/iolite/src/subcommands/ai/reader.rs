//! `iolite ai reader`: reads a dataset for accelerators; searches the largest number of them.

use super::super::meta::machines::ranks;
use super::answer::{Answer, File, NOTE, table};
use super::own_process::{Performer, is_first};
use super::site::Site;
use super::{Outcome, dataset, of_option};
use crate::messages::complain;
use iolite_options::commands::{self, Asked};
use iolite_page::text::{bandwidth, count, latency};
use iolite_procedures::ai::dataset::Dataset;
use iolite_procedures::ai::models::{ACCELERATORS, SOURCE, Training};
use iolite_procedures::ai::reader::{Figures, LEAST_COUNTED, LEAST_STEPS, Reader};
use iolite_procedures::ai::search;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// How busy accelerators have to be, in percent.
const LEAST: f64 = 90.0;
/// The most accelerators, readers, and so on.
const MOST: u64 = 1 << 16;

/// What is read, and how.
struct Plan {
    site: Site,
    dataset: Dataset,
    reader: Reader,
    /// The number is searched.
    is_search: bool,
    least: f64,
    model: Option<Training>,
    /// Agents, or how many ranks there are.
    machines: Vec<String>,
}

/// A number of accelerators that has been tried: its figures, and the report (of a search that goes on, `Null` for those that do
/// not count).
type Tried = (Reader, Figures, Value);

impl Plan {
    fn of(asked: &Asked, target: &str) -> Result<Plan, String> {
        let site = Site::of(asked, target)?;
        let (dataset, named) = known_dataset(asked, &site)?;
        let model = match dataset::model(asked)? {
            Some(model) if site.directory.is_some() && named.as_deref() != Some(model.name) => {
                return Err(format!(
                    "--preset={}: the dataset there is not one of it; leave it out, and say --batch and --compute",
                    model.name
                ));
            }
            Some(model) => Some(model),
            None => named.and_then(|name| Training::of(&name).ok()),
        };
        let number = |option: &str, least: u64| match asked.number(option, least)? {
            Some(value) if value > MOST => Err(format!("--{option}={value}: must be at most {MOST}")),
            value => Ok(value),
        };
        let gpu = asked.value("gpu").unwrap_or(ACCELERATORS[1]);
        let compute_us = match (asked.value("compute"), model) {
            (Some(_), _) if asked.has("gpu") => {
                return Err("--gpu and --compute: both are computing times; give one of them".to_owned());
            }
            (Some(time), _)
                if !time.starts_with('-') && time.ends_with(|last: char| last.is_ascii_digit()) =>
            {
                return Err(format!("--compute={time}: the unit is missing, such as {time}ms"));
            }
            (Some(time), _) => of_option("compute", time, commands::microseconds(time))?,
            (None, Some(model)) => of_option("gpu", gpu, model.compute_us(gpu))?,
            (None, None) => {
                return Err(
                    "how long an accelerator computes is missing: --compute=323ms, or a model (--preset)"
                        .to_owned(),
                );
            }
        };
        if compute_us == 0 {
            return Err("--compute: must be at least 1us".to_owned());
        }
        let batch = match (number("batch", 1)?, model) {
            (Some(batch), _) => batch,
            (None, Some(model)) => model.batch,
            (None, None) => {
                return Err(
                    "the size of a batch is missing: --batch=NUMBER, or a model (--preset)".to_owned()
                );
            }
        };
        let is_search = asked.value("accelerators") == Some("max");
        if !is_search && asked.has("resume") {
            return Err(
                "--resume: one run has nothing to go on with; a search has (--accelerators=max)".to_owned()
            );
        }
        let reader = Reader {
            accelerators: if is_search { 1 } else { number("accelerators", 1)?.unwrap_or(1) },
            readers: number("readers", 1)?.unwrap_or(model.map_or(4, |model| model.readers)),
            batch,
            compute_us,
            prefetch: number("prefetch", 0)?.unwrap_or(2),
            epochs: number("epochs", 1)?.unwrap_or(1),
            seconds: asked.seconds("seconds")?.unwrap_or(0),
            is_random_within: asked.value("shuffle") == Some("records"),
        };
        if reader.is_random_within && dataset.shape.per_file == 1 {
            return Err("--shuffle=records: each file has one sample; leave it out".to_owned());
        }
        if reader.seconds > 0 && asked.has("epochs") {
            return Err("--epochs and --seconds: both say when it ends; give one of them".to_owned());
        }
        let least = asked.percent("least")?;
        let least = least.unwrap_or(model.map_or(LEAST, |model| model.least_percent));
        let mut machines: Vec<String> = asked.values("client").map(str::to_owned).collect();
        if asked.has("mpi") {
            machines.extend(ranks().map(|ranks| ranks.words()));
        }
        let plan = Plan { site, dataset, reader, is_search, least, model, machines };
        plan.check()?;
        Ok(plan)
    }

    /// Checks that there are enough samples.
    fn check(&self) -> Result<(), String> {
        let Reader { accelerators, batch, .. } = self.reader;
        if self.reader.steps(&self.dataset) == 0 {
            return Err(format!(
                "{}: {} samples are fewer than a batch of {batch} for each of {}",
                self.site.name,
                self.reader.samples(&self.dataset),
                these(accelerators)
            ));
        }
        Ok(())
    }

    /// The most accelerators that the dataset is enough for: two steps of an epoch, and enough in all to tell.
    fn most(&self) -> u64 {
        let batches = self.dataset.samples() / self.reader.batch;
        let in_all = match self.reader.seconds {
            0 => batches.saturating_mul(self.reader.epochs) / (LEAST_COUNTED + 1),
            _ => batches,
        };
        (batches / 2).min(in_all).clamp(1, MOST)
    }

    /// What the figures of a search depend on.
    fn conditions(&self) -> Value {
        let Reader { readers, batch, compute_us, prefetch, epochs, seconds, is_random_within, .. } =
            self.reader;
        json!({
            "target": self.site.whole_name(), "machines": self.machines, "direct": self.site.place.is_direct,
            "dataset": self.dataset.described(), "readers": readers, "batch": batch, "compute_us": compute_us,
            "prefetch": prefetch, "epochs": epochs, "seconds": seconds, "shuffle_records": is_random_within,
            "least": self.least,
        })
    }

    /// What a search has tried that was interrupted, as its file has it.
    fn kept(&self, part: Option<&Path>) -> Result<Vec<Tried>, String> {
        let path = part.ok_or("--resume: which search? --output=NAME.json is its file")?;
        let told = |why: &str| format!("--resume: {}: {why}", path.display());
        let text = std::fs::read_to_string(path);
        let none = "there is no interrupted search to go on with; leave --resume out";
        let text = text.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => told(none),
            _ => told(&iolite_types::describe_error(&error)),
        })?;
        let damaged = "this is no interrupted search, or a damaged one; remove it, or give another --output";
        let report: Value = serde_json::from_str(&text).map_err(|_| told(damaged))?;
        let kept = &report["iolite"]["ai"];
        let Some(conditions) = kept["search"].as_object().filter(|_| kept["complete"] == false) else {
            return Err(told(damaged));
        };
        let own = self.conditions();
        if let Some((name, value)) = conditions.iter().find(|(name, value)| own[*name] != **value) {
            return Err(told(&format!(
                "that search was another one: its {name} is {value}, and not {}",
                own[name]
            )));
        }
        let each = kept["tried"].as_array().into_iter().flatten().map(|figures| {
            let (accelerators, of) = Figures::kept(figures)?;
            let is_result = *figures == kept["result"];
            let report = if is_result { report.clone() } else { Value::Null };
            Some((Reader { accelerators, ..self.reader }, of, report))
        });
        each.collect::<Option<Vec<_>>>().ok_or_else(|| told(damaged))
    }

    /// What a result depends on, in sentences.
    fn remarks(&self, figures: &Figures) -> Vec<String> {
        let mut remarks = Vec::new();
        remarks.extend(dataset::too_small(&self.dataset, self.site.place.is_on_machines));
        let steps = self.reader.steps(&self.dataset);
        if steps < LEAST_STEPS {
            remarks.push(format!(
                "an epoch has {steps} steps; the rules of MLPerf Storage ask for {LEAST_STEPS}"
            ));
        }
        let left = self.dataset.samples() - self.reader.samples(&self.dataset);
        if left > 0 {
            remarks.push(format!(
                "left over, and not read: {left} of {} samples, because {} readers read the same number of files each",
                self.dataset.samples(),
                self.reader.workers(&self.dataset)
            ));
        }
        let ahead = self.reader.prefetch + 1;
        if figures.steps <= ahead {
            remarks.push(format!("{} steps are no more than what is read ahead; read longer", figures.steps));
        }
        remarks
    }
}

/// The dataset, and the name of the model that it was made for.
fn known_dataset(asked: &Asked, site: &Site) -> Result<(Dataset, Option<String>), String> {
    let kept = site.directory.as_deref().map(dataset::found).transpose()?.flatten();
    let of_dataset = ["samples", "sample-size", "deviation", "per-file"];
    let given = match of_dataset.iter().find(|option| asked.has(option)) {
        Some(option) => dataset::described(asked, &site.place).map_err(|why| match kept {
            Some(_) => format!("{why}; or leave --{option} out: {} describes its dataset", site.name),
            None => why,
        })?,
        None => None,
    };
    let Some(directory) = &site.directory else {
        let missing = "what it has is not kept there: repeat --samples and --preset (or --sample-size) of iolite ai dataset";
        return given.map(|dataset| (dataset, None)).ok_or_else(|| format!("{}: {missing}", site.name));
    };
    let Some((dataset, value)) = kept else {
        return Err(format!("{}: there is no dataset; iolite ai dataset writes one", site.name));
    };
    if value["complete"] != true {
        return Err(format!(
            "{}: the dataset is incomplete, because its writer was interrupted; the same iolite ai dataset with --resume goes on",
            site.name
        ));
    }
    if given.is_some_and(|given| given != dataset) {
        return Err(format!(
            "{}: the dataset there is another one; leave --samples and sizes out",
            site.name
        ));
    }
    dataset::check(directory, &dataset)?;
    Ok((dataset, value["model"].as_str().map(str::to_owned)))
}

/// Reads.
///
/// `file`: it keeps what a search has found so far.
pub fn run(
    program: &str,
    asked: &Asked,
    target: &str,
    mut file: Option<&mut File>,
) -> Result<Outcome, String> {
    let mut plan = Plan::of(asked, target)?;
    if asked.has("show-job") {
        return Ok(Outcome::Said(plan.reader.job(&plan.dataset, &plan.site.place)));
    }
    let resumes = asked.has("resume");
    let part = match &mut file {
        Some(file) if plan.is_search => file.begin_search(resumes)?,
        _ => None,
    };
    let mut results = if resumes && is_first(asked) { plan.kept(part.as_deref())? } else { Vec::new() };
    plan.site.check_server()?;
    let mut performer = if plan.is_search { Performer::of_several(asked)? } else { Performer::new(asked)? };
    let most = plan.most();
    while let Some(accelerators) = next(&plan, &results, most) {
        plan.reader.accelerators = accelerators;
        let (reader, dataset) = (plan.reader, plan.dataset);
        let report = match performer.perform(&plan.site.place, &|place| reader.job(&dataset, place), None) {
            Ok(Ok(report)) => report,
            Ok(Err(Outcome::Elsewhere)) => return Ok(Outcome::Elsewhere),
            Ok(Err(other)) => {
                if let Some(part) = part.filter(|_| !results.is_empty()) {
                    let words = "has what was found so far; the same command with --resume goes on with it";
                    complain(program, &format_args!("ai: {} {words}", part.display()));
                }
                return Ok(other);
            }
            Err(why) => return Err(format!("{}: {why}", plan.site.name)),
        };
        let figures = Figures::of(&report)?;
        if plan.is_search {
            let what = format!("ai: {}: {}", these(accelerators), busy(&figures));
            complain(program, &format_args!("{what}"));
        }
        results.push((plan.reader, figures, report));
        if let Some(file) = &file {
            file.keep(&answer(&plan, &results, most, false)?)?;
        }
    }
    Ok(Outcome::Answered(Box::new(answer(&plan, &results, most, true)?)))
}

/// The number to try next.
fn next(plan: &Plan, results: &[Tried], most: u64) -> Option<u64> {
    match plan.is_search {
        true => search::next(&tried(plan, results), most),
        false => results.is_empty().then_some(plan.reader.accelerators),
    }
}

/// Which numbers were kept busy.
fn tried(plan: &Plan, results: &[Tried]) -> Vec<(u64, bool)> {
    let is_held = |figures: &Figures| figures.reaches(plan.least) == Some(true);
    results.iter().map(|(reader, figures, _)| (reader.accelerators, is_held(figures))).collect()
}

/// So many accelerators.
fn these(number: u64) -> String {
    if number == 1 { "1 accelerator".to_owned() } else { format!("{number} accelerators") }
}

/// So many accelerators are kept busy.
fn these_are_busy(number: u64, least: f64) -> String {
    let are = if number == 1 { "is" } else { "are" };
    format!("{} {are} kept busy (AU of at least {least}%)", these(number))
}

fn busy(figures: &Figures) -> String {
    figures.utilisation.map_or("unknown".to_owned(), |utilisation| format!("AU {utilisation:.2}%"))
}

/// The answer: of a search, about the largest number that was kept busy, or else about one.
fn answer(plan: &Plan, results: &[Tried], most: u64, is_complete: bool) -> Result<Answer, String> {
    let held = search::held(&tried(plan, results));
    let counts = |(reader, ..): &&Tried| Some(reader.accelerators) == held;
    let (reader, figures, report) =
        results.iter().find(counts).or(results.first()).ok_or("nothing was measured")?.clone();
    let mut text = String::new();
    let model = plan.model.map_or_else(String::new, |model| format!("{} ({SOURCE}), ", model.title));
    let each = if plan.site.place.is_on_machines { " on each machine" } else { "" };
    line!(
        text,
        "{}: {model}{} samples in {} files{each}; batches of {}, computed in {} ms; {} readers\n",
        plan.site.name,
        plan.dataset.samples(),
        plan.dataset.files,
        reader.batch,
        reader.compute_us as f64 / 1000.0,
        reader.workers(&plan.dataset)
    );
    let mut rows = vec![
        ["accelerators", "AU", "samples/s", "read", "steps", "waited", "read p50", "read p99"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut shown: Vec<&Tried> = results.iter().collect();
    shown.sort_by_key(|(reader, ..)| reader.accelerators);
    rows.extend(shown.iter().map(|(reader, figures, _)| row(reader, figures)));
    text += &table(&rows);
    text.push('\n');
    match is_complete {
        true => line!(text, "{}", verdict(plan, held, results, most)),
        false => line!(text, "The search is not complete."),
    }
    let remarks = plan.remarks(&figures);
    for remark in &remarks {
        line!(text, "Note: {remark}.");
    }
    line!(text, "{NOTE}");
    let searched: Vec<Value> = shown.iter().map(|(reader, figures, _)| figures.json(reader)).collect();
    let result = figures.json(&reader);
    let mut value = json!({
        "test": "reader", "target": plan.site.name, "model": plan.model.map(|model| model.name),
        "dataset": plan.dataset.described(), "samples": plan.dataset.samples(),
        "batch": reader.batch, "compute_us": reader.compute_us, "prefetch": reader.prefetch,
        "accelerators": result["accelerators"], "machines": result["machines"], "direct": plan.site.place.is_direct,
        "epochs": reader.epochs, "seconds": reader.seconds, "shuffle_records": reader.is_random_within,
        "readers": reader.workers(&plan.dataset), "least_utilization": plan.least,
        "result": result, "reaches_least": figures.reaches(plan.least), "tried": searched,
        "most_accelerators": held.filter(|_| plan.is_search && is_complete), "notes": remarks, "about": NOTE,
    });
    if plan.is_search {
        value["search"] = plan.conditions();
        value["complete"] = is_complete.into();
    }
    Ok(Answer { text, value, report, status: 0 })
}

/// What the figures mean, in a sentence.
fn verdict(plan: &Plan, held: Option<u64>, results: &[Tried], most: u64) -> String {
    let least = plan.least;
    let too_few = format!(
        "too few steps to tell (fewer than {} of each machine); take more samples, --epochs or --seconds",
        LEAST_COUNTED + 1
    );
    // Of the smallest number that is not known to be kept busy.
    let above = results.iter().filter(|(reader, ..)| held.is_none_or(|held| reader.accelerators > held));
    let above = above.min_by_key(|(reader, ..)| reader.accelerators);
    let is_unknown = above.is_some_and(|(_, figures, _)| figures.reaches(least).is_none());
    match held {
        None if is_unknown => format!("Whether AU reaches {least}%: {too_few}."),
        _ if !plan.is_search => {
            let is_enough = if held.is_some() { "reaches" } else { "does not reach" };
            format!("AU {is_enough} the {least}% that count.")
        }
        None => format!("Not even one accelerator is kept busy (AU of at least {least}%)."),
        Some(held) if held == most => {
            format!("At least {}: the dataset is not enough for more.", these_are_busy(held, least))
        }
        Some(held) if is_unknown => format!("At least {}; of more: {too_few}.", these_are_busy(held, least)),
        Some(held) => format!("{}; one more is too many.", these_are_busy(held, least)),
    }
}

fn row(reader: &Reader, figures: &Figures) -> Vec<String> {
    let all = reader.accelerators * figures.machines;
    let time = |place: usize| figures.read_ns.map_or("-".to_owned(), |values| latency(values[place]));
    vec![
        all.to_string(),
        figures.utilisation.map_or("-".to_owned(), |utilisation| format!("{utilisation:.2}%")),
        format!("{:.2}", figures.samples_per_second),
        bandwidth(figures.bandwidth),
        count(figures.steps as f64),
        format!("{:.2} s", figures.waited),
        time(0),
        time(1),
    ]
}
