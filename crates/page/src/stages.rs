//! Where the time went: a table, what percentiles are made of, the run over time, and the slowest I/Os. It needs no
//! script.

use crate::text::{bytes, count, latency, limited, short};
use iolite_summary::{Outcome, Stages};
use std::fmt::Write;

/// The size of a picture.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 180.0;
/// The room for labels at the left and below.
const LEFT: f64 = 64.0;
const BELOW: f64 = 18.0;

/// The sections of all jobs that have stages.
pub fn write(page: &mut String, result: &Outcome<'_>) {
    let rows = result.jobs.iter().flat_map(|job| job.rows.iter().map(move |row| (job, row)));
    let mut with_stages = rows.filter_map(|(job, row)| Some((job, row, row.stages.as_ref()?))).peekable();
    if with_stages.peek().is_none() {
        return;
    }
    put!(page, "<h2>Where the time went</h2>\n");
    for (job, row, stages) in with_stages {
        put!(page, "<h3>{}, {}</h3>\n", short(job.name), row.direction);
        if stages.ios > 0.0 {
            table(page, stages);
            counts(page, stages);
            put!(page, "<div class=\"stages\">\n");
            made_of(page, stages);
            over_time(page, stages);
            put!(page, "</div>\n");
            slowest(page, stages);
        } else {
            counts(page, stages);
        }
    }
}

fn table(page: &mut String, stages: &Stages) {
    put!(
        page,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Stages\"><table><thead><tr>\
         <th class=\"name\" scope=\"col\">stage</th><th scope=\"col\">mean</th><th scope=\"col\">p50</th>\
         <th scope=\"col\">p99</th><th scope=\"col\">p99.9</th><th scope=\"col\">of the slowest 0.1%</th></tr></thead>\n<tbody>\n"
    );
    let whole = std::iter::once((&stages.whole, &stages.all, None));
    let each = stages.names.iter().zip(&stages.each).enumerate();
    let each = each.map(|(number, (name, figures))| (name, figures, Some(number)));
    for (name, figures, number) in each.chain(whole) {
        let share = number.and_then(|number| stages.shares.get(number));
        let share = share.map_or_else(String::new, |share| format!("{:.1}%", 100.0 * share));
        let mark =
            number.map_or_else(String::new, |number| format!("<span class=\"mark stage{number}\"></span>"));
        put!(
            page,
            "<tr><th class=\"name\" scope=\"row\">{mark}{}</th><td>{}</td>",
            short(name),
            latency(figures.mean)
        );
        for value in figures.percentiles {
            put!(page, "<td>{}</td>", latency(value));
        }
        put!(page, "<td>{share}</td></tr>\n");
    }
    put!(page, "</tbody></table></div>\n");
    if let Some((name, share)) = stages.tail() {
        let (name, share) = (short(name), 100.0 * share);
        put!(
            page,
            "<p><strong>The tail is mostly {name}</strong>: {share:.0}% of the time of the slowest 0.1%.</p>\n"
        );
    }
}

/// How many I/Os there are in it, and which are not.
fn counts(page: &mut String, stages: &Stages) {
    let mut words = vec![format!("{} I/Os matched", count(stages.ios))];
    if stages.no_device > 0.0 {
        words.push(format!(
            "{} without a device (the page cache, or a driver without a queue)",
            count(stages.no_device)
        ));
    }
    let unknown = stages.unmatched.iter().filter(|(_, number)| *number > 0.0);
    words.extend(unknown.map(|(why, number)| format!("{} not matched: {}", count(*number), short(why))));
    put!(page, "<p class=\"hint\">{}.</p>\n", words.join("; "));
}

