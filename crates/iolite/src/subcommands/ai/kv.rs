//! `iolite ai kv`: a cache of keys and values.

use super::Outcome;
use super::answer::{Answer, table};
use super::own_process::{Performer, announce};
use super::site::Site;
use iolite_options::commands::Asked;
use iolite_page::text::{bandwidth, bytes, count, latency};
use iolite_procedures::ai::kv::{Cache, Eviction, Figures};
use iolite_procedures::ai::place::{Kind, Place};
use serde_json::{Value, json};
use std::fmt::Write;

/// The sizes of blocks.
const BLOCKS: std::ops::RangeInclusive<u64> = 64 << 10..=4 << 20;
/// The most tenants.
const MOST_TENANTS: usize = 64;
/// The highest rate of a tenant.
const MOST_RATE: f64 = 1e6;
/// A tenant got what it asked for from this part on: arrivals are random.
const AS_ASKED: f64 = 0.9;

/// Runs a cache.
pub fn run(program: &str, asked: &Asked, target: &str) -> Result<Outcome, String> {
    let site = Site::of_blocks(asked, target)?;
    let cache = of(asked, site.place.kind)?;
    let tenants = cache.rates.len() as u64;
    // The hits, and the new blocks.
    let mut site = site.with_own_room(cache.bytes.saturating_mul(2 * tenants), asked.has("show-job"))?;
    let make = |place: &Place| cache.job(place);
    if asked.has("show-job") {
        return Ok(Outcome::Said(site.shown(&make(&site.place))));
    }
    site.check_server()?;
    let what = format!(
        "kv: {tenants} tenants, {} each, are filled in {}; then {} s of requests",
        bytes(cache.bytes as f64),
        site.name,
        cache.seconds
    );
    announce(program, asked, &what);
    let report = match Performer::new(asked)?.perform(&site.place, &make, Some(&|place| cache.made(place))) {
        Ok(Ok(report)) => report,
        Ok(Err(other)) => return Ok(other),
        Err(why) => return Err(format!("{}: {why}", site.name)),
    };
    let figures = Figures::of(&report, &cache)?;
    Ok(Outcome::Answered(Box::new(answer(&site, &cache, &figures, report))))
}

fn of(asked: &Asked, kind: Kind) -> Result<Cache, String> {
    let number = |option: &str, least: u64, most: u64, default: u64| match asked.number(option, least)? {
        Some(value) if value > most => Err(format!("--{option}={value}: must be at most {most}")),
        value => Ok(value.unwrap_or(default)),
    };
    let block = number("block", *BLOCKS.start(), *BLOCKS.end(), 1 << 20)?;
    if (asked.has("direct") || kind == Kind::Device) && !block.is_multiple_of(4096) {
        return Err(format!(
            "--block={block}: with --direct, and on a device, it has to be a multiple of 4096"
        ));
    }
    let size = number("size", block, 1 << 50, 256 << 20)?;
    let rates = asked.value("rates").unwrap_or("10,10,10,10");
    let told = |why: String| format!("--rates={rates}: {why}");
    let each = |text: &str| match text.trim().parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= MOST_RATE => Ok(rate),
        _ => Err(told(format!("\"{text}\" is no number of requests per second, up to {MOST_RATE}"))),
    };
    let list: Vec<f64> = rates.split(',').map(each).collect::<Result<_, _>>()?;
    if list.len() > MOST_TENANTS {
        return Err(told(format!("at most {MOST_TENANTS} tenants")));
    }
    let seconds = asked.seconds("seconds")?.unwrap_or(30);
    if let Some(rate) = list.iter().find(|rate| *rate * (seconds as f64) < 1.0) {
        return Err(told(format!("at {rate} per second, no request is expected within {seconds} s")));
    }
    let eviction = match (asked.value("evict"), kind) {
        (Some("unlink"), Kind::Objects | Kind::Export | Kind::Device) => {
            return Err(
                "--evict=unlink: that is for files; objects (DELETE) and devices have trim, and NFS has overwrite"
                    .to_owned(),
            );
        }
        (Some("trim"), Kind::Files | Kind::Export) => {
            return Err(
                "--evict=trim: that is for objects (DELETE) and devices; files have unlink and overwrite"
                    .to_owned(),
            );
        }
        (Some("unlink"), _) | (None, Kind::Files) => Eviction::Unlink,
        (Some("trim"), _) | (None, Kind::Objects | Kind::Device) => Eviction::Trim,
        (Some(_), _) | (None, Kind::Export) => Eviction::Overwrite,
    };
    let blocks = number("blocks", 1, 1 << 20, 8)?;
    let held = size / block;
    if blocks > held {
        return Err(format!("--blocks={blocks}: a cache of {} has {held} blocks", bytes(size as f64)));
    }
    Ok(Cache {
        block,
        bytes: held * block,
        rates: list,
        blocks,
        hit_percent: asked.percent("hits")?.unwrap_or(80.0),
        eviction,
        seconds,
    })
}

