//! The page of a running run. Its data arrives as events (`assets/live.js` describes them); style and script are
//! separate files, so that the policy can allow only these.

use crate::html::{options, surroundings, title};
use crate::text::escaped;
use iolite_stored::NoReport;
use iolite_summary::Outcome;
use serde_json::Value;

/// The content policy: the page may only use our style and script, and send requests to its server.
pub const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; \
                          base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Its style, `style.css` next to it.
pub const STYLE: &str = concat!(include_str!("../assets/style.css"), include_str!("../assets/live.css"));

/// Its script, `script.js` next to it.
pub const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("../assets/draw.js"),
    include_str!("../assets/page.js"),
    include_str!("../assets/live.js")
);

/// The page of a run. `outline`: its report before the first measurement. `stop`: the proof that the reader may end the
/// run; `None` = not allowed. `of_hosts`: its jobs stand for machines, the first for all of them together.
///
/// # Errors
/// It is not a report.
pub fn page(outline: &Value, stop: Option<&str>, of_hosts: bool) -> Result<String, NoReport> {
    let run = Outcome::of(outline)?;
    // The first one stands for all of them.
    let title = match run.jobs.len() {
        2 if of_hosts => "One host".to_owned(),
        count if of_hosts => format!("{} hosts", count - 1),
        _ => title(&run),
    };
    let (button, proof) = match stop {
        Some(proof) => (
            "<p id=\"ending\"><button type=\"button\" id=\"stop\">End the run</button></p>\n",
            format!(" data-stop=\"{}\"", escaped(proof)),
        ),
        None => ("", String::new()),
    };
    let mut about = String::new();
    surroundings(&mut about, &run);
    if !of_hosts {
        options(&mut about, &run);
    }
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n\
         <link rel=\"stylesheet\" href=\"style.css\">\n<script defer src=\"script.js\"></script>\n</head>\n<body{proof}>\n<main>\n\
         <h1>{title}</h1>\n<p class=\"when\">{program}, running now</p>\n\
         <noscript><p class=\"notice\">This page grows while the jobs run, and needs scripts for that.</p></noscript>\n\
         <p id=\"progress\" role=\"status\">The jobs are being prepared.</p>\n<progress id=\"bar\" max=\"100\" hidden></progress>\n\
         {button}<div id=\"messages\"></div>\n<h2>The answer so far</h2>\n<div id=\"answer\"></div>\n{about}\
         <h2>Pictures</h2>\n<div id=\"pictures\"></div>\n</main>\n</body>\n</html>\n",
        program = escaped(&run.program),
    ))
}