/// What percentiles are made of: a bar for each, as wide as the percentile of the slowest is long.
fn made_of(page: &mut String, stages: &Stages) {
    const BAR: f64 = 22.0;
    let longest = stages.made_of.iter().map(|(_, parts)| parts.iter().sum::<f64>()).fold(0.0, f64::max);
    if longest <= 0.0 {
        return;
    }
    let height = stages.made_of.len() as f64 * (BAR + 8.0) + 8.0;
    figure(
        page,
        "What percentiles are made of",
        "the mean of each stage among the I/Os at that percentile",
        height,
    );
    for (row, (percentile, parts)) in stages.made_of.iter().enumerate() {
        let y = 8.0 + row as f64 * (BAR + 8.0);
        let name = percentile.trim_end_matches('0').trim_end_matches('.');
        put!(
            page,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">p{}</text>",
            LEFT - 6.0,
            y + 15.0,
            short(name)
        );
        let mut x = LEFT;
        for (number, part) in parts.iter().enumerate() {
            let width = (WIDTH - LEFT - 80.0) * part / longest;
            put!(
                page,
                "<rect class=\"stage{number}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\"><title>{} {}</title></rect>",
                short(&stages.names[number]),
                latency(*part)
            );
            x += width;
        }
        put!(page, "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>", x + 6.0, y + 15.0, latency(parts.iter().sum()));
    }
    put!(page, "</svg></figure>\n");
}

/// The mean of each stage over time, stacked.
fn over_time(page: &mut String, stages: &Stages) {
    let totals = stages.windows.iter().map(|parts| parts.iter().sum::<f64>());
    let most = totals.fold(0.0, f64::max);
    if most <= 0.0 || stages.windows.len() < 2 {
        return;
    }
    let every = crate::text::seconds(stages.window_seconds);
    figure(page, "Stages over time", &format!("means of windows of {every}"), HEIGHT + BELOW);
    let step = (WIDTH - LEFT) / stages.windows.len() as f64;
    for (position, parts) in stages.windows.iter().enumerate() {
        let mut y = HEIGHT;
        for (number, part) in parts.iter().enumerate() {
            let height = (HEIGHT - 8.0) * part / most;
            y -= height;
            let x = LEFT + step * position as f64;
            // Neighbours overlap a little, so that there are no gaps between them.
            let width = step + 0.3;
            put!(
                page,
                "<rect class=\"stage{number}\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\"/>"
            );
        }
    }
    let end = crate::text::seconds(stages.window_seconds * stages.windows.len() as f64);
    put!(
        page,
        "<path class=\"axis\" d=\"M{LEFT} 0V{HEIGHT}H{WIDTH}\"/><text x=\"{}\" y=\"14\" text-anchor=\"end\">{}</text>\
         <text x=\"{LEFT}\" y=\"{}\">0</text><text x=\"{WIDTH}\" y=\"{}\" text-anchor=\"end\">{end}</text></svg></figure>\n",
        LEFT - 6.0,
        latency(most),
        HEIGHT + 14.0,
        HEIGHT + 14.0
    );
}

fn figure(page: &mut String, title: &str, words: &str, height: f64) {
    put!(
        page,
        "<figure><figcaption>{title}<small>{words}</small></figcaption><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"{title}\">"
    );
}

/// The slowest I/Os.
fn slowest(page: &mut String, stages: &Stages) {
    put!(
        page,
        "<details><summary>The slowest {} I/Os</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"The slowest I/Os\"><table><thead><tr><th scope=\"col\">{}</th>",
        stages.slowest.len(),
        short(&stages.whole)
    );
    for name in &stages.names {
        put!(page, "<th scope=\"col\">{}</th>", short(name));
    }
    put!(
        page,
        "<th scope=\"col\">at</th><th scope=\"col\">offset</th><th scope=\"col\">bytes</th><th class=\"name\" scope=\"col\">file</th></tr></thead>\n<tbody>\n"
    );
    for io in &stages.slowest {
        put!(page, "<tr><td>{}</td>", latency(io.whole));
        for part in &io.stages {
            put!(page, "<td>{}</td>", latency(*part));
        }
        put!(
            page,
            "<td>{:.3} s</td><td>{:.0}</td><td>{}</td><td class=\"name\">{}</td></tr>\n",
            io.at,
            io.offset,
            bytes(io.length),
            limited(&io.file)
        );
    }
    put!(page, "</tbody></table></div></details>\n");
}