fn answer(site: &Site, cache: &Cache, figures: &Figures, report: Value) -> Answer {
    let mut text = String::new();
    line!(
        text,
        "{}: blocks of {}, {} blocks in a request, {}% of them found; {} for each of {} tenants; {} s\n",
        site.name,
        bytes(cache.block as f64),
        cache.blocks,
        cache.hit_percent,
        bytes(cache.bytes as f64),
        cache.rates.len(),
        cache.seconds
    );
    let time = |value: Option<f64>| value.map_or("-".to_owned(), latency);
    let heading = [
        "tenant",
        "requests/s",
        "first p50",
        "first p99",
        "read p99",
        "write p99",
        "read",
        "written",
        "evicted",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for (number, tenant) in figures.tenants.iter().enumerate() {
        rows.push(vec![
            number.to_string(),
            tenant.rate.to_string(),
            time(tenant.first_ns.map(|values| values[0])),
            time(tenant.first_ns.map(|values| values[1])),
            time(tenant.read_p99_ns),
            time(tenant.write_p99_ns),
            bandwidth(tenant.read[0]),
            bandwidth(tenant.write[0]),
            count(tenant.blocks[2] as f64),
        ]);
    }
    let first = figures.first_ns;
    rows.push(vec![
        "all".to_owned(),
        figures.tenants.iter().map(|tenant| tenant.rate).sum::<f64>().to_string(),
        time(first.map(|values| values[0])),
        time(first.map(|values| values[1])),
        time(figures.read_p99_ns),
    ]);
    text += &table(&rows);
    text.push('\n');
    let mut notes = Vec::new();
    for (number, tenant) in figures.tenants.iter().enumerate() {
        for (what, [got, asked]) in [("reads", tenant.read), ("writes", tenant.write)] {
            if asked > 0.0 && got < AS_ASKED * asked {
                notes.push(format!(
                    "tenant {number} got {} of the {} of {what} that its requests ask for: the storage does not keep up, or \
                     the time is too short for a mean",
                    bandwidth(got),
                    bandwidth(asked)
                ));
            }
        }
    }
    for note in &notes {
        line!(text, "Note: {note}.");
    }
    line!(text, "Times are from the moment of the request, whether or not the storage was ready for it.");
    let mut value = figures.json();
    value["test"] = "kv".into();
    value["target"] = site.name.clone().into();
    value["block"] = cache.block.into();
    value["blocks_per_request"] = cache.blocks.into();
    value["tenant_bytes"] = cache.bytes.into();
    value["hit_percent_asked"] = cache.hit_percent.into();
    value["seconds"] = cache.seconds.into();
    let rates: Vec<String> = figures.tenants.iter().map(|tenant| tenant.rate.to_string()).collect();
    value["rates"] = rates.join(",").into();
    value["evict"] = cache.eviction.word().into();
    value["direct"] = site.place.is_direct.into();
    value["notes"] = json!(notes);
    Answer { text, value, report, status: 0 }
}
